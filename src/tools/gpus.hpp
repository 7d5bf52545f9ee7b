// SPDX-License-Identifier: MIT
// The platform that this program is made for, and every GPU that this process can use, as its runtime tells.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace xio::tools {

struct gpu_facts {
  std::string name, arch;
  std::string bus_id;  // "0000:3b:00.0"; empty on the host
  std::size_t memory_bytes = 0;
  int compute_units = 0, wave_lanes = 0, threads_per_block = 0;
  std::size_t shared_bytes = 0;  // of a workgroup
};

// The GPUs that this program's kernels were compiled for: "gfx90a gfx942".
const char* gpu_targets();

// "host", "hip" or "cuda".
const char* platform();

// Of the clock that kernels read, xio::dev::wall_clock(), on the device in use.
std::uint64_t ticks_per_ms();

// Returns null, or a text that says what went wrong.
const char* list_gpus(std::vector<gpu_facts>& out);

}  // namespace xio::tools
