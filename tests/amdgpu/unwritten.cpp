// SPDX-License-Identifier: MIT
// Registers that were never written: moved and computed with they are nobody's fault, and where they decide something
// the wave is stopped. Each test says what a compiler may do, or may not.
#include "amdgpu/isa/unwritten.hpp"
#include "amdgpu/opcodes.hpp"

namespace {

using namespace amdgpu;
using namespace amdgpu::test;

// A wave that starts with s[0:5] and v0; v[2:3] point to memory and s[4:5], too. v0 is the lane's number.
struct watched {
  watched() {
    m.visible.list(cells, sizeof(cells));
    for (unsigned l = 0; l < lanes; ++l) {
      m.v(0, l) = l;
      m.set_v64(2, l, reinterpret_cast<u64>(cells) + 8 * l);
    }
    const u64 address = reinterpret_cast<u64>(cells);
    m.s(4) = static_cast<u32>(address);
    m.s(5) = static_cast<u32>(address >> 32);
    start_watching(m.w, 6, known);
    known.v[2] = known.v[3] = ~u64{0};
  }
  std::string said(const std::string& text) {
    const fault& f = m.run(text);
    return f ? f.sentence() : "";
  }
  u32 cells[2 * lanes] = {};
  written_registers known;
  machine m;
};

void fine(const std::string& text) { EXPECT_EQ(watched().said(text), "") << text; }
void reported(const std::string& text, const std::string& why) {
  const std::string said = watched().said(text);
  EXPECT_NE(said.find("register never written in kernel test"), std::string::npos) << text << ": " << said;
  EXPECT_NE(said.find(why), std::string::npos) << text << ": " << said;
}

TEST(Unwritten, VectorsThatDecideAreReported) {
  reported("global_store_dword v[2:3], v7, off",
           "lane 0: v7 depends on a register that was never written, and is stored to memory");
  reported("global_load_dword v1, v[8:9], off",
           "v[8:9] depends on a register that was never written, and is an address");
  reported("v_add_u32 v5, v6, v0\n global_load_dword v1, v5, s[4:5]", "v5 depends");
  reported("v_accvgpr_read_b32 v5, a3\n global_store_dword v[2:3], v5, off", "v5 depends");
  reported("v_mov_b32 v2, v7\n global_atomic_add v[2:3], v0, off", "an address");
  reported("global_atomic_cmpswap v[2:3], v[0:1], off", "v[0:1] depends");
  reported("ds_read_b32 v1, v9", "an address in the LDS");
  fine("v_mov_b32 v5, v6\n v_add_u32 v5, v5, v0\n global_store_dword v[2:3], v0, off");
  fine("v_accvgpr_write_b32 a3, v0\n v_accvgpr_read_b32 v5, a3\n global_store_dword v[2:3], v5, off");
}

TEST(Unwritten, LanesAreFollowedOneByOne) {
  const std::string half = "s_mov_b64 exec, 0xf\n v_mov_b32 v7, 1\n";
  fine(half + "global_store_dword v[2:3], v7, off");
  reported(half + "s_mov_b64 exec, 0x1f\n global_store_dword v[2:3], v7, off", "lane 4");
  reported(half + "s_mov_b64 exec, -1\n v_add_u32 v7, v7, v0\n global_store_dword v[2:3], v7, off", "lane 4");
  // A select takes one of two.
  fine("v_cmp_gt_u32 vcc, 4, v0\n v_cndmask_b32 v7, v0, v0, vcc\n global_store_dword v[2:3], v7, off");
  reported("v_cmp_gt_u32 vcc, 4, v0\n v_cndmask_b32 v7, v0, v9, vcc\n global_store_dword v[2:3], v7, off", "lane 0");
  reported("v_cmp_gt_u32 vcc, 4, v0\n v_cndmask_b32 v7, v9, v0, vcc\n global_store_dword v[2:3], v7, off", "lane 4");
}

TEST(Unwritten, BetweenLanesAndScalars) {
  fine("v_writelane_b32 v9, s0, 3\n v_readlane_b32 s8, v9, 3\n s_cmp_eq_u32 s8, 0\n s_cbranch_scc1 0");
  reported("v_writelane_b32 v9, s0, 3\n v_readlane_b32 s8, v9, 2\n s_cmp_eq_u32 s8, 0\n s_cbranch_scc1 0",
           "SCC depends on a register that was never written, and is what a branch goes by");
  fine("v_readfirstlane_b32 s8, v0\n s_cmp_eq_u32 s8, 0\n s_cbranch_scc1 0");
  reported("v_readfirstlane_b32 s8, v9\n s_cmp_eq_u32 s8, 0\n s_cbranch_scc0 0", "SCC");
  fine("v_mov_b32 v5, v6\n v_swap_b32 v5, v0\n global_store_dword v[2:3], v5, off");
  reported("v_mov_b32 v5, v6\n v_swap_b32 v5, v0\n global_store_dword v[2:3], v0, off", "v0 depends");
}

// Compilers compute 64 bits where they want 32: the low half of a sum or product has nothing of the high ones.
TEST(Unwritten, HalvesAreFollowedOneByOne) {
  const std::string store = "\n global_store_dword v[2:3], ";
  for (const char* what : {"v_mad_u64_u32 v[10:11], s[8:9], v0, s0, v[4:5]", "v_lshlrev_b64 v[10:11], 3, v[4:5]"}) {
    const std::string low = std::string("v_mov_b32 v4, v0\n") + what + store;
    fine(low + "v10, off");
    reported(low + "v11, off", "v11 depends");
    reported(std::string("v_mov_b32 v5, v0\n") + what + store + "v10, off", "v10 depends");
  }
  const std::string high = "v_mov_b32 v5, v0\n v_lshrrev_b64 v[10:11], 3, v[4:5]" + store;
  fine(high + "v11, off");
  reported(high + "v10, off", "v10 depends");
  const std::string moved = "v_mov_b32 v5, v0\n v_pk_mov_b32 v[10:11], v[4:5], v[0:1] op_sel:[1,1]" + store;
  fine(moved + "v10, off");
  reported(moved + "v11, off", "v11 depends");
  fine("s_lshl_b64 s[8:9], s[4:5], 3\n s_lshr_b32 s10, s4, 5\n s_cmp_eq_u64 s[8:9], 0\n s_cbranch_scc1 0");
  fine("s_mov_b32 s8, s0\n s_lshl_b64 s[8:9], s[8:9], 32\n s_cmp_eq_u64 s[8:9], 0\n s_cbranch_scc1 0");
  reported("s_mov_b32 s8, s0\n s_lshl_b64 s[8:9], s[8:9], 31\n s_cmp_eq_u64 s[8:9], 0\n s_cbranch_scc1 0", "SCC");
}

TEST(Unwritten, ScalarsThatDecideAreReported) {
  reported("s_load_dword s8, s[20:21], 0x0",
           "s[20:21] depends on a register that was never written, and is an address");
  reported("s_setpc_b64 s[20:21]", "where the program goes");
  reported("s_add_u32 s8, s9, 1\n s_cbranch_scc1 0", "SCC");
  reported("s_cbranch_vccnz 0", "vcc depends");
  reported("v_cmp_eq_u32 vcc, v7, v0\n s_cbranch_vccnz 0", "vcc depends");
  reported("s_mov_b64 exec, s[20:21]", "put into EXEC");
  reported("s_and_saveexec_b64 s[8:9], s[20:21]", "put into EXEC");
  reported("v_cmpx_eq_u32 vcc, v7, v0", "put into EXEC");
  reported("s_cmp_eq_u32 s0, 1\n s_cselect_b32 s8, s9, s9\n s_cmp_eq_u32 s8, 0\n s_cbranch_scc1 0", "SCC");
  fine("s_mov_b32 s8, s9\n s_add_u32 s8, s8, 1\n s_cmp_eq_u32 s0, 0\n s_cbranch_scc1 0");
  fine("s_load_dword s8, s[4:5], 0x0\n s_cmp_eq_u32 s8, 0\n s_cbranch_scc1 0");
  fine("s_and_saveexec_b64 s[8:9], 0\n s_mov_b64 exec, s[8:9]");
}

// LLVM puts the mask of a loop's lanes together: what was there before for lanes that are not here, the new for those
// that are. In the first round there is nothing before.
TEST(Unwritten, BitsOfMasksAreFollowedOneByOne) {
  const std::string merge =
      "s_mov_b64 s[8:9], 0xff\n s_andn2_b64 s[20:21], s[20:21], exec\n"
      "s_and_b64 s[8:9], s[8:9], exec\n s_or_b64 s[20:21], s[20:21], s[8:9]\n";
  fine(merge + "s_and_saveexec_b64 s[10:11], s[20:21]");
  fine("s_mov_b64 exec, 0xf\n" + merge + "s_and_saveexec_b64 s[10:11], s[20:21]");
  reported("s_mov_b64 exec, 0xf\n" + merge + "s_mov_b64 exec, 0x1f\n s_and_saveexec_b64 s[10:11], s[20:21]",
           "lane 4: a lane's bit depends");
  fine("s_mov_b64 exec, 0xf\n" + merge + "s_and_b64 vcc, exec, s[20:21]\n s_cbranch_vccnz 0");
  fine("s_or_b32 s20, s20, -1\n s_cmp_eq_u32 s20, 0\n s_cbranch_scc1 0");
}

// Where SGPRs are few such a mask is kept in two lanes of a VGPR, and that in an AGPR.
TEST(Unwritten, BitsAreFollowedIntoLanes) {
  const std::string kept =
      "s_mov_b64 exec, 0xf\n s_or_b64 s[20:21], s[20:21], exec\n v_writelane_b32 v20, s20, 4\n"
      "v_writelane_b32 v20, s21, 5\n";
  const std::string fetched = "v_readlane_b32 s8, v20, 4\n v_readlane_b32 s9, v20, 5\n";
  const std::string used = "s_and_saveexec_b64 s[10:11], s[8:9]";
  const std::string five = "s_mov_b64 exec, 0x1f\n";
  fine(kept + fetched + used);
  reported(kept + fetched + five + used, "lane 4: a lane's bit depends");
  const std::string all = "s_mov_b64 exec, -1\n", four = "s_mov_b64 exec, 0xf\n";
  const std::string moved = all + "v_accvgpr_write_b32 a3, v20\n v_accvgpr_read_b32 v20, a3\n";
  fine(kept + moved + fetched + four + used);
  reported(kept + moved + fetched + five + used, "lane 4: a lane's bit depends");
  // Something new in the lanes, with their EXEC and by the instruction that writes one.
  reported(kept + all + "v_mov_b32 v20, v21\n" + fetched + four + used, "lane 0: a lane's bit depends");
  reported(kept + "v_writelane_b32 v20, s30, 4\n" + fetched + used, "lane 0: a lane's bit depends");
  fine(kept + "v_mov_b32 v20, v21\n" + fetched + used);
}

// A compiler may save in private memory a register that has nothing yet, and all that it loads counts as written.
TEST(Unwritten, SpillsAreNobodysFault) {
  u32 scratch[64 * 64] = {};
  const auto said = [&](const std::string& text) {
    watched w;
    w.m.w.scratch = reinterpret_cast<u64>(scratch);
    w.m.w.scratch_bytes = sizeof(scratch);
    const u64 base = w.m.w.scratch;
    w.m.s(0) = static_cast<u32>(base);
    w.m.s(1) = static_cast<u32>(base >> 32) | 1u << 31;
    w.m.s(2) = ~0u;
    w.m.s(3) = 1u << 23 | 3u << 21;
    w.m.s(5) = 0;
    return w.said(text);
  };
  EXPECT_EQ(said("buffer_store_dword v9, off, s[0:3], s5 offset:4\n buffer_load_dword v9, off, s[0:3], s5 offset:4\n"
                 "global_store_dword v[2:3], v9, off"),
            "");
  EXPECT_NE(said("buffer_store_dword v9, off, s[0:3], s20 offset:4").find("s20 depends"), std::string::npos);
}

}  // namespace
