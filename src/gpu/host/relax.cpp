// SPDX-License-Identifier: MIT
#include "gpu/host/relax.hpp"

#include <sched.h>

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/sleeper.hpp"
#include "gpu/polled_device.hpp"

namespace xio {
namespace {

std::atomic<int> polled_devices{0};

#if defined(__x86_64__)
// It says who it is where hypervisors do (CPUID 1, ECX 31, and 40000000h).
bool is_translated() {
  std::uint32_t word[4] = {};
  if (__get_cpuid(1, &word[0], &word[1], &word[2], &word[3]) == 0 || word[2] >> 31 == 0) return false;
  __cpuid(0x40000000, word[0], word[1], word[2], word[3]);
  return std::memcmp(&word[1], "TCGTCGTCGTCG", 12) == 0;
}
#endif

}  // namespace

namespace {
[[maybe_unused]] const bool g_kernels_wake = let_sleep(true);
}  // namespace

void host_exec::relax() {
#if defined(__x86_64__)
  static const bool translated = is_translated();
  if (!translated || polled_devices.load(std::memory_order_relaxed) == 0) __builtin_ia32_pause();
#endif
}

// An offer that nobody takes returns sooner.
bool host_exec::offer_core() {
  constexpr std::chrono::nanoseconds k_taken{1000};
  const auto offered = std::chrono::steady_clock::now();
  sched_yield();
  return std::chrono::steady_clock::now() - offered > k_taken;
}

gpu::polled_device::polled_device() { polled_devices.fetch_add(1, std::memory_order_relaxed); }
gpu::polled_device::~polled_device() { polled_devices.fetch_sub(1, std::memory_order_relaxed); }

}  // namespace xio
