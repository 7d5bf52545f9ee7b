// SPDX-License-Identifier: MIT
// Integer VALU instructions of 32 and 64 bits (MI200 ISA 12.7 to 12.10).
#include <limits>

#include "amdgpu/isa/valu.hpp"

namespace amdgpu {
namespace {

// ---- carries -------------------------------------------------------------------------------------------------------

// d = a + b + carry, or a - b - borrow; the mask is what flows over.
template <bool borrow, bool reversed, bool takes>
u64 carried(u32* d, const u32* a, const u32* b, const u32*, u64 mask) {
  alignas(64) u32 in[lanes], out[lanes];
  if (takes) expand(mask, in);
  const u32* const x = reversed ? b : a;
  const u32* const y = reversed ? a : b;
  AMDGPU_LANES_APART
  for (unsigned l = 0; l < lanes; ++l) {
    const u32 p = x[l], q = y[l];
    const u32 c = takes ? in[l] & 1 : 0;
    const u32 r = borrow ? p - q - c : p + q + c;
    const bool over = borrow ? (takes ? p < q || (p == q && c) : p < q) : (takes ? r < p || (r == p && c) : r < p);
    out[l] = over ? ~u32{0} : 0;
    d[l] = r;
  }
  return collect(out);
}

u64 selected(u32* d, const u32* a, const u32* b, const u32*, u64 mask) {
  alignas(64) u32 row[lanes];
  expand(mask, row);
  AMDGPU_LANES_APART
  for (unsigned l = 0; l < lanes; ++l) d[l] = (b[l] & row[l]) | (a[l] & ~row[l]);
  return 0;
}

u64 mad_u64(u32* d, const u32* a, const u32* b, const u32* c, u64) {
  u64 over = 0;
  for (unsigned l = 0; l < lanes; ++l) {
    const u64 product = u64{a[l]} * b[l], sum = product + wide(c, l);
    over |= static_cast<u64>(sum < product) << l;
    put(d, l, sum);
  }
  return over;
}

u64 mad_i64(u32* d, const u32* a, const u32* b, const u32* c, u64) {
  u64 over = 0;
  for (unsigned l = 0; l < lanes; ++l) {
    const i64 product = i64{static_cast<i32>(a[l])} * static_cast<i32>(b[l]);
    i64 sum = 0;
    over |= static_cast<u64>(__builtin_add_overflow(product, static_cast<i64>(wide(c, l)), &sum)) << l;
    put(d, l, sum);
  }
  return over;
}

// ---- bits ----------------------------------------------------------------------------------------------------------

u32 field_u(u32 a, u32 b, u32 c) {
  const u32 offset = b & 31, width = c & 31;
  return width == 0 ? 0 : (a >> offset) & ((1u << width) - 1);
}

i32 field_i(u32 a, u32 b, u32 c) {
  const u32 offset = b & 31, width = c & 31;
  if (width == 0) return 0;
  if (offset + width >= 32) return static_cast<i32>(a) >> offset;
  return static_cast<i32>(a << (32 - offset - width)) >> (32 - width);
}

u32 reversed_bits(u32 a) {
  a = (a >> 1 & 0x55555555) | (a & 0x55555555) << 1;
  a = (a >> 2 & 0x33333333) | (a & 0x33333333) << 2;
  a = (a >> 4 & 0x0f0f0f0f) | (a & 0x0f0f0f0f) << 4;
  return __builtin_bswap32(a);
}

u32 bits_set(u32 a) {
  a = a - (a >> 1 & 0x55555555);
  a = (a & 0x33333333) + (a >> 2 & 0x33333333);
  return ((a + (a >> 4)) & 0x0f0f0f0f) * 0x01010101 >> 24;
}

i32 sign_bits(i32 a) {
  const u32 u = static_cast<u32>(a < 0 ? ~a : a);
  return u ? std::countl_zero(u) : -1;
}

// v_perm_b32: bytes of {a, b}, signs of b's and a's halves, 0, 0xff.
u32 permuted(u32 a, u32 b, u32 selector) {
  const u64 data = u64{a} << 32 | b;
  u32 d = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const u32 s = selector >> (8 * i) & 0xff;
    u32 byte = 0xff;
    if (s < 8)
      byte = data >> (8 * s) & 0xff;
    else if (s < 12)
      byte = data >> (16 * (s - 8) + 15) & 1 ? 0xff : 0;
    else if (s == 12)
      byte = 0;
    d |= byte << (8 * i);
  }
  return d;
}

template <class T>
T middle(T a, T b, T c) {
  const T low = a < b ? a : b, high = a < b ? b : a;
  return c < low ? low : (c > high ? high : c);
}

u32 sum_of_differences(u32 a, u32 b, u32 c, u32 bits) {
  const u32 ones = bits == 32 ? ~u32{0} : (1u << bits) - 1;
  for (u32 at = 0; at < 32; at += bits) {
    const u32 x = a >> at & ones, y = b >> at & ones;
    c += x > y ? x - y : y - x;
  }
  return c;
}

u64 count_below_low(u32* d, const u32* a, const u32* b, const u32*, u64) {
  for (unsigned l = 0; l < lanes; ++l) d[l] = b[l] + bits_set(a[l] & (l < 32 ? (1u << l) - 1 : ~u32{0}));
  return 0;
}

u64 count_below_high(u32* d, const u32* a, const u32* b, const u32*, u64) {
  for (unsigned l = 0; l < lanes; ++l) d[l] = b[l] + (l > 32 ? bits_set(a[l] & ((1u << (l - 32)) - 1)) : 0);
  return 0;
}

i32 saturated(i64 x) {
  constexpr i64 low = std::numeric_limits<i32>::min(), high = std::numeric_limits<i32>::max();
  return static_cast<i32>(x < low ? low : (x > high ? high : x));
}

i32 low24(u32 a) { return static_cast<i32>(a << 8) >> 8; }
constexpr u32 ones24 = 0xffffff;

#define I1(name, f) row(name, "i=i", vop, each<u32, [](u32 a) -> u32 { return static_cast<u32>(f); }>)
#define I2(name, f) row(name, "i=ii", vop, each<u32, u32, [](u32 a, u32 b) -> u32 { return static_cast<u32>(f); }>)
#define S2(name, f) row(name, "i=ii", vop, each<i32, i32, [](i32 a, i32 b) -> i32 { return (f); }>)
#define I3(name, f) \
  row(name, "i=iii", vop, each<u32, u32, u32, [](u32 a, u32 b, u32 c) -> u32 { return static_cast<u32>(f); }>)
#define S3(name, f) row(name, "i=iii", vop, each<i32, i32, i32, [](i32 a, i32 b, i32 c) -> i32 { return (f); }>)

constexpr row rows[] = {
    I1("v_mov_b32", a),
    I1("v_not_b32", ~a),
    I1("v_bfrev_b32", reversed_bits(a)),
    I1("v_ffbh_u32", a ? std::countl_zero(a) : -1),
    I1("v_ffbl_b32", a ? std::countr_zero(a) : -1),
    I1("v_ffbh_i32", sign_bits(static_cast<i32>(a))),
    {"v_mov_b64", "q=q", vop, each<u64, [](u64 a) { return a; }>},

    I2("v_add_u32", a + b),
    I2("v_sub_u32", a - b),
    I2("v_subrev_u32", b - a),
    I2("v_add_i32", a + b),
    I2("v_sub_i32", a - b),
    I2("v_and_b32", a& b),
    I2("v_or_b32", a | b),
    I2("v_xor_b32", a ^ b),
    I2("v_xnor_b32", ~(a ^ b)),
    I2("v_lshlrev_b32", b << (a & 31)),
    I2("v_lshrrev_b32", b >> (a & 31)),
    I2("v_ashrrev_i32", static_cast<i32>(b) >> (a & 31)),
    I2("v_min_u32", a < b ? a : b),
    I2("v_max_u32", a < b ? b : a),
    S2("v_min_i32", a < b ? a : b),
    S2("v_max_i32", a < b ? b : a),
    I2("v_mul_lo_u32", a* b),
    I2("v_mul_hi_u32", u64{a} * b >> 32),
    S2("v_mul_hi_i32", static_cast<i32>(i64{a} * b >> 32)),
    I2("v_mul_u32_u24", (a & ones24) * (b & ones24)),
    I2("v_mul_hi_u32_u24", u64{a & ones24} * (b & ones24) >> 32),
    I2("v_mul_i32_i24", low24(a) * i64{low24(b)}),
    I2("v_mul_hi_i32_i24", i64{low24(a)} * low24(b) >> 32),
    I2("v_bfm_b32", ((1u << (a & 31)) - 1) << (b & 31)),
    I2("v_bcnt_u32_b32", bits_set(a) + b),
    {"v_mbcnt_lo_u32_b32", "i=ii", vop, count_below_low},
    {"v_mbcnt_hi_u32_b32", "i=ii", vop, count_below_high},
    I2("v_cvt_pk_u16_u32", (a < 0xffff ? a : 0xffff) | (b < 0xffff ? b : 0xffff) << 16),

    I2("v_add_u32 clamp", a + b < a ? ~0u : a + b),
    I2("v_sub_u32 clamp", a < b ? 0 : a - b),
    I2("v_subrev_u32 clamp", b < a ? 0 : b - a),
    S2("v_add_i32 clamp", saturated(i64{a} + b)),
    S2("v_sub_i32 clamp", saturated(i64{a} - b)),

    I3("v_mad_u32_u24", (a & ones24) * (b & ones24) + c),
    I3("v_mad_i32_i24", static_cast<u32>(low24(a) * i64{low24(b)}) + c),
    I3("v_bfe_u32", field_u(a, b, c)),
    I3("v_bfe_i32", field_i(a, b, c)),
    I3("v_bfi_b32", (a & b) | (~a & c)),
    I3("v_alignbit_b32", (u64{a} << 32 | b) >> (c & 31)),
    I3("v_alignbyte_b32", (u64{a} << 32 | b) >> (8 * (c & 3))),
    I3("v_perm_b32", permuted(a, b, c)),
    I3("v_add3_u32", a + b + c),
    I3("v_lshl_add_u32", (a << (b & 31)) + c),
    I3("v_add_lshl_u32", (a + b) << (c & 31)),
    I3("v_lshl_or_b32", a << (b & 31) | c),
    I3("v_and_or_b32", (a & b) | c),
    I3("v_or3_b32", a | b | c),
    I3("v_xad_u32", (a ^ b) + c),
    I3("v_min3_u32", a < b ? (a < c ? a : c) : (b < c ? b : c)),
    I3("v_max3_u32", a < b ? (b < c ? c : b) : (a < c ? c : a)),
    I3("v_med3_u32", middle(a, b, c)),
    S3("v_min3_i32", a < b ? (a < c ? a : c) : (b < c ? b : c)),
    S3("v_max3_i32", a < b ? (b < c ? c : b) : (a < c ? c : a)),
    S3("v_med3_i32", middle(a, b, c)),
    I3("v_sad_u8", sum_of_differences(a, b, c, 8)),
    I3("v_sad_u16", sum_of_differences(a, b, c, 16)),
    I3("v_sad_u32", sum_of_differences(a, b, c, 32)),
    I3("v_sad_hi_u8", (sum_of_differences(a, b, 0, 8) << 16) + c),

    {"v_lshlrev_b64", "q=iq", vop, each<u32, u64, [](u32 a, u64 b) -> u64 { return b << (a & 63); }>},
    {"v_lshrrev_b64", "q=iq", vop, each<u32, u64, [](u32 a, u64 b) -> u64 { return (b >> (a & 63)); }>},
    {"v_ashrrev_i64", "q=il", vop, each<u32, i64, [](u32 a, i64 b) -> i64 { return (b >> (a & 63)); }>},
    {"v_lshl_add_u64", "q=qiq", vop,
     each<u64, u32, u64, [](u64 a, u32 b, u64 c) -> u64 { return (a << (b & 63)) + c; }>},

    {"v_add_co_u32", "im=ii", vop_mask, carried<false, false, false>},
    {"v_sub_co_u32", "im=ii", vop_mask, carried<true, false, false>},
    {"v_subrev_co_u32", "im=ii", vop_mask, carried<true, true, false>},
    {"v_addc_co_u32", "im=iim", vop_mask, carried<false, false, true>},
    {"v_subb_co_u32", "im=iim", vop_mask, carried<true, false, true>},
    {"v_subbrev_co_u32", "im=iim", vop_mask, carried<true, true, true>},
    {"v_cndmask_b32", "i=iim", vop_mask, selected},
    {"v_mad_u64_u32", "qm=iiq", vop_mask, mad_u64},
    {"v_mad_i64_i32", "qm=iil", vop_mask, mad_i64},
};

}  // namespace

table valu_integer_rows() { return rows; }

}  // namespace amdgpu
