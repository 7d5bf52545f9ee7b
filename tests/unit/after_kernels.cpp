// SPDX-License-Identifier: MIT
// Calls that wait for kernels are made in order on a thread of their own; their givers wait as long as they said.
#include "gpu/after_kernels.hpp"
#include "../gtest.hpp"

namespace xio::gpu {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using clock = std::chrono::steady_clock;

TEST(after_kernels, makes_calls_in_order_on_one_other_thread) {
  std::vector<int> order;
  std::vector<std::thread::id> threads;
  for (int i = 0; i < 100; ++i)
    after_kernels([&, i] {
      order.push_back(i);
      threads.push_back(std::this_thread::get_id());
    });
  ASSERT_TRUE(after_kernels_within([] {}, 10000));
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
  for (const auto id : threads) EXPECT_TRUE(id == threads[0] && id != std::this_thread::get_id());
}

TEST(after_kernels, lets_nobody_wait_longer_than_was_said) {
  const auto open = std::make_shared<std::atomic<bool>>(false);
  const auto made = std::make_shared<std::atomic<int>>(0);
  const auto begin = clock::now();
  after_kernels([open] {
    while (!*open) std::this_thread::sleep_for(milliseconds(1));
  });
  EXPECT_LT(clock::now() - begin, seconds(1)) << "it only gave the call";
  EXPECT_FALSE(after_kernels_within([made] { ++*made; }, 100));
  EXPECT_GE(clock::now() - begin, milliseconds(100));
  EXPECT_LT(clock::now() - begin, seconds(10));
  EXPECT_EQ(*made, 0);
  *open = true;
  EXPECT_TRUE(after_kernels_within([] {}, 10000));
  EXPECT_EQ(*made, 1) << "what nobody waited for is made all the same";
}

TEST(after_kernels, frees_what_a_call_owns_before_it_counts_as_made) {
  auto owned = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = owned;
  after_kernels([last = std::move(owned)] {});
  ASSERT_TRUE(after_kernels_within([] {}, 10000));
  EXPECT_TRUE(watch.expired());
}

TEST(after_kernels, makes_nothing_in_a_child_of_fork) {
  ASSERT_TRUE(after_kernels_within([] {}, 10000));
  const int status = xio::test::in_child([] {
    bool made = false;
    after_kernels([&] { made = true; });
    const bool waited = after_kernels_within([&] { made = true; }, 0);
    return made || waited ? 1 : 0;
  });
  EXPECT_EQ(status, 0);
}

TEST(after_kernels, outlives_a_call_that_throws) {
  after_kernels([] { throw std::runtime_error("on purpose"); });
  EXPECT_TRUE(after_kernels_within([] { throw std::runtime_error("on purpose"); }, 0)) << "and nobody waits for ever";
  EXPECT_TRUE(after_kernels_within([] {}, 10000));
}

// A world that an exit handler makes and ends.
TEST(after_kernels, makes_what_an_exit_handler_waits_for) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        std::atexit([] { _exit(after_kernels_within([] {}, 10000) ? 7 : 8); });
        after_kernels([] {});
        std::exit(9);
      },
      testing::ExitedWithCode(7), "");
}

// Behind a kernel that never ends.
TEST(after_kernels, does_not_keep_a_process_from_exiting) {
  // A process of its own: a forked one has no such thread.
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto begin = clock::now();
  EXPECT_EXIT(
      {
        after_kernels([] {
          for (;;) pause();
        });
        after_kernels([] {});
        std::exit(7);
      },
      testing::ExitedWithCode(7), "");
  EXPECT_LT(clock::now() - begin, seconds(20));
}

}  // namespace
}  // namespace xio::gpu
