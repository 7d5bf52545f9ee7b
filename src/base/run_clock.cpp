// SPDX-License-Identifier: MIT
#include "base/run_clock.hpp"

#include <time.h>

#include <atomic>
#include <bit>

namespace xio {
namespace {

constexpr int k_unit_bits = 26;  // 67 ms; 32 bits of them are nine years
// Readings that lie in units so far apart: at least four whole units, 268 ms, went by without one. Waiting loops on a
// machine that is very busy may be late by as much as k_longest_pause once more.
constexpr std::uint32_t k_gap = 5;
static_assert((std::int64_t{k_gap - 1} << k_unit_bits) >
              2 * std::chrono::nanoseconds(run_clock::k_longest_pause).count());

// One word, so that no thread sees half of a change.
std::atomic<std::uint64_t> g_state{0};
static_assert(sizeof(run_time) == sizeof(std::uint64_t));

}  // namespace

std::int64_t run_time::read(std::int64_t steady_ns) noexcept {
  const auto unit = static_cast<std::uint32_t>(steady_ns >> k_unit_bits);
  const std::uint32_t gone = unit - last;
  // One unit less than the numbers differ: that much went by for certain, and time never runs backwards.
  if (gone >= k_gap) left_out += gone - 1;
  last = unit;
  return steady_ns - (std::int64_t{left_out} << k_unit_bits);
}

run_clock::time_point run_clock::now() noexcept {
  std::uint64_t seen = g_state.load(std::memory_order_relaxed);
  for (;;) {
    // After the state: what is missing between the two is seen here.
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    auto state = std::bit_cast<run_time>(seen);
    const std::int64_t time = state.read(std::int64_t{t.tv_sec} * 1000000000 + t.tv_nsec);
    const auto changed = std::bit_cast<std::uint64_t>(state);
    if (changed == seen || g_state.compare_exchange_weak(seen, changed, std::memory_order_relaxed))
      return time_point(duration(time));
  }
}

}  // namespace xio
