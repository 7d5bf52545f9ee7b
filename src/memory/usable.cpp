// SPDX-License-Identifier: MIT
#include "memory/usable.hpp"
#include "base/error.hpp"
#include "gpu/memory.hpp"

namespace xio::memory {
namespace {

bool on_device(const void* address) {
  const gpu::residence side = gpu::locate(address).where;
  return side == gpu::residence::device || side == gpu::residence::both;
}

}  // namespace

std::string not_usable(const std::vector<mapping>& mapped, std::uint64_t first, std::uint64_t last, bool any_rights) {
  for (const mapping& m : mapped) {
    if (m.begin > first) break;
    if (m.end <= first) continue;
    if (!any_rights && !m.readable) return fmt::format("what is mapped at {:#x} may not be read", first);
    if (!any_rights && !m.writable) return fmt::format("what is mapped at {:#x} may not be written", first);
    first = m.end;
    if (first >= last) return "";
  }
  return fmt::format("nothing is mapped at {:#x}", first);
}

void check_usable(const void* base, std::uint64_t bytes, const char* function) {
  const auto first = reinterpret_cast<std::uint64_t>(base);
  std::string why;
  if (on_device(base)) {
    // Between the ends there may be several allocations side by side, which is for the engines to judge.
    const void* end = static_cast<const char*>(base) + (bytes - 1);
    if (!on_device(end)) why = fmt::format("its last byte, at {}, is no memory of the GPU as the first is", end);
  } else if (const auto mapped = plain_mappings(first, first + bytes)) {
    why = not_usable(*mapped, first, first + bytes, gpu::has_device_memory());
  }
  if (!why.empty())
    fail(XIO_ERR_ARG, "{}: engines cannot read and write {} bytes at {}: {}; check address and length", function, bytes,
         base, why);
}

}  // namespace xio::memory
