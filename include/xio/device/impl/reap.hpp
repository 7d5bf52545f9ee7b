// SPDX-License-Identifier: MIT
// Draining the completions of a ring of any kind.
#pragma once
#include "xio/device/impl/families.hpp"
#include "xio/device/impl/nvme.hpp"
#include "xio/device/impl/ring.hpp"
#include "xio/device/impl/sdma.hpp"
#include "xio/device/impl/selection.hpp"
#include "xio/device/impl/view.hpp"
#include "xio/device/platform/platform.hpp"

namespace xio::dev {

// The completions of a ring that works in order, by the thread that may drain it: the one copy of that code in a
// kernel.
XIO_LEAF u64 drain_ring(const ring_view& ring, u64 completed) {
  u64 now = completed;
  for_each_address(&ring, [&] {
    const ring_view r = ring_in_registers(ring);
    if (rdma::is_nic(r.kind)) now = rdma::nic_codec::drain(r, completed);
    if constexpr (k_has_sdma)
      if (r.kind == ring_kind::sdma) now = sdma_codec::drain(r, completed);
  });
  return now;
}

// Any ring in order, for threads that wait.
struct any_codec {
  static constexpr bool k_in_order = true;
  XIO_DEVICE static u64 drain(const ring_view& r, u64 completed) { return drain_ring(r, completed); }
};

XIO_OUT_OF_LINE void reap_storage_ring(const ring_view& r) { ring_reap<nvme_codec>(r); }

XIO_OUT_OF_LINE void reap_by_kind(const ring_view& r) {
  if (rdma::is_nic(r.kind)) {
    rdma::with_family(r, [&](auto family) { ring_reap<decltype(family)>(r); });
  } else if (k_has_sdma && r.kind == ring_kind::sdma) {
    ring_reap<sdma_codec>(r);
  } else if (k_has_nvme && r.kind == ring_kind::nvme) {
    ring_reap<nvme_codec>(r);
  }
}

XIO_DEVICE void reap_ring(const ring_view& r) {
  if constexpr (k_reaps_by_kind) {
    reap_by_kind(r);
  } else {
    ring_reap<any_codec>(r);
  }
}

}  // namespace xio::dev
