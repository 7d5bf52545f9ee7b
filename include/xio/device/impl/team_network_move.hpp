// SPDX-License-Identifier: MIT
// The collectives that move blocks, and how broadcast and fcollect do it over a network (team_network.hpp).
#pragma once
#include "xio/device/impl/team_move.hpp"

namespace xio::dev::teams {

// By the whole group, for data as small as packets: block i of `count` blocks from from(i) to to(i).
template <class Group, class From, class To>
XIO_DEVICE void copy_words(const Group& g, u32 count, u32 bytes, const From& from, const To& to) {
  const u32 words = (bytes + 3) / 4;
  XIO_ROLLED for (u32 i = g.rank(); i < count * words; i += g.count()) {
    const u32 block = i / words, at = i % words * 4;
    store_part(to(block), at, bytes, rdma::source_word(from(block), at, bytes));
  }
}

// An fcollect of small blocks: in rounds, by the team's memory.
template <class Group>
XIO_SLOW_PATH xio_status_t gather_in_rounds(Group g, xio_ctx_t ctx, xio_team_t t, u32 tag, blocks b) {
  const channel_values found = load_channel(t);
  const stated_call own{tag, objection_to(ctx, t, b)};
  exchange x;
  g.sync();
  if (!enter(g, t, own.stated(), found, &x)) return refuse_channel(g, ctx, t, tag);
  const u32 n = t.n_pes, bytes = static_cast<u32>(b.bytes), each = (bytes + 7) / 8 * 8;
  auto* gathered = reinterpret_cast<unsigned char*>(outgoing(t, x.epoch, 0));
  if (own.is_good())
    copy_words(
        g, 1, bytes, [=](u32) { return b.src; }, [=](u32) { return gathered; });
  const xio_status_t status = carry_and_end(g, ctx, t, x, own, {each, true});
  if (status != XIO_OK) return status;
  copy_words(
      g, n, bytes, [=](u32 m) { return gathered + u64{(t.my_pe + n - m) % n} * each; },
      [=](u32 m) { return b.dst + m * b.dst_step; });
  g.sync();
  return XIO_OK;
}

// The root sends a share to each other member, which sends it on to all but the root, to which it sends the word alone.
template <class Group>
XIO_DEVICE xio_status_t broadcast_shares(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, exchange& x,
                                         const blocks& b) {
  const u32 n = t.n_pes, me = t.my_pe, root = b.root;
  const u64 each = ((b.bytes + n - 2) / (n - 1) + 127) & ~u64{127}, bytes = b.bytes;
  go_on(g, t, &x);
  xio_status_t status = XIO_OK;
  if (me != root) {
    status = by_leader(g, [&] {
               const xio_status_t heard = wait_header(ctx, t, x, root);
               fence<scope::system, order::acquire>();
               return posted{0, heard == XIO_OK ? hdp_flush(ctx) : heard};
             }).status;
    fence<scope::system, order::acquire>();
  }
  if (status == XIO_OK)
    status = send_blocks(g, ctx, t, x, [=](u32 to) {
      const u64 at = each * (((me == root ? to : me) + n - root - 1) % n);
      const u64 here = to == root || at >= bytes ? 0 : bytes - at < each ? bytes - at : each;
      return outgoing_block{b.dst + at, (me == root ? b.src : b.dst) + at, here};
    });
  return end(g, t, x, status == XIO_OK ? wait_headers(g, ctx, t, x) : status);
}

template <class Group>
XIO_SLOW_PATH xio_status_t broadcast_by_network(Group g, xio_ctx_t ctx, xio_team_t t, u32 tag, blocks b) {
  const channel_values found = load_channel(t);
  const u32 casts = casts_since(t, found.epoch);
  stated_call own{tag, objection_to(ctx, t, b)};
  // Without an exchange: the data goes by the team's memory.
  const bool alone = b.bytes != 0 && b.bytes <= team_cast_bytes(t.packet_bytes) && casts < k_casts;
  if (!alone && own.is_good() && !sources_reached(g, ctx, t, b)) own.why = {refusal::unreachable};
  exchange x{found.epoch, tag, 0};
  g.sync();
  if (alone) {
    const bool refused_before = found.broken == static_cast<u32>(static_cast<int>(XIO_ERR_ARG));
    if (found.team != mark_of(t.token, t.id) || (found.broken != 0 && !refused_before))
      return refuse_channel(g, ctx, t, tag);
    if (!own.is_good()) refuse_own(g, ctx, t, tag, own.why);
  } else {
    if (!enter(g, t, own.stated(), found, &x)) return refuse_channel(g, ctx, t, tag);
    const xio_status_t status = agree_in_rounds(g, ctx, t, x, {own, b.bytes});
    if (status != XIO_OK || b.bytes == 0) return status;
    // A tree takes log2 n ways with all of the data, shares n messages and two ways: for more than a message costs.
    if (b.bytes > u64{256} * t.n_pes) return broadcast_shares(g, ctx, t, x, b);
  }
  const u32 bytes = static_cast<u32>(b.bytes), me = t.my_pe;
  const bool sends = own.is_good() && b.root == me;
  auto* own_copy = reinterpret_cast<unsigned char*>(outgoing(t, x.epoch, 0));
  if (alone && sends)
    copy_words(
        g, 1, bytes, [=](u32) { return b.src; }, [=](u32) { return own_copy; });
  fence<scope::system, order::release>();
  const cast c{x.epoch, alone ? casts : 0, tag, b.root, bytes, alone ? nullptr : b.dst, alone ? own_copy : b.src};
  const posted done = by_leader(g, [&] { return posted{0, cast_by_one(t, slim_of(ctx), c, own.stated())}; });
  fence<scope::system, order::acquire>();
  if (done.status == XIO_OK && alone && !sends) {
    const unsigned char* data = data_behind(cast_word(t, casts, tree_round(me, b.root, t.n_pes)));
    copy_words(
        g, 1, bytes, [=](u32) { return data; }, [=](u32) { return b.dst; });
  }
  g.sync();
  return done.status;
}

// An fcollect (Gathers) or a broadcast.
template <bool Gathers, class Group>
XIO_DEVICE xio_status_t move_by_network(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, u32 tag,
                                        const blocks& b) {
  const bool is_small = b.bytes <= t.packet_bytes;
  // One way in which all hear of a wrong member is worth n (n - 1) messages while n is small.
  const bool saves = Gathers ? is_small && t.n_pes > k_all_to_all : !is_small || t.n_pes >= k_least_cast;
  if (saves && goes_by_network(ctx, t)) [[unlikely]]
    return complete_call(g, ctx, t,
                         Gathers ? gather_in_rounds(g, ctx, t, tag, b) : broadcast_by_network(g, ctx, t, tag, b));
  return move(g, ctx, t, tag, b);
}
template <bool Gathers, class Group>
XIO_SLOW_PATH xio_status_t move_by_engines(Group g, xio_ctx_t ctx, xio_team_t t, u32 tag, blocks b) {
  return move_by_network<Gathers>(g, ctx, t, tag, b);
}
template <bool Gathers, class Group>
XIO_DEVICE xio_status_t move_anywhere(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, u32 tag,
                                      const blocks& b) {
  if constexpr (!k_engines_apart) return move_by_network<Gathers>(g, ctx, t, tag, b);
  return has_engines(ctx) ? move_by_engines<Gathers>(g, ctx, t, tag, b) : move(g, ctx, t, tag, b);
}

// --- The calls ---------------------------------------------------------------------------------------

template <class Group>
XIO_DEVICE xio_status_t alltoall(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, call_copy a) {
  if (const xio_status_t wrong = check_team(ctx, t, op::alltoall); wrong != XIO_OK) return wrong;
  return move(g, ctx, t, tag_of(op::alltoall, a.bytes), blocks_of(a, false, a.bytes, k_all_send));
}
template <class Group>
XIO_DEVICE xio_status_t fcollect(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, call_copy a) {
  if (const xio_status_t wrong = check_team(ctx, t, op::fcollect); wrong != XIO_OK) return wrong;
  return move_anywhere<true>(g, ctx, t, tag_of(op::fcollect, a.bytes), blocks_of(a, true, a.bytes, k_all_send));
}
template <class Group>
XIO_DEVICE xio_status_t broadcast(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, call_copy a, int root) {
  if (const xio_status_t wrong = check_team(ctx, t, op::broadcast); wrong != XIO_OK) return wrong;
  const u32 from = static_cast<u32>(root) == k_all_send ? t.n_pes : static_cast<u32>(root);
  return move_anywhere<false>(g, ctx, t, tag_of(op::broadcast, a.bytes, from), blocks_of(a, true, 0, from));
}

}  // namespace xio::dev::teams
