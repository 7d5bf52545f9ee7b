// SPDX-License-Identifier: MIT
// Memory that is late: accesses of a wave overtake each other until it waits, and a test looks which wait makes them
// right. Expected results come from LLVM AMDGPUUsage, "Memory Model GFX90A", and MI200 ISA 4.4.
#include "amdgpu/isa/sites.hpp"
#include "amdgpu/isa/workgroup.hpp"
#include "amdgpu/opcodes.hpp"

namespace {

using namespace amdgpu;
using namespace amdgpu::test;

constexpr unsigned seeds = 40;

// A machine whose v[0:1] holds the address of `data` and v[2:3] that of `flag`, in each lane but for the first a
// place of its own.
struct place_of_two {
  explicit place_of_two(u64 seed) : m(seed) {
    m.visible.list(cells, sizeof(cells), true, mapping::place::local, mapping::caching::fine);
    m.exec(1);
    m.set_v64(0, 0, reinterpret_cast<u64>(&data()));
    m.set_v64(2, 0, reinterpret_cast<u64>(&flag()));
    m.v(4, 0) = 41;
    m.v(5, 0) = 1;
  }
  u32& data() { return cells[0]; }
  u32& flag() { return cells[32]; }
  alignas(128) u32 cells[64] = {};
  machine m;
};

// The writer of a message, in the middle of its kernel: in how many seeds is the flag there and the data not?
unsigned overtaken(const std::string& between) {
  return seeds_in_which(seeds, [&](u64 seed) {
    place_of_two two(seed);
    bool wrong = false;
    two.m.each_turn("global_store_dword v[0:1], v4, off\n" + between +
                        "\nglobal_store_dword v[2:3], v5, off\ns_sleep 1\ns_sleep 1\ns_sleep 1\ns_sleep 1",
                    [&] {
                      EXPECT_TRUE(is_well(two.m));
                      wrong |= two.flag() == 1 && two.data() != 41;
                    });
    EXPECT_PAIRS((two.data(), 41u), (two.flag(), 1u));
    return wrong;
  });
}

TEST(AmdgpuAdversary, AStoreIsOvertakenUnlessItIsWaitedFor) {
  EXPECT_GT(overtaken(""), 0u);
  EXPECT_GT(overtaken("s_waitcnt vmcnt(1)"), 0u) << "one may still be under way";
  EXPECT_GT(overtaken("s_waitcnt lgkmcnt(0)"), 0u) << "another counter";
  EXPECT_EQ(overtaken("s_waitcnt vmcnt(0)"), 0u);
}

// The values that arrive of two stores to one register, by all seeds.
std::vector<u64> arrived(const std::string& between) {
  std::vector<u64> all;
  for (u64 seed = 1; seed <= seeds; ++seed) {
    place_of_two two(seed);
    rung_registers device;
    two.m.visible.list_registers(two.cells, sizeof(two.cells), device);
    two.m.load("global_store_dword v[0:1], v4, off\n" + between +
               "\nglobal_store_dword v[0:1], v5, off\ns_waitcnt vmcnt(0)");
    EXPECT_FALSE(two.m.go()) << two.m.shared.failed.sentence();
    all.insert(all.end(), device.values.begin(), device.values.end());
  }
  return all;
}

TEST(AmdgpuAdversary, StoresToOneRegisterAreMergedUntilTheyAreWaitedFor) {
  EXPECT_PAIRS((arrived(""), std::vector<u64>(seeds, 1)), (arrived("s_waitcnt vmcnt(0)").size(), 2 * seeds));
}

// vmcnt counts to 63 (MI200 ISA 4.4).
TEST(AmdgpuAdversary, AFullCounterHoldsTheNextAccessUp) {
  for (const unsigned n : {63u, 64u}) {
    place_of_two two(7);
    std::string text;
    for (unsigned i = 0; i < n; ++i)
      text += "global_store_dword v[0:1], v4, off offset:" + std::to_string(4 * i) + "\n";
    two.m.begin(text + "s_sleep 1\ns_waitcnt vmcnt(0)");
    EXPECT_EQ(two.cells[0], n == 64 ? 41u : 0u) << n << " stores";
    EXPECT_EQ(std::count(two.cells, std::end(two.cells), 41u), n == 64 ? 1 : 0) << n << " stores";
    two.m.turn();
    EXPECT_EQ(std::count(two.cells, std::end(two.cells), 41u), n) << n << " stores";
  }
}

TEST(AmdgpuAdversary, AnAtomicOvertakesStoresUnlessTheyAreWaitedFor) {
  for (const bool waits : {false, true}) {
    const unsigned wrong = seeds_in_which(seeds, [&](u64 seed) {
      place_of_two two(seed);
      two.m.begin(std::string("global_store_dword v[0:1], v4, off\n") + (waits ? "s_waitcnt vmcnt(0)\n" : "") +
                  "global_atomic_add v[2:3], v5, off\ns_sleep 1");
      EXPECT_EQ(two.flag(), 1u);
      return two.data() != 41;
    });
    EXPECT_EQ(wrong, waits ? 0u : seeds);
  }
}

// The reader: both loads are issued, and another one writes data and then the flag before they are waited for.
TEST(AmdgpuAdversary, LoadsPassEachOtherUnlessTheFirstIsWaitedFor) {
  for (const bool waits : {false, true}) {
    const unsigned wrong = seeds_in_which(seeds, [&](u64 seed) {
      place_of_two two(seed);
      two.m.begin(std::string("global_load_dword v8, v[2:3], off\n") + (waits ? "s_waitcnt vmcnt(0)\n" : "") +
                  "global_load_dword v9, v[0:1], off\ns_sleep 1\ns_waitcnt vmcnt(0)");
      two.data() = 41;
      two.flag() = 1;
      two.m.turn();
      EXPECT_TRUE(is_well(two.m));
      return two.m.v(8, 0) == 1 && two.m.v(9, 0) == 0;
    });
    if (waits)
      EXPECT_EQ(wrong, 0u);
    else
      EXPECT_GT(wrong, 0u);
  }
}

TEST(AmdgpuAdversary, AWaveSeesItsOwnAccessesInOrder) {
  for (u64 seed = 1; seed <= seeds; ++seed) {
    place_of_two two(seed);
    two.data() = 7;
    ASSERT_FALSE(
        two.m.run("global_load_dword v8, v[0:1], off\nglobal_store_dword v[0:1], v4, off\n"
                  "global_load_dword v9, v[0:1], off\nglobal_store_dword v[0:1], v5, off\n"
                  "global_atomic_add v10, v[0:1], v4, off glc\ns_waitcnt vmcnt(0)"))
        << two.m.shared.failed.sentence();
    EXPECT_PAIRS((two.m.v(8, 0), 7u), (two.m.v(9, 0), 41u), (two.m.v(10, 0), 1u), (two.data(), 42u));
  }
}

// The sentence of the fault that `program` ends with; empty if there is none.
std::string early(const std::string& program) {
  place_of_two two(1);
  two.m.set_v64(2, 0, 0);
  two.m.shared.lds.assign(64, 0);
  two.m.w.set64(4, reinterpret_cast<u64>(two.cells));
  const fault& f = two.m.run(program);
  if (f) {
    EXPECT_EQ(f.what, fault::kind::early) << f.sentence();
  }
  return f.what == fault::kind::early ? f.sentence() : "";
}

TEST(AmdgpuAdversary, ARegisterIsUsedBeforeItsLoadIsWaitedFor) {
  const std::string load = "global_load_dwordx2 v[8:9], v[0:1], off\n";
  const std::string text = early(load + "v_add_u32 v4, v9, v4");
  for (const char* word : {"kernel test", "wave 0, lane 0", "into v8", "s_waitcnt vmcnt(0) is missing"})
    EXPECT_NE(text.find(word), std::string::npos) << text;
  EXPECT_EQ(early(load + "s_waitcnt vmcnt(0)\nv_add_u32 v4, v9, v4"), "");
  EXPECT_NE(early(load + "s_waitcnt lgkmcnt(0)\nv_add_u32 v4, v9, v4"), "");
  EXPECT_NE(early(load + "v_mov_b32 v8, 0"), "") << "the load would overwrite it";
  EXPECT_NE(early(load + "global_store_dwordx2 v[0:1], v[8:9], off"), "");
  EXPECT_EQ(early(load + "v_add_u32 v10, v4, v4"), "");
}

// The first dword says that a code object begins there; sites are counted from it.
TEST(AmdgpuAdversary, OneSiteOfTheProgramIsIgnored) {
  const auto fails = [](u64 ignored, const char* kernel) {
    place_of_two two(3);
    two.m.shared.how.name = kernel;
    two.m.load(".long 0x464c457f\nglobal_load_dword v8, v[0:1], off\ns_waitcnt vmcnt(0)\nv_mov_b32 v9, v8");
    two.m.start();
    two.m.w.pc += 4;
    watch_sites({{ignored, ignoring::all}}, "");
    two.m.turn();
    watch_sites({}, "");
    forget_code(two.m.w.pc & ~u64{4095}, 4096);
    return two.m.shared.failed.what == fault::kind::early;
  };
  for (const u64 ignored : {0x0, 0xc, 0x10}) EXPECT_EQ(fails(ignored, "test"), ignored == 0xc);
  // Kernels of other code objects that the same process has: ROCr's, and those of libxio's software devices.
  EXPECT_FALSE(fails(0xc, "__amd_rocclr_fillBufferAligned"));
  EXPECT_FALSE(fails(0xc, "_ZN3xio3gpu12_GLOBAL__N_111change_wordEPvj"));
}

TEST(AmdgpuAdversary, ACounterSaysHowManyMayBeLeft) {
  const std::string loads = "global_load_dword v8, v[0:1], off\nglobal_load_dword v9, v[0:1], off\n";
  EXPECT_EQ(early(loads + "s_waitcnt vmcnt(1)\nv_add_u32 v4, v8, v4"), "");
  EXPECT_NE(early(loads + "s_waitcnt vmcnt(1)\nv_add_u32 v4, v9, v4"), "");
  EXPECT_NE(early(loads + "v_add_u32 v4, v8, v4").find("vmcnt(1)"), std::string::npos);
  // An instruction whose lanes are all off is counted, too.
  EXPECT_EQ(early("global_load_dword v8, v[0:1], off\ns_mov_b64 exec, 0\nglobal_load_dword v9, v[0:1], off\n"
                  "s_mov_b64 exec, 1\ns_waitcnt vmcnt(1)\nv_add_u32 v4, v8, v4"),
            "");
}

TEST(AmdgpuAdversary, AtomicsScalarLoadsAndTheLdsAreWaitedForToo) {
  const std::string atomic = "global_atomic_add v8, v[0:1], v4, off glc\n";
  EXPECT_NE(early(atomic + "v_add_u32 v4, v8, v4"), "");
  EXPECT_EQ(early(atomic + "s_waitcnt vmcnt(0)\nv_add_u32 v4, v8, v4"), "");
  const std::string scalar = "s_load_dwordx2 s[8:9], s[4:5], 0x0\n";
  EXPECT_NE(early(scalar + "s_add_u32 s10, s9, s9"), "");
  EXPECT_NE(early(scalar + "s_waitcnt vmcnt(0)\ns_add_u32 s10, s9, s9"), "");
  EXPECT_EQ(early(scalar + "s_waitcnt lgkmcnt(0)\ns_add_u32 s10, s9, s9"), "");
  const std::string lds = "ds_read_b32 v8, v2\nds_read_b32 v9, v2 offset:4\n";
  EXPECT_NE(early(lds + "s_waitcnt lgkmcnt(1)\nv_add_u32 v4, v9, v4"), "");
  EXPECT_EQ(early(lds + "s_waitcnt lgkmcnt(1)\nv_add_u32 v4, v8, v4"), "");
  // With a scalar load under way, a count other than 0 says nothing.
  EXPECT_NE(early(lds + scalar + "s_waitcnt lgkmcnt(1)\nv_add_u32 v4, v8, v4"), "");
}

// The reader of a message whose compute unit has read the data before: another one writes data and flag, then the
// reader sees the flag, does `between` and reads the data by `load`. In how many seeds does it get the data of before?
unsigned stale(const std::string& between, const std::string& load) {
  return seeds_in_which(seeds, [&](u64 seed) {
    place_of_two two(seed);
    two.m.begin(
        "global_load_dword v7, v[0:1], off\ns_waitcnt vmcnt(0)\ns_sleep 1\n"
        "global_load_dword v8, v[2:3], off glc\ns_waitcnt vmcnt(0)\n" +
        between + "\n" + load + "\ns_waitcnt vmcnt(0)");
    two.data() = 41;
    two.flag() = 1;
    two.m.turn();
    EXPECT_TRUE(is_well(two.m));
    EXPECT_EQ(two.m.v(7, 0), 0u);
    EXPECT_EQ(two.m.v(8, 0), 1u) << "glc reads past L1";
    return two.m.v(9, 0) != 41;
  });
}

// LLVM AMDGPUUsage, "Memory Model GFX90A", load atomic acquire - agent: glc=1, s_waitcnt vmcnt(0), buffer_wbinvl1_vol.
TEST(AmdgpuAdversary, ALineOfL1IsStaleUntilItIsInvalidated) {
  const std::string load = "global_load_dword v9, v[0:1], off";
  const unsigned missing = stale("", load);
  EXPECT_GT(missing, 0u);
  EXPECT_LT(missing, seeds) << "it may have made room by itself";
  EXPECT_GT(stale("buffer_invl2", load), 0u) << "another cache";
  EXPECT_GT(stale("buffer_wbl2", load), 0u);
  EXPECT_PAIRS((stale("buffer_wbinvl1_vol", load), 0u), (stale("buffer_wbinvl1", load), 0u),
               (stale("", load + " glc"), 0u));
}

// The same of the scalar cache, which no invalidate of the vector cache is for. LLVM AMDGPUUsage, "Memory Model
// GFX90A": scalar loads are for what does not change during the kernel, so that no code has to keep that cache
// coherent.
TEST(AmdgpuAdversary, ALineOfTheScalarCacheIsStaleUntilItIsInvalidated) {
  const auto late = [](const std::string& between) {
    return seeds_in_which(seeds, [&](u64 seed) {
      place_of_two two(seed);
      two.m.begin(
          "v_readfirstlane_b32 s8, v0\nv_readfirstlane_b32 s9, v1\ns_load_dword s10, s[8:9], 0x0\n"
          "s_waitcnt lgkmcnt(0)\ns_sleep 1\n" +
          between + "\ns_load_dword s11, s[8:9], 0x0\ns_waitcnt lgkmcnt(0)\nv_mov_b32 v9, s11");
      two.data() = 41;
      two.m.turn();
      EXPECT_TRUE(is_well(two.m));
      return two.m.v(9, 0) != 41;
    });
  };
  EXPECT_GT(late(""), 0u);
  EXPECT_LT(late(""), seeds) << "it may have made room by itself";
  EXPECT_GT(late("buffer_wbinvl1_vol"), 0u);
  EXPECT_PAIRS((late("s_dcache_inv"), 0u), (late("s_dcache_inv_vol"), 0u));
}

// Reading one dword holds all 64 bytes around it, and none behind them.
TEST(AmdgpuAdversary, ALineIs64Bytes) {
  for (const unsigned cell : {15u, 16u}) {
    const unsigned old = seeds_in_which(seeds, [&](u64 seed) {
      place_of_two two(seed);
      two.m.begin(
          "global_load_dword v8, v[0:1], off\ns_waitcnt vmcnt(0)\ns_sleep 1\nglobal_load_dword v9, v[0:1], off "
          "offset:" +
          std::to_string(4 * cell) + "\ns_waitcnt vmcnt(0)");
      two.cells[cell] = 41;
      two.m.turn();
      return two.m.v(9, 0) != 41;
    });
    EXPECT_EQ(old > 0, cell == 15) << cell;
  }
}

TEST(AmdgpuAdversary, AWorkgroupSeesItsOwnStoresAndAtomicsThroughL1) {
  for (u64 seed = 1; seed <= seeds; ++seed) {
    place_of_two two(seed);
    two.data() = 7;
    two.cells[1] = 9;
    ASSERT_FALSE(
        two.m.run("global_load_dwordx2 v[8:9], v[0:1], off\ns_waitcnt vmcnt(0)\nglobal_store_byte v[0:1], v4, off\n"
                  "s_waitcnt vmcnt(0)\nglobal_load_dwordx2 v[10:11], v[0:1], off\ns_waitcnt vmcnt(0)\n"
                  "global_atomic_add v[0:1], v5, off\nglobal_load_ubyte v12, v[0:1], off\ns_waitcnt vmcnt(0)"))
        << two.m.shared.failed.sentence();
    EXPECT_PAIRS((two.m.v64(8, 0), u64{9} << 32 | 7), (two.m.v64(10, 0), u64{9} << 32 | 41), (two.m.v(12, 0), 42u));
  }
}

TEST(AmdgpuAdversary, ASeedRepeats) {
  const auto order = [](u64 seed) {
    std::string text;
    place_of_two two(seed);
    two.m.each_turn("global_store_dword v[0:1], v4, off\nglobal_store_dword v[2:3], v5, off\ns_sleep 1\ns_sleep 1",
                    [&] { text += std::to_string(two.data()) + ' ' + std::to_string(two.flag()) + ' '; });
    return text;
  };
  bool differ = false;
  for (u64 seed = 1; seed <= seeds; ++seed) {
    EXPECT_EQ(order(seed), order(seed));
    differ |= order(seed) != order(1);
  }
  EXPECT_TRUE(differ);
}

TEST(AmdgpuAdversary, AStoreThatIsNotMappedIsRefusedWhenItIsIssued) {
  place_of_two two(1);
  two.m.set_v64(0, 0, 0x1000);
  const fault& f = two.m.run("global_store_dword v[0:1], v4, off\ns_waitcnt vmcnt(0)");
  EXPECT_PAIRS((f.what, fault::kind::memory), (f.instruction, "global_store_dword v[0:1], v4, off"));
}

}  // namespace
