// SPDX-License-Identifier: MIT
// The members of a team: their numbers, the ways to them, and where their words lie.
#pragma once
#include "xio/device/impl/team_engine.hpp"
#include "xio/device/impl/team_layout.hpp"
#include "xio/device/impl/team_refusal.hpp"
#include "xio/team.h"

namespace xio::dev::teams {

XIO_DEVICE u32 pe_of(const xio_team_t& t, u32 member) {
  return t.stride != 0 ? t.first + member * t.stride : static_cast<const u32*>(t.list)[member];
}
// The k-th of the others, 0 <= k < n - 1: everybody begins with another one.
XIO_DEVICE u32 other(const xio_team_t& t, u32 k) {
  const u32 member = t.my_pe + 1 + k;
  return member < t.n_pes ? member : member - t.n_pes;
}

XIO_DEVICE channel_state& state_of(const xio_team_t& t) { return *static_cast<channel_state*>(t.work); }

// Where member `writer` writes its message of exchange `epoch`, as an address of this PE: a word for the header, then
// the words of its packets.
XIO_DEVICE u64* message(const xio_team_t& t, u64 epoch, u32 writer) {
  auto* slots = static_cast<unsigned char*>(t.work) + k_channel_head_bytes;
  const u64 each = team_message_bytes(t.packet_bytes);
  return reinterpret_cast<u64*>(slots + ((epoch & 1) * t.n_pes + writer) * each);
}
// Where a message to member `reader` is made for an engine.
XIO_DEVICE u64* outgoing(const xio_team_t& t, u64 epoch, u32 reader) {
  return message(t, epoch, reader) + 2 * team_slot_bytes(t.n_pes, t.packet_bytes) / sizeof(u64);
}

// The queues that carry what this PE sends to members, as use(member's row, queue).
template <class Use>
XIO_DEVICE void for_member_queues(const ctx_view& c, const xio_team_t& t, Use&& use) {
  for (u32 k = 0; k + 1 < t.n_pes; ++k) {
    const peer_view& p = c.peers[pe_of(t, other(t, k))];
    if (is_behind_engine(p)) for_queues_to(p, [&](const ring_view& r) { use(p, r); });
  }
}
// Drains them; the failure of one that has failed, or XIO_ERR_PEER if a member was excluded: it does not come. No other
// queue's failure, and no drive's, is the team's.
XIO_OUT_OF_LINE xio_status_t drain_members(const ctx_view& c, xio_team_t t) {
  xio_status_t failure = XIO_OK;
  for (u32 k = 0; k + 1 < t.n_pes; ++k)
    if (is_excluded(c.peers[pe_of(t, other(t, k))].small)) failure = XIO_ERR_PEER;
  for_member_queues(c, t, [&](const peer_view&, const ring_view& r) {
    const xio_status_t one = drain_one(r, [](const ring_view& q) { reap_ring(q); });
    if (failure == XIO_OK) failure = one;
  });
  return failure;
}
// Waits until they have done all that was posted to them.
XIO_OUT_OF_LINE xio_status_t quiet_members(const ctx_view& c, xio_team_t t) {
  waited all{0, XIO_OK};
  for_member_queues(c, t, [&](const peer_view&, const ring_view& r) { quiet_next(r, *c.world, &all); });
  fence<scope::system, order::acquire>();
  return all.status;
}

// Where a PE's copy of a symmetric address lies, if loads and stores are the way there; else null.
XIO_DEVICE unsigned char* direct_place(const xio_ctx_t& ctx, const void* symmetric, u32 pe) {
  const u64 at = reinterpret_cast<u64>(symmetric) - reinterpret_cast<u64>(ctx.arena);
  if (const mapped_place arena = mapped_arena(ctx, pe); arena.there) return arena.bytes() + at;
  const peer_view& p = ctx_of(ctx).peers[pe];
  return is_behind_engine(p) ? nullptr : p.direct + sizeof(heap_head) + at;
}

// The part of a ctx that functions out of line take: it travels in registers.
struct slim_ctx {
  const ctx_view* view;
  u32 own_ms;
};
using dev::ctx_of, dev::own_timeout_of, dev::hdp_flush;
XIO_DEVICE slim_ctx slim_of(const xio_ctx_t& ctx) { return {&ctx_of(ctx), own_timeout_of(ctx)}; }
XIO_DEVICE const ctx_view& ctx_of(const slim_ctx& ctx) { return *ctx.view; }
XIO_DEVICE u32 own_timeout_of(const slim_ctx& ctx) { return ctx.own_ms; }
XIO_DEVICE xio_status_t hdp_flush(const slim_ctx& ctx) { return dev::hdp_flush(*ctx.view); }
XIO_DEVICE bool is_hole(const slim_ctx& ctx, u32 pe) { return is_excluded(ctx.view->peers[pe].small); }
XIO_DEVICE unsigned char* direct_place(const slim_ctx& ctx, const void* symmetric, u32 pe) {
  const peer_view& p = ctx.view->peers[pe];
  return is_behind_engine(p) ? nullptr : p.direct + heap_offset_of(*ctx.view, symmetric);
}

// Whether engines carry what this PE sends to some PE.
XIO_DEVICE bool has_engines(const xio_ctx_t& ctx) { return (ctx.flags & ctx_all_mapped) == 0; }

// Whether a PE was excluded before this ctx was made or refreshed. Threads of a group may differ, for another one may
// be excluded at this moment: so it is a status of a thread, which end() brings to all. No thread looks for the others
// before a call: behind what a part of a warp does nvcc keeps nothing in uniform registers, in the whole kernel, which
// was 0.15 us of each call on an H200.
XIO_DEVICE bool is_hole(const xio_ctx_t& ctx, u32 pe) {
  return (ctx.flags & ctx_has_holes) != 0 && is_excluded(ctx_of(ctx).peers[pe].small);
}
XIO_OUT_OF_LINE xio_status_t refuse_hole(xio_team_t t, const ctx_view& c, u32 tag) {
  return refuse(c, t, XIO_ERR_PEER, {refusal::excluded, k_no_pe, tag, 0, 0, 0, 0});
}

}  // namespace xio::dev::teams
