// SPDX-License-Identifier: MIT
// The clock of deadlines, by made-up readings and by a process that is really stopped.
#include "base/run_clock.hpp"

#include "../gtest.hpp"
#include "bootstrap/deadline.hpp"

namespace {

using namespace std::chrono_literals;
using xio::run_clock;
using xio::run_time;

constexpr std::int64_t k_ms = 1000000;

TEST(run_time, counts_all_that_is_looked_at) {
  run_time t{0, 0};
  std::int64_t now = 5000 * k_ms;
  const std::int64_t start = t.read(now);
  for (int i = 1; i <= 100; ++i) {
    now += 100 * k_ms;
    EXPECT_EQ(t.read(now) - start, 100 * k_ms * i);
  }
}

TEST(run_time, leaves_out_what_nobody_looked_at_and_never_runs_backwards) {
  for (std::int64_t gap = 100 * k_ms; gap < 10000 * k_ms; gap += 37 * k_ms) {
    run_time t{0, 0};
    std::int64_t now = 123456789;
    const std::int64_t start = t.read(now);
    const std::int64_t after = t.read(now += gap) - start;
    EXPECT_GE(after, 0) << gap;
    EXPECT_LE(after, gap) << gap;
    if (gap > 400 * k_ms) {
      EXPECT_LT(after, 150 * k_ms) << gap;
    }
    EXPECT_EQ(t.read(now + 10 * k_ms) - start - after, 10 * k_ms);
  }
}

// A child waits 1 s by a deadline and is stopped for 2 s meanwhile: it has waited 3 s when it ends.
TEST(run_clock, stands_still_while_the_process_is_stopped) {
  const auto begin = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child == 0) {
    const auto until = xio::bootstrap::deadline::in(1000);
    while (!until.passed()) std::this_thread::sleep_for(std::chrono::milliseconds(until.poll_ms()));
    _exit(0);
  }
  std::this_thread::sleep_for(300ms);
  kill(child, SIGSTOP);
  std::this_thread::sleep_for(2000ms);
  kill(child, SIGCONT);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_GT(std::chrono::steady_clock::now() - begin, 2700ms);
}

TEST(run_clock, a_deadline_is_looked_at_often) {
  const auto until = xio::bootstrap::deadline::in(60000);
  EXPECT_LE(until.poll_ms(), 100);
  EXPECT_EQ(xio::bootstrap::deadline::in(60000).poll_ms(7), 7);
}

}  // namespace
