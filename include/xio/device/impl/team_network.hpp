// SPDX-License-Identifier: MIT
// Members that a network lies between reach each other by few messages (docs/teams.md): the steps that one thread
// makes.
//
// Casts. The data of a root goes down a binomial tree: a member at distance d behind the root has the parent d without
// its lowest bit. It hears its parent alone, so a cast is no exchange, and these hold:
//   - a cast belongs to the exchange before it, and there are k_casts at most before the next one. A member that casts
//     has heard all in that exchange, so all have taken what was cast before it, and each place is free again.
//   - a place has one writer, no matter which root is named: the member 2^r before this one writes to place r.
//   - a member that fails says so to all that may wait for it. The next exchange is refused for all (refuse_by_one), by
//     which those learn of it that had their data, and the one behind it can succeed.
#pragma once
#include "xio/device/impl/team.hpp"

namespace xio::dev::teams {

// Whether a network, or another engine, lies between this PE and a member. Two members have nothing to save.
XIO_DEVICE bool is_networked(const xio_team_t& t, const slim_ctx& ctx) {
  bool found = false;
  for (u32 k = 0; t.n_pes > 2 && k + 1 < t.n_pes; ++k)
    found = found || is_behind_engine(ctx.view->peers[pe_of(t, other(t, k))]);
  return found;
}
XIO_DEVICE bool goes_by_network(const xio_ctx_t& ctx, const xio_team_t& t) {
  return has_engines(ctx) && is_networked(t, slim_of(ctx));
}

XIO_DEVICE void await(const xio_team_t& t, u32 member_plus_1) {
  store<scope::agent, order::relaxed>(&state_of(t).awaited, member_plus_1);
}

// Rounds carry a size, or blocks of so many bytes, which are gathered: block i is that of the member i before this one.
struct load_of_rounds {
  u32 bytes;
  bool gathers;
};
XIO_OUT_OF_LINE xio_status_t carry_rounds(xio_team_t t, slim_ctx ctx, exchange x, load_of_rounds what) {
  u64* own = outgoing(t, x.epoch, 0);
  const auto size = [&](u32 round) { return round_word(t, x.epoch, k_round_sizes + round); };
  const auto send = [&](u32 round, u64 value, u32 to, u32 from) {
    const u32 pe = pe_of(t, to), have = 1u << round, lack = t.n_pes - have;
    await(t, from + 1);
    if (is_hole(ctx, pe)) return refuse_hole(t, *ctx.view, static_cast<u32>(value));
    outgoing_block b{size(round), own, what.bytes};
    if (what.gathers) b = {own + u64{have} * what.bytes / 8, own, u64{have < lack ? have : lack} * what.bytes};
    return put_word_by_one(b, *ctx.view, pe, round_word(t, x.epoch, round), value);
  };
  const bool compares = !what.gathers && what.bytes != 0;
  const xio_status_t status = go_round(ctx, t, x, send, [&](u32 round) {
    return !compares || load<scope::system, order::relaxed>(size(round)) == *own;
  });
  await(t, 0);
  return status;
}

// --- Casts -------------------------------------------------------------------------------------------

// The place where the parent of a member writes, or the number of rounds at the root.
XIO_DEVICE u32 tree_round(u32 member, u32 root, u32 n) {
  const u32 at = (member + n - root) % n;
  return at == 0 ? team_rounds_of(n) : lowest_bit(at);
}

struct cast {
  u64 epoch;   // of the exchange before it
  u32 number;  // of casts since then
  u32 tag, root, bytes;
  unsigned char* place;       // where the data lies at all but the root; null: behind the word
  const unsigned char* from;  // at the root

