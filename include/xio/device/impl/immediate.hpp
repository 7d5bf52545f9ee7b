// SPDX-License-Identifier: MIT
// How immediates are sent and taken.
#pragma once
#include "xio/device/impl/forms.hpp"
#include "xio/device/impl/inbox.hpp"
#include "xio/device/impl/rma.hpp"
#include "xio/device/impl/wait.hpp"

namespace xio::dev {

// --- Sending -----------------------------------------------------------------------------------------

// By a store: what went before is in the peer's memory already.
XIO_DEVICE posted put_immediate_alone(const ctx_view& c, u32 pe, u32 immediate) {
  unsigned char* inbox = c.peers[pe].direct + inbox_offset(c, c.world->my_pe);
  const xio_status_t status = poll_flag(c, [&] { return inbox_drop(inbox, c.inbox_entries, immediate); });
  return posted{0, status};
}

// By one lane. A NIC does it all by itself; behind a copy engine the sender waits and stores.
XIO_DEVICE posted engine_put_immediate(const ctx_view& c, route way, u32 pe, engine_copy data, u32 immediate) {
  if (k_has_rdma && way == route::rdma) {
    posted p{0, XIO_OK};
    p.status = rdma::put_immediate(c, pe, data, immediate, &p.request);
    return p;
  }
  posted p{0, is_excluded(way) ? XIO_ERR_PEER : XIO_OK};
  if (data.bytes != 0) p = engine_put(c, way, pe, data.offset, data.src, data.bytes);
  if (p.status == XIO_OK) p.status = wait_request(c, p.request);
  return p.status == XIO_OK ? put_immediate_alone(c, pe, immediate) : posted{0, p.status};
}

template <class Group>
XIO_DEVICE posted put_immediate(const Group& g, const xio_ctx_t& ctx, call_copy a, u32 immediate, int pe,
                                bool blocking) {
  const ctx_view* c = view_of(ctx);
  u64 offset = 0;
  xio_status_t status = check_copy(ctx, a.dst, a.src, a.bytes, pe, &offset);
  if (status == XIO_OK && c->inbox_entries == 0) status = XIO_ERR_UNSUPPORTED;
  const call what = call_of(call_kind::put_imm, a.dst, a.src, a.bytes, pe);
  const ending e{blocking, what};
  if (status != XIO_OK) return refuse(c, status, what);
  const u32 to = static_cast<u32>(pe);
  const route way = choose(*c, to, a.bytes, !blocking);
  if (way == route::rdma && a.bytes >= 2 * k_piece_bytes && g.count() > 1) {
    // Every piece is posted when the immediate is, on the same queue, which works in order.
    const auto* from = static_cast<const unsigned char*>(a.src);
    const posted data = post_cut(g, *c, way, a.bytes, {false, what}, [&](u64 at, u64 n) XIO_INLINE_LAMBDA {
      return engine_put(*c, way, to, offset + at, from + at, n);
    });
    if (data.status != XIO_OK) return data;
    return by_leader(g, [&] { return finish(*c, engine_put_immediate(*c, way, to, {}, immediate), e); });
  }
  if (is_posted(way)) {
    const engine_copy all{offset, a.src, a.bytes};
    return by_leader(g, [&] { return finish(*c, engine_put_immediate(*c, way, to, all, immediate), e); });
  }
  g.sync();
  if (a.bytes != 0) direct::copy(g, c->peers[to].direct + offset, a.src, a.bytes);
  return by_leader(g, [&] { return finish(*c, put_immediate_alone(*c, to, immediate), e); });
}

// --- Taking ------------------------------------------------------------------------------------------

XIO_DEVICE xio_status_t check_inbox(const ctx_view* c, int pe, const u32* immediate) {
  if (c == nullptr) return XIO_ERR_STATE;
  if (static_cast<u32>(pe) >= c->world->n_pes) return XIO_ERR_PE;
  if (immediate == nullptr) return XIO_ERR_ARG;
  return c->inbox_entries == 0 ? XIO_ERR_UNSUPPORTED : XIO_OK;
}

// The first failure of the queue pairs to a PE.
XIO_DEVICE xio_status_t link_failure(const peer_view& p) {
  for (u32 i = 0; p.rdma != nullptr && i < p.rdma_count; ++i) {
    const ring_view& r = *awake(p.rdma[i]);
    reap_ring(r);
    if (const xio_status_t failure = ring_failure(r); failure != XIO_OK) return failure;
  }
  return XIO_OK;
}

XIO_DEVICE xio_status_t poll_immediate(const xio_ctx_t& ctx, int pe, u32* immediate, bool waits) {
  const ctx_view* c = view_of(ctx);
  const xio_status_t wrong = check_inbox(c, pe, immediate);
  const call_kind kind = waits ? call_kind::imm_wait : call_kind::test_imm;
  if (wrong != XIO_OK) return refuse(c, wrong, call_of(kind, nullptr, nullptr, 0, pe)).status;
  unsigned char* inbox = c->world->heap + inbox_offset(*c, static_cast<u32>(pe));
  const auto take = [&] { return inbox_poll(inbox, c->inbox_entries, immediate); };
  if (!waits) return poll_once{}(ctx, take);
  xio_status_t failure = XIO_OK;
  const auto come = [&] {
    if (take()) return true;
    failure = link_failure(c->peers[pe]);
    return failure != XIO_OK;
  };
  const xio_status_t status = poll<0>(ctx, come, [&](u64 since) {
    record_wait({kind, static_cast<u32>(pe), inbox, 0, 0, 0, 0, 0}, *c, since);
    return XIO_ERR_TIMEOUT;
  });
  return failure != XIO_OK ? failure : status;
}

}  // namespace xio::dev

XIO_DEFINE_OP(xio_put_imm, (const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes, uint32_t immediate, int pe),
              xio::dev::put_immediate, ctx, {dst, src, bytes}, immediate, pe)
XIO_DEVICE xio_status_t xio_imm_test(const xio_ctx_t& ctx, uint32_t* immediate, int pe) {
  return xio::dev::poll_immediate(ctx, pe, immediate, false);
}
XIO_DEVICE xio_status_t xio_imm_wait(const xio_ctx_t& ctx, uint32_t* immediate, int pe) {
  return xio::dev::poll_immediate(ctx, pe, immediate, true);
}
