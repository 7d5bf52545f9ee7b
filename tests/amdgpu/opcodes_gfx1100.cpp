// SPDX-License-Identifier: MIT
// What gfx1100 has that gfx90a has not, or does otherwise: waves of 32 lanes, pairs of vector instructions, halves of
// registers and other names. RDNA3 ISA; opcodes_gfx1100.sh runs the other tables.
#include "amdgpu/opcodes_gfx1100.hpp"
#include "amdgpu/isa/clock.hpp"

namespace {

using namespace amdgpu::test;
using amdgpu::fault;
namespace reg = amdgpu::reg;

const u32 masks[] = {0, 1u << 5, 0x55555555, 0xffff0000, ~0u};

struct one {
  const char* text;  // v8 = f(v0, v2, v4); v8 was poison
  std::function<u32(u32, u32, u32)> f;
};

const one ones[] = {
    {"v_add_nc_u32 v8, v0, v2", GIVES(a + b)},
    {"v_subrev_nc_u32 v8, v0, v2", GIVES(b - a)},
    {"v_sub_nc_u32 v8, v0, v2 clamp", GIVES(a > b ? a - b : 0)},
    {"v_add_nc_i32 v8, v0, v2", GIVES(a + b)},
    {"v_sub_nc_i32 v8, v0, v2 clamp", GIVES(clamped(i64{s(a)} - s(b)))},
    {"v_xor3_b32 v8, v0, v2, v4", GIVES(a ^ b ^ c)},
    {"v_add3_u32 v8, v0, v2, 0x12345678", GIVES(a + b + 0x12345678)},
    {"v_mad_u32_u24 v8, v0, 0xabcdef, v4", GIVES((a & 0xffffff) * 0xabcdef + c)},
    {"v_clz_i32_u32 v8, v0", GIVES(a ? static_cast<u32>(__builtin_clz(a)) : ~0u)},
    {"v_ctz_i32_b32 v8, v0", GIVES(a ? static_cast<u32>(__builtin_ctz(a)) : ~0u)},
    {"v_cls_i32 v8, v0", GIVES(a == 0 || a == ~0u ? ~0u : static_cast<u32>(__builtin_clrsb(s(a)) + 1))},
    {"v_minmax_u32 v8, v0, v2, v4", GIVES(std::max(std::min(a, b), c))},
    {"v_maxmin_i32 v8, v0, v2, v4", GIVES(std::min(std::max(s(a), s(b)), s(c)))},
    {"v_add_nc_u32 v8, null, v2", GIVES(b)},
    // Halves: the other one stays.
    {"v_add_nc_u16 v8.l, v0.l, v2.l", GIVES(low(a + b))},
    {"v_add_nc_u16 v8.h, v0.h, v2.l", GIVES(high((a >> 16) + b))},
    {"v_sub_nc_u16 v8.l, v0.l, v2.h", GIVES(low(a - (b >> 16)))},
    {"v_sub_nc_i16 v8.l, v0.l, v2.l", GIVES(low(a - b))},
    {"v_mul_lo_u16 v8.l, v0.l, v2.l", GIVES(low((a & 0xffff) * (b & 0xffff)))},
    {"v_mad_u16 v8.l, v0.l, v2.l, v4.l", GIVES(low((a & 0xffff) * (b & 0xffff) + c))},
    {"v_lshlrev_b16 v8.l, v0.l, v2.l", GIVES(low(b << a % 16))},
    {"v_lshrrev_b16 v8.h, v0.l, v2.l", GIVES(high((b & 0xffff) >> a % 16))},
    {"v_ashrrev_i16 v8.l, v0.l, v2.l", GIVES(low(static_cast<u32>(static_cast<short>(b) >> a % 16)))},
    {"v_max_i16 v8.l, v0.l, v2.l",
     GIVES(low(static_cast<u32>(std::max(static_cast<short>(a), static_cast<short>(b)))))},
    {"v_and_b16 v8.l, v0.h, v2.l", GIVES(low((a >> 16) & b))},
    {"v_or_b16 v8.h, v0.l, v2.l", GIVES(high((a | b) & 0xffff))},
    {"v_xor_b16 v8.l, v0.l, v2.l", GIVES(low(a ^ b))},
    {"v_not_b16 v8.l, v0.l", GIVES(low(~a))},
    {"v_mov_b16 v8.h, v0.l", GIVES(high(a & 0xffff))},
    {"v_cvt_i32_i16 v8, v0.l", GIVES(static_cast<short>(a))},
    {"v_cvt_u32_u16 v8, v0.h", GIVES(a >> 16)},
    {"v_cvt_f16_u16 v8.l, 5", GIVES(low(0x4500))},
};

bool assembles(const std::string& text) {
  try {
    return !assembler::words(text, "gfx1100").empty();
  } catch (const std::runtime_error&) {
    return false;
  }
}

// LLVM before 20 names halves of registers in a list behind the operands: sources, then the destination.
std::string of_older_llvm(const std::string& text) {
  std::string out = text.substr(0, text.find(' ')), list, destination;
  for (std::size_t at = out.size(); at < text.size();) {
    const std::size_t end = std::min(text.find(',', at + 1), text.size());
    std::string operand = text.substr(at, end - at);
    const bool high = operand.size() > 2 && operand.substr(operand.size() - 2) == ".h";
    if (operand.find(".l") != std::string::npos || high) operand.resize(operand.size() - 2);
    (destination.empty() ? destination : list) += std::string(high ? "1" : "0") + ",";
    out += operand;
    at = end;
  }
  if ((list + destination).find('1') != std::string::npos)
    out.insert(text.find(' '), "_e64").append(" op_sel:[" + list + destination.substr(0, 1) + "]");
  return out;
}

TEST_F(gfx1100, halves_have_another_text_before_llvm_20) {
  EXPECT_EQ(of_older_llvm("v_sub_nc_u16 v8.l, v0.l, v2.h"), "v_sub_nc_u16_e64 v8, v0, v2 op_sel:[0,1,0]");
  EXPECT_EQ(of_older_llvm("v_or_b16 v8.h, v0.l, v2.l"), "v_or_b16_e64 v8, v0, v2 op_sel:[0,0,1]");
  EXPECT_EQ(of_older_llvm("v_not_b16 v8.l, v0.l"), "v_not_b16 v8, v0");
}

// In waves of 32 lanes, with EXEC as one SGPR.
TEST_F(gfx1100, of_one_dword) {
  for (const one& o : ones) {
    const std::string text = assembles(o.text) ? o.text : of_older_llvm(o.text);
    if (text != o.text && !assembles(text)) continue;  // older ones lack some halves in any text
    m.load(text);
    for (u32 exec : masks)
      for (unsigned round = 0; round < 4; ++round) {
        expect_lanes(m, text, exec, round, edge, o.f);
        if (HasFatalFailure()) return;
      }
  }
}

// A lane mask is one SGPR; the one behind it stays.
TEST_F(gfx1100, masks_of_32_lanes) {
  m.load(
      "v_cmp_lt_u32 vcc_lo, v0, v2\n v_cmp_eq_u32 s10, v0, v2\n v_cndmask_b32 v8, v0, v2, s10\n"
      "v_add_co_u32 v9, s12, v0, v2\n v_add_co_ci_u32 v10, s14, v0, v2, s12\n v_sub_co_u32 v11, s16, v0, v2\n"
      "v_sub_co_ci_u32 v12, null, v0, v2, s16\n v_cndmask_b32 v13, v0, v2, vcc_lo\n"
      "v_mad_u64_u32 v[14:15], null, v0, v2, v[4:5]");
  for (u32 exec : masks)
    for (unsigned round = 0; round < 4; ++round) {
      m.exec(exec);
      for (auto& r : m.w.s)
        if (&r < &m.w.s[reg::exec]) r = machine::poison;
      for (unsigned l = 0; l < narrow; ++l) {
        m.v(0, l) = edge(l + round), m.v(2, l) = edge(second(l, round)), m.set_v64(4, l, edge64(third(l, round)));
        for (unsigned n = 8; n < 16; ++n) m.v(n, l) = machine::poison;
      }
      ASSERT_FALSE(m.go()) << m.shared.failed.sentence();
      u32 less = 0, equal = 0, over = 0, over2 = 0, under = 0;
      for (unsigned l = 0; l < narrow; ++l) {
        const u64 a = edge(l + round), b = edge(second(l, round));
        const u32 bit = (exec >> l & 1) << l;
        if (a < b) less |= bit;
        if (a == b) equal |= bit;
        if ((a + b) >> 32) over |= bit;
        if ((a + b + (over >> l & 1)) >> 32) over2 |= bit;
        if (a < b) under |= bit;
        const auto expect = [&](unsigned n, u64 x) {
          ASSERT_EQ(m.v(n, l), bit ? static_cast<u32>(x) : machine::poison) << "v" << n << " lane " << l;
        };
        expect(8, equal >> l & 1 ? b : a);
        expect(9, a + b);
        expect(10, a + b + (over >> l & 1));
        expect(11, a - b);
        expect(12, a - b - (under >> l & 1));
        expect(13, less >> l & 1 ? b : a);
        const u64 sum = a * b + edge64(third(l, round));
        expect(14, sum), expect(15, sum >> 32);
      }
      EXPECT_PAIRS((m.s(reg::vcc), less), (m.s(10), equal), (m.s(12), over), (m.s(14), over2), (m.s(16), under));
      for (unsigned n : {reg::vcc + 1, 11u, 13u, 15u, 17u}) EXPECT_EQ(m.s(n), machine::poison) << n;
      EXPECT_EQ(m.w.exec(), exec) << "null is no part of EXEC";
    }
}

TEST_F(gfx1100, compares_into_exec_alone) {
  m.s(reg::vcc) = machine::poison;
  for (unsigned l = 0; l < narrow; ++l) m.v(0, l) = l;
  m.exec(0x0fffffff);
  ASSERT_FALSE(m.run("v_cmpx_lt_u32 20, v0\n v_mov_b32 v1, 7\n v_cmpx_ne_u32_e64 v0, 22"));
  EXPECT_PAIRS((m.w.exec(), 0x0fa00000u | 0x800000u), (m.s(reg::vcc), machine::poison));
  for (unsigned l = 0; l < narrow; ++l) EXPECT_EQ(m.v(1, l), l > 20 && l < 28 ? 7 : machine::poison) << l;
}

TEST_F(gfx1100, exec_is_saved_and_changed_by_32_bits) {
  const struct {
    const char* name;
    std::function<u32(u32, u32)> f;
  } kinds[] = {{"and", [](u32 a, u32 e) { return a & e; }},      {"or", [](u32 a, u32 e) { return a | e; }},
               {"xor", [](u32 a, u32 e) { return a ^ e; }},      {"and_not1", [](u32 a, u32 e) { return a & ~e; }},
               {"or_not1", [](u32 a, u32 e) { return a | ~e; }}, {"and_not0", [](u32 a, u32 e) { return ~a & e; }},
               {"or_not0", [](u32 a, u32 e) { return ~a | e; }}, {"nand", [](u32 a, u32 e) { return ~(a & e); }},
               {"nor", [](u32 a, u32 e) { return ~(a | e); }},   {"xnor", [](u32 a, u32 e) { return ~(a ^ e); }}};
  for (const auto& k : kinds) {
    m.load(std::string("s_") + k.name + "_saveexec_b32 s8, s0");
    for (u32 exec : masks)
      for (unsigned i = 0; i < 24; ++i) {
        m.exec(exec), m.s(0) = edge(i), m.s(9) = machine::poison;
        ASSERT_FALSE(m.go());
        EXPECT_PAIRS((m.s(8), exec), (m.s(9), machine::poison));
        EXPECT_EQ(m.w.exec(), k.f(edge(i), exec)) << k.name;
        EXPECT_EQ(m.w.scc, m.w.exec() != 0);
      }
  }
  m.exec(0xff00ff00), m.s(0) = 0x0ff00ff0;
  ASSERT_FALSE(m.run("s_and_not1_wrexec_b32 s8, s0"));
  EXPECT_PAIRS((m.s(8), 0x00f000f0u), (m.w.exec(), 0x00f000f0u));
}

TEST_F(gfx1100, branches_by_masks_of_32_lanes) {
  m.s(reg::vcc + 1) = 1;
  ASSERT_FALSE(
      m.run("s_mov_b32 s0, 0\n s_mov_b32 vcc_lo, 0\n s_cbranch_vccnz end\n s_mov_b32 s0, 1\n s_mov_b32 exec_lo, 0\n"
            "s_cbranch_execnz end\n s_mov_b32 s0, 2\nend:"));
  EXPECT_EQ(m.s(0), 2u) << "VCC_HI and EXEC_HI are no part of the masks";
}

TEST_F(gfx1100, scalars) {
  m.s(0) = 0x89abcdef, m.s(1) = 0x01234567, m.s(104) = 5, m.s(105) = 6;
  m.w.set64(4, 0x00f0);
  ASSERT_FALSE(
      m.run("s_and_not1_b32 s8, s0, s1\n s_or_not1_b32 s9, s0, s1\n s_clz_i32_u32 s10, s1\n s_ctz_i32_b64 s11, s[4:5]\n"
            "s_pack_hl_b32_b16 s12, s0, s1\n s_add_u32 s13, s104, s105\n s_mov_b32 null, s0\n s_cls_i32 s14, s0\n"
            "s_delay_alu instid0(VALU_DEP_1)\n s_clause 0x1\n s_waitcnt_depctr 0xfff\n s_mov_b32 m0, 77\n"
            "s_mov_b32 s15, m0\n s_add_u32 s16, s0, null\n s_getreg_b32 s17, hwreg(HW_REG_SH_MEM_BASES, 16, 16)"))
      << m.shared.failed.sentence();
  EXPECT_PAIRS((m.s(8), 0x89abcdefu & ~0x01234567u), (m.s(9), 0x89abcdefu | ~0x01234567u), (m.s(10), 7u), (m.s(11), 4u),
               (m.s(12), 0x456789abu), (m.s(13), 11u), (m.s(14), 1u), (m.s(15), 77u), (m.s(16), 0x89abcdefu),
               (m.s(17), m.shared.how.lds_aperture >> 48));
}

TEST_F(gfx1100, scalar_loads_and_the_clock) {
  static u32 words[32];
  for (unsigned i = 0; i < 32; ++i) words[i] = 1000 + i;
  m.visible.list(words, sizeof(words));
  m.w.set64(2, reinterpret_cast<u64>(words + 4)), m.s(4) = 16;
  const u64 before = amdgpu::realtime_ticks();
  ASSERT_FALSE(
      m.run("s_load_b32 s8, s[2:3], null\n s_load_b64 s[10:11], s[2:3], 0x8\n s_load_b128 s[12:15], s[2:3], -0x10\n"
            "s_load_b256 s[16:23], s[2:3], s4\n s_load_b32 s9, s[2:3], s4 offset:0x4\n"
            "s_sendmsg_rtn_b64 s[40:41], sendmsg(MSG_RTN_GET_REALTIME)\n s_waitcnt lgkmcnt(0)"))
      << m.shared.failed.sentence();
  EXPECT_PAIRS((m.s(8), 1004u), (m.s(9), 1009u), (m.s(10), 1006u), (m.s(11), 1007u));
  for (unsigned i = 0; i < 4; ++i) EXPECT_EQ(m.s(12 + i), 1000 + i);
  for (unsigned i = 0; i < 8; ++i) EXPECT_EQ(m.s(16 + i), 1008 + i);
  EXPECT_GE(m.w.get64(40), before);
  EXPECT_LE(m.w.get64(40), amdgpu::realtime_ticks());
}

// Both halves of a pair read before one writes.
TEST_F(gfx1100, pairs_run_at_once) {
  m.load(
      "v_dual_mov_b32 v1, v2 :: v_dual_mov_b32 v2, v1\n"
      "v_dual_mul_f32 v5, v3, v4 :: v_dual_fmac_f32 v4, v14, v3\n v_dual_cndmask_b32 v7, v1, v2 :: v_dual_add_nc_u32 "
      "v6, 5, v7\n"
      "v_dual_fmaak_f32 v9, v3, v3, 0x40400000 :: v_dual_sub_f32 v8, v14, v4\n"
      "v_dual_mov_b32 v12, v0 :: v_dual_and_b32 v13, 6, v15\n v_dual_mov_b32 v18, v0 :: v_dual_lshlrev_b32 v19, 3, "
      "v15");
  m.s(reg::vcc) = 0x0f0f0f0f;
  for (u32 exec : masks) {
    m.exec(exec);
    for (unsigned l = 0; l < narrow; ++l) {
      m.v(0, l) = l, m.v(1, l) = 100 + l, m.v(2, l) = 200 + l, m.v(7, l) = 300 + l;
      for (unsigned n : {5, 6, 8, 9, 12, 13, 18, 19}) m.v(n, l) = machine::poison;
      m.v(3, l) = std::bit_cast<u32>(static_cast<float>(l)), m.v(4, l) = std::bit_cast<u32>(2.0f);
      m.v(14, l) = m.v(3, l), m.v(15, l) = l;
    }
    ASSERT_FALSE(m.go()) << m.shared.failed.sentence();
    for (unsigned l = 0; l < narrow; ++l) {
      const bool on = exec >> l & 1;
      const auto f = static_cast<float>(l);
      const auto expect = [&](unsigned n, u32 x, u32 was) {
        EXPECT_EQ(m.v(n, l), on ? x : was) << "v" << n << ' ' << l;
      };
      const auto real = [](float x) { return std::bit_cast<u32>(x); };
      expect(1, 200 + l, 100 + l), expect(2, 100 + l, 200 + l);
      expect(5, real(f * 2), machine::poison), expect(4, real(f * f + 2), real(2));
      expect(7, 0x0f0f0f0f >> l & 1 ? 100 + l : 200 + l, 300 + l), expect(6, 305 + l, machine::poison);
      expect(9, real(f * f + 3), machine::poison), expect(8, real(f - (f * f + 2)), machine::poison);
      expect(12, l, machine::poison), expect(13, l & 6, machine::poison), expect(19, l * 8, machine::poison);
    }
  }
}

struct move {
  const char* text;  // v8 = v0 of the lane that from() names; -1: none
  std::function<int(int)> from;
  bool zero = false, inactive_too = false;  // where none is, or it is off
};

const move moves[] = {
    {"v_mov_b32_dpp v8, v0 quad_perm:[3,2,1,0] row_mask:0xf bank_mask:0xf",
     [](int l) { return l / 4 * 4 + 3 - l % 4; }},
    {"v_mov_b32_dpp v8, v0 row_shr:3 row_mask:0xf bank_mask:0xf", [](int l) { return l % 16 >= 3 ? l - 3 : -1; }},
    {"v_mov_b32_dpp v8, v0 row_shl:1 row_mask:0xf bank_mask:0xf bound_ctrl:1",
     [](int l) { return l % 16 < 15 ? l + 1 : -1; }, true},
    {"v_mov_b32_dpp v8, v0 row_ror:5 row_mask:0xf bank_mask:0xf fi:1",
     [](int l) { return l / 16 * 16 + (l % 16 + 11) % 16; }, false, true},
    {"v_mov_b32_dpp v8, v0 row_share:6 row_mask:0xf bank_mask:0xf", [](int l) { return l / 16 * 16 + 6; }},
    {"v_mov_b32_dpp v8, v0 row_xmask:9 row_mask:0xf bank_mask:0xf", [](int l) { return l ^ 9; }},
    {"v_mov_b32_dpp v8, v0 row_half_mirror row_mask:0xf bank_mask:0xf", [](int l) { return l / 8 * 8 + 7 - l % 8; }},
    {"v_mov_b32_dpp v8, v0 dpp8:[7,0,6,1,5,2,4,3]",
     [](int l) {
       const int picks[] = {7, 0, 6, 1, 5, 2, 4, 3};
       return l / 8 * 8 + picks[l % 8];
     },
     true},
    {"v_mov_b32_dpp v8, v0 dpp8:[1,0,3,2,5,4,7,6] fi:1", [](int l) { return l ^ 1; }, true, true},
    {"v_add_nc_u32_e64_dpp v8, v0, v9 row_mirror row_mask:0xf bank_mask:0xf",
     [](int l) { return l / 16 * 16 + 15 - l % 16; }},
    {"v_permlane16_b32 v8, v0, s0, s1",
     [](int l) { return l / 16 * 16 + static_cast<int>(0xfedcba9876543210 >> 4 * ((l * 1) % 16) & 15); }},
    {"v_permlanex16_b32 v8, v0, s0, s1",
     [](int l) { return (l / 16 * 16 ^ 16) + static_cast<int>(0xfedcba9876543210 >> 4 * (l % 16) & 15); }},
    {"v_permlanex16_b32 v8, v0, s2, s3 op_sel:[1,0]", [](int l) { return (l / 16 * 16 ^ 16) + 15 - l % 16; }, false,
     true},
    {"v_permlane16_b32 v8, v0, s2, s3 op_sel:[0,1]", [](int l) { return l / 16 * 16 + 15 - l % 16; }, true},
};

TEST_F(gfx1100, lanes_read_others) {
  m.w.set64(0, 0xfedcba9876543210), m.w.set64(2, 0x0123456789abcdef);
  for (const move& k : moves) {
    m.load(k.text);
    for (u32 exec : masks) {
      m.exec(exec);
      for (unsigned l = 0; l < narrow; ++l) m.v(0, l) = 500 + l, m.v(8, l) = machine::poison, m.v(9, l) = 0;
      ASSERT_FALSE(m.go()) << k.text << m.shared.failed.sentence();
      for (unsigned l = 0; l < narrow; ++l) {
        const int from = k.from(static_cast<int>(l));
        const bool read = from >= 0 && (k.inactive_too || exec >> from & 1);
        const u32 expected = read ? 500 + static_cast<u32>(from) : k.zero ? 0 : machine::poison;
        ASSERT_EQ(m.v(8, l), exec >> l & 1 ? expected : machine::poison)
            << k.text << " lane " << l << " of " << hex(exec);
      }
    }
  }
}

// Among 32 lanes, also where the wave has 64.
TEST_F(gfx1100, permutes_reach_32_lanes) {
  for (bool wave32 : {true, false}) {
    machine n;
    use(n, wave32);
    for (unsigned l = 0; l < n.w.width(); ++l) n.v(0, l) = 4 * (l * 7 + 3), n.v(1, l) = 500 + l;
    ASSERT_FALSE(n.run("ds_bpermute_b32 v8, v0, v1\n ds_permute_b32 v9, v0, v1\n s_waitcnt lgkmcnt(0)"));
    for (unsigned l = 0; l < n.w.width(); ++l) {
      EXPECT_EQ(n.v(8, l), 500 + l / 32 * 32 + (l * 7 + 3) % 32);
      EXPECT_EQ(n.v(9, l / 32 * 32 + (l * 7 + 3) % 32), 500 + l);
    }
  }
}

TEST_F(gfx1100, lanes_are_named_modulo_32) {
  for (unsigned l = 0; l < narrow; ++l) m.v(0, l) = 500 + l, m.v(1, l) = machine::poison;
  m.s(0) = 35;
  ASSERT_FALSE(
      m.run("v_readlane_b32 s4, v0, s0\n v_writelane_b32 v1, 9, s0\n v_readfirstlane_b32 s5, v0\n"
            "v_permlane64_b32 v2, v0\n v_mbcnt_lo_u32_b32 v3, -1, 0\n v_mbcnt_hi_u32_b32 v3, -1, v3\n"
            "s_mov_b32 m0, 2\n v_movreld_b32 v10, v0\n v_movrels_b32 v11, v10"));
  EXPECT_PAIRS((m.s(4), 503u), (m.s(5), 500u));
  for (unsigned l = 0; l < narrow; ++l) {
    EXPECT_PAIRS((m.v(1, l), l == 3 ? 9 : machine::poison), (m.v(2, l), 500 + l), (m.v(3, l), l), (m.v(12, l), 500 + l),
                 (m.v(11, l), 500 + l));
  }
}

// A wave of 64 lanes by the same names: masks are pairs.
TEST_F(gfx1100, waves_of_64_lanes) {
  m.wave32(false);
  for (unsigned l = 0; l < 64; ++l) m.v(0, l) = l;
  ASSERT_FALSE(
      m.run("v_cmp_lt_u32 vcc, 40, v0\n v_cndmask_b32 v1, 1, 2, vcc\n v_permlane64_b32 v2, v0\n"
            "s_and_saveexec_b64 s[10:11], vcc\n v_mov_b32 v1, 3"));
  EXPECT_PAIRS((m.w.get64(reg::vcc), ~u64{0} << 41), (m.w.get64(10), ~u64{0}));
  for (unsigned l = 0; l < 64; ++l) {
    EXPECT_PAIRS((m.v(1, l), l > 40 ? 3u : 1u), (m.v(2, l), l ^ 32));
  }
}

TEST_F(gfx1100, what_is_not_interpreted_is_refused_by_name) {
  for (const char* text : {"buffer_load_b32 v4, off, s[8:11], 0", "s_sendmsg_rtn_b32 s0, sendmsg(MSG_RTN_GET_DOORBELL)",
                           "v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]", "v_dot2_f32_f16 v0, v1, v2, v3",
                           "image_load v0, v1, s[0:7] dmask:0x1 dim:SQ_RSRC_IMG_1D"}) {
    EXPECT_EQ(m.run(text).what, fault::kind::unknown) << text;
    EXPECT_NE(m.shared.failed.sentence().find(std::string(text).substr(0, std::string(text).find(' '))),
              std::string::npos);
  }
}

}  // namespace
