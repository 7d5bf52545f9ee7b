// SPDX-License-Identifier: MIT
#include "gpu/host/handles.hpp"

#include <functional>
#include <map>

namespace xio::host_exec {
namespace {

struct noted {
  std::size_t bytes;
  hip_memory kind;
};

struct blocks {
  std::shared_mutex guard;
  std::map<const void*, noted, std::less<>> all;
};

// Never destroyed: programs free memory in their exit handlers, too.
blocks& here() {
  static auto* const b = new blocks;
  return *b;
}

}  // namespace

void note_memory(void* p, std::size_t bytes, hip_memory kind) {
  blocks& b = here();
  const std::unique_lock hold(b.guard);
  b.all.insert_or_assign(p, noted{bytes, kind});
}

bool forget_memory(void* p, hip_memory kind) {
  blocks& b = here();
  const std::unique_lock hold(b.guard);
  const auto at = b.all.find(p);
  if (at == b.all.end() || at->second.kind != kind) return false;
  b.all.erase(at);
  return true;
}

bool inside_memory(const void* p, std::size_t bytes) {
  blocks& b = here();
  const std::shared_lock hold(b.guard);
  auto at = b.all.upper_bound(p);
  if (at == b.all.begin()) return true;
  --at;
  const auto offset = static_cast<std::size_t>(static_cast<const char*>(p) - static_cast<const char*>(at->first));
  return offset >= at->second.bytes || bytes <= at->second.bytes - offset;
}

}  // namespace xio::host_exec
