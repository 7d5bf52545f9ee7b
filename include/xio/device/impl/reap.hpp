// SPDX-License-Identifier: MIT
// Draining the completions of a ring of any kind.
#pragma once
#include "xio/device/impl/dormant.hpp"
#include "xio/device/impl/families.hpp"
#include "xio/device/impl/nvme.hpp"
#include "xio/device/impl/ring.hpp"
#include "xio/device/impl/sdma.hpp"
#include "xio/device/impl/selection.hpp"
#include "xio/device/impl/view.hpp"
#include "xio/device/platform/platform.hpp"

namespace xio::dev {

// Fetches completions of a ring that works in order. The view is read again for it, as far as the ring's kind needs it:
// held in registers for as long as a leaf waits, what all kinds need is more than a wave has.
XIO_DEVICE u64 drain_again(const ring_view& ring, ring_kind kind, u64 completed) {
  if constexpr (k_has_sdma)
    if (!k_has_rdma || kind == ring_kind::sdma)
      return sdma_codec::drain(ring_in_registers<sdma_codec>(again(ring)), completed);
  if constexpr (k_has_rdma)
    return rdma::with_kind(kind, [&](auto family) XIO_INLINE_LAMBDA {
      using family_codec = decltype(family);
      return family_codec::drain(ring_in_registers<family_codec>(again(ring)), completed);
    });
  return completed;
}

// The one place in a kernel that fetches completions of such rings, and waits for them; see ring_wait_for. Lanes of
// several rings wait for one after the other: a wave goes on when all of its lanes do.
XIO_LEAF waited wait_leaf(const ring_view& ring, const world_view* w, u64 upto, u32 slots, u64 since) {
  const return_kept<true> back;
  waited out{since, XIO_OK};
  for_each_address(&ring, [&] {
    const ring_view* at = &uniform(ring);
    ring_view r = head_in_registers(*at);
    if (r.kind == ring_kind::none) return;
    if constexpr (k_has_rdma && k_connects_late)
      if (r.depth == 0) [[unlikely]] {
        at = &uniform(*awake(*at));
        r = head_in_registers(*at);
        if (r.depth == 0) return;
      }
    out.status = ring_wait_for<k_has_sdma>(r, w, upto, slots, &out.since,
                                           [&](u64 completed) { return drain_again(*at, r.kind, completed); });
  });
  return out;
}

// Waits until every ticket below `upto` is complete. `since`: when the call began to wait, see deadline::in.
XIO_DEVICE waited wait_ring(const ring_view& r, u64 upto, const world_view& w, u64 since) {
  return wait_leaf(r, &w, upto, 0, since);
}
XIO_DEVICE xio_status_t wait_ring(const ring_view& r, u64 upto, const world_view& w) {
  return wait_ring(r, upto, w, 0).status;
}

XIO_DEVICE xio_status_t find_room(const ring_view& r, u32 slots, const world_view& w, u64* since) {
  const waited done = wait_leaf(r, &w, 0, slots, *since);
  *since = done.since;
  return done.status;
}

XIO_DEVICE void reap_storage_ring(const ring_view& r) { ring_reap<shared_nvme_codec>(r); }

XIO_DEVICE void reap_ring(const ring_view& r) { wait_leaf(r, nullptr, 0, k_drain_once, 0); }

}  // namespace xio::dev
