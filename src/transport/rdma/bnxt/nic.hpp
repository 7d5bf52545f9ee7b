// SPDX-License-Identifier: MIT
// Queues of Broadcom NICs (bnxt_re: Thor2) that kernels drive, made by the kernel's system calls (Linux 7.2 makes
// queues of given sizes in given memory) or by the direct verbs of Broadcom's own library.
#pragma once
#include <string>

#include "transport/rdma/direct/nic.hpp"

namespace xio::rdma {

// Empty, or why that device (its name, its file "uverbs0") gives kernels no queues. Makes one to see, and ends it.
std::string why_no_bnxt_queues(const std::string& device, const std::string& file);
// The same of the library that libibverbs has loaded for it. path: of its file, where its calls are there.
std::string why_no_bnxt_library(ibv_context* context, ibv_pd* domain, std::string* path);

const direct_provider& bnxt_provider();

}  // namespace xio::rdma
