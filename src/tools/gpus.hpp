// SPDX-License-Identifier: MIT
// Every GPU that this process can use, as its runtime tells.
#pragma once
#include <cstddef>
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

// Returns null, or a text that says what went wrong.
const char* list_gpus(std::vector<gpu_facts>& out);

}  // namespace xio::tools
