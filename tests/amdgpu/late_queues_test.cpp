// SPDX-License-Identifier: MIT
// The caches that packets write back and invalidate, where memory is late.
#include "amdgpu/queues_rig.hpp"

namespace amdgpu {
namespace {

using namespace test;

// With late memory, each GPU has an L2 that packets write back and invalidate.
struct amdgpu_late_queues : amdgpu_queues {
  explicit amdgpu_late_queues(const char* target = "gfx90a") {
    chosen.target = target;
    chosen.memory = "adversary";
    make();
    open(0);
  }
  // Runs a kernel with these fences.
  void run_kernel(std::uint32_t acquire, std::uint32_t release, const std::function<void(const launch&)>& act) {
    auto p = dispatch_of(kernel(0,
                                [&](const launch& l, std::array<std::uint32_t, 3>) {
                                  act(l);
                                  return group::state::finished;
                                }),
                         1, &m->signals[0]);
    p.header = static_cast<std::uint16_t>(p.header | acquire << 9 | release << 11);
    submit(0, p);
    ASSERT_TRUE(is_done(m->signals[0]));
  }
  // The same of one that does `act` to one dword of coarse-grained memory in the L2.
  void run(std::uint32_t acquire, std::uint32_t release, const std::function<void(l2_cache&, std::uint64_t)>& act) {
    run_kernel(acquire, release, [&](const launch& l) {
      const std::lock_guard hold(l.l2->lock());
      act(*l.l2, address(m->data[0]));
    });
  }
  static void write_41(l2_cache& l2, std::uint64_t at) {
    const std::uint32_t value = 41;
    l2.write(at, sizeof value, mapping::place::local, mapping::caching::coarse,
             reinterpret_cast<const std::uint8_t*>(&value));
  }
  // How many of 59 kernels that acquire so, and then look, see what another device wrote before in its old state.
  unsigned old_values(std::uint32_t acquire, const std::function<std::uint32_t(std::uint32_t acquire)>& look) {
    unsigned old = 0;
    for (unsigned char i = 1; i < 60; ++i) {
      look(0);
      m->data[0][0] = i;
      old += look(acquire) != i;
    }
    return old;
  }
  unsigned old_values(std::uint32_t acquire, mapping::place where) {
    return old_values(acquire, [&](std::uint32_t by) {
      std::uint32_t got = 0;
      run(by, 0, [&](l2_cache& l2, std::uint64_t at) {
        l2.read(at, sizeof got, where, mapping::caching::coarse, reinterpret_cast<std::uint8_t*>(&got));
      });
      return got;
    });
  }
};
struct amdgpu_late_queues_of_gfx1100 : amdgpu_late_queues {
  amdgpu_late_queues_of_gfx1100() : amdgpu_late_queues("gfx1100") {}
  // A kernel that acquires so loads a dword by the L1; the L2 has nothing old.
  std::uint32_t look_by_l1(std::uint32_t acquire) {
    std::uint32_t data[lanes] = {};
    run_kernel(acquire, 0, [&](const launch& l) {
      std::uint64_t at[lanes] = {address(m->data[0])};
      access one;
      one.address = at;
      one.active = 1;
      one.bytes = 4;
      refusal no;
      l.l2->invalidate();
      EXPECT_TRUE(l.l1->load(one, data, no));
    });
    return data[0];
  }
};

// HSA Programmer's Reference 1.2, 2.9.1: a release fence of system scope makes a kernel's writes visible to all agents.
TEST_F(amdgpu_late_queues, write_back_when_a_packet_releases_to_the_system) {
  for (const std::uint32_t scope : {0u, 1u, 2u}) {
    m->data[0][0] = 0;
    run(0, scope, write_41);
    EXPECT_EQ(m->data[0][0], scope == 2 ? 41 : 0) << scope;
    aql::barrier_packet b{};
    m->signals[1].value = 1;
    b.header = aql::barrier_and | 1u << 8 | 2u << 11;
    b.completion = address(m->signals[1]);
    submit(0, b);
    ASSERT_TRUE(is_done(m->signals[1]));
    EXPECT_EQ(m->data[0][0], 41);
  }
}

TEST_F(amdgpu_late_queues, invalidate_when_a_packet_acquires_from_the_system) {
  for (const std::uint32_t scope : {0u, 1u, 2u})
    EXPECT_EQ(old_values(scope, mapping::place::host) > 0, scope != 2) << scope;
  EXPECT_EQ(old_values(0, mapping::place::local), 0u) << "MTYPE RW";
}

// Its own coarse-grained memory is MTYPE NC (linux amdgpu, gmc_v11_0_get_vm_pte), of which lines become stale.
TEST_F(amdgpu_late_queues_of_gfx1100, invalidate_its_own_memory_too) {
  for (const std::uint32_t scope : {0u, 1u, 2u})
    EXPECT_EQ(old_values(scope, mapping::place::local) > 0, scope != 2) << scope;
}

// A packet that acquires, from the agent or the system, empties the L1s of all shader arrays (HSA Programmer's
// Reference 1.2, 2.9.1).
TEST_F(amdgpu_late_queues_of_gfx1100, empty_the_l1_when_a_packet_acquires) {
  for (const std::uint32_t scope : {0u, 1u, 2u})
    EXPECT_EQ(old_values(scope, [&](std::uint32_t by) { return look_by_l1(by); }) > 0, scope == 0) << scope;
}

TEST_F(amdgpu_late_queues_of_gfx1100, write_back_when_a_packet_releases_to_the_system) {
  run(0, 1, write_41);
  EXPECT_EQ(m->data[0][0], 0);
  run(0, 2, [](l2_cache&, std::uint64_t) {});
  EXPECT_EQ(m->data[0][0], 41);
}

TEST_F(amdgpu_late_queues, write_back_memory_that_a_gpu_loses) {
  run(0, 0, write_41);
  EXPECT_EQ(m->data[0][0], 0);
  gpus->mapped(0, all(), false);
  EXPECT_EQ(m->data[0][0], 41);
}

}  // namespace
}  // namespace amdgpu
