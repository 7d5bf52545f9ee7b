// SPDX-License-Identifier: MIT
// Floating-point vector instructions against the host's IEEE arithmetic.
#include "amdgpu/opcodes.hpp"

namespace {

using namespace amdgpu::test;
using amdgpu::lanes;

u32 bits(float x) { return std::bit_cast<u32>(x); }
u64 bits(double x) { return std::bit_cast<u64>(x); }
bool nan(u32 x) { return (x & 0x7fffffff) > 0x7f800000; }

struct one {
  const char* text;  // v8 = f(v0, v2, v4)
  std::function<float(float, float, float)> f;
};

float low(float a, float b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == 0 && b == 0) return std::signbit(a) ? a : b;
  return std::min(a, b);
}
float high(float a, float b) { return -low(-a, -b); }

const one ones[] = {
    {"v_add_f32 v8, v0, v2", [](float a, float b, float) { return a + b; }},
    {"v_sub_f32 v8, v0, v2", [](float a, float b, float) { return a - b; }},
    {"v_subrev_f32 v8, v0, v2", [](float a, float b, float) { return b - a; }},
    {"v_mul_f32 v8, v0, v2", [](float a, float b, float) { return a * b; }},
    {"v_fma_f32 v8, v0, v2, v4", [](float a, float b, float c) { return std::fma(a, b, c); }},
    {"v_fmac_f32 v4, v0, v2\n v_mov_b32 v8, v4", [](float a, float b, float c) { return std::fma(a, b, c); }},
    {"v_fma_f32 v8, -v0, |v2|, -|v4|",
     [](float a, float b, float c) { return std::fma(-a, std::fabs(b), -std::fabs(c)); }},
    {"v_min_f32 v8, v0, v2", [](float a, float b, float) { return low(a, b); }},
    {"v_max_f32 v8, v0, v2", [](float a, float b, float) { return high(a, b); }},
    {"v_add_f32 v8, 0.5, v2", [](float, float b, float) { return 0.5f + b; }},
    {"v_mul_f32 v8, 0x40490fdb, v2", [](float, float b, float) { return 3.14159274101f * b; }},
    {"v_mul_f32_e64 v8, v0, v2 mul:2", [](float a, float b, float) { return a * b * 2; }},
    {"v_mul_f32_e64 v8, v0, v2 div:2", [](float a, float b, float) { return a * b * 0.5f; }},
    {"v_add_f32_e64 v8, v0, v2 clamp",
     [](float a, float b, float) {
       const float x = a + b;
       return std::isnan(x) || x < 0 ? 0 : std::min(x, 1.0f);
     }},
    {"v_trunc_f32 v8, v0", [](float a, float, float) { return std::trunc(a); }},
    {"v_floor_f32 v8, v0", [](float a, float, float) { return std::floor(a); }},
    {"v_ceil_f32 v8, v0", [](float a, float, float) { return std::ceil(a); }},
    {"v_rndne_f32 v8, v0", [](float a, float, float) { return std::rint(a); }},
    {"v_sqrt_f32 v8, v0", [](float a, float, float) { return std::sqrt(a); }},
    {"v_rcp_f32 v8, v0", [](float a, float, float) { return 1 / a; }},
    {"v_ldexp_f32 v8, v0, 3", [](float a, float, float) { return a * 8; }},
    {"v_cvt_f32_i32 v8, v0", [](float a, float, float) { return static_cast<float>(static_cast<i32>(bits(a))); }},
    {"v_cvt_f32_u32 v8, v0", [](float a, float, float) { return static_cast<float>(bits(a)); }},
    {"v_cvt_f32_ubyte2 v8, v0", [](float a, float, float) { return static_cast<float>(bits(a) >> 16 & 255); }},
};

TEST(floats, of_one_dword) { expect_rows(ones, edge_float, 6); }

