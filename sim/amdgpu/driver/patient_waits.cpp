// SPDX-License-Identifier: MIT
// HIP waits for kernels by hsa_signal_wait_scacquire and asks ROCr to poll all the time, which takes half of the
// processors that the software GPU needs. Here such a wait looks, and sleeps between its looks.
#include "amdgpu/driver/process.hpp"
#include "preload/calls.hpp"

namespace {

using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

constexpr std::chrono::microseconds k_first_pause = 10us, k_longest_pause = 200us;

// hsa.h, hsa_signal_condition_t.
bool holds(std::uint32_t condition, std::int64_t value, std::int64_t compare) {
  switch (condition) {
    case 0: return value == compare;
    case 1: return value != compare;
    case 2: return value < compare;
    default: return value >= compare;
  }
}

}  // namespace

// The signal is a structure of one 64-bit handle; the timeout counts the clock of do_clocks (kfd_ioctls.cpp), in
// nanoseconds.
PRELOAD_SHOWN std::int64_t hsa_signal_wait_scacquire(std::uint64_t signal, std::uint32_t condition,
                                                     std::int64_t compare, std::uint64_t timeout, std::uint32_t state) {
  using function = std::int64_t (*)(std::uint64_t, std::uint32_t, std::int64_t, std::uint64_t, std::uint32_t);
  static const auto real = preload::next(function{}, "hsa_signal_wait_scacquire");
  if (amdgpu::process::made() == nullptr) return real(signal, condition, compare, timeout, state);
  const auto start = clock_type::now();
  for (std::chrono::microseconds pause = k_first_pause;; pause = std::min(2 * pause, k_longest_pause)) {
    const std::int64_t value = real(signal, condition, compare, 0, state);
    if (holds(condition, value, compare)) return value;
    const auto gone = std::chrono::duration_cast<std::chrono::nanoseconds>(clock_type::now() - start).count();
    if (static_cast<std::uint64_t>(gone) >= timeout) return value;
    std::this_thread::sleep_for(pause);
  }
}
