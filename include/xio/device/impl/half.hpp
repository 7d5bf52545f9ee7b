// SPDX-License-Identifier: MIT
// Floating-point numbers of two bytes, as reduces take them. Programs have types of their own for these (__half,
// __hip_bfloat16, _Float16): a pointer to one is cast to a pointer to the type here of the same bits.
#pragma once
#include "xio/device/impl/rma.hpp"

struct xio_half_t {
  uint16_t bits;  // IEEE binary16
};
struct xio_bfloat16_t {
  uint16_t bits;  // the upper half of a float
};

namespace xio::dev {

XIO_DEVICE float value_of(xio_bfloat16_t v) { return bit_copy<float>(u32{v.bits} << 16); }
// To the nearest, ties to even.
XIO_DEVICE void set_value(xio_bfloat16_t* to, float value) {
  const u32 x = bit_copy<u32>(value);
  const bool nan = (x & 0x7fffffff) > 0x7f800000;
  to->bits = static_cast<u16>(nan ? (x >> 16) | 0x40 : (x + 0x7fff + (x >> 16 & 1)) >> 16);
}

XIO_DEVICE float value_of(xio_half_t v) {
#if defined(XIO_ON_HIP)
  return static_cast<float>(bit_copy<_Float16>(v));
#elif defined(XIO_ON_CUDA)
  return ptx::float_of_half(v.bits);
#else
  const u32 sign = (v.bits & 0x8000u) << 16, exponent = v.bits >> 10 & 31, fraction = v.bits & 1023u;
  if (exponent == 0) {
    const float small = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -small : small;
  }
  return bit_copy<float>(sign | (exponent == 31 ? 255 : exponent + 112) << 23 | fraction << 13);
#endif
}
XIO_DEVICE void set_value(xio_half_t* to, float value) {
#if defined(XIO_ON_HIP)
  *to = bit_copy<xio_half_t>(static_cast<_Float16>(value));
#elif defined(XIO_ON_CUDA)
  to->bits = ptx::half_of_float(value);
#else
  const u32 all = bit_copy<u32>(value), sign = all >> 16 & 0x8000, x = all & 0x7fffffff;
  u32 bits = 0;
  if (x > 0x7f800000) {
    bits = 0x7e00;
  } else if (x >= 0x477ff000) {
    bits = 0x7c00;  // what rounds to more than the largest number
  } else if (x < 0x38800000) {
    bits =
        bit_copy<u32>(bit_copy<float>(x) + 0.5f) - 0x3f000000;  // a half's steps here are those of a float from 0.5 on
  } else {
    bits = (x - (112u << 23) + 0xfff + (x >> 13 & 1)) >> 13;
  }
  to->bits = static_cast<u16>(sign | bits);
#endif
}

}  // namespace xio::dev
