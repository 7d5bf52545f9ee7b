// SPDX-License-Identifier: MIT
// The options' choice among this machine's RDMA ports, opened. Needs libibverbs.
#pragma once
#include <vector>

#include "base/options.hpp"
#include "proxy/verbs_port.hpp"

namespace xio::rdma {

// Throws as choose_ports does. kernels_queues: as port_wishes has it.
std::vector<proxy::verbs_port> open_ports(const rdma_options& o, int rank, int local_rank,
                                          const std::string& gpu_bus_id, bool kernels_queues = false);
std::string why_no_ports(const rdma_options& o);

proxy::verbs_path path_of(const rdma_options& o);

}  // namespace xio::rdma
