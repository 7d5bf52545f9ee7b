// SPDX-License-Identifier: MIT
// VOP3P: two 16-bit values in a dword, or two floats in a pair of registers (MI200 ISA 6.7 and 12.11). op_sel and neg
// have been applied to the sources before.
#include "amdgpu/isa/valu.hpp"

namespace amdgpu {
namespace {

template <class T>
T low_of(u32 x) {
  return std::bit_cast<T>(static_cast<u16>(x));
}
template <class T>
T high_of(u32 x) {
  return std::bit_cast<T>(static_cast<u16>(x >> 16));
}
template <class T>
u32 joined(T low, T high) {
  return std::bit_cast<u16>(low) | static_cast<u32>(std::bit_cast<u16>(high)) << 16;
}

template <class T, auto f>
u64 pairs(u32* d, const u32* a, const u32* b, const u32* c, u64) {
  for (unsigned l = 0; l < lanes; ++l) {
    const u32 z = c ? c[l] : 0;
    d[l] = joined<T>(static_cast<T>(f(low_of<T>(a[l]), low_of<T>(b[l]), low_of<T>(z))),
                     static_cast<T>(f(high_of<T>(a[l]), high_of<T>(b[l]), high_of<T>(z))));
  }
  return 0;
}

template <auto f>
u64 float_pairs(u32* d, const u32* a, const u32* b, const u32* c, u64) {
  AMDGPU_LANES_APART
  for (unsigned l = 0; l < lanes; ++l) {
    const float x = f(lane<float>(a, l), lane<float>(b, l), c ? lane<float>(c, l) : 0.0f);
    const float y = f(lane<float>(a + lanes, l), lane<float>(b + lanes, l), c ? lane<float>(c + lanes, l) : 0.0f);
    put(d, l, x);
    put(d + lanes, l, y);
  }
  return 0;
}

// v_pk_mov_b32: the low result of source 0, the high one of source 1, each half chosen by op_sel alone.
void pk_mov(wave& w, const operation& o) {
  alignas(64) u32 room[2][2 * lanes];
  alignas(64) u32 r[2 * lanes];
  if (w.exec() == 0) return;
  for (unsigned i = 0; i < 2; ++i) {
    const u32* const from = rows_of(w, o.src[i], room[i]);
    std::memcpy(r + i * lanes, from + (o.mods.op_sel >> i & 1) * lanes, lanes * 4);
  }
  blend(w, w.rows(o.dst.index), r, 2);
}

half lesser(half a, half b) { return a != a ? b : (b != b ? a : (a < b ? a : b)); }
half greater(half a, half b) { return a != a ? b : (b != b ? a : (a > b ? a : b)); }

// v_fma_mix: each source is a float, or the half of a register that op_sel names where op_sel_hi says half; neg and abs
// come after that. `variant` is where the result goes: 0 a float, 1 the low half, 2 the high one.
void mix(wave& w, const operation& o) {
  alignas(64) u32 room[3][lanes], r[lanes];
  if (w.exec() == 0) return;
  const u32* rows[3];
  for (unsigned i = 0; i < 3; ++i) rows[i] = rows_of(w, o.src[i], room[i]);
  const unsigned halves = o.mods.op_sel_hi == 0xff ? 0 : o.mods.op_sel_hi;
  const auto source = [&](unsigned i, unsigned l) {
    const u32 x = rows[i][l];
    float value = std::bit_cast<float>(x);
    if (halves >> i & 1) value = o.mods.op_sel >> i & 1 ? high_of<half>(x) : low_of<half>(x);
    if (o.src[i].absolute) value = std::fabs(value);
    return o.src[i].negate ? -value : value;
  };
  u32* const d = w.rows(o.dst.index);
  for (unsigned l = 0; l < lanes; ++l) {
    float value = std::fma(source(0, l), source(1, l), source(2, l));
    if (o.mods.clamp) value = value > 0 ? (value < 1 ? value : 1.0f) : 0.0f;
    const u32 small = half(value).bits;
    r[l] = o.variant == 0   ? std::bit_cast<u32>(value)
           : o.variant == 1 ? (d[l] & 0xffff0000) | small
                            : (d[l] & 0xffff) | small << 16;
  }
  blend(w, d, r, 1);
}

#define P2(name, T, f) row(name, "p=pp", vop, pairs<T, [](T a, T b, T) -> T { return static_cast<T>(f); }>)
#define P3(name, T, f) row(name, "p=ppp", vop, pairs<T, [](T a, T b, T c) -> T { return static_cast<T>(f); }>)

constexpr row rows[] = {
    P2("v_pk_add_u16", u16, a + b),
    P2("v_pk_sub_u16", u16, a - b),
    P2("v_pk_add_i16", i16, a + b),
    P2("v_pk_sub_i16", i16, a - b),
    P2("v_pk_mul_lo_u16", u16, u32{a} * b),
    P2("v_pk_lshlrev_b16", u16, u32{b} << (a & 15)),
    P2("v_pk_lshrrev_b16", u16, u32{b} >> (a & 15)),
    P2("v_pk_ashrrev_i16", i16, b >> (a & 15)),
    P2("v_pk_min_u16", u16, a < b ? a : b),
    P2("v_pk_max_u16", u16, a < b ? b : a),
    P2("v_pk_min_i16", i16, a < b ? a : b),
    P2("v_pk_max_i16", i16, a < b ? b : a),
    P3("v_pk_mad_u16", u16, u32{a} * b + c),
    P3("v_pk_mad_i16", i16, i32{a} * b + c),
    P2("v_pk_add_f16", half, a + b),
    P2("v_pk_mul_f16", half, a* b),
    P2("v_pk_min_f16", half, lesser(a, b)),
    P2("v_pk_max_f16", half, greater(a, b)),
    P3("v_pk_fma_f16", half, std::fma(static_cast<double>(a), static_cast<double>(b), static_cast<double>(c))),
    {"v_pk_add_f32", "P=PP", vop, float_pairs<[](float a, float b, float) { return a + b; }>},
    {"v_pk_mul_f32", "P=PP", vop, float_pairs<[](float a, float b, float) { return a * b; }>},
    {"v_pk_fma_f32", "P=PPP", vop, float_pairs<[](float a, float b, float c) { return std::fma(a, b, c); }>},
    {"v_fma_mix_f32", "f=fff", mix, nullptr, 0},
    {"v_fma_mixlo_f16", "f=fff", mix, nullptr, 1},
    {"v_fma_mixhi_f16", "f=fff", mix, nullptr, 2},
    {"v_pk_mov_b32", "P=PP", pk_mov},
};

}  // namespace

table valu_packed_rows() { return rows; }

}  // namespace amdgpu
