// SPDX-License-Identifier: MIT
// One write by a queue pair that is connected to itself, posted by the host as kernels post: the bytes, the doorbell
// and the completion are theirs.
#pragma once
#include <chrono>
#include <string>

#include "transport/rdma/direct/nic.hpp"
#include "transport/rdma/memory_probe.hpp"

namespace xio::rdma {

struct self_writer {
  const direct_format* format;
  int me;  // own PE
  proxy::verbs_path path;
};
// Copies the first half of the memory's k_probe_bytes to the second. Empty, or why that could not be. The NIC's rings
// are host memory.
std::string write_to_itself(direct_nic& nic, const self_writer& how, const probed_memory& memory,
                            std::chrono::milliseconds patience);

}  // namespace xio::rdma
