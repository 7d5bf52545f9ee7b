// SPDX-License-Identifier: MIT
// What gfx942 has that gfx90a has not, or has by another name: scope bits, cache instructions, moves of 64 bits, and
// scratch that each wave knows by itself. All else of it is tested as gfx90a's.
#include "amdgpu/opcodes.hpp"

namespace {

using namespace amdgpu::test;
using amdgpu::fault;
using amdgpu::lanes;

struct gfx942 : testing::Test {
  gfx942() { use(m); }
  static void use(machine& m) { m.shared.how.target = amdgpu::target::gfx942; }
  machine m;
};

TEST_F(gfx942, moves_and_sums_of_64_bits) {
  m.load(
      "v_mov_b64 v[4:5], v[0:1]\n v_mov_b64 v[6:7], s[4:5]\n v_mov_b64 v[8:9], -3\n v_mov_b64 v[12:13], 1.0\n"
      "v_lshl_add_u64 v[10:11], v[0:1], 4, v[2:3]");
  m.w.set64(4, 0x123456789abcdef0);
  for (u64 exec : exec_patterns) {
    m.exec(exec);
    for (unsigned l = 0; l < lanes; ++l) {
      m.set_v64(0, l, 0xfedcba9876543210 + l), m.set_v64(2, l, ~u64{0} - 7 * l);
      for (unsigned n = 4; n < 14; ++n) m.v(n, l) = machine::poison;
    }
    ASSERT_EQ(m.go().what, fault::kind::none) << m.shared.failed.why;
    for (unsigned l = 0; l < lanes; ++l) {
      const u64 poisoned = machine::poison | u64{machine::poison} << 32, a = 0xfedcba9876543210 + l;
      const bool active = exec >> l & 1;
      EXPECT_PAIRS((m.v64(4, l), active ? a : poisoned), (m.v64(6, l), active ? 0x123456789abcdef0 : poisoned),
                   (m.v64(8, l), active ? ~u64{0} - 2 : poisoned),
                   (m.v64(12, l), active ? 0x3ff0000000000000 : poisoned),
                   (m.v64(10, l), active ? (a << 4) + (~u64{0} - 7 * l) : poisoned));
    }
  }
}

// sc0 of an atomic asks for the old value; sc1 is its scope.
TEST_F(gfx942, atomics_return_by_sc0) {
  alignas(8) static u32 word;
  word = 5;
  m.visible.list(&word, sizeof(word));
  m.exec(1);
  m.load("global_atomic_add v3, v[0:1], v2, off sc0\n global_atomic_add v[0:1], v2, off sc1\n s_waitcnt vmcnt(0)");
  m.set_v64(0, 0, reinterpret_cast<u64>(&word)), m.v(2, 0) = 3;
  ASSERT_EQ(m.go().what, fault::kind::none) << m.shared.failed.why;
  EXPECT_EQ(m.v(3, 0), 5u);
  EXPECT_EQ(word, 11u);
}

// LLVM AMDGPUUsage, "Memory Model GFX942": a load of agent or system scope has sc1 and looks past the L1, one of
// workgroup scope has sc0 alone and may get what the L1 held. buffer_inv sc1 empties it.
TEST_F(gfx942, loads_look_past_the_l1_from_agent_scope_on) {
  const second_load cases[] = {{"", "", false},
                               {"sc0", "", false},
                               {"sc1", "", true},
                               {"sc0 sc1", "", true},
                               {"nt", "", false},
                               {"", "buffer_inv sc1", true},
                               {"", "buffer_inv sc0 sc1", true},
                               {"", "buffer_inv sc0", false}};
  for (const auto& c : cases) expect_fresh("global_load_dword", use, c);
}

TEST_F(gfx942, instructions_that_it_has_and_the_interpreter_has_not_are_refused) {
  m.run("v_mfma_f32_4x4x4_16b_f16 a[0:3], v[0:1], v[2:3], a[0:3]");
  EXPECT_EQ(m.shared.failed.what, fault::kind::unknown);
}

}  // namespace
