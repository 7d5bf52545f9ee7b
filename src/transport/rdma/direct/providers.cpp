// SPDX-License-Identifier: MIT
#if HAVE_CONFIG_H
#include "config.h"
#endif

#include "transport/rdma/bnxt/nic.hpp"
#include "transport/rdma/ionic/nic.hpp"
#if HAVE_MLX5DV
#include "transport/rdma/mlx5/nic.hpp"
#endif

namespace xio::rdma {

const direct_provider* find_direct_provider(const proxy::verbs_port& port) {
#if HAVE_MLX5DV
  if (mlx5_provider().drives(port)) return &mlx5_provider();
#endif
  for (const direct_provider* p : {&bnxt_provider(), &ionic_provider()})
    if (p->drives(port)) return p;
  return nullptr;
}

}  // namespace xio::rdma
