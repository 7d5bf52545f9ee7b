// SPDX-License-Identifier: MIT
// The L2 of a GPU with late memory: what other devices see of a kernel's stores and a kernel of theirs, by kind of
// memory, and which instruction makes it right. Expected results come from LLVM AMDGPUUsage, "Memory Model GFX90A", and
// from the kinds that linux's amdgpu gives memory (gmc_v9_0.c, gmc_v9_0_get_coherence_flags).
#include "amdgpu/memory/l2_cache.hpp"
#include "amdgpu/isa/sites.hpp"
#include "amdgpu/isa/workgroup.hpp"
#include "amdgpu/l2_kinds.hpp"

namespace {

using namespace amdgpu;
using namespace amdgpu::test;

// v[0:1] holds the address of `data`, memory of one kind; v[2:3] that of a flag, which is fine-grained memory of the
// host.
struct message {
  message(u64 seed, kind k, bool hdp = false) : m(seed, hdp) {
    m.visible.list(data, sizeof(data), true, k.where, k.how);
    m.visible.list(flag, sizeof(flag), true, place_kind::host, caching::fine);
    m.exec(1);
    m.set_v64(0, 0, reinterpret_cast<u64>(data));
    m.set_v64(2, 0, reinterpret_cast<u64>(flag));
    m.v(4, 0) = 41;
    m.v(5, 0) = 1;
  }
  alignas(256) u32 data[64] = {};
  alignas(256) u32 flag[64] = {};
  machine m;
};

// A kernel stores data, waits, does `between` and stores the flag. In how many seeds does another device that sees the
// flag, in the middle of the kernel, find old data in memory?
unsigned unseen(kind k, const std::string& between) {
  return seeds_in_which(seeds, [&](u64 seed) {
    message one(seed, k);
    bool wrong = false;
    one.m.each_turn("global_store_dword v[0:1], v4, off\ns_waitcnt vmcnt(0)\n" + between +
                        "\nglobal_store_dword v[2:3], v5, off\ns_sleep 1\ns_sleep 1\ns_sleep 1\ns_sleep 1\ns_sleep 1",
                    [&] {
                      EXPECT_TRUE(is_well(one.m));
                      wrong |= one.flag[0] == 1 && one.data[0] != 41;
                    });
    EXPECT_EQ(one.flag[0], 1u);
    return wrong;
  });
}

// "buffer_wbl2: It will writeback dirty L2 cache lines of MTYPE RW (used for local coarse grain memory) and MTYPE NC
// (used for remote coarse grain memory)."
TEST(AmdgpuL2, ADirtyLineIsUnseenUntilItIsWrittenBack) {
  for (const kind& k : k_coarse) {
    EXPECT_EQ(unseen(k, ""), seeds);
    EXPECT_EQ(unseen(k, "buffer_invl2"), seeds) << "drops no dirty byte, and writes none back";
    EXPECT_EQ(unseen(k, "buffer_wbinvl1_vol"), seeds) << "another cache";
    EXPECT_EQ(unseen(k, "buffer_wbl2\ns_waitcnt vmcnt(0)"), 0u);
  }
}

// Release sequences wait for vmcnt(0) behind buffer_wbl2: without it the write-back may be under way still.
TEST(AmdgpuL2, AWriteBackIsNotDoneBeforeItIsWaitedFor) {
  for (const kind& k : k_coarse) {
    EXPECT_GT(unseen(k, "buffer_wbl2"), 0u);
    EXPECT_LT(unseen(k, "buffer_wbl2"), seeds) << "it may be done by itself";
    EXPECT_GT(unseen(k, "buffer_wbl2\ns_waitcnt lgkmcnt(0)"), 0u) << "another counter";
    EXPECT_GT(unseen(k, "buffer_wbl2\ns_waitcnt vmcnt(1)"), 0u) << "vmcnt counts it";
  }
}

TEST(AmdgpuL2, AWriteBackWhoseWaitIsIgnoredIsNotDone) {
  for (const bool unwaited : {false, true}) {
    unsigned found = 0;
    for (u64 seed = 1; seed <= seeds; ++seed) {
      message one(seed, k_local);
      one.m.load(".long 0x464c457f\nglobal_store_dword v[0:1], v4, off\nbuffer_wbl2\ns_waitcnt vmcnt(0)\ns_sleep 1");
      one.m.start();
      one.m.w.pc += 4;
      if (unwaited) watch_sites({{12, ignoring::wait}}, "");
      one.m.turn();
      watch_sites({}, "");
      found += one.data[0] != 41;
      forget_code(one.m.w.pc & ~u64{4095}, 4096);
    }
    EXPECT_EQ(found, unwaited ? seeds : 0);
  }
}

// "MTYPE CC (used for local fine grain memory) causes write through to DRAM, and MTYPE UC (used for remote fine grain
// memory) bypasses the L2, so both will never result in dirty L2 cache lines."
TEST(AmdgpuL2, FineGrainedMemoryIsSeenWithoutAWriteBack) {
  for (const kind& k : k_fine) EXPECT_EQ(unseen(k, ""), 0u);
}

// Release sequences have no wait before buffer_wbl2.
TEST(AmdgpuL2, AWriteBackComesBehindItsWavesOwnStores) {
  for (const kind& k : k_coarse)
    for (u64 seed = 1; seed <= seeds; ++seed) {
      message one(seed, k);
      one.m.begin("global_store_dword v[0:1], v4, off\nbuffer_wbl2\ns_waitcnt vmcnt(0)\ns_sleep 1");
      EXPECT_EQ(one.data[0], 41u);
    }
}

// The same where all of them leave by themselves, in any turn.
TEST(AmdgpuL2, AWriteBackThatNobodyWaitsForComesBehindThemToo) {
  for (u64 seed = 1; seed <= seeds; ++seed) {
    message one(seed, k_local);
    std::string text;
    for (const char* offset : {"0", "4", "128"})
      text += std::string("global_store_dword v[0:1], v4, off offset:") + offset + "\n";
    one.m.each_turn(text + "buffer_wbl2\ns_sleep 1\ns_sleep 1\ns_sleep 1\ns_sleep 1\ns_sleep 1\ns_sleep 1", [&] {
      if (one.data[0] || one.data[1] || one.data[32]) {
        EXPECT_TRUE(one.data[0] && one.data[1] && one.data[32]) << "they reach memory by one write-back";
      }
    });
    EXPECT_TRUE(one.data[0] && one.data[1] && one.data[32]);
  }
}

// A kernel reads data, another device writes data and flag, the kernel sees the flag, does `between` and reads past L1.
unsigned stale(kind k, const std::string& between, bool hdp = false) {
  return seeds_in_which(seeds, [&](u64 seed) {
    message one(seed, k, hdp);
    one.m.begin(
        "global_load_dword v7, v[0:1], off\ns_waitcnt vmcnt(0)\ns_sleep 1\n"
        "global_load_dword v8, v[2:3], off glc\ns_waitcnt vmcnt(0)\n" +
        between + "\nglobal_load_dword v9, v[0:1], off glc\ns_waitcnt vmcnt(0)");
    one.data[0] = 41;
    one.flag[0] = 1;
    one.m.turn();
    EXPECT_TRUE(is_well(one.m));
    EXPECT_PAIRS((one.m.v(7, 0), 0u), (one.m.v(8, 0), 1u));
    return one.m.v(9, 0) != 41;
  });
}

// "buffer_invl2: It will invalidate L2 cache lines with MTYPE NC (used for remote coarse grain memory). Note that MTYPE
// CC and MTYPE RW cause local reads to be invalidated by remote writes ... MTYPE UC bypasses the L2."
TEST(AmdgpuL2, ALineOfOthersCoarseMemoryIsStaleUntilItIsInvalidated) {
  for (const kind& k : {k_peer, k_host}) {
    EXPECT_GT(stale(k, ""), 0u);
    EXPECT_LT(stale(k, ""), seeds) << "it may have left by itself";
    EXPECT_GT(stale(k, "buffer_wbinvl1_vol"), 0u) << "another cache";
    EXPECT_GT(stale(k, "buffer_wbl2\ns_waitcnt vmcnt(0)"), 0u) << "clean lines stay";
    EXPECT_EQ(stale(k, "buffer_invl2"), 0u);
  }
  EXPECT_EQ(stale(k_local, ""), 0u);
  for (const kind& k : k_fine) EXPECT_EQ(stale(k, ""), 0u);
}

// "Since all work-groups on the same agent share the same L2, no L2 invalidation or writeback is required for
// coherence."
TEST(AmdgpuL2, WorkgroupsOfAGpuSeeEachOthersDirtyLines) {
  for (const kind& k : k_coarse)
    for (u64 seed = 1; seed <= seeds; ++seed) {
      message one(seed, k);
      one.m.begin(
          "global_store_dword v[0:1], v4, off\nglobal_atomic_add v[0:1], v5, off offset:4\ns_waitcnt vmcnt(0)\ns_sleep "
          "1");
      adversary other(one.m.visible, seed, &one.m.l2);
      u64 address[lanes] = {reinterpret_cast<u64>(one.data)};
      u32 got[2 * lanes] = {};
      amdgpu::access a;
      a.address = address;
      a.active = 1;
      a.bytes = 8;
      refusal no;
      ASSERT_TRUE(other.load(a, got, no));
      EXPECT_PAIRS((got[0], 41u), (got[lanes], 1u));
      u32 scalar = 0;
      ASSERT_TRUE(other.load_scalar(address[0], 1, &scalar, no));
      EXPECT_EQ(scalar, 41u) << "the scalar cache lies before the L2 as well";
      EXPECT_EQ(one.data[0], 0u);
    }
}

// Also where the lanes of one atomic lie in several allocations: two waves would take one lock.
TEST(AmdgpuL2, AnAtomicOfSeveralAllocationsSeesWhatTheL2Has) {
  for (const kind& k : k_coarse)
    for (const kind& other : {k, k_fine[0]}) {
      message one(1, k);
      alignas(256) u32 apart[64] = {};
      one.m.visible.list(apart, sizeof(apart), true, other.where, other.how);
      one.m.begin("v_mov_b32 v6, 2\nglobal_atomic_or v8, v[0:1], v6, off glc\ns_waitcnt vmcnt(0)");
      adversary next(one.m.visible, 1, &one.m.l2);
      const u64 address[lanes] = {reinterpret_cast<u64>(one.data), reinterpret_cast<u64>(apart)};
      const u32 bit[2 * lanes] = {4, 4};
      u32 old[2 * lanes] = {9, 9};
      amdgpu::access a;
      a.address = address;
      a.active = 3;
      a.bytes = 4;
      refusal no;
      for (const u32 wanted : {2u, 6u}) {
        ASSERT_TRUE(next.atomic(a, atomic_op::bit_or, bit, nullptr, old, no));
        EXPECT_PAIRS((old[0], wanted), (old[1], wanted & 4));
      }
    }
}

// Atomics of memory that the L2 keeps are done there; others in memory, where every device's are.
TEST(AmdgpuL2, AnAtomicOfCoarseMemoryIsUnseenUntilItIsWrittenBack) {
  const std::string add =
      "global_atomic_add v8, v[0:1], v4, off glc\nglobal_atomic_add_x2 v[0:1], v[4:5], off offset:8\n";
  for (const kind& k : k_coarse) {
    message one(1, k);
    one.data[0] = 7;
    one.data[3] = 5;
    one.m.begin(add + "s_waitcnt vmcnt(0)\ns_sleep 1\nbuffer_wbl2\ns_waitcnt vmcnt(0)\ns_sleep 1");
    EXPECT_PAIRS((one.m.v(8, 0), 7u), (one.data[0], 7u));
    one.m.turn();
    EXPECT_PAIRS((one.data[0], 48u), (one.data[2], 41u), (one.data[3], 6u));
  }
  for (const kind& k : k_fine) {
    message one(1, k);
    one.m.begin(add + "s_waitcnt vmcnt(0)\ns_sleep 1");
    EXPECT_EQ(one.data[0], 41u);
  }
}

// Lines are dirty by bytes: a write-back leaves what others wrote beside.
TEST(AmdgpuL2, AWriteBackKeepsWhatOthersWroteBeside) {
  for (const kind& k : k_coarse)
    for (u64 seed = 1; seed <= seeds; ++seed) {
      message one(seed, k);
      one.m.begin(
          "global_load_dword v9, v[0:1], off\ns_waitcnt vmcnt(0)\nglobal_store_byte v[0:1], v4, off offset:1\n"
          "s_waitcnt vmcnt(0)\ns_sleep 1\nbuffer_wbl2\ns_waitcnt vmcnt(0)\ns_sleep 1");
      one.data[0] = 0x33000011;
      one.m.turn();
      EXPECT_EQ(one.data[0], 0x33002911u);
    }
}

// Memory that the driver takes away has what was dirty.
TEST(AmdgpuL2, MemoryThatGoesIsWrittenBack) {
  message one(1, k_peer);
  one.m.begin("global_store_dword v[0:1], v4, off\ns_waitcnt vmcnt(0)\ns_sleep 1");
  one.m.l2.forget(reinterpret_cast<u64>(one.flag), sizeof(one.flag));
  EXPECT_EQ(one.data[0], 0u);
  one.m.l2.forget(reinterpret_cast<u64>(one.data), sizeof(one.data));
  EXPECT_EQ(one.data[0], 41u);
}

// Writes of devices and of the host by the BAR are held until the flush register is stored to (linux amdgpu,
// hdp_v4_0_flush_hdp); memory of peers and of the host has no such path.
TEST(AmdgpuL2, TheHostDataPathHoldsWritesUntilItIsFlushed) {
  for (const kind& k : {k_local, k_fine[0], k_fine[3]}) {
    EXPECT_GT(stale(k, "", true), 0u);
    EXPECT_GT(stale(k, "buffer_invl2\nbuffer_wbinvl1_vol", true), 0u) << "caches are not the path";
  }
  EXPECT_PAIRS((stale(k_fine[1], "", true), 0u), (stale(k_fine[2], "", true), 0u));
  for (u64 seed = 1; seed <= seeds; ++seed) {
    message one(seed, k_fine[0], true);
    u32 reg = 0;
    one.m.l2.flush_register(&reg);
    one.m.begin(
        "global_load_dword v7, v[0:1], off\nglobal_load_dword v6, v[0:1], off offset:8\ns_waitcnt vmcnt(0)\n"
        "global_store_dword v[0:1], v5, off offset:4\ns_waitcnt vmcnt(0)\ns_sleep 1\n"
        "global_load_dwordx2 v[8:9], v[0:1], off glc\ns_waitcnt vmcnt(0)");
    EXPECT_EQ(one.data[1], 1u) << "a kernel's own stores do not pass the path";
    one.data[0] = 41;
    reg = 1;
    one.m.turn();
    EXPECT_PAIRS((one.m.v(8, 0), 41u), (one.m.v(9, 0), 1u), (reg, 0u));
  }
}

}  // namespace
