// SPDX-License-Identifier: MIT
// RDMA devices as the kernel shows them, with or without a library for them: which there are, whose they are, and what
// one can.
#pragma once
#include "transport/rdma/uverbs/domain.hpp"
#include "transport/rdma/verbs/inventory.hpp"

namespace xio::rdma::uverbs {

struct listed_device {
  std::string name, file;  // "bnxt_re0", "uverbs0"
  proxy::nic_vendor vendor;
  int abi = 0;  // version of its driver's own structures in system calls
};
// By sysfs; SYSFS_PATH names another, as it does for libibverbs.
std::vector<listed_device> list_devices();

// A PCI function of such a vendor's NIC for which no driver has made an RDMA device.
struct idle_function {
  std::string bus_id;  // "0000:3b:00.0"
  proxy::nic_vendor vendor;
};
std::vector<idle_function> list_idle_functions();

port_facts read_port(const domain& d, std::uint8_t number);

// Of a device of Broadcom or Pensando, by system calls alone.
device_facts read_facts(const listed_device& d);

}  // namespace xio::rdma::uverbs
