// SPDX-License-Identifier: MIT
// The L2s of a gfx942 with late memory: two workgroups on two XCCs, other devices, and which scope of which instruction
// makes one see what the other stored. Expected results come from LLVM AMDGPUUsage, "Memory Model GFX942" and its table
// of code sequences, and from the kinds that linux's amdgpu gives memory (gmc_v9_0.c, gmc_v9_0_get_coherence_flags).
#include "amdgpu/l2_kinds.hpp"
#include "amdgpu/memory/l2_caches.hpp"

namespace {

using namespace amdgpu;
using namespace amdgpu::test;

constexpr unsigned alone = 1, two = 2;  // XCCs of the GPU

constexpr kind k_local_fine{place_kind::local, caching::fine}, k_peer_fine{place_kind::peer, caching::fine};
constexpr kind k_kept[] = {k_local, k_local_fine, k_peer, k_peer_fine};
constexpr kind k_passing[] = {{place_kind::host, caching::coarse},
                              {place_kind::host, caching::fine},
                              {place_kind::local, caching::uncached},
                              {place_kind::peer, caching::uncached},
                              {place_kind::host, caching::uncached}};

struct gpu {
  gpu(u64 seed, unsigned xccs, kind k)
      : l2s(seed, false, {true, xccs}),
        first(target::gfx942, seed, l2s.of_workgroup(0), data, k),
        second(target::gfx942, seed + 1000, l2s.of_workgroup(1), data, k) {
    first.m.shared.how.xccs = second.m.shared.how.xccs = xccs;
  }
  alignas(256) u32 data[64] = {};
  l2_caches l2s;
  l2_user first, second;
};

const std::string k_store = "global_store_dword v[0:1], v4, off";
const std::string k_wait = "\ns_waitcnt vmcnt(0)\n";
const std::string k_first_load = "global_load_dword v7, v[0:1], off" + k_wait + "s_sleep 1\n";

// In how many seeds is what a workgroup stored and released so not in memory, for other devices?
unsigned unseen(unsigned xccs, kind k, const std::string& store, const std::string& release) {
  return seeds_in_which(seeds, [&](u64 seed) {
    gpu g(seed, xccs, k);
    g.first.run(store + k_wait + release);
    return g.data[0] != 41;
  });
}

// In how many does the workgroup on the other XCC, which had read it before, load old data?
unsigned stale(unsigned xccs, kind k, const std::string& release, const std::string& acquire, const std::string& load) {
  return seeds_in_which(seeds, [&](u64 seed) {
    gpu g(seed, xccs, k);
    g.second.begin(k_first_load + acquire + "global_load_dword v8, v[0:1], off " + load + k_wait);
    EXPECT_EQ(g.second.m.v(7, 0), 0u);
    g.first.run(k_store + k_wait + release);
    g.second.turn();
    return g.second.m.v(8, 0) != 41;
  });
}

const std::string k_agent_release = "buffer_wbl2 sc1" + k_wait, k_system_release = "buffer_wbl2 sc0 sc1" + k_wait,
                  k_agent_acquire = "buffer_inv sc1\n", k_system_acquire = "buffer_inv sc0 sc1\n";

// "To ensure coherence of local memory writes of CUs with different L1 caches in the same agent a buffer_wbl2 is
// required. It does nothing if the agent is configured to have a single L2, or will writeback dirty L2 cache lines if
// configured to have multiple L2 caches"; of CUs in different agents, "a buffer_wbl2 sc1 is required". The table writes
// the first as sc1, the second as sc0 sc1.
TEST(AmdgpuL2Gfx942, AReleaseToTheAgentWritesBackWhereThereAreSeveralL2s) {
  for (const kind& k : k_kept) {
    EXPECT_EQ(unseen(two, k, k_store, ""), seeds);
    EXPECT_EQ(unseen(two, k, k_store, "buffer_wbl2 sc0" + k_wait), seeds) << "workgroup scope";
    EXPECT_PAIRS((unseen(two, k, k_store, k_agent_release), 0u), (unseen(two, k, k_store, k_system_release), 0u));
    EXPECT_EQ(unseen(alone, k, k_store, k_agent_release), seeds) << "the L2 is the agent's";
    EXPECT_EQ(unseen(alone, k, k_store, k_system_release), 0u);
  }
}

// Of gfx942 fine-grained memory is MTYPE RW or NC, which stays in the L2; the host's and uncached memory is UC.
TEST(AmdgpuL2Gfx942, HostAndUncachedMemoryPassTheL2) {
  for (const kind& k : k_passing) {
    EXPECT_EQ(unseen(two, k, k_store, ""), 0u);
    EXPECT_EQ(stale(two, k, "", k_agent_acquire, ""), 0u);
  }
}

// Two workgroups of one kernel: each half of the agent's order is needed, and together they suffice.
TEST(AmdgpuL2Gfx942, WorkgroupsOfTwoXccsNeedTheAgentsOrder) {
  for (const kind& k : {k_local, k_local_fine}) {
    EXPECT_EQ(stale(two, k, "", k_agent_acquire, "sc1"), seeds) << "nothing was written back";
    EXPECT_EQ(stale(two, k, k_agent_release, k_agent_acquire, ""), 0u);
    EXPECT_GT(stale(two, k, k_agent_release, "", ""), 0u) << "the L1";
    EXPECT_EQ(stale(two, k, k_agent_release, "", "sc1"), 0u) << "lines of local memory are probed";
  }
  for (const kind& k : {k_peer, k_peer_fine}) {
    EXPECT_EQ(stale(two, k, "", k_agent_acquire, "sc1"), seeds);
    EXPECT_GT(stale(two, k, k_agent_release, "buffer_inv sc0\n", ""), 0u) << "workgroup scope";
    EXPECT_EQ(stale(two, k, k_agent_release, k_agent_acquire, ""), 0u);
    EXPECT_EQ(stale(two, k, k_agent_release, "", "sc1"), 0u) << "the load goes beyond the L2";
  }
}

// An L2 that is all of the agent needs none of it, but for its compute units' L1s.
TEST(AmdgpuL2Gfx942, WorkgroupsOfOneXccShareTheirL2) {
  for (const kind& k : k_kept) {
    EXPECT_PAIRS((stale(alone, k, "", k_agent_acquire, ""), 0u), (stale(alone, k, "", "", "sc1"), 0u));
  }
}

// A line of memory that another device wrote to itself takes only the system's acquire, where the L2 is the agent's.
TEST(AmdgpuL2Gfx942, LinesOfOtherDevicesMemoryAreStaleUntilTheSystemsAcquire) {
  const auto old = [](unsigned xccs, kind k, const std::string& acquire, const std::string& load) {
    return seeds_in_which(seeds, [&](u64 seed) {
      gpu g(seed, xccs, k);
      g.first.begin(k_first_load + acquire + "global_load_dword v8, v[0:1], off " + load + k_wait);
      g.data[0] = 41;
      g.first.turn();
      return g.first.m.v(8, 0) != 41;
    });
  };
  for (const kind& k : {k_peer, k_peer_fine}) {
    EXPECT_GT(old(alone, k, k_agent_acquire, "sc1"), 0u);
    EXPECT_PAIRS((old(alone, k, k_system_acquire, ""), 0u), (old(alone, k, "", "sc0 sc1"), 0u),
                 (old(two, k, k_system_acquire, ""), 0u));
  }
  for (const kind& k : {k_local, k_local_fine}) EXPECT_EQ(old(alone, k, "", "sc1"), 0u) << "probed";
}

// The table's atomic stores have no write-back behind them: their scope carries them.
TEST(AmdgpuL2Gfx942, AtomicStoresAreSeenByTheirScope) {
  for (const kind& k : k_kept) {
    EXPECT_EQ(unseen(two, k, k_store + " sc0", ""), seeds) << "workgroup";
    EXPECT_EQ(unseen(two, k, k_store + " sc1", ""), 0u) << "agent";
    EXPECT_EQ(unseen(alone, k, k_store + " sc1", ""), seeds) << "agent";
    EXPECT_EQ(unseen(alone, k, k_store + " sc0 sc1", ""), 0u) << "system";
    EXPECT_EQ(unseen(alone, k, k_store + " nt", ""), seeds) << "nt is no scope";
  }
}

// "Atomic read-modify-write instructions [...] do use sc1 to indicate system or agent scope coherence."
TEST(AmdgpuL2Gfx942, AtomicsOfTwoXccsAddUp) {
  for (const kind& k : k_kept)
    for (u64 seed = 1; seed <= seeds; ++seed) {
      gpu g(seed, two, k);
      g.data[1] = 7;
      g.first.run("global_store_dword v[0:1], v5, off offset:8" + k_wait + "global_atomic_add v[0:1], v4, off" +
                  k_wait);
      g.second.run("global_atomic_add v9, v[0:1], v4, off sc0" + k_wait);
      EXPECT_PAIRS((g.second.m.v(9, 0), 41u), (g.data[0], 82u), (g.data[1], 7u));
    }
  for (const kind& k : k_kept) {
    gpu g(1, alone, k);
    g.first.run("global_atomic_add v[0:1], v4, off" + k_wait);
    EXPECT_EQ(g.data[0], 0u) << "the agent's, in the L2";
    g.first.run("global_atomic_add v[0:1], v4, off sc1" + k_wait);
    EXPECT_EQ(g.data[0], 82u) << "the system's";
  }
}

// Workgroups go to the XCCs in turn.
TEST(AmdgpuL2Gfx942, WorkgroupsTakeTheL2sInTurn) {
  l2_caches l2s(1, false, {true, 8});
  for (u64 n = 0; n < 16; ++n) {
    EXPECT_EQ(&l2s.of_workgroup(n), &l2s.of_workgroup(n % 8));
    EXPECT_NE(&l2s.of_workgroup(n), &l2s.of_workgroup(n + 1));
  }
}

}  // namespace
