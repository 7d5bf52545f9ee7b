// SPDX-License-Identifier: MIT
#include "tools/backends.hpp"
#include "xio/internal.h"

namespace xio::tools {
namespace {

using backends = std::vector<std::pair<std::string, std::string>>;

extern "C" void add_backend(void* all, const char* engine, const char* backend) {
  static_cast<backends*>(all)->emplace_back(engine, backend);
}

}  // namespace

backends opened_backends() {
  backends all;
  xio_internal_backends(add_backend, &all);
  return all;
}

bool is_model(const std::string& backend) { return backend.find("model") != std::string::npos; }

}  // namespace xio::tools
