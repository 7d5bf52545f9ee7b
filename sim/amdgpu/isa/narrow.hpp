// SPDX-License-Identifier: MIT
// Loads of less than a dword: how the value fills its register (MI200 ISA 9.2, "D16": the other half stays).
#pragma once
#include "amdgpu/memory/port.hpp"

namespace amdgpu {

enum class filling : std::uint8_t { zero, sign, d16, d16_hi, d16_sign, d16_hi_sign };

inline std::uint32_t filled(filling how, unsigned bytes, std::uint32_t value, std::uint32_t was) {
  const unsigned up = 32 - 8 * bytes;
  const auto extended = static_cast<std::uint32_t>(static_cast<std::int32_t>(value << up) >> up);
  switch (how) {
    case filling::zero: return value;
    case filling::sign: return extended;
    case filling::d16: return (was & 0xffff0000) | (value & 0xffff);
    case filling::d16_hi: return (was & 0xffff) | value << 16;
    case filling::d16_sign: return (was & 0xffff0000) | (extended & 0xffff);
    case filling::d16_hi_sign: return (was & 0xffff) | extended << 16;
  }
  return value;
}

// The lanes of D that are active take their values from ROW.
inline void fill_narrow(filling how, unsigned bytes, std::uint64_t active, std::uint32_t* d, const std::uint32_t* row) {
  for (; active; active &= active - 1) {
    const unsigned l = static_cast<unsigned>(__builtin_ctzll(active));
    d[l] = filled(how, bytes, row[l], d[l]);
  }
}

}  // namespace amdgpu
