// SPDX-License-Identifier: MIT
// Atomics on words of host memory, by op. Sequentially consistent.
#pragma once
#include "base/payload.hpp"

namespace xio {

// Returns the old value.
template <class T>
T change_in_host(T* at, atomic_op op, T operand, T compare) {
  switch (op) {
    case atomic_op::fetch: return __atomic_load_n(at, __ATOMIC_SEQ_CST);
    case atomic_op::swap: return __atomic_exchange_n(at, operand, __ATOMIC_SEQ_CST);
    case atomic_op::add: return __atomic_fetch_add(at, operand, __ATOMIC_SEQ_CST);
    case atomic_op::bit_and: return __atomic_fetch_and(at, operand, __ATOMIC_SEQ_CST);
    case atomic_op::bit_or: return __atomic_fetch_or(at, operand, __ATOMIC_SEQ_CST);
    case atomic_op::bit_xor: return __atomic_fetch_xor(at, operand, __ATOMIC_SEQ_CST);
    case atomic_op::compare_swap:
      __atomic_compare_exchange_n(at, &compare, operand, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
      return compare;
  }
  return 0;
}

// As payload_agent::atomic, for memory that the host reaches by itself.
inline std::uint64_t change_host_word(void* address, unsigned width, atomic_op op, std::uint64_t operand,
                                      std::uint64_t compare) {
  if (width == 8) return change_in_host(static_cast<std::uint64_t*>(address), op, operand, compare);
  return change_in_host(static_cast<std::uint32_t*>(address), op, static_cast<std::uint32_t>(operand),
                        static_cast<std::uint32_t>(compare));
}

}  // namespace xio
