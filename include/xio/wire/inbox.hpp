// SPDX-License-Identifier: MIT
// Layout of an inbox, which holds the immediates that one PE has sent: two counters on lines of their own, which only
// grow, then the entries (a power of two). An entry says of which lap it is: zeroes are of none.
#pragma once
#include <cstdint>

#include "xio/wire/endian.hpp"

namespace xio::wire::inbox {

constexpr std::uint64_t k_head_at = 0;    // taken by readers
constexpr std::uint64_t k_tail_at = 128;  // claimed by writers
constexpr std::uint64_t k_entries_at = 256;
constexpr std::uint32_t k_least_entries = 2;
constexpr std::uint32_t k_most_entries = 65536;

XIO_WIRE std::uint64_t bytes(std::uint32_t entries) {
  return (k_entries_at + entries * sizeof(std::uint64_t) + 127) / 128 * 128;
}
XIO_WIRE std::uint64_t entry_at(std::uint64_t place, std::uint32_t entries) {
  return k_entries_at + (place & (entries - 1)) * sizeof(std::uint64_t);
}
XIO_WIRE std::uint64_t entry(std::uint64_t place, std::uint32_t entries, std::uint32_t immediate) {
  return (place / entries + 1) << 32 | immediate;
}

}  // namespace xio::wire::inbox
