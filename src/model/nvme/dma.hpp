// SPDX-License-Identifier: MIT
// What the drive may reach: ranges of bus addresses. They differ from the process's addresses, as behind an IOMMU, so
// that an address that nobody translated is found out.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace xio::model::nvme {

class dma_map {
 public:
  // The same for every drive, because one registration serves all of them. Keeps the offset in the page.
  static constexpr std::uint64_t k_bus_offset = std::uint64_t{1} << 60;

  enum class memory {
    host,        // queues and lists: plain host memory
    payload,     // what payload_agent reaches
    in_the_host  // payload that lies in host memory: the operating system reads and writes it by itself
  };
  struct target {
    std::byte* at;
    std::uint64_t bytes;  // to the end of the range; 0: nothing is mapped there
    memory kind;
  };

  std::uint64_t add(void* base, std::size_t bytes, memory kind) {
    const std::uint64_t bus = reinterpret_cast<std::uint64_t>(base) + k_bus_offset;
    std::lock_guard hold(lock_);
    ranges_.push_back(range{bus, bytes, static_cast<std::byte*>(base), kind});
    return bus;
  }
  void remove(const void* base) {
    std::lock_guard hold(lock_);
    const auto it = std::ranges::find_if(ranges_, [&](const range& r) { return r.base == base; });
    if (it == ranges_.end()) return;
    ranges_.erase(it);
    removals_.fetch_add(1, std::memory_order_release);
  }
  // Ranges may overlap (a registered part of the heap); the one that reaches farthest serves longest.
  target find(std::uint64_t bus) const {
    std::lock_guard hold(lock_);
    target best{nullptr, 0, memory::host};
    for (const range& r : ranges_) {
      if (bus < r.bus || bus - r.bus >= r.bytes) continue;
      const std::uint64_t at = bus - r.bus;
      if (r.bytes - at > best.bytes) best = target{r.base + at, r.bytes - at, r.kind};
    }
    return best;
  }
  // Whether all of that memory is still mapped, once somebody has kept its address.
  bool holds(const std::byte* at, std::uint64_t bytes) const {
    while (bytes != 0) {
      const target t = find(reinterpret_cast<std::uint64_t>(at) + k_bus_offset);
      if (t.bytes == 0) return false;
      const std::uint64_t n = std::min(bytes, t.bytes);
      at += n;
      bytes -= n;
    }
    return true;
  }
  // How often something was taken away: while it stays, so does everything that was found.
  std::uint64_t removals() const { return removals_.load(std::memory_order_acquire); }
  // Host memory of at least that many bytes, or null.
  std::byte* host(std::uint64_t bus, std::uint64_t bytes) const {
    const target t = find(bus);
    return t.kind == memory::host && t.bytes >= bytes ? t.at : nullptr;
  }

 private:
  struct range {
    std::uint64_t bus, bytes;
    std::byte* base;
    memory kind;
  };
  mutable std::mutex lock_;
  std::vector<range> ranges_;
  std::atomic<std::uint64_t> removals_{0};
};

}  // namespace xio::model::nvme
