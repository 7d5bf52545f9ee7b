// SPDX-License-Identifier: MIT
// How signals are sent.
#pragma once
#include "xio/device/impl/engine_ops.hpp"
#include "xio/device/impl/forms.hpp"
#include "xio/device/impl/rma.hpp"
#include "xio/device/impl/wait.hpp"

namespace xio::dev {

struct signal_word {
  u64* at;
  u64 value;
  int op;
};

XIO_DEVICE bool is_signal_op(int op) { return op == XIO_SIGNAL_SET || op == XIO_SIGNAL_ADD; }

XIO_DEVICE xio_status_t check_signal(const xio_ctx_t& ctx, const signal_word& s, int pe, u64* offset) {
  if (ctx.view != nullptr && !is_signal_op(s.op)) return XIO_ERR_ARG;
  return check_scalar(ctx, s.at, sizeof(u64), pe, offset);
}

template <class Group>
XIO_DEVICE posted put_signal_by_engine(const Group& g, const ctx_view& c, route way, const engine_copy& data,
                                       const engine_signal_word& s, const ending& e) {
  const u32 to = e.what.pe;
  if (way == route::rdma && data.bytes >= 2 * k_piece_bytes && g.count() > 1) {
    // Every piece is posted when the signal is, on the same queue, which works in order.
    const auto* from = static_cast<const unsigned char*>(data.src);
    const posted sent = post_cut(g, c, way, data.bytes, {false, e.what}, [&](u64 at, u64 n) XIO_INLINE_LAMBDA {
      return engine_put(c, way, to, data.offset + at, from + at, n);
    });
    if (sent.status != XIO_OK) return sent;
    return by_leader(g, [&] { return finish(c, engine_signal(c, way, to, s), e); });
  }
  return by_leader(g, [&] { return finish(c, engine_put_signal(c, way, to, data, s), e); });
}

template <class Group>
XIO_DEVICE posted put_signal_mapped(const Group& g, unsigned char* to, const void* src, u64 bytes, unsigned char* sig,
                                    const signal_word& s) {
  g.sync();
  direct::copy(g, to, src, bytes);
  g.sync();
  if (g.leader()) direct::signal<order::release>(reinterpret_cast<u64*>(sig), s.value, s.op);
  return posted{0, XIO_OK};
}

template <class Group>
XIO_SLOW_PATH posted put_signal_slow(XIO_GIVEN(Group) g, XIO_GIVEN(xio_ctx_t) ctx, XIO_GIVEN(call_copy) a,
                                     XIO_GIVEN(signal_word) s, int pe, bool blocking) {
  u64 offset = 0, signal_offset = 0;
  xio_status_t status = check_copy(ctx, a.dst, a.src, a.bytes, pe, &offset);
  const bool copy = status != XIO_OK;
  if (status == XIO_OK) status = check_signal(ctx, s, pe, &signal_offset);
  // Of a refused call the part that is wrong.
  const call what = copy || status == XIO_OK ? call_of(call_kind::put_signal, a.dst, a.src, a.bytes, pe)
                                             : call_of(call_kind::put_signal, s.at, nullptr, sizeof(u64), pe);
  if (status != XIO_OK) return refuse(ctx, status, what);
  const u32 to = static_cast<u32>(pe);
  const ctx_view& c = ctx_of(ctx);
  const ending e{blocking, what};
  if (a.bytes == 0) {
    return by_leader(g, [&] { return finish(c, post_signal(ctx, to, signal_offset, s.value, s.op), e); });
  }
  const route way = choose(c, to, a.bytes, !blocking);
  if (is_posted(way))
    return put_signal_by_engine(g, c, way, {offset, a.src, a.bytes}, {signal_offset, s.value, s.op}, e);
  unsigned char* heap = c.peers[to].direct;
  return put_signal_mapped(g, heap + offset, a.src, a.bytes, heap + signal_offset, s);
}

template <class Group>
XIO_DEVICE posted put_signal(const Group& g, const xio_ctx_t& ctx, call_copy a, const signal_word& s, int pe,
                             bool blocking) {
  const mapped_place mapped = mapped_address(ctx, a.dst, a.bytes, pe);
  const mapped_place mapped_sig = mapped_scalar<u64>(ctx, s.at, pe);
  const bool bulk = !blocking && a.bytes >= ctx.bulk_bytes;
  if (!mapped.there || !mapped_sig.there || a.src == nullptr || a.bytes == 0 || bulk || !is_signal_op(s.op))
      [[unlikely]]
    return put_signal_slow(g, ctx, a, s, pe, blocking);
  return put_signal_mapped(g, mapped.bytes(), a.src, a.bytes, mapped_sig.bytes(), s);
}

XIO_SLOW_PATH xio_status_t signal_slow(XIO_GIVEN(xio_ctx_t) ctx, XIO_GIVEN(signal_word) s, int pe) {
  u64 offset = 0;
  const call what = call_of(call_kind::signal_op, s.at, nullptr, sizeof(u64), pe);
  const xio_status_t status = check_signal(ctx, s, pe, &offset);
  if (status != XIO_OK) return refuse(ctx, status, what).status;
  return finish(ctx_of(ctx), post_signal(ctx, static_cast<u32>(pe), offset, s.value, s.op), {false, what}).status;
}

XIO_DEVICE xio_status_t signal_alone(const xio_ctx_t& ctx, const signal_word& s, int pe) {
  const mapped_place mapped = mapped_scalar<u64>(ctx, s.at, pe);
  auto* at = reinterpret_cast<u64*>(mapped.at);
  if (s.op == XIO_SIGNAL_SET && direct::store_if(mapped.there, at, s.value)) [[likely]]
    return XIO_OK;
  if (!mapped.there || s.op != XIO_SIGNAL_ADD) return signal_slow(ctx, s, pe);
  fetch_add<scope::system, direct::k_flag_change>(at, s.value);
  return XIO_OK;
}

// --- Counters ----------------------------------------------------------------------------------------

XIO_DEVICE xio_status_t check_counter(const ctx_view* c, const u64* counter) {
  if (c == nullptr) return XIO_ERR_STATE;
  return counter != nullptr && (reinterpret_cast<u64>(counter) & 7) == 0 ? XIO_OK : XIO_ERR_ARG;
}

// Whether a copy engine takes this put and can reach its counter: then it counts by itself, and nobody waits.
XIO_DEVICE bool engine_counts(const ctx_view& c, u32 pe, u64 bytes, const u64* counter) {
  return k_has_sdma && choose(c, pe, bytes, true) == route::sdma && sdma::reachable(*c.world, counter, sizeof *counter);
}

// Elsewhere a counter that moves before the source is free would be a lie: so the op, a blocking one, has waited.
XIO_DEVICE xio_status_t then_count(xio_status_t status, u64* counter) {
  if (status == XIO_OK) fetch_add<scope::system, direct::k_flag_change>(counter, u64{1});
  return status;
}

XIO_DEVICE xio_status_t put_counter(const xio_ctx_t& ctx, call_copy a, u64* counter, int pe) {
  const ctx_view* c = view_of(ctx);
  u64 offset = 0;
  xio_status_t status = check_counter(c, counter);
  const call what = status == XIO_OK ? call_of(call_kind::put_counter, a.dst, a.src, a.bytes, pe)
                                     : call_of(call_kind::put_counter, counter, sizeof(u64));
  if (status == XIO_OK) status = check_copy(ctx, a.dst, a.src, a.bytes, pe, &offset);
  if (status != XIO_OK) return refuse(c, status, what).status;
  const u32 to = static_cast<u32>(pe);
  if (a.bytes != 0 && engine_counts(*c, to, a.bytes, counter))
    return finish(*c, engine_put_counter(*c, to, {offset, a.src, a.bytes}, counter), {false, what}).status;
  return then_count(put(thread_group::here(), ctx, a, pe, true).status, counter);
}

XIO_DEVICE xio_status_t put_signal_counter(const xio_ctx_t& ctx, call_copy a, const signal_word& s, u64* counter,
                                           int pe) {
  const ctx_view* c = view_of(ctx);
  u64 offset = 0, signal_offset = 0;
  xio_status_t status = check_counter(c, counter);
  call what = call_of(call_kind::put_signal_counter, counter, sizeof(u64));
  if (status == XIO_OK) {
    what = call_of(call_kind::put_signal_counter, a.dst, a.src, a.bytes, pe);
    status = check_copy(ctx, a.dst, a.src, a.bytes, pe, &offset);
  }
  if (status == XIO_OK && (status = check_signal(ctx, s, pe, &signal_offset)) != XIO_OK)
    what = call_of(call_kind::put_signal_counter, s.at, nullptr, sizeof(u64), pe);
  if (status != XIO_OK) return refuse(c, status, what).status;
  const u32 to = static_cast<u32>(pe);
  if (a.bytes != 0 && engine_counts(*c, to, a.bytes, counter)) {
    const posted p =
        engine_put_signal(*c, route::sdma, to, {offset, a.src, a.bytes}, {signal_offset, s.value, s.op}, counter);
    return finish(*c, p, {false, what}).status;
  }
  return then_count(put_signal(thread_group::here(), ctx, a, s, pe, true).status, counter);
}

}  // namespace xio::dev

