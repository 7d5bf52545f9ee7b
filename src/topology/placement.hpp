// SPDX-License-Identifier: MIT
// Which PEs share a machine, from what each said of itself.
#pragma once
#include <string>
#include <vector>

namespace xio::topology {

struct placement {
  int local_rank;              // of this PE among those of its machine
  int local_size;              // PEs on its machine, at least 1
  std::vector<bool> together;  // by PE: is it on this PE's machine
};

// machines: gpu::machine_identity() of every PE.
placement place(const std::vector<std::string>& machines, int me);

}  // namespace xio::topology
