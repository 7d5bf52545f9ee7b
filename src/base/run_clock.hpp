// SPDX-License-Identifier: MIT
// The clock of deadlines: it stands still while this process is stopped (Ctrl-Z, scontrol suspend, docker pause), so
// that a job whose processes were all stopped has lost no time when it goes on.
//
// It knows by its own readings: a loop that waits reads it at least every k_longest_pause, so that a longer time
// without any reading is one in which the process did not run, or in which nobody was waiting. Either is left out. It
// is for deadlines alone: what measures how long something took takes std::chrono::steady_clock.
#pragma once
#include <chrono>
#include <cstdint>

namespace xio {

struct run_clock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<run_clock>;
  static constexpr bool is_steady = true;

  // The longest that a waiting loop may sleep or poll between two looks at its deadline.
  static constexpr std::chrono::milliseconds k_longest_pause{100};

  static time_point now() noexcept;
};

// State of the clock, in units of 2^26 ns: when the steady clock was read last, and how much time was left out till
// then. The rule by itself, for tests: takes a reading of a steady clock in ns, changes the state and returns the time.
struct run_time {
  std::uint32_t last, left_out;
  std::int64_t read(std::int64_t steady_ns) noexcept;
};

}  // namespace xio
