// SPDX-License-Identifier: MIT
// The collectives that move blocks between the members of a team.
#pragma once
#include "xio/device/impl/fan_out.hpp"
#include "xio/device/impl/team_packets.hpp"

namespace xio::dev::teams {

constexpr u32 k_all_send = u32{1} << 31;

// The part of a collective that moves blocks: block(m) of this PE goes to place(m) at member m.
struct blocks {
  const unsigned char* src;
  bool alike;          // all members get one block; else
  u64 src_step;        // from one member's block to the next one's
  unsigned char* dst;  // by sender
  u64 dst_step;
  u64 bytes;
  u32 root;  // the only sender, or k_all_send
  XIO_DEVICE bool sends(u32 member) const { return root == k_all_send || root == member; }
};
XIO_DEVICE blocks blocks_of(call_copy a, bool alike, u64 dst_step, u32 root) {
  const auto* src = static_cast<const unsigned char*>(a.src);
  return blocks{src, alike, alike ? 0 : a.bytes, static_cast<unsigned char*>(a.dst), dst_step, a.bytes, root};
}

// --- Blocks with a word behind them ------------------------------------------------------------------

// Whether loads and stores are the way to every member.
XIO_DEVICE bool all_are_direct(const xio_ctx_t& ctx, const xio_team_t& t) {
  for (u32 k = 0; has_engines(ctx) && k + 1 < t.n_pes; ++k)
    if (direct_place(ctx, t.work, pe_of(t, other(t, k))) == nullptr) return false;
  return true;
}

// To the members that loads and stores do not reach: block and word are one chain, so no copy is waited for. The
// sources stay as they are until complete_call(). By values: what a reference names would not stay in registers.
template <class Group, class Block>
XIO_SLOW_PATH xio_status_t post_blocks(Group g, xio_ctx_t ctx, xio_team_t t, exchange x, Block block_for) {
  u64* head = message(t, x.epoch, t.my_pe);
  xio_status_t status = XIO_OK;
  fence<scope::system, order::release>();
  for (u32 k = 0; k + 1 < t.n_pes; ++k) {
    const u32 to = other(t, k), pe = pe_of(t, to);
    if (!g.leader()) continue;
    if (is_hole(ctx, pe)) status = refuse_hole(t, ctx_of(ctx), x.tag);
    if (direct_place(ctx, head, pe) != nullptr || status != XIO_OK) continue;
    const outgoing_block b = block_for(to);
    status = first_of(status, put_word_by_one(b, ctx_of(ctx), pe, head, x.header()));
  }
  return status;
}
template <class Group, class Block>
XIO_DEVICE xio_status_t send_by_engines(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, const exchange& x,
                                        const Block& block_for) {
  return has_engines(ctx) ? post_blocks(g, ctx, t, x, block_for) : XIO_OK;
}
// The words to the members that loads and stores reach.
template <class Group>
XIO_DEVICE void store_direct_headers(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, const exchange& x) {
  u64* head = message(t, x.epoch, t.my_pe);
  for (u32 k = g.rank(); k + 1 < t.n_pes; k += g.count())
    if (unsigned char* there = direct_place(ctx, head, pe_of(t, other(t, k))))
      store<scope::system, direct::k_flag_store>(reinterpret_cast<u64*>(there), x.header());
}
// The same behind all that the group has stored.
template <class Group>
XIO_DEVICE void send_direct_headers(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, const exchange& x) {
  g.sync();
  if (g.rank() + 1 < t.n_pes) fence<scope::system, order::release>();
  store_direct_headers(g, ctx, t, x);
}

// block_for(member) to every other member, and the word of the exchange behind it.
template <class Group, class Block>
XIO_DEVICE xio_status_t send_blocks(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, const exchange& x,
                                    const Block& block_for) {
  // Engines work while this PE stores.
  const xio_status_t status = send_by_engines(g, ctx, t, x, block_for);
  for (u32 k = 0; k + 1 < t.n_pes; ++k) {
    const outgoing_block b = block_for(other(t, k));
    if (b.bytes == 0) continue;
    if (unsigned char* there = direct_place(ctx, b.place, pe_of(t, other(t, k))))
      direct::copy(g, there, b.from, b.bytes);
  }
  send_direct_headers(g, ctx, t, x);
  return status;
}

// --- Large blocks ------------------------------------------------------------------------------------

// This PE's block for itself: nothing for broadcasts, nor where it lies in its place already.
struct own_block {
  unsigned char* to;
  const unsigned char* from;
  u64 bytes;
};
XIO_DEVICE own_block own_of(const xio_team_t& t, const blocks& b) {
  const own_block own{b.dst + t.my_pe * b.dst_step, b.src + t.my_pe * b.src_step, b.bytes};
  return b.root != k_all_send || own.to == own.from ? own_block{own.to, own.from, 0} : own;
}

// Above it the own block goes together with the first one for another member: both take long. A shorter one is
// copied while the words are on their way.
constexpr u64 k_goes_together = 64 << 10;

// Stores the blocks of the members that loads and stores reach. Returns what is left of the own block.
template <class Group>
XIO_DEVICE own_block store_direct(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, const blocks& b) {
  own_block own = own_of(t, b);
  unsigned char* mine = b.dst + t.my_pe * b.dst_step;  // at the other member
  if (b.alike && t.n_pes > 1 && all_are_direct(ctx, t)) {
    const u32 first = own.bytes > k_goes_together ? 1 : 0;
    const auto place = [&](u32 p) {
      return p < first ? own.to : direct_place(ctx, mine, pe_of(t, other(t, p - first)));
    };
    if (direct::fan_out(g, b.src, b.bytes, t.n_pes - 1 + first, place))
      return first != 0 ? own_block{own.to, own.from, 0} : own;
  }
  for (u32 k = 0; k + 1 < t.n_pes; ++k) {
    const u32 to = other(t, k);
    unsigned char* there = direct_place(ctx, mine, pe_of(t, to));
    if (there == nullptr) continue;
    const unsigned char* from = b.src + to * b.src_step;
    if (own.bytes > k_goes_together && direct::copy_two(g, there, from, own.to, own.from, b.bytes))
      own.bytes = 0;
    else
      direct::copy(g, there, from, b.bytes);
  }
  return own;
}

// Blocks go straight to their places when all members are known to be in this call, and words behind them. Refused
// calls of any size come here too, and end with that first exchange.
template <class Group>
XIO_DEVICE xio_status_t move_large(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, exchange& x,
                                   const stated_call& own_call, const blocks& b) {
  if (const xio_status_t status = agree(g, ctx, t, x, {own_call, b.bytes}); status != XIO_OK) return status;
  go_on(g, t, &x);
  const bool sends = b.sends(t.my_pe);
  unsigned char* mine = b.dst + t.my_pe * b.dst_step;
  const xio_status_t sent = send_by_engines(g, ctx, t, x, [=](u32 to) {
    return outgoing_block{mine, b.src + to * b.src_step, sends ? b.bytes : 0};
  });
  own_block own{};
  if (sends) own = store_direct(g, ctx, t, b);
  send_direct_headers(g, ctx, t, x);
  if (own.bytes != 0) direct::copy(g, own.to, own.from, own.bytes);
  return end(g, t, x, first_of(sent, wait_headers(g, ctx, t, x)));
}

// --- All of it ---------------------------------------------------------------------------------------

// This PE's own block where each thread has one piece of it at most, of 16 bytes or a word: loaded while packets are on
// their way, and stored when all members are known to be in one call.
struct held_block {
  own_block own;
  bool wide, fits;
  u32 pieces;
  vec16 value;

