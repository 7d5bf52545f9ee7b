// SPDX-License-Identifier: MIT
// How put, get, scalars and rows are done.
#pragma once
#include <type_traits>

#include "xio/device/impl/engines.hpp"
#include "xio/device/impl/forms.hpp"
#include "xio/device/impl/hdp.hpp"
#include "xio/device/impl/scope.hpp"

namespace xio::dev {

// A copy as a call names it: one side lies in this PE's memory, the other is a symmetric address of a PE. It travels by
// value: clang 15 optimizes functions before it inlines them, and a reference is memory then that stores may change.
struct call_copy {
  void* dst;
  const void* src;
  u64 bytes;
};

// A refused op: the ctx keeps it, and both the status and the request say why.
XIO_DEVICE posted refuse(const ctx_view* c, xio_status_t status, const call& what) {
  if (c != nullptr) status = ctx_fail(*c, status, what);
  return posted{failed_request(status), status};
}
XIO_DEVICE posted refuse(const xio_ctx_t& ctx, xio_status_t status, const call& what) {
  return refuse(view_of(ctx), status, what);
}

// How an op ends once an engine has it: whether the caller waits, and the call of which a failure is kept.
struct ending {
  bool blocking;
  const call& what;
};

// Finishes what an engine was given.
XIO_DEVICE posted finish(const ctx_view& c, posted p, const ending& e) {
  if (p.status == XIO_OK && e.blocking) {
    p.status = wait_request(c, p.request);
    p.request = 0;
  }
  return p.status == XIO_OK ? p : refuse(&c, p.status, e.what);
}

// After a blocking get by way of a NIC: makes visible what the NIC wrote. Collective, like the call that returned `p`.
template <class Group>
XIO_DEVICE posted finish_visible(const Group& g, const ctx_view& c, route way, const posted& p, const ending& e) {
  if (!hdp_is_on(c) || !e.blocking || way != route::rdma || p.status != XIO_OK) return p;
  return by_leader(g, [&] { return finish(c, posted{0, hdp_flush(c)}, {false, e.what}); });
}

// The checks that put and get share.
XIO_DEVICE xio_status_t check_copy(const xio_ctx_t& ctx, const void* symmetric, const void* local, u64 bytes, int pe,
                                   u64* offset) {
  if (ctx.view == nullptr) return XIO_ERR_STATE;
  if (bytes == 0) {
    if (static_cast<u32>(pe) >= ctx.n_pes) return XIO_ERR_PE;
    return is_excluded(ctx_of(ctx).peers[pe].small) ? XIO_ERR_PEER : XIO_OK;
  }
  if (local == nullptr) return XIO_ERR_ARG;
  return check_target(ctx, symmetric, bytes, pe, offset);
}

// Bytes that one lane of a wave posts at least when a copy is cut over the lanes: enough that the entry costs nothing
// beside its data.
constexpr u64 k_piece_bytes = 64 << 10;

// A NIC's copy by a group goes out from many lanes at once, as one batch with one doorbell; other engines, and what is
// too small to be cut, from one lane. post(at, n) posts n bytes from byte `at` on.
template <class Group, class Post>
XIO_DEVICE posted post_cut(const Group& g, const ctx_view& c, route way, u64 bytes, const ending& e, Post&& post) {
  u64 pieces = bytes / k_piece_bytes;
  const u64 most = g.count() < wave_size() ? g.count() : wave_size();
  if (pieces > most) pieces = most;
  if (way != route::rdma || pieces < 2) {
    return by_leader(g, [&] { return finish(c, post(u64{0}, bytes), e); });
  }
  const u64 each = bytes / pieces / 128 * 128;
  const posted p = by_lanes(g, static_cast<u32>(pieces), [&](u32 i) {
    const u64 at = i * each;
    return post(at, i + 1 == pieces ? bytes - at : each);
  });
  return by_leader(g, [&] { return finish(c, p, e); });
}

// The slow path of put: copies that are not mere loads and stores to a mapped peer of the ctx itself, and wrong calls.
template <class Group>
XIO_SLOW_PATH posted put_slow(XIO_GIVEN(Group) g, XIO_GIVEN(xio_ctx_t) ctx, XIO_GIVEN(call_copy) a, int pe,
                              bool blocking) {
  u64 offset = 0;
  const call what = call_of(call_kind::put, a.dst, a.src, a.bytes, pe);
  const xio_status_t status = check_copy(ctx, a.dst, a.src, a.bytes, pe, &offset);
  if (status != XIO_OK) return refuse(ctx, status, what);
  if (a.bytes == 0) return posted{0, XIO_OK};
  const ctx_view& c = ctx_of(ctx);
  const u32 to = static_cast<u32>(pe);
  const route way = choose(c, to, a.bytes, !blocking);
  if (is_posted(way)) {
    const auto* from = static_cast<const unsigned char*>(a.src);
    return post_cut(g, c, way, a.bytes, {blocking, what},
                    [&](u64 at, u64 n) XIO_INLINE_LAMBDA { return engine_put(c, way, to, offset + at, from + at, n); });
  }
  g.sync();
  direct::copy(g, c.peers[to].direct + offset, a.src, a.bytes);
  g.sync();
  return posted{0, XIO_OK};
}

// An aligned word by one thread, as most small messages are; false where it is something else, or does not go by loads
// and stores. By predicates, where the platform has them: the word is on its way while the rest is looked at, and the
// store waits for no branch (docs/performance.md).
XIO_DEVICE bool put_word(const xio_ctx_t& ctx, call_copy a, int pe, bool blocking) {
  const u64 from = reinterpret_cast<u64>(a.src);
  const bool peer = bit_of(ctx.mapped_mask, static_cast<u32>(pe) - ctx.mapped_first);
  const int word = static_cast<int>(a.bytes == 8) & static_cast<int>((from & 7) == 0) & static_cast<int>(from != 0) &
                   static_cast<int>(peer);
  // The mask changes nothing: it keeps the compiler from fetching the address once more, of all places in between.
  const u64 value = load_any_if(word != 0, reinterpret_cast<const void*>(from & ~u64{7}));
  const mapped_place mapped = mapped_scalar<u64>(ctx, a.dst, pe);
  const int small = static_cast<int>(blocking) | static_cast<int>(ctx.bulk_bytes > 8);
  return direct::store_if((word & small & static_cast<int>(mapped.there)) != 0, reinterpret_cast<u64*>(mapped.at),
                          value);
}

template <class Group>
XIO_DEVICE posted put(const Group& g, const xio_ctx_t& ctx, call_copy a, int pe, bool blocking) {
  if constexpr (k_has_predicates && std::is_same_v<Group, thread_group>) {
    if (put_word(ctx, a, pe, blocking)) [[likely]]
      return posted{0, XIO_OK};
  }
  const mapped_place mapped = mapped_address(ctx, a.dst, a.bytes, pe);
  if (!mapped.there || a.src == nullptr || (!blocking && a.bytes >= ctx.bulk_bytes)) [[unlikely]]
    return put_slow(g, ctx, a, pe, blocking);
  g.sync();
  direct::copy(g, mapped.bytes(), a.src, a.bytes);
  g.sync();
  return posted{0, XIO_OK};
}

template <class Group>
XIO_SLOW_PATH posted get_slow(XIO_GIVEN(Group) g, XIO_GIVEN(xio_ctx_t) ctx, XIO_GIVEN(call_copy) a, int pe,
                              bool blocking) {
  u64 offset = 0;
  const call what = call_of(call_kind::get, a.src, a.dst, a.bytes, pe);
  const xio_status_t status = check_copy(ctx, a.src, a.dst, a.bytes, pe, &offset);
  if (status != XIO_OK) return refuse(ctx, status, what);
  if (a.bytes == 0) return posted{0, XIO_OK};
  const ctx_view& c = ctx_of(ctx);
  const u32 from = static_cast<u32>(pe);
  const route way = choose(c, from, a.bytes, !blocking);
  if (is_posted(way)) {
    auto* into = static_cast<unsigned char*>(a.dst);
    const ending e{blocking, what};
    const posted p = post_cut(g, c, way, a.bytes, e, [&](u64 at, u64 n) XIO_INLINE_LAMBDA {
      return engine_get(c, way, from, into + at, offset + at, n);
    });
    return finish_visible(g, c, way, p, e);
  }
  g.sync();
  direct::fetch(g, a.dst, c.peers[from].direct + offset, a.bytes);
  g.sync();
  return posted{0, XIO_OK};
}

template <class Group>
XIO_DEVICE posted get(const Group& g, const xio_ctx_t& ctx, call_copy a, int pe, bool blocking) {
  if constexpr (std::is_same_v<Group, thread_group>) give_way();
  const mapped_place mapped = mapped_address(ctx, a.src, a.bytes, pe);
  if (!mapped.there || a.dst == nullptr || (!blocking && a.bytes >= ctx.bulk_bytes)) [[unlikely]]
    return get_slow(g, ctx, a, pe, blocking);
  g.sync();
  direct::fetch(g, a.dst, mapped.bytes(), a.bytes);
  g.sync();
  return posted{0, XIO_OK};
}

// --- Rows: tiles and strides -------------------------------------------------------------------------

// Bytes from the first byte of the first row to the last of the last; false if that is no number.
XIO_DEVICE bool span_of_rows(u64 pitch, u64 width, u64 rows, u64* span) {
  *span = 0;
  if (rows == 0 || width == 0) return true;
  const u64 steps = rows - 1;
  // Mostly no division, which takes long.
  const bool small = ((steps | pitch) >> 32) == 0 && width >> 63 == 0;
  if (!small && pitch != 0 && steps > (~u64{0} - width) / pitch) return false;
  *span = steps * pitch + width;
  return small ? *span >= width : true;
}

// A copy of `count` rows of `width` bytes, as a call names it.
struct rows {
  void* dst;
  u64 dst_pitch;
  const void* src;
  u64 src_pitch, width, count;
};

// puts: dst is the symmetric side.
XIO_DEVICE xio_status_t check_rows(const xio_ctx_t& ctx, const rows& r, bool puts, int pe, u64* offset) {
  u64 span, local_span;
  const bool overlap = r.count > 1 && (r.dst_pitch < r.width || r.src_pitch < r.width);
  if (overlap || !span_of_rows(puts ? r.dst_pitch : r.src_pitch, r.width, r.count, &span) ||
      !span_of_rows(puts ? r.src_pitch : r.dst_pitch, r.width, r.count, &local_span))
    return XIO_ERR_ARG;
  return check_copy(ctx, puts ? r.dst : r.src, puts ? r.src : r.dst, span, pe, offset);
}

// The size by which a route is chosen: all of a tile for a copy engine, one row for an engine that posts row by row.
XIO_DEVICE u64 tile_bytes(const ctx_view& c, u32 pe, const rows& r) {
  return c.peers[pe].bulk == route::sdma && r.count <= ~u64{0} / r.width ? r.width * r.count : r.width;
}

// Rows on one engine, in order: the last one's request stands for all.
template <class PostRow>
XIO_DEVICE posted post_rows(const ctx_view& c, const rows& r, const ending& e, PostRow&& post) {
  posted p{0, XIO_OK};
  for (u64 i = 0; i < r.count && p.status == XIO_OK; ++i) p = post(i);
  return finish(c, p, e);
}

// Rows are waited for.
template <class Group>
XIO_DEVICE posted put_rows(const Group& g, const xio_ctx_t& ctx, const rows& r, int pe, call_kind kind) {
  const ctx_view* c = view_of(ctx);
  u64 offset = 0;
  const call what = call_of(kind, r.dst, r.src, r.width * r.count, pe);
  const ending e{true, what};
  const xio_status_t status = check_rows(ctx, r, true, pe, &offset);
  if (status != XIO_OK) return refuse(c, status, what);
  if (r.width == 0 || r.count == 0) return posted{0, XIO_OK};
  const auto* in = static_cast<const unsigned char*>(r.src);
  const u32 to = static_cast<u32>(pe);
  // A copy engine takes a tile as one.
  const route way = choose(*c, to, tile_bytes(*c, to, r), false);
  if (k_has_sdma && way == route::sdma) {
    const engine_rows tile{offset, const_cast<void*>(r.src), r.dst_pitch, r.src_pitch, r.width, r.count, true};
    return by_leader(g, [&] { return finish(*c, engine_tile(*c, to, tile), e); });
  }
  if (is_posted(way)) {
    return by_leader(g, [&] {
      return post_rows(*c, r, e, [&](u64 i) {
        return engine_put(*c, way, to, offset + i * r.dst_pitch, in + i * r.src_pitch, r.width);
      });
    });
  }
  g.sync();
  unsigned char* out = c->peers[to].direct + offset;
  for (u64 i = 0; i < r.count; ++i) direct::copy(g, out + i * r.dst_pitch, in + i * r.src_pitch, r.width);
  g.sync();
  return posted{0, XIO_OK};
}

template <class Group>
XIO_DEVICE posted get_rows(const Group& g, const xio_ctx_t& ctx, const rows& r, int pe, call_kind kind) {
  const ctx_view* c = view_of(ctx);
  u64 offset = 0;
  const call what = call_of(kind, r.src, r.dst, r.width * r.count, pe);
  const ending e{true, what};
  const xio_status_t status = check_rows(ctx, r, false, pe, &offset);
  if (status != XIO_OK) return refuse(c, status, what);
  if (r.width == 0 || r.count == 0) return posted{0, XIO_OK};
  auto* out = static_cast<unsigned char*>(r.dst);
  const u32 from = static_cast<u32>(pe);
  const route way = choose(*c, from, tile_bytes(*c, from, r), false);
  if (k_has_sdma && way == route::sdma) {
    const engine_rows tile{offset, r.dst, r.dst_pitch, r.src_pitch, r.width, r.count, false};
    return by_leader(g, [&] { return finish(*c, engine_tile(*c, from, tile), e); });
  }
  if (is_posted(way)) {
    const posted p = by_leader(g, [&] {
      return post_rows(*c, r, e, [&](u64 i) {
        return engine_get(*c, way, from, out + i * r.dst_pitch, offset + i * r.src_pitch, r.width);
      });
    });
    return finish_visible(g, *c, way, p, e);
  }
  g.sync();
  const unsigned char* in = c->peers[from].direct + offset;
  for (u64 i = 0; i < r.count; ++i) direct::fetch(g, out + i * r.dst_pitch, in + i * r.src_pitch, r.width);
  g.sync();
  return posted{0, XIO_OK};
}

// A copy of `count` elements. Strides are in elements and at least 1.
template <class T>
struct strided {
  T* dst;
  const T* src;
  std::ptrdiff_t dst_stride, src_stride;
  u64 count;
};

// False if strides are none, or too large for bytes.
template <class T>
XIO_DEVICE bool rows_of(const strided<T>& a, rows* r) {
  constexpr u64 bytes = sizeof(T), most = ~u64{0} / bytes;
  if (a.dst_stride < 1 || a.src_stride < 1) return false;
  if (static_cast<u64>(a.dst_stride) > most || static_cast<u64>(a.src_stride) > most) return false;
  *r = rows{a.dst,  static_cast<u64>(a.dst_stride) * bytes, a.src, static_cast<u64>(a.src_stride) * bytes, bytes,
            a.count};
  return true;
}

// --- Scalars -----------------------------------------------------------------------------------------

template <class T>
constexpr bool k_is_scalar = std::is_trivially_copyable_v<T> &&
                             (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8);

// The unsigned type of a scalar's size: scalars move as bits, in one piece.
template <class T>
using bits_of =
    std::conditional_t<sizeof(T) == 1, u8,
                       std::conditional_t<sizeof(T) == 2, u16, std::conditional_t<sizeof(T) == 4, u32, u64>>>;

template <class To, class From>
XIO_DEVICE To bit_copy(const From& from) {
  static_assert(sizeof(To) == sizeof(From) && std::is_trivially_copyable_v<From>);
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

XIO_DEVICE xio_status_t check_scalar(const xio_ctx_t& ctx, const void* symmetric, u64 bytes, int pe, u64* offset) {
  const xio_status_t status = check_target(ctx, symmetric, bytes, pe, offset);
  return status == XIO_OK && (*offset & (bytes - 1)) != 0 ? XIO_ERR_ARG : status;
}

XIO_SLOW_PATH xio_status_t put_scalar_slow(xio_ctx_t ctx, void* dst, u64 bits, u32 bytes, int pe) {
  u64 offset = 0;
  const call what = call_of(call_kind::put_value, dst, nullptr, bytes, pe);
  xio_status_t status = check_scalar(ctx, dst, bytes, pe, &offset);
  if (status != XIO_OK) return refuse(ctx, status, what).status;
  const ctx_view& c = ctx_of(ctx);
  const peer_view& peer = c.peers[pe];
  if (scalar_is_direct(peer, peer.small)) {
    direct::store_bits(peer.direct + offset, bits, bytes);
    return XIO_OK;
  }
  status = engine_put_value(c, peer.small, static_cast<u32>(pe), offset, bits, bytes);
  return status == XIO_OK ? status : refuse(ctx, status, what).status;
}

template <class T>
XIO_DEVICE xio_status_t put_scalar(const xio_ctx_t& ctx, T* dst, T value, int pe) {
  static_assert(k_is_scalar<T>, "xio_p moves values of 1, 2, 4 or 8 bytes; use xio_put");
  const auto bits = bit_copy<bits_of<T>>(value);
  const mapped_place mapped = mapped_scalar<T>(ctx, dst, pe);
  if (!mapped.there) [[unlikely]]
    return put_scalar_slow(ctx, dst, bits, sizeof(T), pe);
  store<scope::system, direct::k_flag_store>(reinterpret_cast<bits_of<T>*>(mapped.at), bits);
  return XIO_OK;
}

// 0 and a kept status where it cannot be had.
XIO_SLOW_PATH u64 get_scalar_slow(xio_ctx_t ctx, const void* src, u32 bytes, int pe) {
  u64 offset = 0, bits = 0;
  const call what = call_of(call_kind::get_value, src, nullptr, bytes, pe);
  xio_status_t status = check_scalar(ctx, src, bytes, pe, &offset);
  if (status != XIO_OK) return refuse(ctx, status, what), 0;
  const ctx_view& c = ctx_of(ctx);
  const peer_view& peer = c.peers[pe];
  if (scalar_is_direct(peer, peer.small)) return direct::load_bits(peer.direct + offset, bytes);
  status = engine_get_value(c, peer.small, static_cast<u32>(pe), offset, bytes, &bits);
  return status == XIO_OK ? bits : (refuse(ctx, status, what), 0);
}

template <class T>
XIO_DEVICE T get_scalar(const xio_ctx_t& ctx, const T* src, int pe) {
  static_assert(k_is_scalar<T>, "xio_g moves values of 1, 2, 4 or 8 bytes; use xio_get");
  give_way();
  const mapped_place mapped = mapped_scalar<T>(ctx, src, pe);
  auto bits = direct::load_if(mapped.there, reinterpret_cast<const bits_of<T>*>(mapped.at));
  if (!mapped.there) [[unlikely]]
    bits = static_cast<bits_of<T>>(get_scalar_slow(ctx, src, sizeof(T), pe));
  return bit_copy<T>(bits);
}

template <class T>
XIO_DEVICE xio_status_t put_strided(const xio_ctx_t& ctx, const strided<T>& a, int pe) {
  rows r{};
  if (!rows_of(a, &r))
    return refuse(ctx, XIO_ERR_ARG, call_of(call_kind::put_strided, a.dst, a.src, sizeof(T) * a.count, pe)).status;
  return put_rows(thread_group::here(), ctx, r, pe, call_kind::put_strided).status;
}

template <class T>
XIO_DEVICE xio_status_t get_strided(const xio_ctx_t& ctx, const strided<T>& a, int pe) {
  rows r{};
  if (!rows_of(a, &r))
    return refuse(ctx, XIO_ERR_ARG, call_of(call_kind::get_strided, a.src, a.dst, sizeof(T) * a.count, pe)).status;
  return get_rows(thread_group::here(), ctx, r, pe, call_kind::get_strided).status;
}

}  // namespace xio::dev

// --- The calls ---------------------------------------------------------------------------------------

XIO_DEFINE_OP(xio_put, (const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes, int pe), xio::dev::put, ctx,
              {dst, src, bytes}, pe)
XIO_DEFINE_OP(xio_get, (const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes, int pe), xio::dev::get, ctx,
              {dst, src, bytes}, pe)

template <class T>
XIO_DEVICE xio_status_t xio_p(const xio_ctx_t& ctx, T* dst, std::type_identity_t<T> value, int pe) {
  return xio::dev::put_scalar<T>(ctx, dst, value, pe);
}
template <class T>
XIO_DEVICE T xio_g(const xio_ctx_t& ctx, const T* src, int pe) {
  return xio::dev::get_scalar<T>(ctx, src, pe);
}

template <class T>
XIO_DEVICE xio_status_t xio_iput(const xio_ctx_t& ctx, T* dst, const T* src, std::ptrdiff_t dst_stride,
                                 std::ptrdiff_t src_stride, size_t count, int pe) {
  return xio::dev::put_strided<T>(ctx, {dst, src, dst_stride, src_stride, count}, pe);
}
template <class T>
XIO_DEVICE xio_status_t xio_iget(const xio_ctx_t& ctx, T* dst, const T* src, std::ptrdiff_t dst_stride,
                                 std::ptrdiff_t src_stride, size_t count, int pe) {
  return xio::dev::get_strided<T>(ctx, {dst, src, dst_stride, src_stride, count}, pe);
}

XIO_DEFINE_FORMS(xio_status_t, xio_put_2d,
                 (const xio_ctx_t& ctx, void* dst, size_t dst_pitch, const void* src, size_t src_pitch, size_t width,
                  size_t height, int pe),
                 (ctx, dst, src, width, height, pe),
                 xio::dev::put_rows(g, ctx, {dst, dst_pitch, src, src_pitch, width, height}, pe,
                                    xio::dev::call_kind::put_tile)
                     .status)
XIO_DEFINE_FORMS(xio_status_t, xio_get_2d,
                 (const xio_ctx_t& ctx, void* dst, size_t dst_pitch, const void* src, size_t src_pitch, size_t width,
                  size_t height, int pe),
                 (ctx, dst, src, width, height, pe),
                 xio::dev::get_rows(g, ctx, {dst, dst_pitch, src, src_pitch, width, height}, pe,
                                    xio::dev::call_kind::get_tile)
                     .status)
