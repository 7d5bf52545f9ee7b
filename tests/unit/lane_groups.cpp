// SPDX-License-Identifier: MIT
// Lanes that are at one place act as a group, while others of their wave come and go: every call belongs to exactly one
// group, all of a group get the leader's result, and nobody waits for a lane that has left.
#include "lane_groups.hpp"
#include "../gtest.hpp"
#include "gpu/gpu.hpp"

namespace {

using xio::test::call_in_groups;
using xio::test::lane_counts;

struct lane_groups : testing::Test {
  // No deadline of the library ends a lane that hangs at a sync of lanes, so a signal ends the test.
  void SetUp() override { alarm(100); }
  void TearDown() override { alarm(0); }

  static void expect_good(unsigned workgroups, unsigned threads, unsigned rounds, bool together) {
    lane_counts c{};
    ASSERT_TRUE(call_in_groups(workgroups, threads, rounds, together, &c));
    EXPECT_GE(c.called, std::uint64_t{workgroups} * threads * rounds);
    EXPECT_PAIRS((c.served, c.called), (c.wrong, 0u));
  }
};

TEST_F(lane_groups, of_one_wave) { expect_good(1, 32, 2000, false); }
TEST_F(lane_groups, of_a_wave_that_converges) { expect_good(1, 32, 2000, true); }
TEST_F(lane_groups, of_whole_and_short_waves) {
  expect_good(8, 96, 500, false);
  expect_good(8, 96, 500, true);
  expect_good(3, 70, 500, true);
}
// Whole waves, a short one, and one lane; each result differs from the one before.
TEST_F(lane_groups, get_what_their_leader_returns) {
  for (const unsigned threads : {1u, 64u, 70u, 160u}) {
    lane_counts c{};
    ASSERT_TRUE(xio::test::results_by_leaders(3, threads, 40, &c));
    EXPECT_PAIRS((c.called, std::uint64_t{3} * threads * 80), (c.served, c.called));
    EXPECT_EQ(c.wrong, 0u) << threads;
  }
}
TEST_F(lane_groups, of_single_lanes) { expect_good(16, 1, 500, true); }

}  // namespace
