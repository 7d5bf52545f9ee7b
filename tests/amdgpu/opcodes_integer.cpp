// SPDX-License-Identifier: MIT
// Integer vector instructions, one by one, against the host's arithmetic.
#include "amdgpu/opcodes.hpp"

namespace {

using namespace amdgpu::test;
using amdgpu::lanes;
using wide = unsigned __int128;

struct one {
  const char* text;  // v8 = f(v0, v2, v4)
  std::function<u32(u32, u32, u32)> f;
};

u32 count(u32 x) { return static_cast<u32>(__builtin_popcount(x)); }
i32 s(u32 x) { return static_cast<i32>(x); }
i64 s24(u32 x) { return static_cast<i64>(static_cast<i32>(x << 8)) / 256; }
u32 u24(u32 x) { return x % (1u << 24); }

u32 field(u32 x, u32 offset, u32 width, bool sign) {
  offset %= 32, width %= 32;
  if (width == 0) return 0;
  u64 bits = sign ? static_cast<u64>(static_cast<i64>(s(x))) : x;
  bits >>= offset;
  bits %= u64{1} << width;
  if (sign && offset + width <= 32 && bits >> (width - 1)) bits |= ~u64{0} << width;
  if (sign && offset + width > 32) bits = static_cast<u64>(static_cast<i64>(s(x)) >> offset);
  return static_cast<u32>(bits);
}

u32 reversed(u32 x) {
  u32 r = 0;
  for (int i = 0; i < 32; ++i)
    if (x & (1u << i)) r |= 0x80000000u >> i;
  return r;
}

u32 absolute_difference(u32 a, u32 b) { return a > b ? a - b : b - a; }

u32 bytes_picked(u32 a, u32 b, u32 c) {
  const unsigned char data[8] = {static_cast<unsigned char>(b),       static_cast<unsigned char>(b >> 8),
                                 static_cast<unsigned char>(b >> 16), static_cast<unsigned char>(b >> 24),
                                 static_cast<unsigned char>(a),       static_cast<unsigned char>(a >> 8),
                                 static_cast<unsigned char>(a >> 16), static_cast<unsigned char>(a >> 24)};
  u32 r = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned sel = c >> 8 * i & 255;
    u32 byte = 255;
    if (sel <= 7) byte = data[sel];
    if (sel >= 8 && sel <= 11) byte = data[2 * (sel - 8) + 1] & 128 ? 255 : 0;
    if (sel == 12) byte = 0;
    r |= byte << 8 * i;
  }
  return r;
}

template <class T>
T med(T a, T b, T c) {
  std::vector<T> v{a, b, c};
  std::sort(v.begin(), v.end());
  return v[1];
}

