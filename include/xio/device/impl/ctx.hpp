// SPDX-License-Identifier: MIT
// What an op finds in a ctx: heaps, mapped peers, the route.
#pragma once
#include "xio/device/impl/failed_call.hpp"
#include "xio/device/impl/selection.hpp"
#include "xio/device/impl/view.hpp"
#include "xio/device/platform/platform.hpp"
#include "xio/peers.h"
#include "xio/xio.h"

namespace xio::dev {

XIO_DEVICE ctx_view& ctx_of(const xio_ctx_t& ctx) { return *static_cast<ctx_view*>(ctx.view); }

// Tells quiet that this ring has to be visited. Nobody takes it back: the quiet of one workgroup would hide ops from
// that of another.
XIO_DEVICE void mark_used(const ctx_view& c, const ring_view& r) {
  const auto ahead = static_cast<u32>(reinterpret_cast<u64>(&r) - reinterpret_cast<u64>(view_field(c.rings)));
  const u32 ring = ahead / u32{sizeof(ring_view)}, place = ring < k_more_used ? ring : ring + 1;
  const u32 word = place / 32 < k_used_words ? place / 32 : k_used_words - 1;
  u32* used = const_cast<u32*>(c.used);
  // Both, for another thread may be between its two. A thread that has seen or set both finds the ring in its quiet.
  const bool marked = bit_of(load<scope::agent, order::relaxed>(used + word), place % 32);
  if (marked && (word == 0 || bit_of(load<scope::agent, order::relaxed>(used), k_more_used))) return;
  fetch_or<scope::agent, order::relaxed>(used + word, 1u << place % 32);
  if (word != 0) fetch_or<scope::agent, order::relaxed>(used, 1u << k_more_used);
}

// Of the rings from `first` on that these bits name, those that the host has made by now (dormant.hpp).
XIO_DEVICE u32 bits_of_made(const ctx_view& c, u32 first, u32 bits) {
  u32 made = 0;
  for (u32 left = bits; left != 0; left &= left - 1) {
    const u32 bit = lowest_bit(left);
    if (load<scope::agent, order::relaxed>(&view_field(c.rings)[first + bit].depth) != 0) made |= 1u << bit;
  }
  return made;
}

// Calls visit(ring) for each ring that was posted to, and for those that share its bit.
template <class Visit>
XIO_DEVICE void for_used_rings(const ctx_view& c, const Visit& visit) {
  const u32 used = k_has_rings ? load<scope::agent, order::relaxed>(c.used) : 0;
  u32 left = used & ~(1u << k_more_used), first = 0;
  for (u32 word = 1;; ++word) {
    for (; left != 0; left &= left - 1) visit(view_field(c.rings)[first + lowest_bit(left)]);
    first = 32 * word - 1;
    if (!bit_of(used, k_more_used) || first >= view_field(c.ring_count)) return;
    left = load<scope::agent, order::relaxed>(c.used + (word < k_used_words ? word : k_used_words - 1));
    const u32 rest = view_field(c.ring_count) - first;
    if (rest < 32) left &= (1u << rest) - 1;
    if (word + 1 >= k_used_words) left = bits_of_made(c, first, left);
  }
}

// Place of [p, p + bytes) in the symmetric heap. False if any of it is outside what xio_malloc hands out.
XIO_DEVICE bool heap_offset(const xio_ctx_t& ctx, const void* p, u64 bytes, u64* offset) {
  const u64 at = reinterpret_cast<u64>(p) - reinterpret_cast<u64>(ctx.arena);
  *offset = sizeof(heap_head) + at;
  return at <= ctx.arena_bytes && bytes <= ctx.arena_bytes - at;
}

// The head of the caller's own heap.
XIO_DEVICE const heap_head& own_head(const xio_ctx_t& ctx) { return static_cast<const heap_head*>(ctx.arena)[-1]; }

// Checks the two things that every remote op names. Does not record; see ctx_fail.
XIO_DEVICE xio_status_t check_target(const xio_ctx_t& ctx, const void* symmetric, u64 bytes, int pe, u64* offset) {
  if (ctx.view == nullptr) return XIO_ERR_STATE;
  if (static_cast<u32>(pe) >= ctx.n_pes) return XIO_ERR_PE;
  if (heap_offset(ctx, symmetric, bytes, offset)) return XIO_OK;
  return symmetric == nullptr ? XIO_ERR_ARG : XIO_ERR_NOT_SYMMETRIC;
}

// A place at a PE, if loads and stores are the way of all but bulk copies to it. If not: look at its row.
struct mapped_place {
  u64 at;
  bool there;
  XIO_DEVICE unsigned char* bytes() const { return reinterpret_cast<unsigned char*>(at); }
};

// The mapped arena of a PE: the memory that xio_malloc gives out there. A null ctx has none.
XIO_DEVICE mapped_place mapped_arena(const xio_ctx_t& ctx, u32 pe) {
  if constexpr (!k_has_direct) return {0, false};
  static_assert((XIO_CTX_MAPPED & (XIO_CTX_MAPPED - 1)) == 0 && XIO_CTX_MAPPED <= 32);
  if constexpr (k_indexes_arguments) {
    // A choice among eight loads took a tenth of a microsecond (docs/performance.md). Whether it is there is asked of
    // the mask beside it, so that nobody waits for the one after the other.
    return {reinterpret_cast<u64>(ctx.mapped[pe & (XIO_CTX_MAPPED - 1)]),
            bit_of(ctx.mapped_mask, pe - ctx.mapped_first)};
  }
  // A choice and not an index, which would move the whole ctx from the kernel's arguments to memory.
  const u32 place = pe - ctx.mapped_first < XIO_CTX_MAPPED ? pe & (XIO_CTX_MAPPED - 1) : XIO_CTX_MAPPED;
  u64 at = 0;
  XIO_UNROLL for (u32 i = 0; i < XIO_CTX_MAPPED; ++i) at = place == i ? reinterpret_cast<u64>(ctx.mapped[i]) : at;
  return {at, at != 0};
}

// The head of a PE's heap, which lies before that.
XIO_DEVICE unsigned char* mapped_head(const mapped_place& arena) {
  return reinterpret_cast<unsigned char*>(arena.at - sizeof(heap_head));
}

// Where a PE's copy of [symmetric, symmetric + bytes) lies, if loads and stores are the way there and all of it is what
// xio_malloc hands out. If not there: look closer; then the op may go another way, or be refused. One test for all of
// it: a lone lane waits for every instruction. `fits` is what else must hold; `last` is the last place where it does.
XIO_DEVICE mapped_place mapped_until(const xio_ctx_t& ctx, const void* symmetric, u64 last, int pe, bool fits) {
  const mapped_place arena = mapped_arena(ctx, static_cast<u32>(pe));
  const u64 at = reinterpret_cast<u64>(symmetric) - reinterpret_cast<u64>(ctx.arena);
  const int good = static_cast<int>(at <= last) & static_cast<int>(fits) & static_cast<int>(arena.there);
  return {arena.at + at, good != 0};
}
XIO_DEVICE mapped_place mapped_address(const xio_ctx_t& ctx, const void* symmetric, u64 bytes, int pe) {
  return mapped_until(ctx, symmetric, ctx.arena_bytes - bytes, pe, bytes <= ctx.arena_bytes);
}

// mapped_address of a scalar; not there also where it is misaligned. No heap is smaller than a scalar.
template <class T>
XIO_DEVICE mapped_place mapped_scalar(const xio_ctx_t& ctx, const void* symmetric, int pe) {
  const bool aligned = (reinterpret_cast<u64>(symmetric) & (sizeof(T) - 1)) == 0;
  return mapped_until(ctx, symmetric, ctx.arena_bytes - sizeof(T), pe, aligned);
}

// See k_own_timeout_shift. A view alone has none.
XIO_DEVICE u32 own_timeout_of(const ctx_view&) { return 0; }
XIO_DEVICE u32 own_timeout_of(const xio_ctx_t& ctx) { return ctx.flags >> k_own_timeout_shift; }

XIO_DEVICE world_view& world_of(const ctx_view& c) { return *c.world; }
XIO_DEVICE world_view& world_of(const xio_ctx_t& ctx) { return *static_cast<world_view*>(ctx.world); }

// A PE's row, of which kernels read what was fixed when the ctx was made.
XIO_DEVICE const peer_view& peer_of(const ctx_view& c, u32 pe) { return view_field(c.peers)[pe]; }

// The way of a copy of that size. Fixed per PE when the ctx was made but for the size. All ways of a row are one word,
// which a GPU can load for a whole wave.
XIO_DEVICE route choose(const ctx_view& c, u32 pe, u64 bytes, bool nbi) {
  static_assert(offsetof(peer_view, small) % 4 == 0 && offsetof(peer_view, bulk) == offsetof(peer_view, small) + 1);
  typedef u32 any __attribute__((may_alias));
  const u32 ways = view_field(*reinterpret_cast<const any*>(&peer_of(c, pe).small));
  return static_cast<route>((nbi && bytes >= view_field(c.bulk_bytes) ? ways >> 8 : ways) & 0xff);
}

// Whether the PE of that way was excluded.
XIO_DEVICE bool is_excluded(route way) { return static_cast<u32>(way) >= static_cast<u32>(route::excluded); }
// Of a way that no engine goes.
XIO_DEVICE xio_status_t refusal_of(route way) { return is_excluded(way) ? XIO_ERR_PEER : XIO_ERR_NO_ROUTE; }

// Whether an op of that way is posted to an engine.
XIO_DEVICE bool is_posted(route way) { return !k_has_direct || way != route::direct; }

XIO_DEVICE const ctx_view* view_of(const xio_ctx_t& ctx) { return static_cast<const ctx_view*>(ctx.view); }

XIO_DEVICE void* peer_address(const xio_ctx_t& ctx, const void* symmetric, int pe) {
  if (const mapped_place mapped = mapped_address(ctx, symmetric, 1, pe); mapped.there) return mapped.bytes();
  u64 offset;
  if (check_target(ctx, symmetric, 1, pe, &offset) != XIO_OK) return nullptr;
  const peer_view& p = view_of(ctx)->peers[pe];
  return p.direct == nullptr || is_excluded(p.small) ? nullptr : p.direct + offset;
}

}  // namespace xio::dev

XIO_DEVICE int xio_my_pe(const xio_ctx_t& ctx) { return ctx.view == nullptr ? -1 : static_cast<int>(ctx.my_pe); }
XIO_DEVICE int xio_n_pes(const xio_ctx_t& ctx) { return ctx.view == nullptr ? -1 : static_cast<int>(ctx.n_pes); }
XIO_DEVICE void* xio_ptr(const xio_ctx_t& ctx, const void* symmetric, int pe) {
  return xio::dev::peer_address(ctx, symmetric, pe);
}
XIO_DEVICE xio_pe_life_t xio_pe_state(const xio_ctx_t& ctx, int pe) {
  using namespace xio::dev;
  if (ctx.view == nullptr || static_cast<u32>(pe) >= ctx.n_pes) return XIO_PE_UNKNOWN;
  const std::uint32_t* states = view_field(world_of(ctx).pe_states);
  // Of a world that was finalized there are none.
  if (states == nullptr) return XIO_PE_UNKNOWN;
  return static_cast<xio_pe_life_t>(load<scope::system, order::relaxed>(&states[pe]));
}
