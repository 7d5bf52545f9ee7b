// SPDX-License-Identifier: MIT
// The queues of a ctx as a wait on a word sees them: drained now and then, for an op that failed may be what the word
// waits for. Thread scope.
#pragma once
#include "xio/device/impl/ctx.hpp"
#include "xio/device/impl/reap.hpp"
#include "xio/device/impl/ring.hpp"
#include "xio/device/impl/view.hpp"

namespace xio::dev {

// Waits are written for a ctx and for its view.
XIO_DEVICE const ctx_view& whole_ctx(const ctx_view& c) { return c; }
XIO_DEVICE const ctx_view& whole_ctx(const xio_ctx_t& ctx) { return ctx_of(ctx); }

// Fetches completions, if any are outstanding; the failure of the ring.
template <class Reap>
XIO_DEVICE xio_status_t drain_one(const ring_view& r, Reap&& reap) {
  if (ring_completed<order::relaxed>(r) != load<scope::agent, order::relaxed>(&r.state->issued)) reap(r);
  return ring_failure(r);
}

XIO_DEVICE xio_status_t drain_storages(const ctx_view& c) {
  if constexpr (!k_has_nvme) return XIO_OK;
  const u32 used = load<scope::agent, order::relaxed>(&c.storages_used);
  for (u32 left = used; left != 0; left &= left - 1) {
    const storage_view& s = c.world->storages[lowest_bit(left)];
    for (u32 q = 0; s.live != 0 && q < s.queue_count; ++q)
      // No pointer to the leaf: a compiler does not know then who calls it.
      if (const xio_status_t failure = drain_one(s.queues[q], [](const ring_view& r) { reap_storage_ring(r); });
          failure != XIO_OK)
        return failure;
  }
  return XIO_OK;
}

// Drains every queue that the ctx has posted to; the failure of one that has failed. An op of a drive that failed by
// itself is no failure of its queue, and queues to excluded PEs are nobody's business.
XIO_DEVICE xio_status_t drain_own(const ctx_view& c) {
  xio_status_t first = XIO_OK;
  for_used_rings(c, [&](const ring_view& q) {
    const xio_status_t failure = drain_one(q, [](const ring_view& r) { reap_ring(r); });
    if (first == XIO_OK && !is_excluded(failure)) first = failure;
  });
  return first != XIO_OK ? first : drain_storages(c);
}

// Which queues a waiting loop drains, and whose failure ends it. k_own_timeout: the loop ends by the call's own
// deadline, where the ctx has one. A wait on a word does so for calls on a stream alone (timed_queues): it costs
// registers.
struct own_queues {
  static constexpr bool k_own_timeout = false;
  template <class Ctx>
  XIO_DEVICE xio_status_t operator()(const Ctx& c) const {
    return drain_own(whole_ctx(c));
  }
};
struct timed_queues : own_queues {
  static constexpr bool k_own_timeout = true;
};
struct no_queues {
  static constexpr bool k_own_timeout = true;
};

}  // namespace xio::dev
