// SPDX-License-Identifier: MIT
// The collectives whose blocks differ in size: members first publish the sizes and places to each other, by packets,
// then send the blocks, each with a word behind it.
#pragma once
#include "xio/device/impl/team_move.hpp"

namespace xio::dev::teams {

// Two numbers that each member publishes to each other one in an exchange. They lie in its message until the next call:
// the exchange after the next one writes a header alone there.
struct extent {
  u64 place, bytes;
};
constexpr u32 k_extent_words = sizeof(extent) / 4;

XIO_DEVICE u64 number_from(const u64* words) {
  u64 out = 0;
  for (u32 k = 0; k < 2; ++k)
    out |= u64{static_cast<u32>(load<scope::system, direct::k_flag_load>(words + k))} << (32 * k);
  return out;
}
XIO_DEVICE extent extent_by(const xio_team_t& t, const exchange& x, u32 from) {
  const u64* words = message(t, x.epoch, from) + 1;
  return extent{number_from(words), number_from(words + 2)};
}

// extent_for(to) to every member, if the caller's own arguments are good; else all return XIO_ERR_ARG.
template <class Group, class Extent>
XIO_DEVICE xio_status_t publish_all(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, const stated_call& own,
                                    exchange* x, Extent&& extent_for) {
  if (!begin(g, t, own.stated(), x)) return refuse_channel(g, ctx, t, own.tag);
  if (!own.is_good()) return agree(g, ctx, t, *x, {own, 0});
  const xio_status_t sent = send_packets(
      g, ctx, t, *x, [](u32) { return k_extent_words; },
      [&](u32 to, u32 w) {
        const extent mine = extent_for(to);
        return static_cast<u32>((w < 2 ? mine.place : mine.bytes) >> (32 * (w & 1)));
      });
  const xio_status_t taken = take_packets(
      g, ctx, t, *x, [](u32) { return k_extent_words; }, [](u32, u32, u32) {});
  return end(g, t, *x, first_of(sent, taken));
}

// The exchange by which extents were published, and what this member says of them.
struct published {
  exchange x;
  stated_call said;
};

// The blocks themselves, after that. A member whose own numbers and another's do not agree
// objects, and all learn of it before blocks are sent.
template <class Group, class Block>
XIO_DEVICE xio_status_t send_varied(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, const published& after,
                                    const Block& block_for, const own_block& own) {
  const stated_call& said = after.said;
  exchange x = after.x;
  g.sync();  // all have read what was published, before a word of this PE lets others write there
  go_on(g, t, &x);
  x.tag = said.stated();
  xio_status_t status = agree(g, ctx, t, x, {said, 0});
  if (status != XIO_OK) return status;
  go_on(g, t, &x);
  status = send_blocks(g, ctx, t, x, block_for);
  if (own.bytes != 0 && own.to != own.from) direct::copy(g, own.to, own.from, own.bytes);
  return end(g, t, x, first_of(status, wait_headers(g, ctx, t, x)));
}

// Places and counts by member, in units of so many bytes.
struct varied_blocks {
  unsigned char* dst;
  const size_t *dst_offsets, *dst_counts;
  const unsigned char* src;
  const size_t *src_offsets, *src_counts;
  u64 unit;

  XIO_DEVICE u64 dst_offset(u32 m) const { return dst_offsets[m] * unit; }
  XIO_DEVICE u64 dst_bytes(u32 m) const { return dst_counts[m] * unit; }
  XIO_DEVICE const unsigned char* from(u32 m) const { return src + src_offsets[m] * unit; }
  XIO_DEVICE u64 src_bytes(u32 m) const { return src_counts[m] * unit; }

  // Whether a block that comes may lie over one that is sent. All places of each side are looked at together first:
  // pairs of blocks take n * n steps, and few programs need them. The own block may lie in its place.
  XIO_DEVICE bool overlaps(u32 n, u32 me) const {
    const u64 none = ~u64{0};
    u64 in = none, in_end = 0, out = none, out_end = 0;
    for (u32 m = 0; m < n; ++m) {
      const u64 to = reinterpret_cast<u64>(dst) + dst_offset(m), at = reinterpret_cast<u64>(from(m));
      if (dst_bytes(m) != 0 && to < in) in = to;
      if (dst_bytes(m) != 0 && to + dst_bytes(m) > in_end) in_end = to + dst_bytes(m);
      if (src_bytes(m) != 0 && at < out) out = at;
      if (src_bytes(m) != 0 && at + src_bytes(m) > out_end) out_end = at + src_bytes(m);
    }
    if (in >= out_end || out >= in_end) return false;
    for (u32 i = 0; i < n; ++i)
      for (u32 k = 0; k < n; ++k) {
        const unsigned char* to = dst + dst_offset(k);
        if (src_bytes(i) == 0 || dst_bytes(k) == 0 || (i == me && k == me && to == from(i))) continue;
        if (overlap(to, from(i), dst_bytes(k), src_bytes(i))) return true;
      }
    return false;
  }