const one ones[] = {
    {"v_mov_b32 v8, v0", GIVES(a)},
    {"v_not_b32 v8, v0", GIVES(0xffffffff - a)},
    {"v_bfrev_b32 v8, v0", GIVES(reversed(a))},
    {"v_ffbh_u32 v8, v0", GIVES(a ? static_cast<u32>(__builtin_clz(a)) : ~0u)},
    {"v_ffbl_b32 v8, v0", GIVES(a ? static_cast<u32>(__builtin_ctz(a)) : ~0u)},
    {"v_ffbh_i32 v8, v0", GIVES(a == 0 || a == ~0u ? ~0u : static_cast<u32>(__builtin_clrsb(s(a)) + 1))},
    {"v_add_u32 v8, v0, v2", GIVES(a + b)},
    {"v_sub_u32 v8, v0, v2", GIVES(a - b)},
    {"v_subrev_u32 v8, v0, v2", GIVES(b - a)},
    {"v_add_u32 v8, v0, v2 clamp", GIVES(std::min(u64{a} + b, u64{0xffffffff}))},
    {"v_sub_u32 v8, v0, v2 clamp", GIVES(a > b ? a - b : 0)},
    {"v_subrev_u32 v8, v0, v2 clamp", GIVES(b > a ? b - a : 0)},
    {"v_add_i32 v8, v0, v2 clamp", GIVES(clamped(i64{s(a)} + s(b)))},
    {"v_sub_i32 v8, v0, v2 clamp", GIVES(clamped(i64{s(a)} - s(b)))},
    {"v_and_b32 v8, v0, v2", GIVES(a & b)},
    {"v_or_b32 v8, v0, v2", GIVES(a | b)},
    {"v_xor_b32 v8, v0, v2", GIVES(a ^ b)},
    {"v_xnor_b32 v8, v0, v2", GIVES(~(a ^ b))},
    {"v_lshlrev_b32 v8, v0, v2", GIVES(u64{b} << (a % 32))},
    {"v_lshrrev_b32 v8, v0, v2", GIVES(b / static_cast<u32>(u64{1} << (a % 32)))},
    {"v_ashrrev_i32 v8, v0, v2", GIVES(i64{s(b)} >> (a % 32))},
    {"v_min_u32 v8, v0, v2", GIVES(std::min(a, b))},
    {"v_max_u32 v8, v0, v2", GIVES(std::max(a, b))},
    {"v_min_i32 v8, v0, v2", GIVES(std::min(s(a), s(b)))},
    {"v_max_i32 v8, v0, v2", GIVES(std::max(s(a), s(b)))},
    {"v_mul_lo_u32 v8, v0, v2", GIVES(u64{a} * b)},
    {"v_mul_hi_u32 v8, v0, v2", GIVES(u64{a} * b >> 32)},
    {"v_mul_hi_i32 v8, v0, v2", GIVES(static_cast<u64>(i64{s(a)} * s(b)) >> 32)},
    {"v_mul_u32_u24 v8, v0, v2", GIVES(u64{u24(a)} * u24(b))},
    {"v_mul_i32_i24 v8, v0, v2", GIVES(s24(a) * s24(b))},
    {"v_mul_hi_u32_u24 v8, v0, v2", GIVES(u64{u24(a)} * u24(b) >> 32)},
    {"v_mul_hi_i32_i24 v8, v0, v2", GIVES(static_cast<u64>(s24(a) * s24(b)) >> 32)},
    {"v_bfm_b32 v8, v0, v2", GIVES(((1u << a % 32) - 1) << b % 32)},
    {"v_bcnt_u32_b32 v8, v0, v2", GIVES(count(a) + b)},
    {"v_mad_u32_u24 v8, v0, v2, v4", GIVES(static_cast<u32>(u64{u24(a)} * u24(b)) + c)},
    {"v_mad_i32_i24 v8, v0, v2, v4", GIVES(static_cast<u32>(s24(a) * s24(b)) + c)},
    {"v_bfe_u32 v8, v0, v2, v4", GIVES(field(a, b, c, false))},
    {"v_bfe_i32 v8, v0, v2, v4", GIVES(field(a, b, c, true))},
    {"v_bfi_b32 v8, v0, v2, v4", GIVES((a & b) + (~a & c))},
    {"v_alignbit_b32 v8, v0, v2, v4", GIVES((wide{a} * (wide{1} << 32) + b) >> (c % 32))},
    {"v_alignbyte_b32 v8, v0, v2, v4", GIVES((wide{a} * (wide{1} << 32) + b) >> (8 * (c % 4)))},
    {"v_perm_b32 v8, v0, v2, v4", bytes_picked},
    {"v_add3_u32 v8, v0, v2, v4", GIVES(a + b + c)},
    {"v_lshl_add_u32 v8, v0, v2, v4", GIVES((a << b % 32) + c)},
    {"v_add_lshl_u32 v8, v0, v2, v4", GIVES((a + b) << c % 32)},
    {"v_lshl_or_b32 v8, v0, v2, v4", GIVES((a << b % 32) | c)},
    {"v_and_or_b32 v8, v0, v2, v4", GIVES((a & b) | c)},
    {"v_or3_b32 v8, v0, v2, v4", GIVES(a | b | c)},
    {"v_xad_u32 v8, v0, v2, v4", GIVES((a ^ b) + c)},
    {"v_min3_u32 v8, v0, v2, v4", GIVES(std::min({a, b, c}))},
    {"v_max3_u32 v8, v0, v2, v4", GIVES(std::max({a, b, c}))},
    {"v_med3_u32 v8, v0, v2, v4", GIVES(med(a, b, c))},
    {"v_min3_i32 v8, v0, v2, v4", GIVES(std::min({s(a), s(b), s(c)}))},
    {"v_max3_i32 v8, v0, v2, v4", GIVES(std::max({s(a), s(b), s(c)}))},
    {"v_med3_i32 v8, v0, v2, v4", GIVES(med(s(a), s(b), s(c)))},
    {"v_sad_u32 v8, v0, v2, v4", GIVES(absolute_difference(a, b) + c)},
    {"v_sad_u8 v8, v0, v2, v4",
     [](u32 a, u32 b, u32 c) {
       for (int i = 0; i < 32; i += 8) c += absolute_difference(a >> i & 255, b >> i & 255);
       return c;
     }},
    {"v_sub_u16 v8, v0, v2 clamp", GIVES(std::max(i64{a & 0xffff} - (b & 0xffff), i64{0}))},
    // Constants, scalar sources, SDWA and 16 bits.
    {"v_add_u32 v8, -16, v2", GIVES(b - 16)},
    {"v_add_u32 v8, 0x12345678, v2", GIVES(b + 0x12345678)},
    {"v_add_u32 v8, s4, v2", GIVES(b + 77)},
    {"v_mul_lo_u32 v8, v0, s4", GIVES(a * 77)},
    {"v_and_b32 v8, 1.0, v2", GIVES(b & 0x3f800000)},
    {"v_add_u32_sdwa v8, v0, v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_1 src1_sel:WORD_1",
     GIVES((a >> 8 & 255) + (b >> 16))},
    {"v_add_u32_sdwa v8, sext(v0), v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_3 src1_sel:DWORD",
     GIVES(static_cast<u32>(static_cast<signed char>(a >> 24)) + b)},
    {"v_or_b32_sdwa v8, v0, v2 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:WORD_0 src1_sel:WORD_0",
     GIVES((a | b) << 16)},
    {"v_mov_b32_sdwa v8, v0 dst_sel:BYTE_2 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_0",
     GIVES((machine::poison & 0xff00ffff) | (a & 255) << 16)},
    {"v_mov_b32_sdwa v8, v0 dst_sel:BYTE_0 dst_unused:UNUSED_SEXT src0_sel:BYTE_0", GIVES(static_cast<signed char>(a))},
    {"v_add_u16 v8, v0, v2", GIVES((a + b) & 0xffff)},
    {"v_sub_u16 v8, v0, v2", GIVES((a - b) & 0xffff)},
    {"v_mul_lo_u16 v8, v0, v2", GIVES((a & 0xffff) * (b & 0xffff) & 0xffff)},
    {"v_lshlrev_b16 v8, v0, v2", GIVES((b << a % 16) & 0xffff)},
    {"v_lshrrev_b16 v8, v0, v2", GIVES((b & 0xffff) >> a % 16)},
    {"v_ashrrev_i16 v8, v0, v2", GIVES(static_cast<u32>(static_cast<short>(b) >> a % 16) & 0xffff)},
    {"v_max_i16 v8, v0, v2", GIVES(static_cast<u32>(std::max(static_cast<short>(a), static_cast<short>(b))) & 0xffff)},
    {"v_add_i16 v8, v0, v2 op_sel:[1,0,1]", GIVES((machine::poison & 0xffff) | ((a >> 16) + b) << 16)},
    {"v_mad_u16 v8, v0, v2, v4", GIVES((a * b + c) & 0xffff)},
    {"v_pk_add_u16 v8, v0, v2", GIVES(((a + b) & 0xffff) | ((a >> 16) + (b >> 16)) << 16)},
    {"v_pk_add_u16 v8, v0, v2 op_sel:[1,0] op_sel_hi:[0,1]", GIVES((((a >> 16) + b) & 0xffff) | (a + (b >> 16)) << 16)},
    {"v_pk_lshlrev_b16 v8, v0, v2", GIVES(((b << a % 16) & 0xffff) | (b >> 16) << (a >> 16) % 16 << 16)},
    {"v_cvt_pk_u16_u32 v8, v0, v2", GIVES(std::min(a, 0xffffu) | std::min(b, 0xffffu) << 16)},
};

