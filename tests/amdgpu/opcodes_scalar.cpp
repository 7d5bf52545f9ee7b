// SPDX-License-Identifier: MIT
// Scalar instructions, scalar loads and program flow.
#include "amdgpu/isa/clock.hpp"
#include "amdgpu/opcodes.hpp"

namespace {

using namespace amdgpu::test;
using amdgpu::fault;

struct result {
  u64 value;
  int scc;  // -1: as it was
};

struct one {
  const char* text;  // s8 or s[8:9] of s[0:1] and s[2:3]
  bool wide;
  std::function<result(u64, u64, bool)> f;
};

u32 lo(u64 x) { return static_cast<u32>(x); }
i32 si(u64 x) { return static_cast<i32>(x); }
result of(u64 value, int scc = -1) { return {value, scc}; }
// Of signed ones: SCC is the overflow.
result sum(i64 d) { return of(lo(static_cast<u64>(d)), d != static_cast<i32>(d)); }
result nz(u64 x) { return {x, x != 0}; }
result nz32(u32 x) { return {x, x != 0}; }

// Here c is the SCC that was.
#undef GIVES
#define GIVES(...) [](u64 a, u64 b, bool c) { return (void)a, (void)b, (void)c, __VA_ARGS__; }

const one ones[] = {
    {"s_add_u32 s8, s0, s2", false, GIVES(of(lo(a + b), u64{lo(a)} + lo(b) > 0xffffffff))},
    {"s_sub_u32 s8, s0, s2", false, GIVES(of(lo(a - b), lo(a) < lo(b)))},
    {"s_addc_u32 s8, s0, s2", false, GIVES(of(lo(a + b + c), u64{lo(a)} + lo(b) + c > 0xffffffff))},
    {"s_subb_u32 s8, s0, s2", false, GIVES(of(lo(a - b - c), u64{lo(a)} < u64{lo(b)} + c))},
    {"s_add_i32 s8, s0, s2", false, GIVES(sum(i64{si(a)} + si(b)))},
    {"s_sub_i32 s8, s0, s2", false, GIVES(sum(i64{si(a)} - si(b)))},
    {"s_min_i32 s8, s0, s2", false, GIVES(of(lo(si(a) < si(b) ? a : b), si(a) < si(b)))},
    {"s_max_u32 s8, s0, s2", false, GIVES(of(std::max(lo(a), lo(b)), lo(a) > lo(b)))},
    {"s_cselect_b32 s8, s0, s2", false, GIVES(of(lo(c ? a : b)))},
    {"s_cselect_b64 s[8:9], s[0:1], s[2:3]", true, GIVES(of(c ? a : b))},
    {"s_and_b32 s8, s0, s2", false, GIVES(nz32(lo(a & b)))},
    {"s_andn2_b64 s[8:9], s[0:1], s[2:3]", true, GIVES(nz(a & ~b))},
    {"s_orn2_b64 s[8:9], s[0:1], s[2:3]", true, GIVES(nz(a | ~b))},
    {"s_xnor_b64 s[8:9], s[0:1], s[2:3]", true, GIVES(nz(~(a ^ b)))},
    {"s_nand_b32 s8, s0, s2", false, GIVES(nz32(lo(~(a & b))))},
    {"s_lshl_b32 s8, s0, s2", false, GIVES(nz32(lo(a) << b % 32))},
    {"s_lshl_b64 s[8:9], s[0:1], s2", true, GIVES(nz(a << b % 64))},
    {"s_lshr_b64 s[8:9], s[0:1], s2", true, GIVES(nz(a >> b % 64))},
    {"s_ashr_i32 s8, s0, s2", false, GIVES(nz32(static_cast<u32>(i64{si(a)} >> b % 32)))},
    {"s_ashr_i64 s[8:9], s[0:1], s2", true, GIVES(nz(static_cast<u64>(static_cast<i64>(a) >> b % 64)))},
    {"s_mul_i32 s8, s0, s2", false, GIVES(of(lo(u64{lo(a)} * lo(b))))},
    {"s_mul_hi_u32 s8, s0, s2", false, GIVES(of(u64{lo(a)} * lo(b) >> 32))},
    {"s_mul_hi_i32 s8, s0, s2", false, GIVES(of(lo(static_cast<u64>(i64{si(a)} * si(b)) >> 32)))},
    {"s_bfm_b64 s[8:9], s0, s2", true, GIVES(of(((u64{1} << a % 64) - 1) << b % 64))},
    {"s_bfe_u32 s8, s0, 0x80004", false, GIVES(nz32(lo(a) >> 4 & 255))},
    {"s_bfe_i32 s8, s0, 0x80004", false, GIVES(nz32(static_cast<u32>(static_cast<signed char>(a >> 4))))},
    {"s_bfe_u64 s[8:9], s[0:1], 0x200010", true, GIVES(nz(a >> 16 & 0xffffffff))},
    {"s_bfe_i64 s[8:9], s[0:1], 0x100000", true, GIVES(nz(static_cast<u64>(static_cast<i64>(static_cast<short>(a)))))},
    {"s_lshl2_add_u32 s8, s0, s2", false,
     [](u64 a, u64 b, bool) {
       const u64 d = (u64{lo(a)} << 2) + lo(b);
       return of(lo(d), d > 0xffffffff);
     }},
    {"s_absdiff_i32 s8, s0, s2", false,
     [](u64 a, u64 b, bool) {
       const u32 d = lo(a - b);
       return nz32(d >> 31 ? 0 - d : d);
     }},
    {"s_pack_lh_b32_b16 s8, s0, s2", false, GIVES(of((a & 0xffff) | (b & 0xffff0000)))},
    {"s_mov_b64 s[8:9], -3", true, GIVES(of(~u64{2}))},
    {"s_mov_b32 s8, 0x12345678", false, GIVES(of(0x12345678))},
    {"s_mov_b64 s[8:9], 1.0", true, GIVES(of(0x3ff0000000000000))},
    {"s_not_b64 s[8:9], s[0:1]", true, GIVES(nz(~a))},
    {"s_brev_b32 s8, s0", false,
     [](u64 a, u64, bool) {
       u32 r = 0;
       for (int i = 0; i < 32; ++i) r = r << 1 | (lo(a) >> i & 1);
       return of(r);
     }},
    {"s_bcnt1_i32_b64 s8, s[0:1]", false, GIVES(nz32(static_cast<u32>(__builtin_popcountll(a))))},
    {"s_bcnt0_i32_b32 s8, s0", false, GIVES(nz32(32 - static_cast<u32>(__builtin_popcount(lo(a)))))},
    {"s_ff1_i32_b64 s8, s[0:1]", false, GIVES(of(a ? static_cast<u32>(__builtin_ctzll(a)) : ~0u))},
    {"s_ff0_i32_b32 s8, s0", false, GIVES(of(~lo(a) ? static_cast<u32>(__builtin_ctz(~lo(a))) : ~0u))},
    {"s_flbit_i32_b64 s8, s[0:1]", false, GIVES(of(a ? static_cast<u32>(__builtin_clzll(a)) : ~0u))},
    {"s_flbit_i32 s8, s0", false,
     GIVES(of(lo(a) == 0 || ~lo(a) == 0 ? ~0u : static_cast<u32>(__builtin_clrsb(si(a)) + 1)))},
    {"s_sext_i32_i8 s8, s0", false, GIVES(of(static_cast<u32>(static_cast<signed char>(a))))},
    {"s_abs_i32 s8, s0", false, GIVES(nz32(lo(a) >> 31 ? 0 - lo(a) : lo(a)))},
    {"s_mov_b32 s8, 0\n s_bitset1_b32 s8, s2", false, GIVES(of(1u << b % 32))},
    {"s_movk_i32 s8, -2", false, GIVES(of(0xfffffffe))},
    {"s_mov_b32 s8, s0\n s_addk_i32 s8, -100", false, GIVES(sum(i64{si(a)} - 100))},
    {"s_mov_b32 s8, s0\n s_mulk_i32 s8, -3", false, GIVES(of(lo(a * static_cast<u64>(-3))))},
    {"s_mov_b32 s8, 1\n s_cmovk_i32 s8, 5", false, GIVES(of(c ? 5u : 1u))},
    {"s_mov_b32 s8, 0\n s_cmp_lt_i32 s0, s2", false, GIVES(of(0, si(a) < si(b)))},
    {"s_mov_b32 s8, 0\n s_cmp_ge_u32 s0, s2", false, GIVES(of(0, lo(a) >= lo(b)))},
    {"s_mov_b32 s8, 0\n s_cmp_eq_u64 s[0:1], s[2:3]", false, GIVES(of(0, a == b))},
    {"s_mov_b32 s8, 0\n s_cmpk_gt_i32 s0, 0x8000", false, GIVES(of(0, si(a) > -32768))},
    {"s_mov_b32 s8, 0\n s_cmpk_lt_u32 s0, 0x8000", false, GIVES(of(0, lo(a) < 0x8000))},
    {"s_mov_b32 s8, 0\n s_bitcmp1_b32 s0, s2", false, GIVES(of(0, static_cast<int>(lo(a) >> b % 32 & 1)))},
};

TEST(scalar, arithmetic) {
  for (const one& o : ones) {
    machine m;
    if (absent(o.text)) continue;
    m.load(o.text);
    for (unsigned i = 0; i < 24 * 24; ++i) {
      const u64 a = edge64(i), b = edge64(i / 24 * 5 + i);
      const bool scc = i / 3 % 2;
      m.w.set64(0, a), m.w.set64(2, b), m.w.set64(8, machine::poison), m.w.scc = scc;
      ASSERT_FALSE(m.go()) << m.shared.failed.sentence();
      const result r = o.f(a, b, scc);
      ASSERT_EQ(o.wide ? m.w.get64(8) : m.s(8), r.value) << o.text << " of " << hex(a) << ' ' << hex(b);
      ASSERT_EQ(m.w.scc, r.scc < 0 ? scc : r.scc != 0) << o.text << " of " << hex(a) << ' ' << hex(b);
    }
  }
}

TEST(scalar, exec_is_saved_and_changed) {
  const struct {
    const char* name;
    std::function<u64(u64, u64)> f;
  } kinds[] = {{"and", [](u64 s, u64 e) { return s & e; }},   {"or", [](u64 s, u64 e) { return s | e; }},
               {"xor", [](u64 s, u64 e) { return s ^ e; }},   {"andn2", [](u64 s, u64 e) { return s & ~e; }},
               {"orn2", [](u64 s, u64 e) { return s | ~e; }}, {"andn1", [](u64 s, u64 e) { return ~s & e; }},
               {"nor", [](u64 s, u64 e) { return ~(s | e); }}};
  for (const auto& k : kinds) {
    machine m;
    m.load(std::string("s_") + k.name + "_saveexec_b64 s[8:9], s[0:1]");
    for (u64 exec : exec_patterns)
      for (unsigned i = 0; i < 24; ++i) {
        m.exec(exec), m.w.set64(0, edge64(i));
        ASSERT_FALSE(m.go());
        EXPECT_EQ(m.w.get64(8), exec);
        EXPECT_EQ(m.w.exec(), k.f(edge64(i), exec)) << k.name;
        EXPECT_EQ(m.w.scc, m.w.exec() != 0);
      }
  }
}

TEST(scalar, branches_calls_and_loops) {
  machine m;
  ASSERT_FALSE(m.run(
      "s_mov_b32 s0, 10\n s_mov_b32 s1, 0\nloop:\n s_add_u32 s1, s1, s0\n s_sub_u32 s0, s0, 1\n"
      "s_cmp_lg_u32 s0, 0\n s_cbranch_scc1 loop\n s_call_b64 s[10:11], leaf\n s_getpc_b64 s[4:5]\n"
      "s_add_u32 s4, s4, leaf2-.\n s_addc_u32 s5, s5, 0\n s_swappc_b64 s[12:13], s[4:5]\n s_branch out\n"
      "leaf:\n s_add_u32 s2, s1, 1\n s_setpc_b64 s[10:11]\nleaf2:\n s_add_u32 s3, s2, 1\n s_setpc_b64 s[12:13]\nout:\n"
      "s_mov_b64 vcc, 0\n s_cbranch_vccnz skip\n s_mov_b32 s14, 1\nskip:\n s_mov_b64 exec, 0\n s_cbranch_execz end\n "
      "s_mov_b32 s14, 2\nend:"));
  EXPECT_PAIRS((m.s(1), 55u), (m.s(2), 56u), (m.s(3), 57u), (m.s(14), 1u));
}

// Code that is unloaded, and other code at its address.
TEST(scalar, code_that_changes_is_decoded_anew) {
  machine m;
  m.load("s_mov_b32 s0, 0x11111111\n s_add_u32 s1, s0, 1");
  ASSERT_FALSE(m.go());
  EXPECT_EQ(m.s(1), 0x11111112u);
  m.overwrite("s_mov_b32 s0, 0x22222222\n s_sub_u32 s1, s0, 1");  // the first differs in its second dword only
  ASSERT_FALSE(m.go());
  EXPECT_EQ(m.s(1), 0x22222221u);
}

TEST(scalar, loads_and_the_clock) {
  machine m;
  std::vector<u32> data(32);
  for (unsigned i = 0; i < 32; ++i) data[i] = i * 1000003;
  m.visible.list(data.data(), data.size() * 4);
  m.w.set64(2, reinterpret_cast<u64>(data.data()) + 16);
  m.s(4) = 12;
  const u64 before = amdgpu::realtime_ticks();
  ASSERT_FALSE(m.run(
      "s_load_dword s8, s[2:3], 0x0\n s_load_dwordx2 s[10:11], s[2:3], 0x8\n s_load_dwordx4 s[12:15], s[2:3], -0x10\n"
      "s_load_dwordx8 s[16:23], s[2:3], s4\n s_load_dwordx16 s[24:39], s[2:3], 0x10\n s_memrealtime s[40:41]\n "
      "s_waitcnt lgkmcnt(0)"))
      << m.shared.failed.sentence();
  EXPECT_PAIRS((m.s(8), data[4]), (m.s(10), data[6]), (m.s(11), data[7]));
  for (unsigned i = 0; i < 4; ++i) EXPECT_EQ(m.s(12 + i), data[i]);
  for (unsigned i = 0; i < 8; ++i) EXPECT_EQ(m.s(16 + i), data[7 + i]);
  for (unsigned i = 0; i < 16; ++i) EXPECT_EQ(m.s(24 + i), data[8 + i]);
  EXPECT_GE(m.w.get64(40), before);
  EXPECT_LE(m.w.get64(40), amdgpu::realtime_ticks());
}

TEST(scalar, apertures_and_hardware_registers) {
  machine m;
  ASSERT_FALSE(m.run(
      "s_mov_b64 s[0:1], src_shared_base\n s_mov_b64 s[2:3], src_private_base\n"
      "s_getreg_b32 s4, hwreg(HW_REG_SH_MEM_BASES, 0, 16)\n s_getreg_b32 s5, hwreg(HW_REG_SH_MEM_BASES, 16, 16)"));
  EXPECT_PAIRS((m.w.get64(0), u64{1} << 48), (m.w.get64(2), u64{2} << 48), (m.s(4) << 16, 0x20000u),
               (m.s(5) << 16, 0x10000u));
}

TEST(scalar, moves_by_m0) {
  machine m;
  for (unsigned i = 0; i < 40; ++i) m.s(i) = i;
  ASSERT_FALSE(m.run("s_mov_b32 m0, 3\n s_movrels_b32 s30, s5\n s_movreld_b32 s20, s1"));
  EXPECT_PAIRS((m.s(30), 8u), (m.s(23), 1u));
}

TEST(scalar, faults_are_named) {
  {
    machine m;
    const fault& f = m.run("s_mov_b32 s0, 1\n s_trap 2");
    EXPECT_PAIRS((f.what, fault::kind::trap), (f.trap, 2u));
  }
  {
    machine m;
    m.w.set64(2, 0x1000);
    const fault& f = m.run("s_load_dword s8, s[2:3], 0x20");
    EXPECT_PAIRS((f.what, fault::kind::memory), (f.address, 0x1020u), (f.lane, -1));
    EXPECT_NE(f.sentence().find("s_load_dword s8, s[2:3], 0x20"), std::string::npos) << f.sentence();
  }
  {
    machine m;
    const fault& f = m.run("v_mfma_f32_32x32x1f32 a[0:31], v0, v1, a[0:31]");
    EXPECT_EQ(f.what, fault::kind::unknown);
    EXPECT_NE(f.sentence().find("v_mfma_f32_32x32x1f32"), std::string::npos);
    EXPECT_NE(f.sentence().find(hex(f.pc)), std::string::npos);
  }
  {
    machine m;
    m.w.set64(0, 0x4000);
    const fault& f = m.run("s_setpc_b64 s[0:1]");
    EXPECT_PAIRS((f.what, fault::kind::memory), (f.address, 0x4000u));
  }
  {
    machine m;
    const fault& f = m.run(".long 0xffffffff");
    EXPECT_EQ(f.what, fault::kind::illegal);
  }
}

// The interrupt that ROCr's signals ask for.
TEST(scalar, messages_reach_the_driver) {
  machine m;
  u32 seen = 0;
  m.shared.how.interrupt = [](void* to, u32 event) { *static_cast<u32*>(to) = event; };
  m.shared.how.interrupt_argument = &seen;
  ASSERT_FALSE(m.run("s_mov_b32 m0, 0x1234\n s_nop 0\n s_sendmsg sendmsg(MSG_INTERRUPT)"));
  EXPECT_EQ(seen, 0x1234u);
}

}  // namespace
