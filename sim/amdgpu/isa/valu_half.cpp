// SPDX-License-Identifier: MIT
// VALU instructions on 16-bit integers and halves. Results leave the register's high half zero (MI200 ISA 6.6 and
// LLVM's SITargetLowering for GFX9).
#include "amdgpu/isa/valu.hpp"

namespace amdgpu {
namespace {

u16 w(u32 x) { return static_cast<u16>(x); }

half lesser(half a, half b) {
  return a != a ? b : (b != b ? a : (a < b || (a == b && std::signbit(float(a))) ? a : b));
}
half greater(half a, half b) {
  return a != a ? b : (b != b ? a : (a > b || (a == b && !std::signbit(float(a))) ? a : b));
}

template <class T>
T low3(T a, T b, T c) {
  const T m = a < b ? a : b;
  return m < c ? m : c;
}
template <class T>
T high3(T a, T b, T c) {
  const T m = a < b ? b : a;
  return m < c ? c : m;
}
template <class T>
T mid3(T a, T b, T c) {
  const T low = a < b ? a : b, high = a < b ? b : a;
  return c < low ? low : (high < c ? high : c);
}

half fused(half a, half b, half c) {
  return static_cast<half>(std::fma(static_cast<double>(a), static_cast<double>(b), static_cast<double>(c)));
}

#define U2(name, f) row(name, "w=ww", vop, each<u16, u16, [](u16 a, u16 b) -> u16 { return w(static_cast<u32>(f)); }>)
#define I2(name, f) row(name, "w=ww", vop, each<i16, i16, [](i16 a, i16 b) -> i16 { return static_cast<i16>(f); }>)
#define U3(name, f) \
  row(name, "w=www", vop, each<u16, u16, u16, [](u16 a, u16 b, u16 c) -> u16 { return w(static_cast<u32>(f)); }>)
#define I3(name, f) \
  row(name, "w=www", vop, each<i16, i16, i16, [](i16 a, i16 b, i16 c) -> i16 { return static_cast<i16>(f); }>)
#define H1(name, f) row(name, "h=h", vop, each<half, [](half a) -> half { return static_cast<half>(f); }>)
#define H2(name, f) row(name, "h=hh", vop, each<half, half, [](half a, half b) -> half { return (f); }>)
#define H3(name, form, f) \
  row(name, form, vop, each<half, half, half, [](half a, half b, half c) -> half { return (f); }>)

constexpr row rows[] = {
    U2("v_add_u16", a + b),
    U2("v_sub_u16", a - b),
    U2("v_subrev_u16", b - a),
    U2("v_add_u16 clamp", a + b > 0xffff ? 0xffff : a + b),
    U2("v_sub_u16 clamp", a < b ? 0 : a - b),
    U2("v_subrev_u16 clamp", b < a ? 0 : b - a),
    U2("v_mul_lo_u16", u32{a} * b),
    U2("v_lshlrev_b16", u32{b} << (a & 15)),
    U2("v_lshrrev_b16", u32{b} >> (a & 15)),
    I2("v_ashrrev_i16", b >> (a & 15)),
    U2("v_min_u16", a < b ? a : b),
    U2("v_max_u16", a < b ? b : a),
    I2("v_min_i16", a < b ? a : b),
    I2("v_max_i16", a < b ? b : a),
    I2("v_add_i16", a + b),
    I2("v_sub_i16", a - b),
    U3("v_mad_u16", u32{a} * b + c),
    U3("v_mad_legacy_u16", u32{a} * b + c),
    I3("v_mad_i16", i32{a} * b + c),
    U3("v_min3_u16", low3(a, b, c)),
    U3("v_max3_u16", high3(a, b, c)),
    U3("v_med3_u16", mid3(a, b, c)),
    I3("v_min3_i16", low3(a, b, c)),
    I3("v_max3_i16", high3(a, b, c)),
    I3("v_med3_i16", mid3(a, b, c)),
    {"v_mad_u32_u16", "i=wwi", vop, each<u16, u16, u32, [](u16 a, u16 b, u32 c) -> u32 { return u32{a} * b + c; }>},
    {"v_mad_i32_i16", "i=wwi", vop,
     each<i16, i16, u32, [](i16 a, i16 b, u32 c) -> u32 { return static_cast<u32>(i32{a} * b) + c; }>},
    {"v_pack_b32_f16", "i=hh", vop, each<u16, u16, [](u16 a, u16 b) -> u32 { return a | static_cast<u32>(b) << 16; }>},

    H2("v_add_f16", a + b),
    H2("v_sub_f16", a - b),
    H2("v_subrev_f16", b - a),
    H2("v_mul_f16", a* b),
    H2("v_min_f16", lesser(a, b)),
    H2("v_max_f16", greater(a, b)),
    H3("v_fma_f16", "h=hhh", fused(a, b, c)),
    H3("v_mad_f16", "h=hhh", a* b + c),
    H3("v_mac_f16", "h=hh+", a* b + c),
    H3("v_min3_f16", "h=hhh", lesser(lesser(a, b), c)),
    H3("v_max3_f16", "h=hhh", greater(greater(a, b), c)),
    H3("v_med3_f16", "h=hhh", mid3(a, b, c)),
    H1("v_rcp_f16", 1.0f / static_cast<float>(a)),
    H1("v_sqrt_f16", std::sqrt(static_cast<float>(a))),
    H1("v_rsq_f16", 1.0 / std::sqrt(static_cast<double>(a))),
    H1("v_exp_f16", std::exp2(static_cast<double>(a))),
    H1("v_log_f16", std::log2(static_cast<double>(a))),
    H1("v_floor_f16", std::floor(static_cast<float>(a))),
    H1("v_ceil_f16", std::ceil(static_cast<float>(a))),
    H1("v_trunc_f16", std::trunc(static_cast<float>(a))),
    H1("v_rndne_f16", std::nearbyint(static_cast<float>(a))),
    {"v_ldexp_f16", "h=hw", vop,
     each<half, i16, [](half a, i16 b) -> half { return static_cast<half>(std::ldexp(static_cast<double>(a), b)); }>},
};

}  // namespace

table valu_half_rows() { return rows; }

}  // namespace amdgpu
