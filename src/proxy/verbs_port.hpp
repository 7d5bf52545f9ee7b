// SPDX-License-Identifier: MIT
// What the verbs fabric is given: an opened port of a real RDMA device, and how its packets are to travel.
#pragma once
#include <infiniband/verbs.h>

#include "gpu/gpu.hpp"
#include "proxy/verbs_address.hpp"

namespace xio::proxy {

// Limits are the device's own (ibv_query_device, ibv_query_port).
struct verbs_port {
  std::shared_ptr<ibv_context> context;  // null where no library of this machine drives the device
  std::shared_ptr<ibv_pd> domain;        // goes before the context
  nic_vendor vendor = nic_vendor::other;
  std::string kernel_file;  // "uverbs0"
  std::string no_queues;    // of a vendor with a provider that asks the kernel: why kernels cannot drive its queues
  bool by_library = false;  // else: what makes them is the vendor's library, and not the kernel's own calls
  verbs_address identity;   // qpn and psn are 0
  bool needs_grh;           // InfiniBand with routed or virtual addresses; always so on Ethernet
  std::uint64_t max_message;
  std::uint32_t max_wr, max_sge, max_cqe;
  std::uint8_t initiator_depth;  // reads and atomics under way as requester; identity has those as responder
};

struct verbs_path {
  std::uint32_t depth;  // send work requests of a queue pair
  std::uint16_t pkey_index;
  std::uint8_t traffic_class, sl, hop_limit;
  std::uint8_t mtu;  // ibv_mtu, 0: the smaller of both ports'
  std::uint8_t timeout, retry, rnr_retry;
  bool relaxed_ordering;
};

// gpu::export_memory; may be missing.
using memory_exporter = std::function<gpu::exported_memory(void* base, std::size_t bytes)>;

// A write with immediate has come. False: not now, offer it again. Called by fabric::poll, so under the NIC's lock.
using immediate_handler = std::function<bool(std::uint32_t number, std::uint32_t immediate, std::uint64_t bytes)>;

}  // namespace xio::proxy
