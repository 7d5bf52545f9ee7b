// SPDX-License-Identifier: MIT
// Numbers of two bytes where the machine has no instruction for them. Part of host.hpp.
#if defined(XIO_ON_HOST) && !defined(XIO_DEVICE_HALF_BY_BITS_HPP)
#define XIO_DEVICE_HALF_BY_BITS_HPP

namespace xio::dev {

XIO_DEVICE float float_of_half(u16 half) {
  const u32 sign = (half & 0x8000u) << 16, exponent = half >> 10 & 31, fraction = half & 1023u;
  if (exponent == 0) {
    const float small = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -small : small;
  }
  return __builtin_bit_cast(float, sign | (exponent == 31 ? 255 : exponent + 112) << 23 | fraction << 13);
}

XIO_DEVICE u16 half_of_float(float value) {
  const u32 all = __builtin_bit_cast(u32, value), sign = all >> 16 & 0x8000, x = all & 0x7fffffff;
  u32 bits = 0;
  if (x > 0x7f800000) {
    bits = 0x7e00;
  } else if (x >= 0x477ff000) {
    bits = 0x7c00;  // what rounds to more than the largest number
  } else if (x < 0x38800000) {
    // A half's steps here are those of a float from 0.5 on.
    bits = __builtin_bit_cast(u32, __builtin_bit_cast(float, x) + 0.5f) - 0x3f000000;
  } else {
    bits = (x - (112u << 23) + 0xfff + (x >> 13 & 1)) >> 13;
  }
  return static_cast<u16>(sign | bits);
}

}  // namespace xio::dev

#endif
