// SPDX-License-Identifier: MIT
// RDMA on mlx5 devices whose queues kernels drive by themselves.
#pragma once
#include <memory>

#include "transport/rdma/rdma.hpp"

namespace xio::rdma {

// Null where not every PE can or wants to; see choose_direct in choice.hpp. Collective.
std::unique_ptr<endpoint> open_mlx5(const setup& s);

}  // namespace xio::rdma
