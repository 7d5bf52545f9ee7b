// SPDX-License-Identifier: MIT
// The collectives that move blocks, and how broadcast and fcollect do it over a network (team_network.hpp).
#pragma once
#include "xio/device/impl/team_move.hpp"

namespace xio::dev::teams {

// By the whole group, for what fits packets: block i of `count` blocks from from(i) to to(i).
template <class Group, class From, class To>
XIO_DEVICE void copy_words(const Group& g, u32 count, u32 bytes, const From& from, const To& to) {
  const u32 words = (bytes + 3) / 4;
  XIO_ROLLED for (u32 i = g.rank(); i < count * words; i += g.count()) {
    const u32 block = i / words, at = i % words * 4;
    store_part(to(block), at, bytes, rdma::source_word(from(block), at, bytes));
  }
}

// --- fcollect ----------------------------------------------------------------------------------------

// Blocks up to packets of more than k_all_to_all members: in rounds, by the team's memory. log2 n messages of a member
// instead of n - 1, and as many bytes. For fewer members one way of the link is less than rounds are.
template <class Group>
XIO_SLOW_PATH xio_status_t gather_in_rounds(Group g, xio_ctx_t ctx, xio_team_t t, u32 tag, blocks b) {
  const channel_values found = load_channel(t);
  const stated_call own{tag, objection_to(ctx, t, b)};
  exchange x;
  g.sync();
  if (!enter(g, t, own.stated(), found, &x)) return refuse_channel(g, ctx, t, tag);
  const u32 n = t.n_pes, bytes = static_cast<u32>(b.bytes), each = (bytes + 7) / 8 * 8;
  auto* gathered = reinterpret_cast<unsigned char*>(outgoing(t, x.epoch, 0));
  if (own.is_good()) {
    copy_words(
        g, 1, bytes, [=](u32) { return b.src; }, [=](u32) { return gathered; });
    fence<scope::system, order::release>();
  }
  g.sync();
  xio_status_t status = g.leader() ? carry_rounds(t, slim_of(ctx), x, each, true) : XIO_OK;
  if (!own.is_good() && was_heard(status)) status = refuse_own(g, ctx, t, tag, own.why);
  status = end(g, t, x, status);
  if (status != XIO_OK) return status;
  fence<scope::system, order::acquire>();
  copy_words(
      g, n, bytes, [=](u32 m) { return gathered + u64{(t.my_pe + n - m) % n} * each; },
      [=](u32 m) { return b.dst + m * b.dst_step; });
  g.sync();
  return XIO_OK;
}

// --- Broadcast ---------------------------------------------------------------------------------------

// A tree takes log2 n messages and ways of the link with all of the data, shares n messages and two ways with all of it
// twice: it gains where the data of a share takes longer than a message does.
XIO_DEVICE bool takes_shares(const xio_team_t& t, u64 bytes) { return bytes > u64{256} * t.n_pes; }

// The root sends a share to each other member, which sends it on to all but the root, to which it sends the word alone.
template <class Group>
XIO_DEVICE xio_status_t broadcast_shares(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, exchange& x,
                                         const blocks& b) {
  const u32 n = t.n_pes, me = t.my_pe, root = b.root;
  const u64 each = ((b.bytes + n - 2) / (n - 1) + 127) & ~u64{127}, bytes = b.bytes;
  const auto share = [=](u32 m, const unsigned char* from) {
    const u64 at = each * ((m + n - root - 1) % n);
    return outgoing_block{b.dst + at, from + at, at >= bytes ? 0 : bytes - at < each ? bytes - at : each};
  };
  go_on(g, t, &x);
  xio_status_t status = XIO_OK;
  if (me != root) {
    await(t, root + 1);
    status = by_leader(g, [&] { return posted{0, wait_header(ctx, t, x, root)}; }).status;
    await(t, 0);
    fence<scope::system, order::acquire>();
  }
  if (status == XIO_OK)
    status = send_blocks(g, ctx, t, x, [=](u32 to) {
      return me == root ? share(to, b.src) : to == root ? outgoing_block{b.dst, b.dst, 0} : share(me, b.dst);
    });
  return end(g, t, x, first_of(status, wait_headers(g, ctx, t, x)));
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
  const bool refused_before = found.broken == static_cast<u32>(static_cast<int>(XIO_ERR_ARG));
  if (alone) {
    if (found.team != mark_of(t.token, t.id) || (found.broken != 0 && !refused_before))
      return refuse_channel(g, ctx, t, tag);
    if (!own.is_good()) refuse_own(g, ctx, t, tag, own.why);
  } else {
    if (!enter(g, t, own.stated(), found, &x)) return refuse_channel(g, ctx, t, tag);
    const xio_status_t status = agree_in_rounds(g, ctx, t, x, {own, b.bytes});
    if (status != XIO_OK || b.bytes == 0) return status;
    if (takes_shares(t, b.bytes)) return broadcast_shares(g, ctx, t, x, b);
  }
  const u32 bytes = static_cast<u32>(b.bytes), number = alone ? casts : 0;
  const bool sends = own.is_good() && b.root == t.my_pe;
  cast c{x.epoch, number, tag, b.root, bytes, alone ? nullptr : b.dst, b.src};
  if (alone) c.from = reinterpret_cast<unsigned char*>(outgoing(t, x.epoch, 0));
  if (alone && sends)
    copy_words(
        g, 1, bytes, [=](u32) { return b.src; }, [=](u32) { return const_cast<unsigned char*>(c.from); });
  fence<scope::system, order::release>();
  const xio_status_t status = by_leader(g, [&] {
                                return posted{0, cast_by_one(t, slim_of(ctx), c, own.stated())};
                              }).status;
  fence<scope::system, order::acquire>();
  if (status == XIO_OK && alone && !sends) {
    u32 round = 0;
    for (const u32 at = (t.my_pe + t.n_pes - b.root) % t.n_pes; (at >> round & 1) == 0;) ++round;
    const unsigned char* data = data_behind(cast_word(t, number, round));
    copy_words(
        g, 1, bytes, [=](u32) { return data; }, [=](u32) { return b.dst; });
  }
  g.sync();
  return status;
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
  const u32 tag = tag_of(op::fcollect, a.bytes);
  const blocks b = blocks_of(a, true, a.bytes, k_all_send);
  if (t.n_pes > k_all_to_all && a.bytes <= t.packet_bytes && goes_by_network(ctx, t)) [[unlikely]]
    return complete_call(g, ctx, t, gather_in_rounds(g, ctx, t, tag, b));
  return move(g, ctx, t, tag, b);
}
template <class Group>
XIO_DEVICE xio_status_t broadcast(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, call_copy a, int root) {
  if (const xio_status_t wrong = check_team(ctx, t, op::broadcast); wrong != XIO_OK) return wrong;
  const u32 from = static_cast<u32>(root) == k_all_send ? t.n_pes : static_cast<u32>(root);
  const u32 tag = tag_of(op::broadcast, a.bytes, from);
  const blocks b = blocks_of(a, true, 0, from);
  if (goes_by_network(ctx, t)) [[unlikely]]
    return complete_call(g, ctx, t, broadcast_by_network(g, ctx, t, tag, b));
  return move(g, ctx, t, tag, b);
}

}  // namespace xio::dev::teams
