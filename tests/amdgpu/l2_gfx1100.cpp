// SPDX-License-Identifier: MIT
// The L2 of a gfx1100 with late memory, by kinds of memory, and the L1s of its shader arrays. Expected results come
// from LLVM AMDGPUUsage, "Memory Model GFX10-GFX11", by which an L2 is coherent with other agents where ranges of
// addresses bypass it, and which has no instruction for it in any release or acquire; and from the kinds that linux's
// amdgpu gives memory (gmc_v11_0_get_vm_pte: NC, and UC where it is coherent or uncached).
#include "amdgpu/l2_kinds.hpp"
#include "amdgpu/memory/shader_arrays.hpp"

namespace {

using namespace amdgpu;
using namespace amdgpu::test;

const std::string k_store = "global_store_b32 v[0:1], v4, off\n s_waitcnt_vscnt null, 0x0\n";
const std::string k_load = "global_load_b32 v7, v[0:1], off glc\n s_waitcnt vmcnt(0)\n";
// All that LLVM's fences of system scope have, acquire and release.
const std::string k_fence =
    "s_waitcnt vmcnt(0) lgkmcnt(0)\n s_waitcnt_vscnt null, 0x0\n buffer_gl1_inv\n buffer_gl0_inv\n";

// The L0s and L1s of its workgroups lie before the L2.
struct gpu {
  gpu(u64 seed, kind k)
      : l2(seed, false, {false, 1, true}),
        first(target::gfx1100, seed, l2, data, k),
        second(target::gfx1100, seed + 1000, l2, data, k) {
    first.late.have_l0(false);
    second.late.have_l0(false);
  }
  alignas(256) u32 data[64] = {};
  l2_cache l2;
  l2_user first, second;
};

// In how many seeds do other devices not find what a kernel stored and released?
unsigned unseen(kind k, bool packet_releases) {
  return seeds_in_which(seeds, [&](u64 seed) {
    gpu g(seed, k);
    g.first.begin(k_store + k_fence + "s_sleep 1");
    if (packet_releases) g.l2.write_back();
    return g.data[0] != 41;
  });
}

// In how many seeds does a kernel that has read a word, and acquires, not find what another device wrote meanwhile?
unsigned stale(kind k, bool packet_acquires) {
  return seeds_in_which(seeds, [&](u64 seed) {
    gpu g(seed, k);
    g.first.begin(k_load + "s_sleep 1\n" + k_fence + k_load);
    g.data[0] = 41;
    if (packet_acquires) g.l2.invalidate();
    g.first.turn();
    EXPECT_EQ(g.first.m.w.now, wave::state::ended);
    return g.first.m.v(7, 0) != 41;
  });
}

TEST(AmdgpuL2OfGfx1100, NoInstructionMakesStoresToCoarseMemorySeen) {
  for (const kind& k : k_coarse) {
    EXPECT_PAIRS((unseen(k, false), seeds), (unseen(k, true), 0u));
  }
}

TEST(AmdgpuL2OfGfx1100, NoInstructionMakesOthersStoresToCoarseMemorySeen) {
  for (const kind& k : k_coarse) {
    EXPECT_GT(stale(k, false), 0u) << "this GPU's own is NC, too";
    EXPECT_LT(stale(k, false), seeds) << "it may have left by itself";
    EXPECT_EQ(stale(k, true), 0u);
  }
}

TEST(AmdgpuL2OfGfx1100, FineGrainedAndUncachedMemoryBypassesIt) {
  for (const kind& k : k_fine) {
    EXPECT_EQ(unseen(k, false), 0u);
    EXPECT_EQ(stale(k, false), 0u);
  }
}

// All shader arrays of an agent have one L2: what one workgroup stored another one finds there.
TEST(AmdgpuL2OfGfx1100, WorkgroupsSeeEachOthersStoresThere) {
  for (const kind& k : k_coarse)
    for (u64 seed = 1; seed <= seeds; ++seed) {
      gpu g(seed, k);
      g.second.begin("global_load_b32 v7, v[0:1], off\n s_waitcnt vmcnt(0)\n s_sleep 1\n" + k_fence +
                     "global_load_b32 v7, v[0:1], off\n s_waitcnt vmcnt(0)");
      g.first.begin(k_store + k_fence);
      g.second.turn();
      EXPECT_PAIRS((g.second.m.v(7, 0), 41u), (g.data[0], 0u));
    }
}

// A workgroup that never read the word finds what another one of its array has read, until buffer_gl1_inv.
TEST(AmdgpuL1OfGfx1100, HasWhatAnotherWorkgroupOfTheArrayHasRead) {
  const struct {
    const char* between;
    const char* bits;
    bool same_array, may_be_old;
  } cases[] = {{"", "", true, true},
               {"buffer_gl0_inv\n", "", true, true},
               {"buffer_gl1_inv\n", "", true, false},
               {"", " glc", true, false},
               {"", "", false, false}};
  for (const auto& c : cases) {
    const unsigned old = seeds_in_which(seeds, [&](u64 seed) {
      gpu g(seed, k_fine[0]);
      shader_arrays arrays(g.first.m.visible, g.l2, seed);
      g.first.late.have_l0(false, &arrays.of_workgroup(0));
      g.second.late.have_l0(false, &arrays.of_workgroup(c.same_array ? 2 : 1));
      g.first.begin("global_load_b32 v7, v[0:1], off\n s_waitcnt vmcnt(0)");
      g.data[0] = 41;
      g.second.run(std::string(c.between) + "global_load_b32 v7, v[0:1], off" + c.bits + "\n s_waitcnt vmcnt(0)");
      return g.second.m.v(7, 0) != 41;
    });
    EXPECT_EQ(old > 0, c.may_be_old) << c.between << c.bits << (c.same_array ? "" : ", two arrays");
  }
}

}  // namespace
