// SPDX-License-Identifier: MIT
// VALU instructions on floats and doubles (MI200 ISA 12.7 to 12.10). Approximations of hardware (rcp, rsq, exp, log,
// sin, cos) are computed as exactly as the host can.
#include "amdgpu/isa/valu.hpp"

namespace amdgpu {
namespace {

// ---- bits of floating-point values ---------------------------------------------------------------------------------

template <class T>
struct layout;
template <>
struct layout<float> {
  using bits = u32;
  static constexpr int mantissa = 23, bias = 127, top = 255;
};
template <>
struct layout<double> {
  using bits = u64;
  static constexpr int mantissa = 52, bias = 1023, top = 2047;
};

template <class T>
typename layout<T>::bits raw(T x) {
  return std::bit_cast<typename layout<T>::bits>(x);
}
template <class T>
T from_raw(typename layout<T>::bits x) {
  return std::bit_cast<T>(x);
}
template <class T>
int exponent(T x) {
  return static_cast<int>(raw(x) >> layout<T>::mantissa) & layout<T>::top;
}
template <class T>
bool is_denormal(T x) {
  return exponent(x) == 0 && x != 0;
}
template <class T>
T quiet(T x) {
  return from_raw<T>(raw(x) | typename layout<T>::bits{1} << (layout<T>::mantissa - 1));
}
template <class T>
bool is_nan(T x) {
  return x != x;
}

// v_mac_f32 and v_mad_f32 know no denormals, in every MODE.
float flushed(float x) { return from_raw<float>(raw(x) & 0x7f800000 ? raw(x) : raw(x) & 0x80000000); }
float multiplied_added(float a, float b, float c) { return flushed(flushed(flushed(a) * flushed(b)) + flushed(c)); }

// ---- minima and maxima: a NaN gives way, and -0 is below +0 ---------------------------------------------------------

template <class T>
T lesser(T a, T b) {
  const T both = from_raw<T>(raw(a) | raw(b));  // of zeros, the negative one
  T d = a < b ? a : (b < a ? b : both);
  d = is_nan(a) ? b : d;
  d = is_nan(b) ? (is_nan(a) ? quiet(b) : a) : d;
  return d;
}

template <class T>
T greater(T a, T b) {
  const T both = from_raw<T>(raw(a) & raw(b));
  T d = a > b ? a : (b > a ? b : both);
  d = is_nan(a) ? b : d;
  d = is_nan(b) ? (is_nan(a) ? quiet(b) : a) : d;
  return d;
}

template <class T>
T middle(T a, T b, T c) {
  if (is_nan(a) || is_nan(b) || is_nan(c)) return lesser(lesser(a, b), c);
  return greater(lesser(a, b), lesser(greater(a, b), c));
}

// ---- division in steps (MI200 ISA, "V_DIV_SCALE", "V_DIV_FMAS", "V_DIV_FIXUP") --------------------------------------

template <class T>
T scaled_for_division(T s0, T denominator, T numerator, bool& vcc) {
  constexpr bool f32 = sizeof(T) == 4;
  constexpr int apart = f32 ? 96 : 768, step = f32 ? 64 : 128, tiny = f32 ? 23 : 53;
  vcc = false;
  if (numerator == 0 || denominator == 0) return quiet(from_raw<T>(raw(std::numeric_limits<T>::infinity())));
  const T reciprocal = T(1) / denominator, quotient = numerator / denominator;
  if (exponent(numerator) - exponent(denominator) >= apart) {
    vcc = true;
    return raw(s0) == raw(denominator) ? std::ldexp(s0, step) : s0;
  }
  if (is_denormal(denominator)) return std::ldexp(s0, step);
  if (is_denormal(reciprocal) && is_denormal(quotient)) {
    vcc = true;
    return raw(s0) == raw(denominator) ? std::ldexp(s0, -step) : s0;
  }
  if (is_denormal(reciprocal)) return std::ldexp(s0, -step);
  if (is_denormal(quotient)) {
    vcc = true;
    return raw(s0) == raw(numerator) ? std::ldexp(s0, step) : s0;
  }
  if (exponent(numerator) <= tiny) return std::ldexp(s0, step);
  return s0;
}

template <class T>
u64 div_scale(u32* d, const u32* a, const u32* b, const u32* c, u64) {
  u64 mask = 0;
  for (unsigned l = 0; l < lanes; ++l) {
    bool vcc = false;
    put(d, l, scaled_for_division(lane<T>(a, l), lane<T>(b, l), lane<T>(c, l), vcc));
    mask |= static_cast<u64>(vcc) << l;
  }
  return mask;
}

// A fused multiply-add that is scaled before it is rounded: denormal quotients are rounded once.
__extension__ typedef __float128 quadruple;

float fma_scaled(float a, float b, float c, int step) {
  return static_cast<float>(std::ldexp(static_cast<double>(a) * b + c, step));
}

double fma_scaled(double a, double b, double c, int step) {
  return static_cast<double>((static_cast<quadruple>(a) * b + c) * std::ldexp(1.0, step));
}

// Where VCC is set, div_scale scaled by 2^64 (2^128): a great quotient lacks that much, a tiny one has it too much.
template <class T>
u64 div_fmas(u32* d, const u32* a, const u32* b, const u32* c, u64 mask) {
  constexpr int step = sizeof(T) == 4 ? 64 : 128;
  for (unsigned l = 0; l < lanes; ++l) {
    const T x = lane<T>(a, l), y = lane<T>(b, l), z = lane<T>(c, l);
    put(d, l, mask >> l & 1 ? fma_scaled(x, y, z, exponent(z) > layout<T>::bias ? step : -step) : std::fma(x, y, z));
  }
  return 0;
}

template <class T>
T div_fixup(T quotient, T denominator, T numerator) {
  constexpr T inf = std::numeric_limits<T>::infinity();
  const bool negative = std::signbit(denominator) != std::signbit(numerator);
  const auto with_sign = [&](T x) { return negative ? -x : x; };
  const T nan = from_raw<T>(raw(-inf) | typename layout<T>::bits{1} << (layout<T>::mantissa - 1));
  if (is_nan(numerator)) return quiet(numerator);
  if (is_nan(denominator)) return quiet(denominator);
  if (numerator == 0 && denominator == 0) return nan;
  if (std::isinf(numerator) && std::isinf(denominator)) return nan;
  if (denominator == 0 || std::isinf(numerator)) return with_sign(inf);
  if (std::isinf(denominator) || numerator == 0) return with_sign(T(0));
  if (exponent(numerator) - exponent(denominator) < (sizeof(T) == 4 ? -150 : -1075)) return with_sign(T(0));
  // The steps before lead infinities to a NaN: the quotient is out of range.
  if (is_nan(quotient)) return with_sign(inf);
  return with_sign(std::fabs(quotient));
}

// ---- parts of a number ---------------------------------------------------------------------------------------------

template <class T>
T fraction(T x) {
  const T below_one = from_raw<T>(raw(T(1)) - 1);
  const T f = x - std::floor(x);
  return f < below_one || is_nan(f) ? f : below_one;
}

template <class T>
i32 frexp_exponent(T x) {
  if (is_nan(x) || std::isinf(x) || x == 0) return 0;
  int e = 0;
  (void)std::frexp(x, &e);
  return e;
}

template <class T>
T frexp_mantissa(T x) {
  int e = 0;
  return is_nan(x) || std::isinf(x) ? x : std::frexp(x, &e);
}

// ldexp whose exponents are of any size.
template <class T>
T by_power(T x, i32 e) {
  return std::ldexp(x, e < -5000 ? -5000 : (e > 5000 ? 5000 : e));
}

// v_trig_preop_f64: 53 bits of 2/pi, as range reduction needs them for X; `segment` counts these pieces (MI200 ISA,
// "V_TRIG_PREOP_F64"). The table is 2/pi, its first bit after the point first.
constexpr u64 two_over_pi[] = {0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
                               0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
                               0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
                               0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
                               0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab};

double piece_of_two_over_pi(double x, u32 segment) {
  int shift = static_cast<int>(segment & 31) * 53;
  if (exponent(x) > 1077) shift += exponent(x) - 1077;
  u64 bits = 0;
  for (int i = shift; i < shift + 53; ++i) {
    const bool set = i < 1201 && (two_over_pi[i / 64] >> (63 - i % 64) & 1);
    bits = bits << 1 | static_cast<u64>(set);
  }
  return std::ldexp(static_cast<double>(bits), -53 - shift + (exponent(x) >= 1968 ? 128 : 0));
}

float turned(float x, bool cosine) {
  if (std::isinf(x)) return std::numeric_limits<float>::quiet_NaN();
  const double angle = std::remainder(static_cast<double>(x), 1.0) * 6.283185307179586477;
  return static_cast<float>(cosine ? std::cos(angle) : std::sin(angle));
}

#define F1(name, f) row(name "_f32", "f=f", vop, each<float, [](float a) -> float { return (f); }>)
#define D1(name, f) row(name "_f64", "d=d", vop, each<double, [](double a) -> double { return (f); }>)
#define F2(name, f) row(name "_f32", "f=ff", vop, each<float, float, [](float a, float b) -> float { return (f); }>)
#define D2(name, f) \
  row(name "_f64", "d=dd", vop, each<double, double, [](double a, double b) -> double { return (f); }>)
#define F3(name, form, f) \
  row(name "_f32", form, vop, each<float, float, float, [](float a, float b, float c) -> float { return (f); }>)
#define D3(name, form, f) \
  row(name "_f64", form, vop, each<double, double, double, [](double a, double b, double c) -> double { return (f); }>)

constexpr row rows[] = {
    F2("v_add", a + b),
    F2("v_sub", a - b),
    F2("v_subrev", b - a),
    F2("v_mul", a* b),
    F2("v_mul_legacy", a == 0 || b == 0 ? 0.0f : a * b),
    F2("v_min", lesser(a, b)),
    F2("v_max", greater(a, b)),
    F3("v_fma", "f=fff", std::fma(a, b, c)),
    F3("v_fmac", "f=ff+", std::fma(a, b, c)),
    F3("v_fmaak", "f=fff", std::fma(a, b, c)),
    F3("v_fmamk", "f=fff", std::fma(a, b, c)),
    F3("v_mad", "f=fff", multiplied_added(a, b, c)),
    F3("v_mac", "f=ff+", multiplied_added(a, b, c)),
    F3("v_madak", "f=fff", multiplied_added(a, b, c)),
    F3("v_madmk", "f=fff", multiplied_added(a, b, c)),
    F3("v_mad_legacy", "f=fff", a == 0 || b == 0 ? c : multiplied_added(a, b, c)),
    F3("v_min3", "f=fff", lesser(lesser(a, b), c)),
    F3("v_max3", "f=fff", greater(greater(a, b), c)),
    F3("v_med3", "f=fff", middle(a, b, c)),
    F3("v_div_fixup", "f=fff", div_fixup(a, b, c)),
    F1("v_trunc", std::trunc(a)),
    F1("v_ceil", std::ceil(a)),
    F1("v_floor", std::floor(a)),
    F1("v_rndne", std::nearbyint(a)),
    F1("v_fract", fraction(a)),
    F1("v_rcp", 1.0f / a),
    F1("v_rcp_iflag", 1.0f / a),
    F1("v_sqrt", std::sqrt(a)),
    F1("v_rsq", static_cast<float>(1.0 / std::sqrt(static_cast<double>(a)))),
    F1("v_exp", static_cast<float>(std::exp2(static_cast<double>(a)))),
    F1("v_log", static_cast<float>(std::log2(static_cast<double>(a)))),
    F1("v_exp_legacy", static_cast<float>(std::exp2(static_cast<double>(a)))),
    F1("v_log_legacy", static_cast<float>(std::log2(static_cast<double>(a)))),
    F1("v_sin", turned(a, false)),
    F1("v_cos", turned(a, true)),
    F1("v_frexp_mant", frexp_mantissa(a)),
    {"v_frexp_exp_i32_f32", "i=f", vop, each<float, [](float a) { return frexp_exponent(a); }>},
    {"v_ldexp_f32", "f=fi", vop, each<float, i32, [](float a, i32 b) { return by_power(a, b); }>},
    {"v_div_scale_f32", "fm=fff", vop_mask, div_scale<float>},
    {"v_div_fmas_f32", "f=fff<", vop_mask, div_fmas<float>},

    D2("v_add", a + b),
    D2("v_mul", a* b),
    D2("v_min", lesser(a, b)),
    D2("v_max", greater(a, b)),
    D3("v_fma", "d=ddd", std::fma(a, b, c)),
    D3("v_fmac", "d=dd+", std::fma(a, b, c)),
    D3("v_div_fixup", "d=ddd", div_fixup(a, b, c)),
    D1("v_trunc", std::trunc(a)),
    D1("v_ceil", std::ceil(a)),
    D1("v_floor", std::floor(a)),
    D1("v_rndne", std::nearbyint(a)),
    D1("v_fract", fraction(a)),
    D1("v_rcp", 1.0 / a),
    D1("v_sqrt", std::sqrt(a)),
    D1("v_rsq", 1.0 / std::sqrt(a)),
    D1("v_frexp_mant", frexp_mantissa(a)),
    {"v_frexp_exp_i32_f64", "i=d", vop, each<double, [](double a) { return frexp_exponent(a); }>},
    {"v_ldexp_f64", "d=di", vop, each<double, i32, [](double a, i32 b) { return by_power(a, b); }>},
    {"v_trig_preop_f64", "d=di", vop,
     each<double, u32, [](double a, u32 b) -> double { return piece_of_two_over_pi(a, b); }>},
    {"v_div_scale_f64", "dm=ddd", vop_mask, div_scale<double>},
    {"v_div_fmas_f64", "d=ddd<", vop_mask, div_fmas<double>},
};

}  // namespace

table valu_float_rows() { return rows; }

}  // namespace amdgpu
