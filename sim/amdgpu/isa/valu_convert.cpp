// SPDX-License-Identifier: MIT
// Conversions between integers, halves, floats and doubles (MI200 ISA 12.7, V_CVT_*).
#include <limits>

#include "amdgpu/isa/valu.hpp"

namespace amdgpu {
namespace {

// Floating point to integer, towards zero: what is out of range becomes the nearest end, a NaN becomes 0.
template <class To, class From>
To clamped(From x) {
  constexpr From low = static_cast<From>(std::numeric_limits<To>::min());
  // One above the greatest value is a power of two and exact in every type.
  constexpr From above = static_cast<From>(std::numeric_limits<To>::max() / 2 + 1) * 2;
  if (x != x) return 0;
  if (x <= low) return std::numeric_limits<To>::min();
  if (x >= above) return std::numeric_limits<To>::max();
  return static_cast<To>(x);
}

// A float as a half, rounded towards zero.
u16 half_towards_zero(float x) {
  const half nearest = static_cast<half>(x);
  u16 bits = std::bit_cast<u16>(nearest);
  const float back = static_cast<float>(nearest);
  if (x == x && std::fabs(back) > std::fabs(x) && !std::isinf(x)) --bits;
  return bits;
}

u32 pair(u16 low, u16 high) { return low | static_cast<u32>(high) << 16; }

i16 normalized_i16(float x) {
  return static_cast<i16>(clamped<i32>(std::nearbyint(x < -1 ? -32767 : (x > 1 ? 32767 : x * 32767))));
}
u16 normalized_u16(float x) {
  return static_cast<u16>(clamped<u32>(std::nearbyint(x > 1 ? 65535 : (x < 0 ? 0 : x * 65535))));
}

u32 byte_put(float x, u32 which, u32 into) {
  const u32 shift = 8 * (which & 3);
  const i32 value = clamped<i32>(x);
  const u32 byte = static_cast<u32>(value < 0 ? 0 : (value > 255 ? 255 : value));
  return (into & ~(0xffu << shift)) | byte << shift;
}

i32 saturated16(i32 x) { return x < -32768 ? -32768 : (x > 32767 ? 32767 : x); }

#define CONVERT(name, form, A, R, f) row(name, form, vop, each<A, [](A a) -> R { return (f); }>)
#define PACK(name, form, A, f) row(name, form, vop, each<A, A, [](A a, A b) -> u32 { return (f); }>)

constexpr row rows[] = {
    CONVERT("v_cvt_f32_i32", "f=i", i32, float, static_cast<float>(a)),
    CONVERT("v_cvt_f32_u32", "f=i", u32, float, static_cast<float>(a)),
    CONVERT("v_cvt_u32_f32", "i=f", float, u32, clamped<u32>(a)),
    CONVERT("v_cvt_i32_f32", "i=f", float, i32, clamped<i32>(a)),
    CONVERT("v_cvt_rpi_i32_f32", "i=f", float, i32, clamped<i32>(std::floor(a + 0.5f))),
    CONVERT("v_cvt_flr_i32_f32", "i=f", float, i32, clamped<i32>(std::floor(a))),
    CONVERT("v_cvt_f16_f32", "h=f", float, half, static_cast<half>(a)),
    CONVERT("v_cvt_f32_f16", "f=h", half, float, static_cast<float>(a)),
    CONVERT("v_cvt_f32_f64", "f=d", double, float, static_cast<float>(a)),
    CONVERT("v_cvt_f64_f32", "d=f", float, double, static_cast<double>(a)),
    CONVERT("v_cvt_f64_i32", "d=i", i32, double, static_cast<double>(a)),
    CONVERT("v_cvt_f64_u32", "d=i", u32, double, static_cast<double>(a)),
    CONVERT("v_cvt_i32_f64", "i=d", double, i32, clamped<i32>(a)),
    CONVERT("v_cvt_u32_f64", "i=d", double, u32, clamped<u32>(a)),
    CONVERT("v_cvt_f32_ubyte0", "f=i", u32, float, static_cast<float>(a & 0xff)),
    CONVERT("v_cvt_f32_ubyte1", "f=i", u32, float, static_cast<float>(a >> 8 & 0xff)),
    CONVERT("v_cvt_f32_ubyte2", "f=i", u32, float, static_cast<float>(a >> 16 & 0xff)),
    CONVERT("v_cvt_f32_ubyte3", "f=i", u32, float, static_cast<float>(a >> 24)),
    CONVERT("v_cvt_off_f32_i4", "f=i", u32, float, static_cast<float>(static_cast<i32>(a << 28) >> 28) / 16),
    CONVERT("v_cvt_f16_u16", "h=w", u16, half, static_cast<half>(a)),
    CONVERT("v_cvt_f16_i16", "h=w", i16, half, static_cast<half>(a)),
    CONVERT("v_cvt_u16_f16", "w=h", half, u16, clamped<u16>(static_cast<float>(a))),
    CONVERT("v_cvt_i16_f16", "w=h", half, i16, clamped<i16>(static_cast<float>(a))),
    PACK("v_cvt_pkrtz_f16_f32", "i=ff", float, pair(half_towards_zero(a), half_towards_zero(b))),
    PACK("v_cvt_pknorm_i16_f32", "i=ff", float,
         pair(static_cast<u16>(normalized_i16(a)), static_cast<u16>(normalized_i16(b)))),
    PACK("v_cvt_pknorm_u16_f32", "i=ff", float, pair(normalized_u16(a), normalized_u16(b))),
    PACK("v_cvt_pk_i16_i32", "i=ii", i32, pair(static_cast<u16>(saturated16(a)), static_cast<u16>(saturated16(b)))),
    {"v_cvt_pk_u8_f32", "i=fii", vop, each<float, u32, u32, [](float a, u32 b, u32 c) { return byte_put(a, b, c); }>},
};

}  // namespace

table valu_convert_rows() { return rows; }

}  // namespace amdgpu
