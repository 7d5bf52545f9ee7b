// SPDX-License-Identifier: MIT
// Queue pairs that the host makes when the first op goes there (XIO_CONNECT). Until then the row of a PE names a view
// without entries, whose ring_state, shared by all such of a ctx, says that nothing was posted. An op that finds it
// asks the host and goes on by the queue pair's own view.
#pragma once
#include "xio/device/impl/ctx.hpp"
#include "xio/device/impl/deadline.hpp"
#include "xio/device/impl/ring_words.hpp"
#include "xio/device/impl/view.hpp"
#include "xio/device/platform/lanes.hpp"
#include "xio/device/platform/platform.hpp"

namespace xio::dev {

XIO_DEVICE bool is_dormant(const ring_view& r) { return r.depth == 0; }

// The view to use in place of `r`, by any lane: the queue pair's own, where it is connected by now. Kernels may hold
// the old one for long, in registers or in their scalar cache.
XIO_DEVICE const ring_view* awake(const ring_view& r) {
  if (!k_connects_late || !is_dormant(r)) return &r;
  const ring_view* own = load<scope::agent, order::acquire>(&r.rdma.dormant.ring);
  return own != nullptr ? own : &r;
}

// The words by which kernels ask the host for a queue pair. Any other one is the status for which there is none, and
// the next op asks anew. Kernels only store k_ask_wanted, perhaps late: the host repeats what it said.
constexpr u32 k_ask_none = 0, k_ask_wanted = 1, k_ask_connected = 2;

// Asks the host for a queue pair, and waits until its view is there, too: nothing is posted by this one.
XIO_DEVICE xio_status_t wait_connected(const ring_view& at, const world_view& w, u64* since) {
  u32* const ask = view_field(at.rdma.dormant.ask);
  bool asked = false;
  for (;;) {
    const u32 word = load<scope::system, order::acquire>(ask);
    if (word == k_ask_connected && awake(at) != &at) break;
    if (word > k_ask_connected && asked) return static_cast<xio_status_t>(static_cast<int>(word));
    if (const xio_status_t failure = ring_failure(at); failure != XIO_OK) return failure;  // the ctx was stopped
    if (!asked) {
      if (word != k_ask_wanted) store<scope::system, order::relaxed>(ask, k_ask_wanted);
      store<scope::system, order::release>(reinterpret_cast<u32*>(view_field(at.rdma.doorbell)), 1u);
      wake_devices();
      asked = true;
    }
    if (!deadline::in(w, since).wait_more()) return XIO_ERR_TIMEOUT;
  }
  fence<scope::system, order::acquire>();
  return XIO_OK;
}

// A leaf, called by kernels for lanes of which some have dormant views. Lanes of several rings wait for one after the
// other. `since` as in deadline::in.
struct waited {
  u64 since;
  xio_status_t status;
};
XIO_LEAF waited connect_leaf(const ring_view& ring, const world_view& w, u64 since) {
  const return_kept<> back;
  waited out{since, XIO_OK};
  for_each_address(&ring, [&] {
    const ring_view& at = uniform(ring);
    if (view_field(at.depth) != 0) return;
    if (awake(at) == &at) out.status = wait_connected(at, w, &out.since);
    // Quiet visits it from now on.
    if (out.status == XIO_OK) mark_used(*view_field(at.rdma.dormant.ctx), *awake(at));
  });
  return out;
}

}  // namespace xio::dev
