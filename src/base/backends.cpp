// SPDX-License-Identifier: MIT
#include "base/backends.hpp"

#include <algorithm>
#include <mutex>

#include "base/log.hpp"

namespace xio {
namespace {

struct notes {
  std::mutex lock;
  std::vector<std::pair<std::string, std::string>> all;
};

notes& kept() {
  // Never destroyed: engines open and close whenever a program likes.
  static auto* one = new notes;
  return *one;
}

}  // namespace

void note_backend(const std::string& engine, const std::string& backend) {
  log::info("{}: {}", engine, backend);
  notes& n = kept();
  const std::lock_guard hold(n.lock);
  const auto at = std::ranges::find_if(n.all, [&](const auto& one) { return one.first == engine; });
  if (at != n.all.end())
    at->second = backend;
  else
    n.all.emplace_back(engine, backend);
}

std::vector<std::pair<std::string, std::string>> noted_backends() {
  notes& n = kept();
  const std::lock_guard hold(n.lock);
  return n.all;
}

}  // namespace xio
