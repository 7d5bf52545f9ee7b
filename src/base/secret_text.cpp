// SPDX-License-Identifier: MIT
#include "base/secret_text.hpp"

#include <cstring>

namespace xio {

secret_text::~secret_text() {
  if (!bytes_.empty()) explicit_bzero(bytes_.data(), bytes_.size());
}

}  // namespace xio
