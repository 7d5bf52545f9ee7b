// SPDX-License-Identifier: MIT
// What atomics compute (MI200 ISA, opcode tables of DS, MUBUF and FLAT).
#pragma once
#include <algorithm>

#include "amdgpu/memory/half.hpp"
#include "amdgpu/memory/port.hpp"

namespace amdgpu {

template <class F>
F float_changed(atomic_op op, F old, F value) {
  switch (op) {
    case atomic_op::add_float: return old + value;
    case atomic_op::min_float: return std::fmin(old, value);
    default: return std::fmax(old, value);
  }
}

// The new value.
template <class T>
T changed(atomic_op op, T old, T value, T compare) {
  using S = std::make_signed_t<T>;
  using F = std::conditional_t<sizeof(T) == 4, float, double>;
  switch (op) {
    case atomic_op::swap: return value;
    case atomic_op::cmpswap: return old == compare ? value : old;
    case atomic_op::add: return old + value;
    case atomic_op::sub: return old - value;
    case atomic_op::rsub: return value - old;
    case atomic_op::smin: return static_cast<S>(value) < static_cast<S>(old) ? value : old;
    case atomic_op::umin: return std::min(old, value);
    case atomic_op::smax: return static_cast<S>(value) > static_cast<S>(old) ? value : old;
    case atomic_op::umax: return std::max(old, value);
    case atomic_op::bit_and: return old & value;
    case atomic_op::bit_or: return old | value;
    case atomic_op::bit_xor: return old ^ value;
    case atomic_op::inc: return old >= value ? 0 : old + 1;
    case atomic_op::dec: return old == 0 || old > value ? value : old - 1;
    case atomic_op::mskor: return (old & ~compare) | value;
    case atomic_op::pk_add_f16: {
      if constexpr (sizeof(T) == 4) {
        const auto low = [](std::uint32_t x) { return std::bit_cast<half>(static_cast<std::uint16_t>(x)); };
        const auto sum = [&](std::uint32_t a, std::uint32_t b) { return half(low(a) + low(b)).bits; };
        return sum(old, value) | static_cast<std::uint32_t>(sum(old >> 16, value >> 16)) << 16;
      }
      return old;
    }
    default: return std::bit_cast<T>(float_changed<F>(op, std::bit_cast<F>(old), std::bit_cast<F>(value)));
  }
}

}  // namespace amdgpu
