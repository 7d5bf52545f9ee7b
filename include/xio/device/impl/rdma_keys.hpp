// SPDX-License-Identifier: MIT
// Keys of local memory, which a NIC wants beside its address.
#pragma once
#include "xio/device/impl/view.hpp"
#include "xio/device/platform/platform.hpp"
#include "xio/xio.h"

namespace xio::dev::rdma {

XIO_DEVICE bool region_holds(const region_view& row, u64 at, u64 bytes) {
  return load<scope::system, order::acquire>(&row.live) != 0 && at >= row.base && at - row.base <= row.bytes &&
         bytes <= row.bytes - (at - row.base);
}

struct key_found {
  u32 lkey;
  xio_status_t status;
};

// Finds the key of NIC `nic` for [p, p + bytes). The heap is row 0, and nearly always the region that contains it.
XIO_DEVICE key_found find_key(const world_view& w, u32 nic, const void* p, u64 bytes) {
  const u64 at = reinterpret_cast<u64>(p);
  XIO_ROLLED for (u32 i = 0; i < k_max_regions; ++i) {
    if (region_holds(w.regions[i], at, bytes)) return key_found{w.regions[i].lkey[nic], XIO_OK};
  }
  return key_found{0, XIO_ERR_NOT_REGISTERED};
}

}  // namespace xio::dev::rdma
