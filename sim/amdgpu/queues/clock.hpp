// SPDX-License-Identifier: MIT
// The clock that all GPUs share: 100 MHz, as s_memrealtime and every time stamp of a queue counts it.
#pragma once
#include <time.h>

#include <cstdint>

namespace amdgpu {

inline std::uint64_t host_nanoseconds() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u + static_cast<std::uint64_t>(t.tv_nsec);
}
inline std::uint64_t gpu_clock() { return host_nanoseconds() / 10; }

}  // namespace amdgpu
