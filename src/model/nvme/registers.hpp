// SPDX-License-Identifier: MIT
// BAR0 of the drive: plain memory in which the driver writes and the drive looks.
#pragma once
#include <cstddef>
#include <optional>

#include "xio/wire/nvme.hpp"

namespace xio::model::nvme {

class registers {
 public:
  // A doorbell holds this as long as it is not written after the drive's last poll. That way a second write of the same
  // value is seen, which the driver must not do. Bits 31:16 of a doorbell are reserved, so no sane driver writes this.
  static constexpr std::uint32_t k_untouched = 0x9d0e5b17;

  explicit registers(void* bar) : bar_(static_cast<std::byte*>(bar)) {}

  std::uint32_t read32(std::uint32_t offset) const { return __atomic_load_n(at32(offset), __ATOMIC_ACQUIRE); }
  std::uint64_t read64(std::uint32_t offset) const {
    return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(bar_ + offset), __ATOMIC_ACQUIRE);
  }
  void write32(std::uint32_t offset, std::uint32_t value) { __atomic_store_n(at32(offset), value, __ATOMIC_RELEASE); }
  void write64(std::uint32_t offset, std::uint64_t value) {
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(bar_ + offset), value, __ATOMIC_RELEASE);
  }

  // The last value written to a doorbell since the last call.
  std::optional<std::uint32_t> take(std::uint32_t doorbell) {
    if (__atomic_load_n(at32(doorbell), __ATOMIC_RELAXED) == k_untouched) return std::nullopt;
    return __atomic_exchange_n(at32(doorbell), k_untouched, __ATOMIC_ACQ_REL);
  }
  void forget(std::uint32_t doorbell) { write32(doorbell, k_untouched); }

 private:
  std::uint32_t* at32(std::uint32_t offset) const { return reinterpret_cast<std::uint32_t*>(bar_ + offset); }

  std::byte* bar_;
};

}  // namespace xio::model::nvme
