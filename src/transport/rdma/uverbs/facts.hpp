// SPDX-License-Identifier: MIT
// RDMA devices as the kernel shows them, with or without a library for them: which there are, whose they are, and what
// one can.
#pragma once
#include <string>
#include <vector>

#include "transport/rdma/verbs/inventory.hpp"

namespace xio::rdma::uverbs {

struct listed_device {
  std::string name, file;  // "bnxt_re0", "uverbs0"
  proxy::nic_vendor vendor;
};
// By sysfs; SYSFS_PATH names another, as it does for libibverbs.
std::vector<listed_device> list_devices();

// Of a device of Broadcom or Pensando, by system calls alone.
device_facts read_facts(const listed_device& d);

}  // namespace xio::rdma::uverbs
