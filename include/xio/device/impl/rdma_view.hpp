// SPDX-License-Identifier: MIT
// The fields of a queue pair's view that all NIC families have, in registers: what their codecs' take_view begins with.
#pragma once
#include "xio/device/impl/view.hpp"
#include "xio/device/platform/platform.hpp"

namespace xio::dev::rdma {

XIO_DEVICE void take_view(const ring_view& from, ring_view* to) {
  const rdma_ring& at = from.rdma;
  rdma_ring& r = to->rdma;
  r.remote_heap = view_field(at.remote_heap);
  r.remote_key = view_field(at.remote_key);
  r.scratch_lkey = view_field(at.scratch_lkey);
  r.inline_bytes = view_field(at.inline_bytes);
  r.gather_bytes = view_field(at.gather_bytes);
  r.depth_log2 = view_field(at.depth_log2);
  r.nic = view_field(at.nic);
  r.atomics = view_field(at.atomics);
  r.doorbell = view_field(at.doorbell);
  r.completions = view_field(at.completions);
  r.cq_depth = view_field(at.cq_depth);
  r.cq_depth_log2 = view_field(at.cq_depth_log2);
}

}  // namespace xio::dev::rdma
