// SPDX-License-Identifier: MIT
// Turns of a device that a machine and those who wait share.
#include "progress/shared_turns.hpp"
#include "../gtest.hpp"

using namespace xio::progress;

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

// A turn lasts as long as the test likes.
struct slow : device {
  bool poll() override {
    ++turns;
    began = true;
    while (!may_end) std::this_thread::yield();
    return true;
  }
  bool assist() override { return ++assists % 2 == 0; }
  std::atomic<bool> began{false}, may_end{false};
  std::atomic<int> turns{0}, assists{0};
};

TEST(shared_turns, who_comes_second_assists) {
  slow d;
  shared_turns s(d);
  std::thread first([&] { s.help(); });
  while (!d.began) std::this_thread::yield();
  EXPECT_FALSE(s.help());
  EXPECT_TRUE(s.help());
  EXPECT_FALSE(s.poll());
  EXPECT_TRUE(s.poll());
  EXPECT_PAIRS((d.assists, 4), (d.turns, 1));
  d.may_end = true;
  first.join();
  // The machine is still away: it looks for something to assist with.
  EXPECT_FALSE(s.poll());
  EXPECT_PAIRS((d.assists, 5), (d.turns, 1));
}

struct heavy_counter : counter {
  bool heavy() const override { return true; }
};

TEST(shared_turns, a_machine_keeps_a_heavy_device) {
  heavy_counter c;
  shared_turns s(c);
  EXPECT_TRUE(s.help());
  const auto polled = std::chrono::steady_clock::now();
  EXPECT_TRUE(s.poll());
  EXPECT_EQ(c.turns, 2);
  const bool helped = s.help();
  // Unless this thread lost its core meanwhile.
  if (std::chrono::steady_clock::now() - polled < shared_turns::k_away) {
    EXPECT_FALSE(helped);
    EXPECT_EQ(c.turns, 2);
  }
  EXPECT_TRUE(s.poll());
  // Not for ever: the machine may sleep.
  std::this_thread::sleep_for(2 * shared_turns::k_away);
  const int before = c.turns;
  EXPECT_TRUE(s.help());
  EXPECT_EQ(c.turns, before + 1);
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