  template <class Group>
  XIO_DEVICE held_block(const Group& g, const own_block& b) : own(b), value{} {
    wide = ((reinterpret_cast<u64>(own.to) | reinterpret_cast<u64>(own.from) | own.bytes) & 15) == 0;
    pieces = static_cast<u32>((own.bytes + 3) / 4) / (wide ? 4 : 1);
    fits = pieces <= g.count();
    if (!fits || g.rank() >= pieces) return;
    if (wide)
      direct::load_words<direct::source::own>(reinterpret_cast<vec16(&)[1]>(value), own.from + g.rank() * 16, 0);
    else
      value.x = rdma::source_word(own.from, g.rank() * 4, static_cast<u32>(own.bytes));
  }
  template <class Group>
  XIO_DEVICE void store(const Group& g) const {
    if (!fits || g.rank() >= pieces) return;
    if (wide)
      direct::store_word<vec16>(own.to + g.rank() * 16, value);
    else
      store_part(own.to, g.rank() * 4, own.bytes, value.x);
  }
};

template <class Group>
XIO_DEVICE xio_status_t move_small(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, exchange& x,
                                   const blocks& b) {
  const u32 words = static_cast<u32>((b.bytes + 3) / 4), n = static_cast<u32>(b.bytes);
  const xio_status_t sent = send_packets(
      g, ctx, t, x, [&](u32) { return b.sends(t.my_pe) ? words : 0; },
      [&](u32 to, u32 w) { return rdma::source_word(b.src + to * b.src_step, w * 4, n); });
  const held_block held(g, own_of(t, b));
  const xio_status_t taken = take_packets(
      g, ctx, t, x, [&](u32 from) { return b.sends(from) ? words : 0; },
      [&](u32 from, u32 w, u32 value) { store_part(b.dst + from * b.dst_step, u64{w} * 4, b.bytes, value); });
  if (taken == XIO_OK) held.store(g);
  const xio_status_t status = end(g, t, x, first_of(sent, taken));
  if (status != XIO_OK || held.fits) return status;
  direct::copy(g, held.own.to, held.own.from, held.own.bytes);
  g.sync();
  return XIO_OK;
}

XIO_DEVICE bool is_symmetric(const xio_ctx_t& ctx, const void* p, u64 bytes) {
  u64 offset;
  return bytes == 0 || (p != nullptr && heap_offset(ctx, p, bytes, &offset));
}

XIO_DEVICE bool overlap(const void* a, const void* b, u64 a_bytes, u64 b_bytes) {
  const u64 x = reinterpret_cast<u64>(a), y = reinterpret_cast<u64>(b);
  return x < y + b_bytes && y < x + a_bytes;
}

// Whether the engines that carry this PE's blocks reach them. A member may be excluded at this moment, so one thread
// looks for all of the group.
template <class Group, class Block>
XIO_DEVICE bool engines_reach(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, const Block& block_for) {
  const posted found = by_leader(g, [&] {
    for (u32 k = 0; k + 1 < t.n_pes; ++k) {
      const u32 to = other(t, k), pe = pe_of(t, to);
      if (is_behind_engine(ctx_of(ctx).peers[pe]) && !engine_reaches(ctx_of(ctx), pe, block_for(to)))
        return posted{0, XIO_ERR_ARG};
    }
    return posted{0, XIO_OK};
  });
  return found.status == XIO_OK;
}

// A root's own destination stays as it is, and the others' sources are not read. The block of an fcollect may lie in
// its place already.
XIO_DEVICE objection objection_to(const xio_ctx_t& ctx, const xio_team_t& t, const blocks& b) {
  const bool rooted = b.root != k_all_send;
  if (rooted && b.root >= t.n_pes) return {refusal::no_such_root, b.root};
  if (b.bytes == 0) return {};
  if (b.dst == nullptr || b.src == nullptr) return {refusal::null_pointer};
  // More than the heap has; and of less no product overflows.
  if (b.bytes > ctx.arena_bytes) return {refusal::not_symmetric, 0, b.bytes};
  const u64 out = b.dst_step == 0 ? b.bytes : b.dst_step * t.n_pes;
  if (!is_symmetric(ctx, b.dst, out)) return {refusal::not_symmetric, 0, out};
  const u64 in = b.alike ? b.bytes : b.src_step * t.n_pes;
  if (rooted || !overlap(b.dst, b.src, out, in)) return {};
  return b.alike && b.src == b.dst + t.my_pe * b.dst_step ? objection{} : objection{refusal::overlap};
}

// Large blocks go out of the caller's memory, packets out of the team's.
template <class Group>
XIO_DEVICE bool sources_reached(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, const blocks& b) {
  if (!has_engines(ctx) || !b.sends(t.my_pe)) return true;
  return is_symmetric(ctx, b.src, b.alike ? b.bytes : b.src_step * t.n_pes) || engines_reach(g, ctx, t, [&](u32 to) {
           return outgoing_block{nullptr, b.src + to * b.src_step, b.bytes};
         });
}

template <class Group>
XIO_DEVICE xio_status_t exchange_move(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, u32 tag,
                                      const blocks& b) {
  // Loaded first: it comes while the arguments are looked at.
  const channel_values found = load_channel(t);
  stated_call own{tag, objection_to(ctx, t, b)};
  exchange x;
  g.sync();
  if (own.is_good() && b.bytes <= t.packet_bytes) {
    if (!enter(g, t, tag, found, &x)) return refuse_channel(g, ctx, t, tag);
    return move_small(g, ctx, t, x, b);
  }
  if (own.is_good() && !sources_reached(g, ctx, t, b)) own.why = {refusal::unreachable};
  if (!enter(g, t, own.stated(), found, &x)) return refuse_channel(g, ctx, t, tag);
  return move_large(g, ctx, t, x, own, b);
}
template <class Group>
XIO_DEVICE xio_status_t move(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, u32 tag, const blocks& b) {
  return complete_call(g, ctx, t, exchange_move(g, ctx, t, tag, b));
}

}  // namespace xio::dev::teams