TEST(integer, of_one_dword) { expect_rows(ones, edge, 4); }

struct pair {
  const char* text;  // v[8:9] = f(v[0:1], v[2:3], v[4:5])
  std::function<u64(u64, u64, u64)> f;
};

#define GIVES_64(...) [](u64 a, u64 b, u64 c) { return (void)a, (void)b, (void)c, static_cast<u64>(__VA_ARGS__); }

const pair pairs[] = {
    {"v_lshlrev_b64 v[8:9], v0, v[2:3]", GIVES_64(b << a % 64)},
    {"v_lshrrev_b64 v[8:9], v0, v[2:3]", GIVES_64(b >> a % 64)},
    {"v_ashrrev_i64 v[8:9], v0, v[2:3]", GIVES_64(static_cast<i64>(b) >> a % 64)},
    {"v_lshlrev_b64 v[2:3], 1, v[0:1]\n v_mov_b32 v8, v2\n v_mov_b32 v9, v3", GIVES_64(a * 2)},
    // A destination that is its source.
    {"v_lshlrev_b64 v[0:1], 4, v[0:1]\n v_mov_b32 v8, v0\n v_mov_b32 v9, v1", GIVES_64(a << 4)},
    {"v_mad_u64_u32 v[8:9], vcc, v0, v2, v[4:5]", GIVES_64((a & 0xffffffff) * (b & 0xffffffff) + c)},
    {"v_mad_i64_i32 v[8:9], vcc, v0, v2, v[4:5]",
     GIVES_64(static_cast<u64>(i64{s(static_cast<u32>(a))} * s(static_cast<u32>(b))) + c)},
    {"v_add_co_u32 v8, vcc, v0, v2\n v_addc_co_u32 v9, vcc, v1, v3, vcc", GIVES_64(a + b)},
    {"v_sub_co_u32 v8, vcc, v0, v2\n v_subb_co_u32 v9, vcc, v1, v3, vcc", GIVES_64(a - b)},
    {"v_add_co_u32 v8, s[6:7], v0, v2\n v_addc_co_u32 v9, s[8:9], v1, v3, s[6:7]", GIVES_64(a + b)},
    {"v_subrev_co_u32 v8, vcc, v0, v2\n v_subbrev_co_u32 v9, vcc, v1, v3, vcc", GIVES_64(b - a)},
    {"v_pk_mov_b32 v[8:9], v[0:1], v[2:3] op_sel:[0,1]", GIVES_64((a & 0xffffffff) | b >> 32 << 32)},
    {"v_pk_mov_b32 v[8:9], v[0:1], v[2:3] op_sel:[1,0]", GIVES_64(a >> 32 | b << 32)},
    {"v_cmp_lt_u64 vcc, v[0:1], v[2:3]\n v_cndmask_b32 v8, 7, v4, vcc\n v_cndmask_b32 v9, v5, v1, vcc",
     GIVES_64(a < b ? (c & 0xffffffff) | a >> 32 << 32 : 7 | c >> 32 << 32)},
};

