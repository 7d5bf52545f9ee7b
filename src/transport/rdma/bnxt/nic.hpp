// SPDX-License-Identifier: MIT
// Queues of Broadcom NICs (bnxt_re: Thor2) that kernels drive, made by the kernel's system calls alone: no library of
// the vendor's has a stable interface for it. Wants Linux 7.2, which makes queues of given sizes in given memory.
#pragma once
#include <string>

#include "transport/rdma/direct/nic.hpp"

namespace xio::rdma {

// Empty, or why that device (its name, its file "uverbs0") gives kernels no queues. Makes one to see, and ends it.
std::string why_no_bnxt_queues(const std::string& device, const std::string& file);

const direct_provider& bnxt_provider();

}  // namespace xio::rdma
