// SPDX-License-Identifier: MIT
// The machine's RDMA devices as plain descriptions, so that choosing among them is pure; and how they are read.
#pragma once
#include <memory>
#include <vector>

#include "proxy/verbs_address.hpp"

struct ibv_context;

namespace xio::rdma {

using proxy::gid;
using proxy::gid_kind;
using proxy::link_layer;

struct gid_row {
  std::uint32_t index;
  gid_kind kind;
  gid address;
};

struct port_facts {
  std::uint8_t number = 1;
  bool active = false;
  std::string state;  // "PORT_DOWN", as the driver's library says it
  link_layer link = link_layer::unspecified;
  std::uint8_t active_mtu = 0;  // enum ibv_mtu
  std::uint16_t lid = 0;
  std::uint32_t gbits = 0;  // per second, as the link runs now; 0: not known
  bool needs_grh = false;
  std::uint64_t max_message = 0;
  std::uint32_t gid_count = 0;  // of the table; only those in use are in `gids`
  std::uint32_t pkey_count = 0;
  std::vector<gid_row> gids;
};

struct device_facts {
  std::string name;
  std::string closed;  // why it cannot be opened; empty if it can
  std::string bus_id;  // "0000:3b:00.0", empty for what is no PCI function
  bool is_iwarp = false;
  bool has_atomics = false;
  std::uint32_t max_wr = 0, max_sge = 0, max_cqe = 0;
  std::uint8_t responder_depth = 0, initiator_depth = 0;  // reads and atomics of one queue pair
  std::vector<port_facts> ports;
  bool is_mlx5 = false;     // libmlx5 drives it
  std::string no_commands;  // of such a device: why it takes no firmware commands of ours (DEVX), or empty
  proxy::nic_vendor vendor = proxy::nic_vendor::other;
  std::string kernel_file;  // "uverbs0"
  std::string no_library;   // why programs cannot use it by verbs; kernels may all the same
  // Of Broadcom and Pensando: why kernels cannot drive its queues, or what makes them and why.
  std::string no_queues, queues_by;
  bool by_library = false;  // the vendor's makes them, and not the kernel's own calls
};

// Lanes and what each carries (enum ib_port_width, ib_port_speed), 0: not known.
std::uint32_t gbits_of(std::uint8_t width, std::uint8_t speed);

struct opened_device {
  device_facts facts;
  std::shared_ptr<ibv_context> context;  // null if facts.closed, or facts.no_library
};

port_facts read_port(ibv_context* context, std::uint8_t number);

// All of them, in the order of their names.
std::vector<opened_device> read_devices();

}  // namespace xio::rdma
