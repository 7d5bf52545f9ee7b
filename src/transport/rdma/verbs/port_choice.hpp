// SPDX-License-Identifier: MIT
// Which ports a PE uses, and by which GID it is known there. Pure.
#pragma once
#include <cstddef>

#include "base/options.hpp"
#include "transport/rdma/verbs/hca_list.hpp"
#include "transport/rdma/verbs/inventory.hpp"

namespace xio::rdma {

struct port_wishes {
  hca_list list;
  option::AUTO_UINT gid_index;  // none: choose
  std::uint32_t pkey_index = 0;
  std::uint32_t depth = 256;    // of a queue pair
  std::uint8_t mtu = 0;         // enum ibv_mtu; 0: any
  bool kernels_queues = false;  // a device that no library drives will do where kernels can drive its queues
};

// RoCE v2 over IPv4, over a routable IPv6 address, over a link-local one, RoCE v1, InfiniBand; the lowest index of the
// best kind. Null if the table is empty.
const gid_row* best_gid(const port_facts& p);

// Why that port cannot be used, or "".
std::string complaint(const device_facts& d, const port_facts& p, const port_wishes& w);

struct chosen_port {
  std::size_t device, port;  // indexes
  gid_row gid;
};

// The nearest usable port; or every port that the list names, nearest first, at most `most`. distances: of each device.
// Among equals the local rank decides, so that the PEs of a machine spread. Where none is named, ports that are slower
// than half of the fastest (management), and those of the link layer that carries less, are not used although they
// could be; left_out gets a sentence for each. Throws when there is none, or when one that was named cannot be used.
std::vector<chosen_port> choose_ports(const std::vector<device_facts>& devices, const port_wishes& w,
                                      const std::vector<int>& distances, int local_rank, std::size_t most,
                                      std::vector<std::string>* left_out = nullptr);

}  // namespace xio::rdma
