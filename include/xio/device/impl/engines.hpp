// SPDX-License-Identifier: MIT
// From a route to its lane, and from a ring to its codec: the only place that lists the engines. Thread scope.
// Code that posts and waits is out of line on GPUs: a kernel has one copy of each engine's code, however many ops it
// calls.
#pragma once
#include "xio/device/impl/amo.hpp"
#include "xio/device/impl/ctx.hpp"
#include "xio/device/impl/direct.hpp"
#include "xio/device/impl/rdma.hpp"
#include "xio/device/impl/reap.hpp"
#include "xio/device/impl/request.hpp"
#include "xio/device/impl/ring.hpp"
#include "xio/device/impl/sdma_lane.hpp"
#include "xio/device/impl/storage.hpp"

namespace xio::dev {

// --- Rings of any kind -------------------------------------------------------------------------------

// Whether all that was posted to a ring is complete, and nothing has failed. Three loads in one look, and no fence
// behind each: callers have one for all rings.
XIO_DEVICE bool is_quiet(const ring_view& r) {
  ring_view head{};
  head.state = view_field(r.state);
  const u32 failed = load<scope::agent, k_acquire_by_fence>(&head.state->failed);
  const u64 issued = load<scope::agent, order::relaxed>(&head.state->issued);
  return ring_completed<k_acquire_by_fence>(head) >= issued && failed == 0;
}

// Completes everything posted so far on a ring that is not quiet. All rings that a call completes have one deadline:
// the result's `since` is for the next one.
XIO_DEVICE waited quiet_ring(const ring_view& r, const world_view& w, u64 since) {
  const waited done = wait_ring(r, load<scope::agent, order::relaxed>(&view_field(r.state)->issued), w, since);
  return {done.since, done.status != XIO_OK ? done.status : ring_failure(r)};
}

// --- Requests ----------------------------------------------------------------------------------------

XIO_DEVICE xio_status_t unknown_request(const ctx_view& c) { return is_gone(c) ? XIO_ERR_STATE : XIO_ERR_ARG; }

XIO_DEVICE xio_status_t test_request(const ctx_view& c, xio_req_t request) {
  if (request == 0) return XIO_OK;
  if (is_failed_request(request)) return failed_request_status(request);
  const ring_view* r = request_ring(c, request);
  if (r == nullptr) return unknown_request(c);
  u64 ticket;
  if (!find_ticket(*r, request, &ticket)) return XIO_ERR_ARG;
  const bool drive = k_has_nvme && r->kind == ring_kind::nvme;
  if (drive)
    reap_storage_ring(*r);
  else
    reap_ring(*r);
  const xio_status_t status = drive ? storage_test(*r, request) : ring_test(*r, ticket);
  if (status == XIO_OK) fence<scope::system, order::acquire>();
  if (status == XIO_PENDING) give_way();
  return status;
}

XIO_DEVICE xio_status_t wait_request(const ctx_view& c, xio_req_t request) {
  if (request == 0) return XIO_OK;
  if (is_failed_request(request)) return failed_request_status(request);
  const ring_view* r = request_ring(c, request);
  if (r == nullptr) return unknown_request(c);
  if constexpr (k_has_nvme)
    if (r->kind == ring_kind::nvme) return storage_wait(*r, *c.world, request);
  u64 ticket;
  if (!find_ticket(*r, request, &ticket)) return XIO_ERR_ARG;
  return wait_ring(*r, ticket + 1, *c.world);
}

// --- Copies ------------------------------------------------------------------------------------------

// A copy engine that was chosen for its size alone cannot reach this local buffer, and loads and stores can.
XIO_DEVICE bool may_fall_back(const peer_view& p, route way, xio_status_t status) {
  return k_has_direct && k_has_sdma && status == XIO_ERR_NOT_REGISTERED && way != p.small && p.small == route::direct;
}

XIO_DEVICE posted engine_put(const ctx_view& c, route way, u32 pe, u64 offset, const void* src, u64 bytes) {
  posted p{0, refusal_of(way)};
  if (k_has_rdma && way == route::rdma) {
    p.status = rdma::put(c, pe, offset, src, bytes, &p.request);
  } else if (k_has_sdma && way == route::sdma) {
    p.status = sdma::put(c, pe, offset, src, bytes, &p.request);
  }
  if (may_fall_back(c.peers[pe], way, p.status)) {
    direct::move_beside<direct::source::own>(c.peers[pe].direct + offset, src, bytes);
    return posted{0, XIO_OK};
  }
  return p;
}

XIO_DEVICE posted engine_get(const ctx_view& c, route way, u32 pe, void* dst, u64 offset, u64 bytes) {
  posted p{0, refusal_of(way)};
  if (k_has_rdma && way == route::rdma) {
    p.status = rdma::get(c, pe, dst, offset, bytes, &p.request);
  } else if (k_has_sdma && way == route::sdma) {
    p.status = sdma::get(c, pe, dst, offset, bytes, &p.request);
  }
  if (may_fall_back(c.peers[pe], way, p.status)) {
    direct::move_beside<direct::source::peer>(dst, c.peers[pe].direct + offset, bytes);
    return posted{0, XIO_OK};
  }
  return p;
}

// A tile by a copy engine.
XIO_DEVICE posted engine_tile(const ctx_view& c, u32 pe, engine_rows rows) {
  posted p{0, XIO_ERR_NO_ROUTE};
  if constexpr (!k_has_sdma) return p;
  p.status = sdma::tile(c, pe, rows, &p.request);
  if (may_fall_back(c.peers[pe], route::sdma, p.status)) {
    unsigned char* remote = c.peers[pe].direct + rows.offset;
    auto* mine = static_cast<unsigned char*>(rows.local);
    unsigned char* out = rows.to_peer ? remote : mine;
    const unsigned char* in = rows.to_peer ? mine : remote;
    for (u64 i = 0; i < rows.count; ++i) {
      if (rows.to_peer)
        direct::move_beside<direct::source::own>(out + i * rows.dst_pitch, in + i * rows.src_pitch, rows.width);
      if (!rows.to_peer)
        direct::move_beside<direct::source::peer>(out + i * rows.dst_pitch, in + i * rows.src_pitch, rows.width);
    }
    return posted{0, XIO_OK};
  }
  return p;
}

// --- Signals -----------------------------------------------------------------------------------------

// The signal after its data, as one chain on one queue. counter: a local word that a copy engine adds 1 to behind them,
// or null.
XIO_DEVICE posted engine_put_signal(const ctx_view& c, route way, u32 pe, engine_copy data, engine_signal_word s,
                                    u64* counter = nullptr) {
  posted p{0, refusal_of(way)};
  if (k_has_rdma && way == route::rdma) {
    p.status = rdma::put_signal(c, pe, data, s, &p.request);
  } else if (k_has_sdma && way == route::sdma) {
    p.status = sdma::put_signal(c, pe, data, s, counter, &p.request);
  }
  unsigned char* heap = c.peers[pe].direct;
  if (may_fall_back(c.peers[pe], way, p.status)) {
    direct::move_beside<direct::source::own>(heap + data.offset, data.src, data.bytes);
    direct::signal<order::release>(reinterpret_cast<u64*>(heap + s.offset), s.value, s.op);
    if (counter != nullptr) fetch_add<scope::system, direct::k_flag_change>(counter, u64{1});
    return posted{0, XIO_OK};
  }
  return p;
}

// A put by a copy engine that adds 1 to a local word when it is done.
XIO_DEVICE posted engine_put_counter(const ctx_view& c, u32 pe, engine_copy data, u64* counter) {
  posted p{0, XIO_ERR_NO_ROUTE};
  if constexpr (!k_has_sdma) return p;
  p.status = sdma::put_counter(c, pe, data, counter, &p.request);
  if (may_fall_back(c.peers[pe], route::sdma, p.status)) {
    direct::move_beside<direct::source::own>(c.peers[pe].direct + data.offset, data.src, data.bytes);
    fetch_add<scope::system, direct::k_flag_change>(counter, u64{1});
    return posted{0, XIO_OK};
  }
  return p;
}

XIO_DEVICE posted engine_signal(const ctx_view& c, route way, u32 pe, engine_signal_word s) {
  posted p{0, refusal_of(way)};
  if (k_has_rdma && way == route::rdma) {
    p.status = rdma::signal(c, pe, s, &p.request);
  } else if (k_has_sdma && way == route::sdma) {
    p.status = sdma::signal(c, pe, s, &p.request);
  }
  return p;
}

// A signal of its own, by the way that atomics take. Offsets of the heap's head are allowed. Unordered, as an atomic.
XIO_DEVICE posted post_signal(const xio_ctx_t& ctx, u32 pe, u64 offset, u64 value, int op) {
  const mapped_place mapped = mapped_arena(ctx, pe);
  unsigned char* heap = mapped_head(mapped);
  if (!mapped.there) {
    const ctx_view& c = ctx_of(ctx);
    const peer_view& peer = c.peers[pe];
    if (is_posted(peer.atomic)) return engine_signal(c, peer.atomic, pe, {offset, value, op});
    heap = peer.direct;
  }
  direct::signal<direct::k_flag_change>(reinterpret_cast<u64*>(heap + offset), value, op);
  return posted{0, XIO_OK};
}

// --- Scalars -----------------------------------------------------------------------------------------

// Copy engines have no scalar ops. The memory that they reach is mapped, so loads and stores do these.
XIO_DEVICE bool scalar_is_direct(const peer_view& p, route way) {
  return k_has_direct && (way == route::direct || (way == route::sdma && p.direct != nullptr));
}

XIO_DEVICE xio_status_t engine_put_value(const ctx_view& c, route way, u32 pe, u64 offset, u64 value, u32 width) {
  xio_req_t request = 0;
  return k_has_rdma && way == route::rdma ? rdma::put_value(c, pe, offset, value, width, &request) : refusal_of(way);
}

XIO_DEVICE xio_status_t engine_get_value(const ctx_view& c, route way, u32 pe, u64 offset, u32 width, u64* value) {
  return k_has_rdma && way == route::rdma ? rdma::get_value(c, pe, offset, width, value) : refusal_of(way);
}

XIO_DEVICE xio_status_t engine_atomic(const ctx_view& c, route way, u32 pe, engine_change change, bool fetch,
                                      u64* old) {
  if (!k_has_rdma || way != route::rdma) return refusal_of(way);
  return rdma::atomic(c, pe, change, fetch, old);
}

// Adds a ring to what a call has waited for so far; the first failure stays. Fences and quiets have nothing to do with
// queues to PEs that were excluded. When one has taken all the time, the others are left as they are: they are not
// late.
XIO_DEVICE void quiet_next(const ring_view& r, const world_view& w, waited* all) {
  if (is_quiet(r)) [[likely]]
    return;
  if (all->status == XIO_ERR_TIMEOUT) return;
  const waited one = quiet_ring(r, w, all->since);
  *all = {one.since, all->status != XIO_OK || is_excluded(one.status) ? all->status : one.status};
}

// All queue pairs and copy queues of a PE.
XIO_DEVICE void quiet_queues(const peer_view& p, const world_view& w, waited* all) {
  for (u32 i = 0; p.rdma != nullptr && i < p.rdma_count; ++i) quiet_next(*awake(p.rdma[i]), w, all);
  for (u32 i = 0; p.sdma != nullptr && i < p.sdma_count; ++i) quiet_next(p.sdma[i], w, all);
}

// Whether ops of one kind to this PE may travel beside each other on different engines or queues.
XIO_DEVICE bool takes_several_ways(const peer_view& p) {
  const bool copies = p.small == route::sdma || p.bulk == route::sdma || p.atomic == route::sdma;
  const bool queues = p.rdma != nullptr && p.rdma_count > 1;
  return queues || copies || p.small != p.bulk || p.small != p.atomic;
}

}  // namespace xio::dev
