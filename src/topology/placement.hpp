// SPDX-License-Identifier: MIT
// Which PEs share a machine, from what each said of itself.
#pragma once
#include <string>
#include <vector>

namespace xio::topology {

struct placement {
  int local_rank;              // of this PE among those of its kernel: they share GPUs and NICs
  int local_size;              // PEs of its kernel, at least 1
  int apart;                   // those of them that are in other containers: no memory is shared with them
  std::vector<bool> together;  // by PE: can this PE map its memory
};

// machines: XIO_MACHINE or gpu::machine_identity() of every PE. kernels: the boot id of its kernel, "" where
// XIO_MACHINE says what a machine is.
placement place(const std::vector<std::string>& machines, const std::vector<std::string>& kernels, int me);

}  // namespace xio::topology