struct big {
  const char* text;  // v[8:9] = f(v[0:1], v[2:3], v[4:5])
  std::function<double(double, double, double)> f;
};

const big bigs[] = {
    {"v_add_f64 v[8:9], v[0:1], v[2:3]", [](double a, double b, double) { return a + b; }},
    {"v_mul_f64 v[8:9], v[0:1], v[2:3]", [](double a, double b, double) { return a * b; }},
    {"v_fma_f64 v[8:9], v[0:1], v[2:3], v[4:5]", [](double a, double b, double c) { return std::fma(a, b, c); }},
    {"v_fma_f64 v[8:9], -v[0:1], |v[2:3]|, v[4:5]",
     [](double a, double b, double c) { return std::fma(-a, std::fabs(b), c); }},
    {"v_add_f64 v[8:9], v[0:1], 1.0", [](double a, double, double) { return a + 1; }},
    {"v_mul_f64 v[8:9], v[0:1], -4.0", [](double a, double, double) { return a * -4; }},
    {"v_trunc_f64 v[8:9], v[0:1]", [](double a, double, double) { return std::trunc(a); }},
    {"v_floor_f64 v[8:9], v[0:1]", [](double a, double, double) { return std::floor(a); }},
    {"v_ceil_f64 v[8:9], v[0:1]", [](double a, double, double) { return std::ceil(a); }},
    {"v_rndne_f64 v[8:9], v[0:1]", [](double a, double, double) { return std::rint(a); }},
    {"v_ldexp_f64 v[8:9], v[0:1], -5", [](double a, double, double) { return std::ldexp(a, -5); }},
    {"v_cvt_f32_f64 v6, v[0:1]\n v_cvt_f64_f32 v[8:9], v6",
     [](double a, double, double) { return static_cast<double>(static_cast<float>(a)); }},
    {"v_max_f64 v[8:9], v[0:1], v[2:3]",
     [](double a, double b, double) {
       if (a == 0 && b == 0) return std::signbit(a) ? b : a;
       return std::fmax(a, b);
     }},
};

TEST(floats, of_two_dwords) { expect_rows(bigs, edge_double, 6); }

