// SPDX-License-Identifier: MIT
// The executor's share of the options, read once per process: they are properties of the "device".
#pragma once
#include <cstddef>

namespace xio::host_exec {

struct settings {
  bool threads;        // XIO_HOST_EXEC=threads
  unsigned wave_size;  // 32 or 64
  unsigned cus;        // workgroups of one kernel that run at once
  std::size_t stack;   // bytes of a fiber's stack
};

// Throws XIO_ERR_CONFIG when the environment is not understood.
const settings& config();

// The largest workgroup, as on the GPUs.
constexpr unsigned k_max_workgroup = 1024;
// OS threads of this process that run kernels; beyond it a launch is refused.
constexpr unsigned k_max_threads = 4096;

}  // namespace xio::host_exec