  template <class Group>
  XIO_DEVICE objection objection_to(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t) const {
    const u32 n = t.n_pes, me = t.my_pe;
    if (dst_offsets == nullptr || dst_counts == nullptr || src_offsets == nullptr || src_counts == nullptr)
      return {refusal::null_pointer};
    for (u32 m = 0; m < n; ++m) {
      if ((dst_counts[m] != 0 && dst == nullptr) || (src_counts[m] != 0 && src == nullptr))
        return {refusal::null_pointer};
      // More than the heap has; and of less no product overflows.
      const u64 most = ctx.arena_bytes;
      if (dst_counts[m] > most || src_counts[m] > most || (dst_counts[m] != 0 && dst_offsets[m] > most))
        return {refusal::not_symmetric, 0, dst_counts[m] > most ? dst_counts[m] : src_counts[m]};
      if (!is_symmetric(ctx, dst + dst_offset(m), dst_bytes(m))) return {refusal::not_symmetric, 0, dst_bytes(m)};
    }
    if (has_engines(ctx) && !engines_reach(g, ctx, t, [&](u32 to) {
          return outgoing_block{nullptr, from(to), src_bytes(to)};
        }))
      return {refusal::unreachable};
    return overlaps(n, me) ? objection{refusal::overlap} : objection{};
  }
};

template <class Group>
XIO_DEVICE xio_status_t exchange_varied(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t,
                                        const varied_blocks& b) {
  const u32 tag = tag_of(op::alltoallv), me = t.my_pe;
  exchange x;
  const xio_status_t status = publish_all(g, ctx, t, {tag, b.objection_to(g, ctx, t)}, &x, [&](u32 to) {
    return extent{b.dst_offset(to), b.dst_bytes(to)};
  });
  if (status != XIO_OK) return status;
  objection why;
  for (u32 m = 0; m < t.n_pes && why.is_none(); ++m) {
    const u64 room = m == me ? b.dst_bytes(m) : extent_by(t, x, m).bytes;
    if (room != b.src_bytes(m)) why = {refusal::unequal, m, b.src_bytes(m), room};
  }
  const own_block own{b.dst + b.dst_offset(me), b.from(me), b.src_bytes(me)};
  return send_varied(
      g, ctx, t, {x, {tag, why}},
      [=](u32 to) {
        return outgoing_block{b.dst + extent_by(t, x, to).place, b.from(to), b.src_bytes(to)};
      },
      own);
}

template <class Group>
XIO_DEVICE xio_status_t alltoallv(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, const varied_blocks& b) {
  if (const xio_status_t wrong = check_team(ctx, t, op::alltoallv); wrong != XIO_OK) return wrong;
  return complete_call(g, ctx, t, exchange_varied(g, ctx, t, b));
}

template <class Group>
XIO_DEVICE xio_status_t exchange_collect(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, call_copy a) {
  const u32 tag = tag_of(op::collect);
  exchange x;
  objection why;
  if (a.src == nullptr && a.bytes != 0) why = {refusal::null_pointer};
  if (a.bytes > ctx.arena_bytes) why = {refusal::not_symmetric, 0, a.bytes};
  const xio_status_t status = publish_all(g, ctx, t, {tag, why}, &x, [&](u32) { return extent{0, a.bytes}; });
  if (status != XIO_OK) return status;
  u64 before = 0, all = 0;
  for (u32 m = 0; m < t.n_pes; ++m) {
    if (m == t.my_pe) before = all;
    all += m == t.my_pe ? a.bytes : extent_by(t, x, m).bytes;
  }
  auto* to = static_cast<unsigned char*>(a.dst) + before;
  const own_block own{to, static_cast<const unsigned char*>(a.src), a.bytes};
  if (!is_symmetric(ctx, a.dst, all)) why = {refusal::not_symmetric, 0, all};
  if (a.dst == nullptr && all != 0) why = {refusal::null_pointer};
  if (has_engines(ctx) && !engines_reach(g, ctx, t, [&](u32) { return outgoing_block{nullptr, a.src, a.bytes}; }))
    why = {refusal::unreachable};
  if (a.bytes != 0 && overlap(a.dst, a.src, all, a.bytes) && own.to != own.from) why = {refusal::overlap};
  return send_varied(
      g, ctx, t, {x, {tag, why}},
      [=](u32) {
        return outgoing_block{own.to, own.from, own.bytes};
      },
      own);
}

template <class Group>
XIO_DEVICE xio_status_t collect(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, call_copy a) {
  if (const xio_status_t wrong = check_team(ctx, t, op::collect); wrong != XIO_OK) return wrong;
  return complete_call(g, ctx, t, exchange_collect(g, ctx, t, a));
}

}  // namespace xio::dev::teams
