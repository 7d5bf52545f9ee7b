// SPDX-License-Identifier: MIT
#include "model/nvme/dma.hpp"

#include <algorithm>

namespace xio::model::nvme {

std::uint64_t dma_map::add(void* base, std::size_t bytes, memory kind) {
  const std::uint64_t bus = reinterpret_cast<std::uint64_t>(base) + k_bus_offset;
  std::lock_guard hold(lock_);
  ranges_.push_back(range{bus, bytes, static_cast<std::byte*>(base), kind});
  return bus;
}

void dma_map::remove(const void* base) {
  std::lock_guard hold(lock_);
  const auto it = std::ranges::find_if(ranges_, [&](const range& r) { return r.base == base; });
  if (it == ranges_.end()) return;
  ranges_.erase(it);
  removals_.fetch_add(1, std::memory_order_release);
}

// Ranges may overlap (a registered part of the heap); the one that reaches farthest serves longest.
dma_map::target dma_map::find(std::uint64_t bus) const {
  std::lock_guard hold(lock_);
  target best{nullptr, 0, memory::host};
  for (const range& r : ranges_) {
    if (bus < r.bus || bus - r.bus >= r.bytes) continue;
    const std::uint64_t at = bus - r.bus;
    if (r.bytes - at > best.bytes) best = target{r.base + at, r.bytes - at, r.kind};
  }
  return best;
}

bool dma_map::holds(const std::byte* at, std::uint64_t bytes) const {
  while (bytes != 0) {
    const target t = find(reinterpret_cast<std::uint64_t>(at) + k_bus_offset);
    if (t.bytes == 0) return false;
    const std::uint64_t n = std::min(bytes, t.bytes);
    at += n;
    bytes -= n;
  }
  return true;
}

std::byte* dma_map::host(std::uint64_t bus, std::uint64_t bytes) const {
  const target t = find(bus);
  return t.kind == memory::host && t.bytes >= bytes ? t.at : nullptr;
}

}  // namespace xio::model::nvme
