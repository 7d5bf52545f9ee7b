// SPDX-License-Identifier: MIT
// Turns of a device that a machine and those who wait share.
#include "model/shared_turns.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

using namespace xio::model;

namespace {

struct counter : device {
  bool poll() override {
    if (inside.exchange(true)) together = true;
    ++turns;
    for (int i = 0; i < 50; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
    inside = false;
    return true;
  }
  std::atomic<bool> inside{false}, together{false};
  std::atomic<int> turns{0};
};

TEST(shared_turns, a_machine_alone_takes_them_all) {
  counter c;
  shared_turns s(c);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(s.poll());
  EXPECT_EQ(c.turns, 10);
}

TEST(shared_turns, a_machine_leaves_the_device_to_those_who_help) {
  counter c;
  shared_turns s(c);
  EXPECT_TRUE(s.help());
  EXPECT_FALSE(s.poll());
  EXPECT_EQ(c.turns, 1);
  // Not for ever: the helper may have ended.
  std::this_thread::sleep_for(2 * shared_turns::k_away);
  EXPECT_TRUE(s.poll());
  EXPECT_TRUE(s.poll());
  EXPECT_EQ(c.turns, 3);
}

TEST(shared_turns, one_at_a_time) {
  counter c;
  shared_turns s(c);
  machine m(1);
  m.add(&s);
  std::vector<std::thread> helpers;
  std::atomic<bool> stop{false};
  for (int i = 0; i < 3; ++i)
    helpers.emplace_back([&] {
      while (!stop) {
        s.help();
        std::this_thread::yield();
      }
    });
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (c.turns < 2000 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  stop = true;
  for (std::thread& t : helpers) t.join();
  m.remove(&s);
  EXPECT_GE(c.turns, 2000);
  EXPECT_FALSE(c.together);
}

}  // namespace