// Out of range is the nearest end, NaN is 0.
template <class To, class From>
To nearest_end(From x) {
  if (std::isnan(x)) return 0;
  const long double y = std::trunc(static_cast<long double>(x));
  if (y <= static_cast<long double>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  if (y >= static_cast<long double>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
  return static_cast<To>(y);
}

TEST(floats, to_integers) {
  machine m;
  for (unsigned l = 0; l < lanes; ++l) m.v(0, l) = bits(edge_float(l)), m.set_v64(2, l, bits(edge_double(l)));
  ASSERT_FALSE(
      m.run("v_cvt_u32_f32 v8, v0\n v_cvt_i32_f32 v9, v0\n v_cvt_u32_f64 v10, v[2:3]\n v_cvt_i32_f64 v11, v[2:3]\n"
            "v_cvt_f64_u32 v[12:13], v0\n v_cvt_f64_i32 v[14:15], v0"));
  for (unsigned l = 0; l < lanes; ++l) {
    EXPECT_EQ(m.v(8, l), nearest_end<u32>(edge_float(l))) << edge_float(l);
    EXPECT_EQ(static_cast<i32>(m.v(9, l)), nearest_end<i32>(edge_float(l))) << edge_float(l);
    EXPECT_EQ(m.v(10, l), nearest_end<u32>(edge_double(l))) << edge_double(l);
    EXPECT_EQ(static_cast<i32>(m.v(11, l)), nearest_end<i32>(edge_double(l))) << edge_double(l);
    EXPECT_EQ(m.v64(12, l), bits(static_cast<double>(bits(edge_float(l)))));
    EXPECT_EQ(m.v64(14, l), bits(static_cast<double>(static_cast<i32>(bits(edge_float(l))))));
  }
}

TEST(floats, comparisons_and_classes) {
  const struct {
    const char* text;
    std::function<bool(float, float)> f;
  } kinds[] = {
      {"v_cmp_lt_f32 s[10:11], v0, v2", [](float a, float b) { return a < b; }},
      {"v_cmp_eq_f32 s[10:11], v0, v2", [](float a, float b) { return a == b; }},
      {"v_cmp_nlt_f32 s[10:11], v0, v2", [](float a, float b) { return !(a < b); }},
      {"v_cmp_lg_f32 s[10:11], v0, v2", [](float a, float b) { return a < b || b < a; }},
      {"v_cmp_neq_f32 s[10:11], v0, v2", [](float a, float b) { return a != b; }},
      {"v_cmp_u_f32 s[10:11], v0, v2", [](float a, float b) { return std::isnan(a) || std::isnan(b); }},
      {"v_cmp_o_f32 s[10:11], v0, v2", [](float a, float b) { return !std::isnan(a) && !std::isnan(b); }},
      {"v_cmp_ge_f32 s[10:11], |v0|, v2", [](float a, float b) { return std::fabs(a) >= b; }},
      {"s_movk_i32 s2, 0x204\n v_cmp_class_f32 s[10:11], v0, s2", [](float a, float) { return std::isinf(a); }},
      {"v_cmp_class_f32 s[10:11], v0, 3", [](float a, float) { return std::isnan(a); }},
      {"s_movk_i32 s2, 0x90\n v_cmp_class_f32 s[10:11], v0, s2",
       [](float a, float) { return std::fpclassify(a) == FP_SUBNORMAL; }},
      {"v_cmp_class_f32 s[10:11], v0, 32", [](float a, float) { return a == 0 && std::signbit(a); }}};
  expect_masks(kinds, edge_float, 2);
}

TEST(floats, denormals_are_flushed_if_mode_says_so) {
  machine m;
  m.v(0, 0) = 1, m.v(1, 0) = 0x80000001, m.v(2, 0) = bits(1.2e-38f);
  ASSERT_FALSE(
      m.run("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0\n v_add_f32 v8, v0, v0\n v_mul_f32 v9, 0.5, v2\n"
            "v_add_f32 v11, v1, v1\n s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3\n v_add_f32 v10, v0, v0"));
  EXPECT_PAIRS((m.v(8, 0), 0u), (m.v(9, 0), 0u), (m.v(10, 0), 2u), (m.v(11, 0), 0x80000000u));
}

TEST(floats, pairs_and_halves) {
  machine m;
  for (unsigned l = 0; l < lanes; ++l)
    for (unsigned n = 0; n < 6; ++n) m.v(n, l) = bits(edge_float(l * (n + 1) + n));
  m.v(20, 0) = 0x3c00c000, m.v(21, 0) = 0x40003800;  // halves (1, -2) and (2, 0.5), high first
  ASSERT_FALSE(
      m.run("v_pk_fma_f32 v[8:9], v[0:1], v[2:3], v[4:5]\n v_pk_mul_f32 v[10:11], v[0:1], v[2:3] op_sel:[1,0] "
            "op_sel_hi:[0,1]\n"
            "v_pk_add_f16 v22, v20, v21\n v_pk_mul_f16 v23, v20, v21 neg_lo:[1,0]\n v_cvt_f32_f16 v24, v20\n v_add_f16 "
            "v25, v20, v21\n"
            "v_cvt_f16_f32 v26, 4.0\n v_mov_b32 v28, 0\n v_fma_mix_f32 v27, v20, -v21, 1.0 op_sel:[1,0,0] "
            "op_sel_hi:[1,1,0]\n v_fma_mixhi_f16 v28, v20, v21, v24 op_sel_hi:[1,1,0]"));
  for (unsigned l = 0; l < lanes; ++l) {
    const auto f = [&](unsigned n) { return edge_float(l * (n + 1) + n); };
    const float expected[] = {std::fma(f(0), f(2), f(4)), std::fma(f(1), f(3), f(5)), f(1) * f(2), f(0) * f(3)};
    for (unsigned n = 0; n < 4; ++n)
      EXPECT_TRUE(m.v(8 + n, l) == bits(expected[n]) || (nan(m.v(8 + n, l)) && std::isnan(expected[n])))
          << l << ' ' << n;
  }
  EXPECT_EQ(m.v(22, 0), 0x4200be00u);  // 3, -1.5
  EXPECT_EQ(m.v(23, 0), 0x40003c00u);  // 2, 1
  EXPECT_PAIRS((m.v(24, 0), bits(-2.0f)), (m.v(25, 0), 0x0000be00u), (m.v(26, 0), 0x00004400u));
  EXPECT_EQ(m.v(27, 0), bits(0.5f));   // 1 * -0.5 + 1
  EXPECT_EQ(m.v(28, 0), 0xc2000000u);  // -2 * 0.5 - 2 = -3
}

// The value of a half's bits, by the definition of the format.
double half_value(u32 h) {
  const int exponent = static_cast<int>(h >> 10 & 31);
  const double fraction = (h & 1023) / 1024.0;
  const double size = exponent ? std::ldexp(1 + fraction, exponent - 15) : std::ldexp(fraction, -14);
  return h >> 15 ? -size : size;
}

// The nearest half by search, the even one of two that are as near.
u32 nearest_half(double x) {
  const u32 sign = std::signbit(x) ? 0x8000 : 0;
  const double size = std::fabs(x);
  if (size >= 65520) return sign | 0x7c00;
  u32 low = 0, high = 0x7c00;  // half_value(low) <= size < half_value(high), where 0x7c00 counts as 65536
  while (high - low > 1) {
    const u32 middle = (low + high) / 2;
    (half_value(middle) <= size ? low : high) = middle;
  }
  const double below = size - half_value(low), above = (high == 0x7c00 ? 65536 : half_value(high)) - size;
  return sign | (below < above || (below == above && low % 2 == 0) ? low : high);
}

TEST(floats, every_half_and_what_rounds_to_one) {
  machine m;
  m.load("v_cvt_f32_f16 v8, v0\n v_cvt_f16_f32 v9, v1\n v_cvt_f16_f32 v10, v2\n v_cvt_f16_f32 v11, v3");
  for (u32 h = 0; h < 0x8000; h += lanes) {
    for (unsigned l = 0; l < lanes; ++l) {
      const bool finite = h + l < 0x7c00;
      const double x = finite ? half_value(h + l) : 1;
      const double next = finite ? (h + l == 0x7bff ? 65536 : half_value(h + l + 1)) : 2;
      m.v(0, l) = h + l;
      m.v(1, l) = bits(static_cast<float>(-x));
      m.v(2, l) = bits(static_cast<float>((x + next) / 2));                                    // a tie
      m.v(3, l) = bits(std::nextafter(static_cast<float>((x + next) / 2), l % 2 ? 1e9f : 0));  // beside it
    }
    ASSERT_FALSE(m.go()) << m.shared.failed.sentence();
    for (unsigned l = 0; l < lanes; ++l) {
      const auto as_float = [&](unsigned n) { return static_cast<double>(std::bit_cast<float>(m.v(n, l))); };
      if (h + l < 0x7c00) {
        ASSERT_EQ(as_float(8), half_value(h + l)) << hex(h + l);
      } else if (h + l == 0x7c00) {
        ASSERT_EQ(as_float(8), INFINITY);
      } else {
        ASSERT_TRUE(std::isnan(as_float(8))) << hex(h + l);
      }
      for (unsigned n = 1; n < 4; ++n)
        ASSERT_EQ(m.v(8 + n, l), nearest_half(as_float(n))) << hex(h + l) << ' ' << as_float(n);
    }
  }
}

}  // namespace
