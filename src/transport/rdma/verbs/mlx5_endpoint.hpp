// SPDX-License-Identifier: MIT
// RDMA on mlx5 devices whose queues kernels drive by themselves. The far ends may be any RC queue pairs, a proxy's too.
#pragma once
#include <memory>

#include "transport/rdma/rdma.hpp"

namespace xio::rdma {

// Null where the options want another way, where a chosen port is no mlx5 device's, or, after one line in the log,
// where driver, firmware or platform do not give kernels its queues. Local; what comes after is collective.
std::unique_ptr<endpoint> try_open_mlx5(const setup& s);

}  // namespace xio::rdma
