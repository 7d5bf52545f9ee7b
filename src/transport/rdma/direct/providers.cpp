// SPDX-License-Identifier: MIT
#if HAVE_CONFIG_H
#include "config.h"
#endif

#include "transport/rdma/direct/nic.hpp"
#if HAVE_MLX5DV
#include "transport/rdma/mlx5/nic.hpp"
#endif

namespace xio::rdma {

std::vector<const direct_provider*> direct_providers() {
  std::vector<const direct_provider*> all;
#if HAVE_MLX5DV
  all.push_back(&mlx5_provider());
#endif
  return all;
}

}  // namespace xio::rdma
