// SPDX-License-Identifier: MIT
// Writes by queue pairs that are connected to themselves, posted by the host as kernels post: the bytes, the doorbell
// and the completion are theirs. The NIC's rings are host memory.
#pragma once
#include "transport/rdma/direct/nic.hpp"
#include "transport/rdma/memory_probe.hpp"

namespace xio::rdma {

struct self_writer {
  const direct_format* format;
  int me;  // own PE
  proxy::verbs_path path;
};
// Copies the first half of the memory's k_probe_bytes to the second. Empty, or why that could not be.
std::string write_to_itself(direct_nic& nic, const self_writer& how, const probed_memory& memory,
                            std::chrono::milliseconds patience);
// Lets a kernel ring doorbells of several of them at once, and waits for what each does. Throws if one of them does
// not. Where such queue pairs cannot be made nothing is said: that is for those who make the true ones.
void try_doorbells(direct_nic& nic, const self_writer& how, std::chrono::milliseconds patience);

}  // namespace xio::rdma
