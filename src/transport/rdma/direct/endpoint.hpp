// SPDX-License-Identifier: MIT
// RDMA on devices whose queues kernels drive by themselves.
#pragma once
#include "transport/rdma/rdma.hpp"

namespace xio::rdma {

// Null where not every PE can or wants to; see choose_direct in carrier.hpp. Collective.
std::unique_ptr<endpoint> open_direct(const setup& s);

}  // namespace xio::rdma
