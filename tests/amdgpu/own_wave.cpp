// SPDX-License-Identifier: MIT
// Lanes that wait for a lane of their own wave, in the shapes that compilers give to such loops, and waves that only
// wait for somebody else.
#include "amdgpu/isa/own_wave.hpp"
#include "amdgpu/opcodes.hpp"

namespace {

using namespace amdgpu;
using namespace amdgpu::test;

// Runs it for a while: v[0:1] point to a word of 0, v[2:3] to another, v4 is the lane's number.
std::string said(const std::string& text, u64 began = ~u64{0}) {
  alignas(64) u32 cells[64] = {};
  machine m;
  m.visible.list(cells, sizeof(cells));
  m.exec(began);
  for (unsigned l = 0; l < lanes; ++l) {
    m.set_v64(0, l, reinterpret_cast<u64>(&cells[0]));
    m.set_v64(2, l, reinterpret_cast<u64>(&cells[32]));
    m.v(4, l) = l;
  }
  m.load(text);
  m.start();
  for (int turn = 0; turn < 20 && m.w.now == wave::state::ready && !m.w.stopped; ++turn) m.turn();
  EXPECT_EQ(m.w.now, wave::state::ready) << "it waits for nothing";
  const u32 before[] = {cells[0], cells[32]};
  const u64 pc = m.w.pc, exec = m.w.exec();
  const std::string found = waits_for_own_lane(m.w, m.visible, began);
  EXPECT_TRUE(cells[0] == before[0] && cells[32] == before[1] && m.w.pc == pc && m.w.exec() == exec)
      << "the trial was seen outside";
  return found;
}

// Lane 0 looks until the word is not 0; behind it come the others, or all.
std::string lane_0_waits(const std::string& then) {
  return "v_cmp_eq_u32 vcc, 0, v4\n s_and_saveexec_b64 s[2:3], vcc\n s_cbranch_execz behind\n"
         "loop:\n global_load_dword v5, v[0:1], off\n s_waitcnt vmcnt(0)\n v_cmp_eq_u32 vcc, 0, v5\n"
         "s_and_b64 vcc, exec, vcc\n s_cbranch_vccnz loop\n"
         "behind:\n v_mov_b32 v6, 1\n" +
         then;
}

TEST(OwnWave, ALaneWaitsForWhatTheOthersStoreAfterIt) {
  const std::string found = said(lane_0_waits("s_andn2_b64 exec, s[2:3], exec\n global_store_dword v[0:1], v6, off"));
  for (const char* words : {"lanes that wait for a lane of their own wave in kernel test at pc 0x",
                            "wave 0: lanes 0x1 look at", "which lane 1 would write at pc"})
    EXPECT_NE(found.find(words), std::string::npos) << found;
  EXPECT_NE(
      said(lane_0_waits("s_or_b64 exec, exec, s[2:3]\n global_atomic_add v[0:1], v6, off")).find("lane 1 would write"),
      std::string::npos);
}

// while (atomicCAS(lock, 0, 1) != 0) {}  ..  *lock = 0
TEST(OwnWave, LanesTakeALockOneAfterTheOther) {
  const std::string found = said(
      "v_mov_b32 v6, 1\n v_mov_b32 v7, 0\n s_mov_b64 s[4:5], 0\n"
      "loop:\n global_atomic_cmpswap v5, v[0:1], v[6:7], off glc\n s_waitcnt vmcnt(0)\n v_cmp_eq_u32 vcc, 0, v5\n"
      "s_or_b64 s[4:5], vcc, s[4:5]\n s_andn2_b64 exec, exec, s[4:5]\n s_cbranch_execnz loop\n"
      "s_or_b64 exec, exec, s[4:5]\n global_store_dword v[0:1], v7, off");
  EXPECT_NE(found.find("lanes 0xfffffffffffffffe look at"), std::string::npos) << found;
  EXPECT_NE(found.find("which lane 0 would write"), std::string::npos) << found;
}

TEST(OwnWave, WavesThatWaitForOthersAreLeftAlone) {
  // The others write elsewhere, or what does not let the lane go.
  EXPECT_EQ(said(lane_0_waits("s_or_b64 exec, exec, s[2:3]\n global_store_dword v[2:3], v6, off")), "");
  EXPECT_EQ(said(lane_0_waits("s_or_b64 exec, exec, s[2:3]\n v_mov_b32 v6, 0\n global_store_dword v[0:1], v6, off")),
            "");
  // The lane that would write is the one that waits.
  EXPECT_EQ(said(lane_0_waits("global_store_dword v[0:1], v6, off")), "");
  // All lanes wait, or all that there are.
  EXPECT_EQ(said("loop:\n global_load_dword v5, v[0:1], off\n s_waitcnt vmcnt(0)\n v_cmp_eq_u32 vcc, 0, v5\n"
                 "s_cbranch_vccnz loop\n v_mov_b32 v6, 1\n global_store_dword v[0:1], v6, off"),
            "");
  EXPECT_EQ(said(lane_0_waits("s_andn2_b64 exec, s[2:3], exec\n global_store_dword v[0:1], v6, off"), 1), "");
  // A loop that counts something in memory is at work.
  EXPECT_EQ(
      said("v_mov_b32 v6, 1\n s_mov_b64 exec, 1\nloop:\n global_atomic_add v[2:3], v6, off\n"
           "global_load_dword v5, v[0:1], off\n s_waitcnt vmcnt(0)\n v_cmp_eq_u32 vcc, 0, v5\n s_cbranch_vccnz loop\n"
           "s_mov_b64 exec, -1\n global_store_dword v[0:1], v6, off"),
      "");
}

}  // namespace
