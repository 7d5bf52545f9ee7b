// SPDX-License-Identifier: MIT
// The families that software NICs have strict decoders for.
#pragma once
#include "proxy/family.hpp"

namespace xio::model::rdma {

using proxy::family;

const family& mlx5_family();
const family& mlx5_cq_family();     // with an ordinary completion queue
const family& mlx5_nodbr_family();  // without a doorbell record: QPC send_dbr_mode = 1, NO_DBR_EXT
const family& bnxt_family();
const family& ionic_family();     // firmware v2 opcodes
const family& ionic_v1_family();  // firmware v1
const family& ernic_family();     // the legacy personality

}  // namespace xio::model::rdma
