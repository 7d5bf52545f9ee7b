// SPDX-License-Identifier: MIT
// A PCI MMIO bridge with one device behind it: reads its command ring and does what it says to that device's BAR 0.
#pragma once
#include "progress/machine.hpp"
#include "xio/wire/mmio_bridge.hpp"

namespace xio::model::nvme {

class mmio_bridge : public progress::device {
 public:
  // ring: zeroed memory of `bytes`, which gets its metadata here. registers: BAR 0 of the device at `bdf`.
  mmio_bridge(std::byte* ring, std::size_t bytes, std::uint32_t bdf, void* registers,
              std::size_t register_bytes = ~std::size_t{0});
  bool poll() override;
  std::uint64_t writes() const { return writes_.load(std::memory_order_relaxed); }
  std::uint64_t errors() const { return errors_.load(std::memory_order_relaxed); }

 private:
  void execute(wire::mmio_bridge::command& c);

  std::byte* ring_;
  std::uint32_t depth_, bdf_;
  unsigned char* registers_;
  std::size_t register_bytes_;
  std::uint32_t next_ = 0;
  std::atomic<std::uint64_t> writes_{0}, errors_{0};
};

}  // namespace xio::model::nvme
