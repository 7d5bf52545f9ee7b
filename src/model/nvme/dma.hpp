// SPDX-License-Identifier: MIT
// What the drive may reach: ranges of bus addresses. They differ from the process's addresses, as behind an IOMMU, so
// that an address that nobody translated is found out.
#pragma once
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

  std::uint64_t add(void* base, std::size_t bytes, memory kind);
  void remove(const void* base);
  target find(std::uint64_t bus) const;
  // Whether all of that memory is still mapped, once somebody has kept its address.
  bool holds(const std::byte* at, std::uint64_t bytes) const;
  // How often something was taken away: while it stays, so does everything that was found.
  std::uint64_t removals() const { return removals_.load(std::memory_order_acquire); }
  // Host memory of at least that many bytes, or null.
  std::byte* host(std::uint64_t bus, std::uint64_t bytes) const;

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