  XIO_DEVICE u32 flag() const { return static_cast<u32>(epoch) + 1; }
};
// How many there have been since exchange `epoch`.
XIO_DEVICE u32 casts_since(const xio_team_t& t, u64 epoch) {
  const channel_state& s = state_of(t);
  return load<scope::agent, order::relaxed>(&s.cast_epoch) == epoch ? load<scope::agent, order::relaxed>(&s.casts) : 0;
}
XIO_DEVICE u64* cast_word(const xio_team_t& t, u32 number, u32 round) {
  auto* first = static_cast<unsigned char*>(t.work) + team_casts_at(t.n_pes, t.packet_bytes, t.area_bytes);
  const u64 each = 16 + team_cast_bytes(t.packet_bytes);
  return reinterpret_cast<u64*>(first + (number * team_rounds_of(t.n_pes) + round) * each);
}
XIO_DEVICE unsigned char* data_behind(u64* word) { return reinterpret_cast<unsigned char*>(word + 2); }

// Waits for the parent, 2^round before this member: for its data, a word of another root's tree, or of an exchange that
// the parent is in instead. That comes behind its cast, if there is one.
XIO_DEVICE xio_status_t hear_cast(const slim_ctx& ctx, const xio_team_t& t, const cast& c, u32 round) {
  const auto before = [&](u32 r) { return (t.my_pe + t.n_pes - (1u << r)) % t.n_pes; };
  const auto has_come = [&](const u64* at, u64* word) {
    *word = load<scope::system, direct::k_watch_load>(at);
    return static_cast<u32>(*word >> 32) == c.flag();
  };
  u32 looks = 0, from = before(round);
  u64 word = 0;
  exchange x{c.epoch, c.tag, 0};
  await(t, from + 1);
  const xio_status_t status = poll_members<0>(ctx, t, x, [&] {
    if (has_come(cast_word(t, c.number, round), &word)) return true;
    if (++looks % 64 != 0) return false;
    bool other = has_come(message(t, c.epoch + 1, from), &word) || has_come(round_word(t, c.epoch + 1, round), &word);
    if (other) fence<scope::system, order::acquire>();
    // A word of an exchange is no cast, also with the same tag: members may reach each other by different ways.
    if (other && static_cast<u32>(word) == c.tag) word = u64{c.flag()} << 32 | k_refuses;
    u64 mine = 0;
    if (other && has_come(cast_word(t, c.number, round), &mine)) word = mine;
    for (u32 r = 0; (u64{1} << r) < t.n_pes && !other; ++r)
      if (r != round && (other = has_come(cast_word(t, c.number, r), &word) && !is_refusal(static_cast<u32>(word))))
        from = before(r);
    return other;
  });
  await(t, 0);
  fence<scope::system, order::acquire>();
  if (status != XIO_OK || static_cast<u32>(word) != c.tag)
    return tell_why(t, *ctx.view, u64{c.epoch} << 32 | c.tag, from, static_cast<u32>(word), status);
  return hdp_flush(ctx);
}

// Takes part in a cast, whose data at the root lies in registered memory, behind a release. `stated` is its tag, or the
// reason for which this member refuses it.
XIO_OUT_OF_LINE xio_status_t cast_by_one(xio_team_t t, slim_ctx ctx, cast c, u32 stated) {
  channel_state& s = state_of(t);
  const u32 n = t.n_pes, at = (t.my_pe + n - c.root) % n;
  const u32 rounds = tree_round(t.my_pe, c.root, n);
  store<scope::agent, order::relaxed>(&s.cast_epoch, c.epoch);
  store<scope::agent, order::relaxed>(&s.casts, c.number + 1);
  xio_status_t status = is_refusal(stated) ? XIO_ERR_ARG : XIO_OK;
  for (u32 k = 0; k + 1 < n; ++k)
    if (is_hole(ctx, pe_of(t, other(t, k)))) status = refuse_hole(t, *ctx.view, c.tag);
  const unsigned char* data = c.from;
  if (at != 0 && status == XIO_OK) {
    status = hear_cast(ctx, t, c, rounds);
    data = c.place != nullptr ? c.place : data_behind(cast_word(t, c.number, rounds));
    fence_before_stores<scope::system>();
  }
  const bool refuses = status == XIO_ERR_ARG;
  for (u32 r = refuses ? team_rounds_of(n) : rounds; r-- != 0 && was_heard(status);) {
    if (!refuses && at + (1u << r) >= n) continue;
    u64* word = cast_word(t, c.number, r);
    const outgoing_block b{c.place != nullptr ? c.place : data_behind(word), data, refuses ? 0 : c.bytes};
    const u32 said = !refuses ? c.tag : is_refusal(stated) ? stated : k_refuses;
    const xio_status_t sent =
        put_word_by_one(b, *ctx.view, pe_of(t, (t.my_pe + (1u << r)) % n), word, u64{c.flag()} << 32 | said);
    if (sent != XIO_OK) status = sent;
  }
  if (status != XIO_OK) store<scope::agent, order::relaxed>(&s.broken, static_cast<u32>(static_cast<int>(status)));
  return status;
}

}  // namespace xio::dev::teams
