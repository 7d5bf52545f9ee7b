// SPDX-License-Identifier: MIT
// The L2 of a gfx1100 with late memory, by kinds of memory, and the L1s of its shader arrays. Expected results come
// from LLVM AMDGPUUsage, "Memory Model GFX10-GFX11", by which an L2 is coherent with other agents where ranges of
// addresses bypass it, and which has no instruction for it in any release or acquire; and from the kinds that linux's
// amdgpu gives memory (gmc_v11_0_get_vm_pte: NC, and UC where it is coherent or uncached).
#include "amdgpu/l2_kinds.hpp"
#include "amdgpu/memory/l2_cache.hpp"
#include "amdgpu/memory/shader_arrays.hpp"
#include "amdgpu/opcodes.hpp"

namespace {

using namespace amdgpu;
using namespace amdgpu::test;

constexpr kind k_coarse[] = {
    {place_kind::local, caching::coarse}, {place_kind::peer, caching::coarse}, {place_kind::host, caching::coarse}};
constexpr kind k_passing[] = {{place_kind::local, caching::fine},    {place_kind::peer, caching::fine},
                              {place_kind::host, caching::fine},     {place_kind::local, caching::uncached},
                              {place_kind::peer, caching::uncached}, {place_kind::host, caching::uncached}};

const std::string k_store = "global_store_b32 v[0:1], v4, off\n s_waitcnt_vscnt null, 0x0\n";
const std::string k_load = "global_load_b32 v7, v[0:1], off glc\n s_waitcnt vmcnt(0)\n";
// All that LLVM's fences of system scope have, acquire and release.
const std::string k_fence =
    "s_waitcnt vmcnt(0) lgkmcnt(0)\n s_waitcnt_vscnt null, 0x0\n buffer_gl1_inv\n buffer_gl0_inv\n";

// A workgroup of one wave, whose L0 and L1 lie before the L2. v[0:1] holds the address of the memory; v4 is 41.
struct workgroup {
  workgroup(u64 seed, l2_cache& l2, u32* data, std::size_t bytes, kind k) : m(seed), late(m.visible, seed, &l2) {
    m.shared.how.target = target::gfx1100;
    m.shared.memory = &late;
    m.wave32(true);
    late.have_l0(false);
    m.visible.list(data, bytes, true, k.where, k.how);
    m.exec(1);
    m.set_v64(0, 0, reinterpret_cast<u64>(data));
    m.v(4, 0) = 41;
  }
  void begin(const std::string& text) {
    m.load(text);
    m.start();
    turn();
  }
  // To the next s_sleep, or to the end.
  void turn() {
    late.pass_turn();
    run_wave(m.w, 100);
    ASSERT_TRUE(is_well(m));
  }
  machine m;
  adversary late;
};

struct gpu {
  gpu(u64 seed, kind k)
      : l2(seed, false, {false, 1, true}),
        first(seed, l2, data, sizeof(data), k),
        second(seed + 1000, l2, data, sizeof(data), k) {}
  alignas(256) u32 data[64] = {};
  l2_cache l2;
  workgroup first, second;
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
  for (const kind& k : k_passing) {
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
      gpu g(seed, k_passing[0]);
      shader_arrays arrays(g.first.m.visible, g.l2, seed);
      g.first.late.have_l0(false, &arrays.of_workgroup(0));
      g.second.late.have_l0(false, &arrays.of_workgroup(c.same_array ? 2 : 1));
      g.first.begin("global_load_b32 v7, v[0:1], off\n s_waitcnt vmcnt(0)");
      g.data[0] = 41;
      g.second.begin(std::string(c.between) + "global_load_b32 v7, v[0:1], off" + c.bits + "\n s_waitcnt vmcnt(0)");
      EXPECT_EQ(g.second.m.w.now, wave::state::ended);
      return g.second.m.v(7, 0) != 41;
    });
    EXPECT_EQ(old > 0, c.may_be_old) << c.between << c.bits << (c.same_array ? "" : ", two arrays");
  }
}

}  // namespace
