// SPDX-License-Identifier: MIT
// The lane of copy engines: a ctx's ops by the queues of its peers.
#pragma once
#include "xio/device/impl/ctx.hpp"
#include "xio/device/impl/engine_ops.hpp"
#include "xio/device/impl/reap.hpp"
#include "xio/device/impl/sdma.hpp"
#include "xio/device/impl/view.hpp"
#include "xio/device/platform/platform.hpp"
#include "xio/xio.h"

namespace xio::dev::sdma {

// By the wait that a kernel with a ctx's ops has anyhow.
struct waits_with_all {
  XIO_DEVICE static xio_status_t find_room(const ring_view& r, u32 slots, const world_view& w, u64* since) {
    return dev::find_room(r, slots, w, since);
  }
};

// The caller's queue for a peer that has any; to be posted to: used_queue.
XIO_DEVICE const ring_view& queue_to(const peer_view& p) {
  return p.sdma[p.sdma_count == 1 ? 0 : workgroup_index() & (p.sdma_count - 1u)];
}
XIO_DEVICE const ring_view& used_queue(const ctx_view& c, const peer_view& p) {
  const ring_view& r = queue_to(p);
  mark_used(c, r);
  return r;
}

// Copies between any two addresses that the engine reaches, of any length and alignment. 0 bytes: nothing.
template <direct::source From = direct::source::peer>
XIO_DEVICE xio_status_t copy(const ctx_view& c, const ring_view& r, void* dst, const void* src, u64 bytes,
                             xio_req_t* request) {
  if (request != nullptr) *request = 0;
  if (bytes == 0) return XIO_OK;
  return post<From, waits_with_all>(
      *c.world, r, chain{reinterpret_cast<u64>(dst), reinterpret_cast<u64>(src), bytes, 0, 0, 0, 0}, request);
}

// Local src to `offset` of the peer's heap, whose bounds the caller has checked.
XIO_DEVICE xio_status_t put(const ctx_view& c, u32 pe, u64 offset, const void* src, u64 bytes, xio_req_t* request) {
  const peer_view& p = c.peers[pe];
  if (p.sdma == nullptr || p.direct == nullptr) return XIO_ERR_NO_ROUTE;
  if (bytes != 0 && !reachable(*c.world, src, bytes)) return XIO_ERR_NOT_REGISTERED;
  return copy<direct::source::own>(c, used_queue(c, p), p.direct + offset, src, bytes, request);
}

XIO_DEVICE xio_status_t get(const ctx_view& c, u32 pe, void* dst, u64 offset, u64 bytes, xio_req_t* request) {
  const peer_view& p = c.peers[pe];
  if (p.sdma == nullptr || p.direct == nullptr) return XIO_ERR_NO_ROUTE;
  if (bytes != 0 && !reachable(*c.world, dst, bytes)) return XIO_ERR_NOT_REGISTERED;
  return copy(c, used_queue(c, p), dst, p.direct + offset, bytes, request);
}

// put, then a set or add of a 64-bit word of the same heap, then 1 more on a local 64-bit counter, or null. Signal and
// count become visible after the data: all are in one queue, and ATOMIC waits for what is before it.
XIO_DEVICE xio_status_t put_signal(const ctx_view& c, u32 pe, const engine_copy& data, const engine_signal_word& s,
                                   u64* counter, xio_req_t* request) {
  const peer_view& p = c.peers[pe];
  if (p.sdma == nullptr || p.direct == nullptr) return XIO_ERR_NO_ROUTE;
  if (!signal_fits(s.offset, s.op)) return XIO_ERR_ARG;
  if (data.bytes != 0 && !reachable(*c.world, data.src, data.bytes)) return XIO_ERR_NOT_REGISTERED;
  const chain all{reinterpret_cast<u64>(p.direct + data.offset),
                  reinterpret_cast<u64>(data.src),
                  data.bytes,
                  reinterpret_cast<u64>(p.direct + s.offset),
                  s.value,
                  reinterpret_cast<u64>(counter),
                  s.op};
  return post<direct::source::own, waits_with_all>(*c.world, used_queue(c, p), all, request);
}

// put, then 1 more on a local counter that engines reach.
XIO_DEVICE xio_status_t put_counter(const ctx_view& c, u32 pe, const engine_copy& data, u64* counter,
                                    xio_req_t* request) {
  const peer_view& p = c.peers[pe];
  if (p.sdma == nullptr || p.direct == nullptr) return XIO_ERR_NO_ROUTE;
  if (data.bytes != 0 && !reachable(*c.world, data.src, data.bytes)) return XIO_ERR_NOT_REGISTERED;
  const chain all{reinterpret_cast<u64>(p.direct + data.offset),
                  reinterpret_cast<u64>(data.src),
                  data.bytes,
                  0,
                  0,
                  reinterpret_cast<u64>(counter),
                  0};
  return post<direct::source::own, waits_with_all>(*c.world, used_queue(c, p), all, request);
}

// The signal alone, after everything that was posted to the ring before.
XIO_DEVICE xio_status_t signal(const ctx_view& c, u32 pe, const engine_signal_word& s, xio_req_t* request) {
  return put_signal(c, pe, {0, nullptr, 0}, s, nullptr, request);
}

// A tile between local memory and the peer's heap.
XIO_DEVICE xio_status_t tile(const ctx_view& c, u32 pe, const engine_rows& rows, xio_req_t* request) {
  const peer_view& p = c.peers[pe];
  if (p.sdma == nullptr || p.direct == nullptr) return XIO_ERR_NO_ROUTE;
  if (!reachable(*c.world, rows.local, rows.local_span())) return XIO_ERR_NOT_REGISTERED;
  const u64 local = reinterpret_cast<u64>(rows.local), remote = reinterpret_cast<u64>(p.direct + rows.offset);
  const area all{rows.to_peer ? remote : local,
                 rows.dst_pitch,
                 rows.to_peer ? local : remote,
                 rows.src_pitch,
                 rows.width,
                 rows.count};
  return post_area(*c.world, used_queue(c, p), all, request);
}

}  // namespace xio::dev::sdma
