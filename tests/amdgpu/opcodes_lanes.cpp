// SPDX-License-Identifier: MIT
// Lanes that look at other lanes: DPP, readlane, permutes; AGPRs; the indexing mode.
#include "amdgpu/opcodes.hpp"

namespace {

using namespace amdgpu::test;
using amdgpu::lanes;

struct move {
  const char* text;  // v8 = v0 of the lane that from() names; -1: none
  std::function<int(int)> from;
  u32 rows = 0xf, banks = 0xf;
  bool bound = false;  // no lane reads as 0
};

const move moves[] = {
    {"quad_perm:[3,2,1,0] row_mask:0xf bank_mask:0xf", [](int l) { return l / 4 * 4 + 3 - l % 4; }},
    {"quad_perm:[1,1,3,3] row_mask:0xf bank_mask:0xf", [](int l) { return l | 1; }},
    {"row_shl:1 row_mask:0xf bank_mask:0xf", [](int l) { return l % 16 < 15 ? l + 1 : -1; }},
    {"row_shr:3 row_mask:0xf bank_mask:0xf", [](int l) { return l % 16 >= 3 ? l - 3 : -1; }},
    {"row_ror:5 row_mask:0xf bank_mask:0xf", [](int l) { return l / 16 * 16 + (l % 16 + 11) % 16; }},
    {"wave_shl:1 row_mask:0xf bank_mask:0xf", [](int l) { return l < 63 ? l + 1 : -1; }},
    {"wave_shr:1 row_mask:0xf bank_mask:0xf", [](int l) { return l - 1; }},
    {"wave_rol:1 row_mask:0xf bank_mask:0xf", [](int l) { return (l + 1) % 64; }},
    {"wave_ror:1 row_mask:0xf bank_mask:0xf", [](int l) { return (l + 63) % 64; }},
    {"row_mirror row_mask:0xf bank_mask:0xf", [](int l) { return l / 16 * 16 + 15 - l % 16; }},
    {"row_half_mirror row_mask:0xf bank_mask:0xf", [](int l) { return l / 8 * 8 + 7 - l % 8; }},
    {"row_bcast:15 row_mask:0xf bank_mask:0xf", [](int l) { return l >= 16 ? l / 16 * 16 - 1 : -1; }},
    {"row_bcast:31 row_mask:0xf bank_mask:0xf", [](int l) { return l >= 32 ? 31 : -1; }},
    {"row_shr:1 row_mask:0xa bank_mask:0x5", [](int l) { return l % 16 >= 1 ? l - 1 : -1; }, 0xa, 0x5},
    {"row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:0", [](int l) { return l % 16 >= 1 ? l - 1 : -1; }, 0xf, 0xf,
     true},
    {"row_shr:1 row_mask:0xc bank_mask:0xf bound_ctrl:0", [](int l) { return l % 16 >= 1 ? l - 1 : -1; }, 0xc, 0xf,
     true},
};

TEST(lanes_move, by_dpp) {
  for (const move& k : moves) {
    machine m;
    m.load(std::string("v_mov_b32_dpp v8, v0 ") + k.text);
    for (u64 exec : exec_patterns) {
      m.exec(exec);
      for (unsigned l = 0; l < lanes; ++l) m.v(0, l) = 1000 + l, m.v(8, l) = machine::poison;
      ASSERT_FALSE(m.go()) << m.shared.failed.sentence();
      for (int l = 0; l < 64; ++l) {
        int from = k.from(l);
        if (from >= 0 && !(exec >> from & 1)) from = -1;
        const bool written =
            (exec >> l & 1) && (k.rows >> l / 16 & 1) && (k.banks >> l % 16 / 4 & 1) && (from >= 0 || k.bound);
        const u32 value = from >= 0 ? 1000 + static_cast<u32>(from) : 0;
        ASSERT_EQ(m.v(8, static_cast<unsigned>(l)), written ? value : machine::poison) << k.text << " lane " << l;
      }
    }
  }
}

TEST(lanes_move, sum_by_dpp) {
  machine m;
  for (unsigned l = 0; l < lanes; ++l) m.v(0, l) = l * l;
  ASSERT_FALSE(m.run("v_add_u32_dpp v0, v0, v0 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:0"));
  for (unsigned l = 0; l < lanes; ++l) EXPECT_EQ(m.v(0, l), l * l + (l % 16 ? (l - 1) * (l - 1) : 0));
}

TEST(lanes_move, read_and_write_lane) {
  machine m;
  for (unsigned l = 0; l < lanes; ++l) m.v(0, l) = 100 + l;
  m.exec(0xfff0000000000000);
  m.s(2) = 71;  // lane 7
  ASSERT_FALSE(
      m.run("v_readfirstlane_b32 s4, v0\n v_readlane_b32 s5, v0, 3\n v_readlane_b32 s6, v0, s2\n"
            "v_writelane_b32 v1, s6, 9\n v_writelane_b32 v1, 5, s2"));
  EXPECT_PAIRS((m.s(4), 152u), (m.s(5), 103u), (m.s(6), 107u));
  for (unsigned l = 0; l < lanes; ++l) EXPECT_EQ(m.v(1, l), l == 9 ? 107u : l == 7 ? 5u : machine::poison);
  m.exec(0);
  ASSERT_FALSE(m.run("v_readfirstlane_b32 s4, v0"));
  EXPECT_EQ(m.s(4), 100u) << "without active lanes, lane 0 is read";
}

TEST(lanes_move, permutes) {
  for (u64 exec : exec_patterns) {
    machine m;
    m.exec(exec);
    for (unsigned l = 0; l < lanes; ++l) m.v(0, l) = (l * 7 + 3) % 64 * 4, m.v(1, l) = 500 + l;
    ASSERT_FALSE(
        m.run("ds_bpermute_b32 v8, v0, v1\n ds_permute_b32 v9, v0, v1\n ds_swizzle_b32 v10, v1 offset:swizzle(SWAP,4)\n"
              "ds_swizzle_b32 v11, v1 offset:swizzle(QUAD_PERM,1,0,3,2)\n ds_bpermute_b32 v12, v0, v1 offset:8\n "
              "s_waitcnt lgkmcnt(0)"));
    for (unsigned l = 0; l < lanes; ++l) {
      const auto of = [&](unsigned lane) { return exec >> lane & 1 ? 500 + lane : 0; };
      const bool on = exec >> l & 1;
      u32 sent = 0;
      for (unsigned k = 0; k < lanes; ++k)
        if ((exec >> k & 1) && (k * 7 + 3) % 64 == l) sent = 500 + k;
      EXPECT_EQ(m.v(8, l), on ? of((l * 7 + 3) % 64) : machine::poison) << l;
      EXPECT_EQ(m.v(9, l), on ? sent : machine::poison) << l;
      EXPECT_EQ(m.v(10, l), on ? of(l ^ 4) : machine::poison) << l;
      EXPECT_EQ(m.v(11, l), on ? of(l ^ 1) : machine::poison) << l;
      EXPECT_EQ(m.v(12, l), on ? of((l * 7 + 5) % 64) : machine::poison) << l;
    }
  }
}

TEST(lanes_move, accumulation_registers) {
  machine m;
  for (unsigned l = 0; l < lanes; ++l) m.v(0, l) = l;
  ASSERT_FALSE(m.run(
      "v_accvgpr_write_b32 a7, v0\n v_accvgpr_read_b32 v8, a7\n v_accvgpr_write_b32 a8, 3\n v_accvgpr_mov_b32 a9, a8"));
  for (unsigned l = 0; l < lanes; ++l) {
    EXPECT_PAIRS((m.v(8, l), l), (m.v(amdgpu::reg::agpr0 + 7, l), l), (m.v(amdgpu::reg::agpr0 + 9, l), 3u));
  }
}

TEST(lanes_move, indexed_registers) {
  machine m;
  for (unsigned n = 0; n < 8; ++n)
    for (unsigned l = 0; l < lanes; ++l) m.v(n, l) = n * 100 + l;
  m.s(2) = 3;
  ASSERT_FALSE(
      m.run("s_set_gpr_idx_on s2, gpr_idx(SRC0)\n v_mov_b32 v20, v1\n s_set_gpr_idx_off\n v_mov_b32 v21, v1\n"
            "s_set_gpr_idx_on s2, gpr_idx(DST)\n v_mov_b32 v22, v2\n s_set_gpr_idx_off"));
  for (unsigned l = 0; l < lanes; ++l) {
    EXPECT_PAIRS((m.v(20, l), 400 + l), (m.v(21, l), 100 + l), (m.v(25, l), 200 + l), (m.v(22, l), machine::poison));
  }
}

}  // namespace