// --- The calls ---------------------------------------------------------------------------------------

XIO_DEFINE_OP(xio_put_signal,
              (const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes, uint64_t* sig, uint64_t value,
               xio_signal_op_t op, int pe),
              xio::dev::put_signal, ctx, {dst, src, bytes}, {sig, value, op}, pe)

XIO_DEVICE xio_status_t xio_signal_op(const xio_ctx_t& ctx, uint64_t* sig, uint64_t value, xio_signal_op_t op, int pe) {
  return xio::dev::signal_alone(ctx, {sig, value, op}, pe);
}
XIO_DEVICE uint64_t xio_signal_fetch(const xio_ctx_t& ctx, const uint64_t* sig) {
  uint64_t found = 0;
  xio::dev::until<xio::dev::newest, uint64_t>(ctx, sig, XIO_CMP_GE, 0, &found, xio::dev::call_kind::signal_fetch);
  return found;
}
XIO_DEVICE xio_status_t xio_signal_wait_until(const xio_ctx_t& ctx, const uint64_t* sig, xio_cmp_t cmp, uint64_t value,
                                              uint64_t* seen) {
  return xio::dev::until<xio::dev::stay, uint64_t>(ctx, sig, cmp, value, seen, xio::dev::call_kind::signal_wait_until);
}

XIO_DEVICE xio_status_t xio_put_counter(const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes,
                                        uint64_t* counter, int pe) {
  return xio::dev::put_counter(ctx, {dst, src, bytes}, counter, pe);
}
XIO_DEVICE xio_status_t xio_put_signal_counter(const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes,
                                               uint64_t* sig, uint64_t value, xio_signal_op_t op, uint64_t* counter,
                                               int pe) {
  return xio::dev::put_signal_counter(ctx, {dst, src, bytes}, {sig, value, op}, counter, pe);
}
XIO_DEVICE xio_status_t xio_wait_counter(const xio_ctx_t& ctx, const uint64_t* counter, uint64_t value) {
  return xio::dev::until<xio::dev::stay, uint64_t>(ctx, counter, XIO_CMP_GE, value, nullptr,
                                                   xio::dev::call_kind::wait_counter);
}
