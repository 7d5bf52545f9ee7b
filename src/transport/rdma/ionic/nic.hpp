// SPDX-License-Identifier: MIT
// Queues of AMD Pensando NICs (ionic: Pollara) that kernels drive, made by the kernel's system calls (Linux 6.18 has
// the driver) or by libionic with the direct verbs of AMD's own releases.
#pragma once
#include <string>

#include "transport/rdma/direct/nic.hpp"

namespace xio::rdma {

// Empty, or why that device (its name, its file "uverbs0") gives kernels no queues. Makes one to see, and ends it.
std::string why_no_ionic_queues(const std::string& device, const std::string& file);
// The same of the library that libibverbs has loaded for it. path: of its file, where its calls are there.
std::string why_no_ionic_library(ibv_context* context, ibv_pd* domain, std::string* path);

const direct_provider& ionic_provider();

}  // namespace xio::rdma
