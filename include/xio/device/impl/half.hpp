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

XIO_DEVICE float value_of(xio_half_t v) { return float_of_half(v.bits); }
XIO_DEVICE void set_value(xio_half_t* to, float value) { to->bits = half_of_float(value); }

}  // namespace xio::dev
