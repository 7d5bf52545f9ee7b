// SPDX-License-Identifier: MIT
// The GPU's constant clock, which s_memrealtime reads and the driver reports.
#pragma once
#include <time.h>

#include <cstdint>

namespace amdgpu {

constexpr std::uint64_t realtime_hz = 100'000'000;  // MI200: 100 MHz

inline std::uint64_t realtime_ticks() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * realtime_hz + static_cast<std::uint64_t>(now.tv_nsec) / 10;
}

}  // namespace amdgpu
