// SPDX-License-Identifier: MIT
// Numbers of software NICs' queue pairs.
#pragma once
#include <cstdint>

namespace xio::proxy {

// The narrowest queue number of all families (bnxt_re: 20 bits); those below 64 are hardware's own.
constexpr std::uint32_t k_number_mask = 0xfffff;
constexpr std::uint32_t k_first_number = 64;
// NICs of one owner, whose seeds follow each other, never have a number in common.
constexpr std::uint32_t k_number_step = 4;
// Those of a seed; then come the next seed's.
constexpr std::uint32_t k_numbers_of_seed = 2048;
constexpr std::uint32_t k_orders = k_numbers_of_seed / k_number_step;

constexpr std::uint32_t first_number(std::uint32_t seed) {
  return k_first_number + (seed & 0xff) * k_numbers_of_seed + seed % k_number_step;
}
// As which one the queue pair was made on its NIC, modulo k_orders.
constexpr std::uint32_t order_of(std::uint32_t number) {
  return (number - k_first_number) % k_numbers_of_seed / k_number_step;
}

}  // namespace xio::proxy