TEST(integer, of_two_dwords) { expect_rows(pairs, edge64, 4); }

// Carries of lanes that are off are 0, and the mask goes to any pair.
TEST(integer, carries_and_comparisons_are_masks) {
  const struct {
    const char* text;
    std::function<bool(u32, u32)> f;
  } masks[] = {
      {"v_add_co_u32 v8, s[10:11], v0, v2", [](u32 a, u32 b) { return u64{a} + b > 0xffffffff; }},
      {"v_sub_co_u32 v8, s[10:11], v0, v2", [](u32 a, u32 b) { return a < b; }},
      {"v_cmp_lt_i32 s[10:11], v0, v2", [](u32 a, u32 b) { return s(a) < s(b); }},
      {"v_cmp_le_u32 s[10:11], v0, v2", [](u32 a, u32 b) { return a <= b; }},
      {"v_cmp_ne_u32 s[10:11], v0, v2", [](u32 a, u32 b) { return a != b; }},
      {"v_cmp_eq_u16 s[10:11], v0, v2", [](u32 a, u32 b) { return (a & 0xffff) == (b & 0xffff); }},
      {"v_cmp_gt_i16 s[10:11], v0, v2", [](u32 a, u32 b) { return static_cast<short>(a) > static_cast<short>(b); }},
      {"v_cmp_t_u32 s[10:11], v0, v2", [](u32, u32) { return true; }},
      {"v_cmp_f_u32 s[10:11], v0, v2", [](u32, u32) { return false; }},
      {"v_cmp_lt_u32 vcc, 5, v2\n s_mov_b64 s[10:11], vcc", [](u32, u32 b) { return 5 < b; }},
      {"v_cmp_ge_i32 s[10:11], v0, -1", [](u32 a, u32) { return s(a) >= -1; }}};
  expect_masks(masks, edge, 1);
}

TEST(integer, compare_into_exec) {
  machine m;
  m.exec(0xff00ff00ff00ff00);
  u64 expected = 0;
  for (unsigned l = 0; l < lanes; ++l) {
    m.v(0, l) = l;
    expected |= u64{l > 20 && (l / 8) % 2 == 1} << l;
  }
  ASSERT_FALSE(m.run("v_cmpx_lt_u32 vcc, 20, v0"));
  EXPECT_PAIRS((m.w.exec(), expected), (m.w.get64(amdgpu::reg::vcc), expected));
}

TEST(integer, counts_of_lower_lanes) {
  machine m;
  m.s(2) = 0xf0f01234, m.s(3) = 0x89abcdef;
  ASSERT_FALSE(m.run("v_mbcnt_lo_u32_b32 v8, s2, 0\n v_mbcnt_hi_u32_b32 v8, s3, v8"));
  const u64 mask = u64{0x89abcdef} << 32 | 0xf0f01234;
  for (unsigned l = 0; l < lanes; ++l)
    EXPECT_EQ(m.v(8, l), static_cast<u32>(__builtin_popcountll(mask & ((u64{1} << l) - 1)))) << l;
}

}  // namespace
