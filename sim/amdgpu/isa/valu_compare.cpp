// SPDX-License-Identifier: MIT
// VOPC: comparisons into a lane mask, and v_cmpx, which also write EXEC (MI200 ISA 12.8).
#include "amdgpu/isa/valu.hpp"

namespace amdgpu {
namespace {

// v_cmp_class: bits of B name classes (MI200 ISA, "V_CMP_CLASS_F32").
template <class Bits, unsigned mantissa>
bool in_class(Bits a, u32 classes) {
  constexpr Bits one = 1;
  constexpr unsigned size = sizeof(Bits) * 8;
  const Bits fraction = a & ((one << mantissa) - 1);
  const Bits exponent = a >> mantissa & ((one << (size - 1 - mantissa)) - 1);
  const bool negative = a >> (size - 1) & 1;
  unsigned bit = 0;
  if (exponent == (one << (size - 1 - mantissa)) - 1) {
    bit = fraction ? (fraction >> (mantissa - 1) & 1 ? 1 : 0) : (negative ? 2 : 9);
  } else if (exponent == 0) {
    bit = fraction ? (negative ? 4 : 7) : (negative ? 5 : 6);
  } else {
    bit = negative ? 3 : 8;
  }
  return classes >> bit & 1;
}

// Both forms of a comparison.
#define PAIR(what, form, A, B, ...)                                                                      \
  row("v_cmp_" what, form, vop_mask,                                                                     \
      compared<A, B, []([[maybe_unused]] A a, [[maybe_unused]] B b) -> bool { return (__VA_ARGS__); }>), \
      row("v_cmpx_" what, form, vop_compare_exec,                                                        \
          compared<A, B, []([[maybe_unused]] A a, [[maybe_unused]] B b) -> bool { return (__VA_ARGS__); }>)
#define ORDERS(suffix, form, T)                                                                                        \
  PAIR("f_" suffix, form, T, T, false), PAIR("lt_" suffix, form, T, T, a < b), PAIR("eq_" suffix, form, T, T, a == b), \
      PAIR("le_" suffix, form, T, T, a <= b), PAIR("gt_" suffix, form, T, T, a > b),                                   \
      PAIR("ge_" suffix, form, T, T, a >= b)
#define INTEGER(suffix, form, T) \
  ORDERS(suffix, form, T), PAIR("ne_" suffix, form, T, T, a != b), PAIR("t_" suffix, form, T, T, true)
#define FLOATING(suffix, form, T)                                                                       \
  ORDERS(suffix, form, T), PAIR("lg_" suffix, form, T, T, a<b || a> b),                                 \
      PAIR("o_" suffix, form, T, T, a == a && b == b), PAIR("u_" suffix, form, T, T, a != a || b != b), \
      PAIR("nge_" suffix, form, T, T, !(a >= b)), PAIR("nlg_" suffix, form, T, T, !(a < b || a > b)),   \
      PAIR("ngt_" suffix, form, T, T, !(a > b)), PAIR("nle_" suffix, form, T, T, !(a <= b)),            \
      PAIR("neq_" suffix, form, T, T, !(a == b)), PAIR("nlt_" suffix, form, T, T, !(a < b)),            \
      PAIR("tru_" suffix, form, T, T, true)

constexpr row rows[] = {
    INTEGER("i32", "m=ii", i32),
    INTEGER("u32", "m=ii", u32),
    INTEGER("i64", "m=ll", i64),
    INTEGER("u64", "m=qq", u64),
    INTEGER("i16", "m=ww", i16),
    INTEGER("u16", "m=ww", u16),
    FLOATING("f32", "m=ff", float),
    FLOATING("f64", "m=dd", double),
    FLOATING("f16", "m=hh", half),
    PAIR("class_f32", "m=fi", u32, u32, in_class<u32, 23>(a, b)),
    PAIR("class_f64", "m=di", u64, u32, in_class<u64, 52>(a, b)),
    PAIR("class_f16", "m=hi", u16, u32, in_class<u16, 10>(a, b)),
};

}  // namespace

table valu_compare_rows() { return rows; }

}  // namespace amdgpu
