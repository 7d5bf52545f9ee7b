// SPDX-License-Identifier: MIT
// Real RDMA devices, through rdma-core: chooses ports and opens a fabric on each. Peers are met, memory registered and
// queue pairs connected through the fabric.
#pragma once
#include <functional>

#include "base/options.hpp"
#include "gpu/gpu.hpp"
#include "proxy/fabric.hpp"

namespace xio::rdma {

// A write with immediate has come for queue pair `number`. False: it cannot be taken now; it is offered again, and
// meanwhile the peer is held up.
using immediate_handler = std::function<bool(std::uint32_t number, std::uint32_t immediate, std::uint64_t bytes)>;

// Facts and calls of the platform's GPU; all of them may be missing.
struct verbs_surroundings {
  std::string gpu_bus_id;  // "0000:3b:00.0"; NICs near it are preferred
  std::function<gpu::exported_memory(void* base, std::size_t bytes)> export_memory;
};

// One fabric per NIC that this PE uses: the nearest, or those that XIO_HCA_LIST names, nearest first, at most
// dev::k_max_nics. Throws when there is none, or when one that was named cannot be used.
std::vector<std::unique_ptr<proxy::fabric>> open_verbs(const rdma_options& o, const payload_agent& payload, int rank,
                                                       int local_rank, immediate_handler handler,
                                                       const verbs_surroundings& where = {});

// "" if open_verbs would find a device, or the sentence why not. Opens devices for a moment, keeps nothing.
std::string why_no_verbs(const rdma_options& o);

}  // namespace xio::rdma
