// SPDX-License-Identifier: MIT
#include "transport/rdma/family.hpp"

#include "base/error.hpp"

namespace xio::rdma {

const family& find_family(const std::string& name) {
  for (const auto* row : {&mlx5_family(), &mlx5_cq_family(), &bnxt_family(), &ionic_family(), &ionic_v1_family(),
                          &ernic_family(), &proxy_family()})
    if (name == row->name) return *row;
  fail(XIO_ERR_CONFIG, "there is no NIC family '{}'; set XIO_NIC_FAMILY to one that `xio-info --env` lists", name);
}

}  // namespace xio::rdma
