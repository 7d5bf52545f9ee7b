// SPDX-License-Identifier: MIT
// The NIC families that the RDMA lane speaks. The host chose one when it made the ring; here that is one jump per post
// and per reap, the same for all lanes of a ring. (Pointers to device functions would cost more: the compiler must then
// assume the most registers of all.)
#pragma once
#include "xio/device/bnxt.hpp"
#include "xio/device/ernic.hpp"
#include "xio/device/ionic.hpp"
#include "xio/device/mlx5.hpp"
#include "xio/device/proxy.hpp"
#include "xio/device/view.hpp"

namespace xio::dev::rdma {

XIO_DEVICE bool is_nic(ring_kind kind) { return kind == ring_kind::mlx5 || kind >= ring_kind::bnxt; }

// body(codec), a value of the family's codec type, which is empty.
template <class Body>
XIO_DEVICE auto with_family(const ring_view& r, Body&& body) {
  // A jump by a table waits for the table.
  if (r.kind == ring_kind::mlx5) [[likely]]
    return body(mlx5_codec{});
  switch (r.kind) {
    case ring_kind::bnxt: return body(bnxt_codec{});
    case ring_kind::ionic: return body(ionic_codec{});
    case ring_kind::ernic: return body(ernic_codec{});
    default: return body(proxy_codec{});
  }
}

}  // namespace xio::dev::rdma
