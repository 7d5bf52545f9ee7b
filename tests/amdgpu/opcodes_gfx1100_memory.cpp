// SPDX-License-Identifier: MIT
// Memory of gfx1100: loads, stores, atomics and LDS by their names, waits by two counters, and two caches that are
// stale.
#include "amdgpu/opcodes_gfx1100.hpp"

namespace {

using namespace amdgpu::test;
using amdgpu::fault;

TEST_F(gfx1100, loads_and_stores_by_their_names) {
  static u32 words[64];
  for (unsigned i = 0; i < 64; ++i) words[i] = 0x80818283 + i * 0x01010101;
  auto* const bytes = reinterpret_cast<std::uint8_t*>(words);
  m.visible.list(words, sizeof(words));
  m.exec(1);
  m.set_v64(0, 0, reinterpret_cast<u64>(words + 16));
  m.v(2, 0) = 8;
  m.w.set64(4, reinterpret_cast<u64>(words + 16));
  ASSERT_FALSE(m.run(
      "global_load_u8 v10, v[0:1], off\n global_load_i8 v11, v[0:1], off offset:1\n global_load_u16 v12, v[0:1], off "
      "offset:2\n global_load_i16 v13, v[0:1], off offset:-2\n flat_load_b32 v14, v[0:1] offset:4\n"
      "global_load_b64 v[16:17], v2, s[4:5] offset:-4\n global_load_b96 v[20:22], v[0:1], off offset:4\n"
      "global_load_b128 v[24:27], v2, s[4:5] offset:16 glc slc dlc\n global_load_d16_b16 v28, v[0:1], off\n"
      "global_load_d16_hi_b16 v29, v[0:1], off\n global_load_d16_u8 v30, v[0:1], off\n"
      "global_load_d16_hi_i8 v31, v[0:1], off\n s_waitcnt vmcnt(0)\n"
      "global_store_b8 v[0:1], v14, off offset:64\n flat_store_b16 v[0:1], v14 offset:66\n"
      "global_store_d16_hi_b16 v[0:1], v14, off offset:68\n global_store_b64 v2, v[16:17], s[4:5] offset:64\n"
      "flat_store_d16_hi_b8 v[0:1], v14 offset:80\n s_waitcnt_vscnt null, 0x0"))
      << m.shared.failed.sentence();
  const auto word = [](unsigned i) { return 0x80818283 + i * 0x01010101; };
  EXPECT_PAIRS((m.v(10, 0), word(16) & 255), (m.v(11, 0), static_cast<u32>(static_cast<signed char>(word(16) >> 8))),
               (m.v(12, 0), word(16) >> 16), (m.v(13, 0), static_cast<u32>(static_cast<short>(word(15) >> 16))),
               (m.v(14, 0), word(17)), (m.v64(16, 0), word(17) | u64{word(18)} << 32));
  for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(m.v(20 + i, 0), word(17 + i));
  for (unsigned i = 0; i < 4; ++i) EXPECT_EQ(m.v(24 + i, 0), word(22 + i));
  EXPECT_PAIRS((m.v(28, 0), low(word(16))), (m.v(29, 0), high(word(16) & 0xffff)), (m.v(30, 0), low(word(16) & 255)),
               (m.v(31, 0), high(static_cast<u32>(static_cast<signed char>(word(16))) & 0xffff)),
               (bytes[128], word(17) & 255), (words[32] >> 16, word(17) & 0xffff), (words[33] & 0xffff, word(17) >> 16),
               (words[34], word(17)), (words[35], word(18)), (bytes[144], word(17) >> 16 & 255));
}

TEST_F(gfx1100, atomics_by_their_names) {
  const struct {
    const char* name;
    bool wide;
    std::function<u64(u64, u64)> f;
  } kinds[] = {{"swap_b32", false, [](u64, u64 b) { return b; }},
               {"add_u32", false, [](u64 a, u64 b) { return a + b; }},
               {"sub_u64", true, [](u64 a, u64 b) { return a - b; }},
               {"min_i32", false, [](u64 a, u64 b) { return s(static_cast<u32>(a)) < s(static_cast<u32>(b)) ? a : b; }},
               {"max_u32", false, [](u64 a, u64 b) { return std::max(static_cast<u32>(a), static_cast<u32>(b)); }},
               {"max_i64", true, [](u64 a, u64 b) { return static_cast<i64>(a) > static_cast<i64>(b) ? a : b; }},
               {"min_u64", true, [](u64 a, u64 b) { return std::min(a, b); }},
               {"and_b32", false, [](u64 a, u64 b) { return a & b; }},
               {"or_b64", true, [](u64 a, u64 b) { return a | b; }},
               {"xor_b32", false, [](u64 a, u64 b) { return a ^ b; }}};
  static u64 word;
  m.visible.list(&word, sizeof(word));
  m.exec(1u << 7);
  m.set_v64(0, 7, reinterpret_cast<u64>(&word));
  for (const auto& k : kinds)
    for (unsigned i = 0; i < 24 * 3; ++i) {
      const u64 a = k.wide ? edge64(i) : edge(i), b = k.wide ? edge64(i * 5 + 1) : edge(i * 5 + 1);
      word = a, m.set_v64(2, 7, b), m.set_v64(4, 7, 0);
      if (i == 0)
        m.load(std::string("global_atomic_") + k.name +
               (k.wide ? " v[4:5], v[0:1], v[2:3], off glc" : " v4, v[0:1], v2, off glc") + "\n s_waitcnt vmcnt(0)");
      ASSERT_FALSE(m.go()) << m.shared.failed.sentence();
      EXPECT_EQ(k.wide ? word : static_cast<u32>(word), k.wide ? k.f(a, b) : static_cast<u32>(k.f(a, b))) << k.name;
      EXPECT_EQ(k.wide ? m.v64(4, 7) : m.v(4, 7), a) << k.name;
    }
  word = 11, m.set_v64(2, 7, 22 | u64{11} << 32);
  ASSERT_FALSE(m.run(
      "flat_atomic_cmpswap_b32 v4, v[0:1], v[2:3] glc\n global_atomic_add_u32 v[0:1], v2, off\n s_waitcnt vmcnt(0)\n"
      "s_waitcnt_vscnt null, 0x0"));
  EXPECT_EQ(m.v(4, 7), 11u);
  EXPECT_EQ(word, 44u);
}

TEST_F(gfx1100, lds_by_its_names) {
  m.shared.lds.assign(1024, 0);
  m.exec(1);
  m.v(0, 0) = 64, m.v(1, 0) = 77, m.set_v64(2, 0, 0x1122334455667788), m.v(4, 0) = 99;
  ASSERT_FALSE(m.run(
      "ds_store_b32 v0, v1 offset:4\n ds_store_2addr_b32 v0, v1, v4 offset0:4 offset1:5\n ds_store_b64 v0, v[2:3] "
      "offset:8\n ds_load_b32 v10, v0 offset:4\n ds_load_2addr_b32 v[12:13], v0 offset0:4 offset1:5\n"
      "ds_load_2addr_stride64_b32 v[20:21], v0 offset1:1\n"
      "ds_load_b64 v[14:15], v0 offset:8\n ds_cmpstore_rtn_b32 v16, v0, v4, v1 offset:4\n ds_cmpstore_b32 v0, v4, v1 "
      "offset:8\n ds_storexchg_rtn_b32 v17, v0, v1 offset:4\n ds_add_rtn_u32 v18, v0, v1 offset:4\n"
      "ds_load_u8 v19, v0 offset:8\n ds_store_b8_d16_hi v0, v3 offset:40\n s_waitcnt lgkmcnt(0)"))
      << m.shared.failed.sentence();
  EXPECT_PAIRS((m.v(10, 0), 77u), (m.v(12, 0), 77u), (m.v(13, 0), 99u), (m.v64(14, 0), 0x1122334455667788u));
  EXPECT_EQ(m.v(16, 0), 77u) << "the new value is the first of the two";
  EXPECT_PAIRS((m.v(17, 0), 99u), (m.v(18, 0), 77u), (m.v(19, 0), 0x88u), (m.shared.lds[104], 0x22u));
}

// Private memory has one dword of each of the wave's lanes beside the next (LLVM AMDGPUUsage, "Private address space").
TEST_F(gfx1100, private_memory_of_32_lanes) {
  alignas(256) static u32 scratch[64 * 32];
  m.visible.list(scratch, sizeof(scratch));
  m.w.scratch = reinterpret_cast<u64>(scratch), m.w.scratch_bytes = sizeof(scratch);
  m.s(33) = 16;
  for (unsigned l = 0; l < narrow; ++l) {
    m.v(1, l) = 1000 + l, m.v(2, l) = 2000 + l, m.v(3, l) = 3000 + l, m.v(4, l) = l % 4 * 4;
    m.set_v64(6, l, m.shared.how.private_aperture + 16 + l % 4 * 4);
  }
  ASSERT_FALSE(
      m.run("scratch_store_b64 off, v[1:2], s33 offset:4\n scratch_store_b32 v4, v3, s33 offset:16\n"
            "scratch_load_b32 v10, off, s33 offset:8\n scratch_load_b32 v11, v4, off offset:32\n"
            "flat_load_b32 v12, v[6:7] offset:16\n scratch_load_u16 v13, off, off offset:20\n s_waitcnt vmcnt(0)"))
      << m.shared.failed.sentence();
  for (unsigned l = 0; l < narrow; ++l) {
    EXPECT_PAIRS((scratch[5 * 32 + l], 1000 + l), (scratch[6 * 32 + l], 2000 + l),
                 (scratch[(8 + l % 4) * 32 + l], 3000 + l), (m.v(10, l), 2000 + l), (m.v(11, l), 3000 + l),
                 (m.v(12, l), 3000 + l), (m.v(13, l), 1000 + l));
  }
}

// vmcnt counts loads, and vscnt stores (RDNA3 ISA, "Data Dependency Resolution").
TEST_F(gfx1100, stores_have_a_counter_of_their_own) {
  const auto overtaken = [](const char* wait) {
    for (u64 seed = 1; seed < 60; ++seed) {
      machine late(seed);
      use(late);
      const auto page = make_pages(4096);
      auto* const words = reinterpret_cast<u32*>(page.get());
      late.visible.list(words, 4096, true, amdgpu::mapping::place::local, amdgpu::mapping::caching::fine);
      late.exec(1);
      late.set_v64(0, 0, reinterpret_cast<u64>(words)), late.v(2, 0) = 7, late.s(0) = 0;
      late.load(std::string("global_store_b32 v[0:1], v2, off\n") + wait + "\n s_sleep 1\n s_mov_b32 s0, 1");
      late.start();
      run_wave(late.w, 1000);
      if (words[0] != 7) return true;
    }
    return false;
  };
  EXPECT_TRUE(overtaken(""));
  EXPECT_TRUE(overtaken("s_waitcnt vmcnt(0)"));
  EXPECT_FALSE(overtaken("s_waitcnt_vscnt null, 0x0"));
}

TEST_F(gfx1100, a_load_used_early_is_reported) {
  static u32 word = 5;
  const auto ends = [](const char* text) {
    machine late(3);
    use(late);
    late.visible.list(&word, sizeof(word));
    late.exec(1);
    late.set_v64(0, 0, reinterpret_cast<u64>(&word)), late.v(5, 0) = 1;
    return late.run(text).what;
  };
  EXPECT_EQ(ends("global_load_b32 v2, v[0:1], off\n v_add_nc_u32 v3, v2, v2"), fault::kind::early);
  EXPECT_EQ(ends("global_load_b32 v2, v[0:1], off\n v_dual_mov_b32 v3, v5 :: v_dual_mov_b32 v4, v2"),
            fault::kind::early);
  EXPECT_EQ(ends("global_load_b32 v2, v[0:1], off\n s_waitcnt_vscnt null, 0x0\n v_mov_b32 v3, v2"), fault::kind::early);
  EXPECT_EQ(
      ends("global_load_b32 v2, v[0:1], off\n s_waitcnt vmcnt(0)\n v_dual_mov_b32 v3, v5 :: v_dual_mov_b32 v4, v2"),
      fault::kind::none);
}

// LLVM AMDGPUUsage, "Memory Model GFX10-GFX11": a load past both caches has glc, and an acquire invalidates both.
TEST_F(gfx1100, loads_may_find_stale_lines_in_l0_and_l1) {
  const second_load cases[] = {{"", "", false},
                               {"slc dlc", "", false},
                               {"glc", "", true},
                               {"", "buffer_gl0_inv", false},
                               {"", "buffer_gl1_inv", false},
                               {"", "buffer_gl1_inv\n buffer_gl0_inv", true}};
  const auto prepare = [](machine& late) {
    use(late);
    late.late.have_l0(false);
  };
  for (const auto& c : cases) expect_fresh("global_load_b32", prepare, c);
}

// Waves of one workgroup that is on both compute units of a pair have an L0 each, and one L1.
TEST_F(gfx1100, waves_of_a_workgroup_may_have_two_l0) {
  for (bool on_pair : {false, true})
    for (const char* between : {"", "buffer_gl0_inv"}) {
      bool stale = false;
      for (u64 seed = 1; seed < 40; ++seed) {
        machine late(seed);
        use(late);
        late.late.have_l0(on_pair);
        auto word = make_pages(4096);
        late.visible.list(word.get(), 4096);
        late.exec(1);
        late.set_v64(0, 0, reinterpret_cast<u64>(word.get())), late.v(4, 0) = 2;
        late.load(std::string("global_load_b32 v2, v[0:1], off\n s_waitcnt vmcnt(0)\n s_sleep 1\n"
                              "global_store_b32 v[0:1], v4, off\n s_waitcnt_vscnt null, 0x0\n s_sleep 1\n") +
                  between + "\n global_load_b32 v3, v[0:1], off\n s_waitcnt vmcnt(0)");
        late.start();
        // Each part as far as s_sleep, or the end, by another wave.
        for (unsigned wave : {1, 0, 1}) {
          late.w.number = wave;
          run_wave(late.w, 1000);
        }
        ASSERT_EQ(late.w.now, amdgpu::wave::state::ended) << late.shared.failed.sentence();
        stale |= late.v(3, 0) != 2;
      }
      EXPECT_EQ(stale, on_pair && !*between) << on_pair << between;
    }
}

}  // namespace
