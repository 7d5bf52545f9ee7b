// SPDX-License-Identifier: MIT
// How members reach each other where a network lies between them: by few messages, for one costs as much as kilobytes
// do. The steps that one thread makes, out of line; docs/teams.md has the laws and their reasons.
//
// Rounds. In round r a member sends to the one 2^r behind it, and hears the one 2^r before it. Each has then heard of
// all, as in go_round; a size that all compare goes with the words, or the blocks that the sender has so far.
//
// Casts. The data of a root goes down a binomial tree: a member at distance d behind the root has the parent d without
// its lowest bit. A member hears its parent alone, so a cast is no exchange, and these hold:
//   - a cast belongs to the exchange before it, and there are k_casts at most before the next one. A member that casts
//     has heard all in that exchange, so all have taken what was cast before it, and each place is free again.
//   - a place of a cast has one writer, no matter which root is named: the member 2^r before this one writes to place
//   r.
//   - a member that finds another call than its own, or refuses its arguments, says so in the word of the next
//   exchange,
//     to all: members that wait for the same cast look there. Those who had their data already learn of it by that
//     exchange: it is refused for all (refuse_by_one), and the one behind it can succeed.
#pragma once
#include "xio/device/impl/team.hpp"

namespace xio::dev::teams {

// Whether a network, or another engine, lies between this PE and a member. Two members have nothing to save.
XIO_OUT_OF_LINE bool is_networked(xio_team_t t, slim_ctx ctx) {
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

// --- Rounds ------------------------------------------------------------------------------------------

// `bytes` of a size, or of each block that is gathered: they lie in outgoing(t, epoch, 0), where block i is that of the
// member i before this one. Of two exchanges that take turns, as words are.
struct carried_rounds {
  const slim_ctx& ctx;
  const xio_team_t& t;
  u64 epoch;
  u32 bytes;
  bool gathers;

  XIO_DEVICE u64* own() const { return outgoing(t, epoch, 0); }
  XIO_DEVICE u64* size(u32 round) const { return round_word(t, epoch, k_round_sizes + round); }
  XIO_DEVICE outgoing_block block(u32 round) const {
    if (!gathers) return {size(round), own(), bytes};
    const u32 have = 1u << round, lack = t.n_pes - have;
    return {reinterpret_cast<unsigned char*>(own()) + u64{have} * bytes, own(), u64{have < lack ? have : lack} * bytes};
  }
  XIO_DEVICE xio_status_t send(u32 round, u64 value, u32 to, u32 from) const {
    const u32 pe = pe_of(t, to);
    await(t, from + 1);
    if (is_hole(ctx, pe)) return refuse_hole(t, *ctx.view, static_cast<u32>(value));
    return put_word_by_one(block(round), *ctx.view, pe, round_word(t, epoch, round), value);
  }
  XIO_DEVICE bool is_alike(u32 round) const {
    return gathers || bytes == 0 || load<scope::system, order::relaxed>(size(round)) == *own();
  }
};

XIO_OUT_OF_LINE xio_status_t carry_rounds(xio_team_t t, slim_ctx ctx, exchange x, u32 bytes, bool gathers) {
  const xio_status_t status = go_round(ctx, t, x, carried_rounds{ctx, t, x.epoch, bytes, gathers});
  await(t, 0);
  return status;
}

// --- Casts -------------------------------------------------------------------------------------------

struct cast {
  u64 epoch;   // of the exchange before it
  u32 number;  // of casts since then
  u32 tag, root, bytes;
  unsigned char* place;       // where the data lies at all but the root; null: behind the word
  const unsigned char* from;  // at the root

  XIO_DEVICE u32 flag() const { return static_cast<u32>(epoch) + 1; }
  XIO_DEVICE u64 flagged(u32 value) const { return (u64{flag()} << 32) | value; }
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

XIO_DEVICE bool is_of(u64 word, u32 flag) { return static_cast<u32>(word >> 32) == flag; }
// Another call than this cast, by a member that says so to all, or by one whose cast has to come first.
struct contradiction {
  u32 from, tag;
  bool is_there;
};
XIO_DEVICE contradiction contradiction_of(const xio_team_t& t, const cast& c, u32 round, u32 parent) {
  contradiction found{0, 0, false};
  for (u32 r = 0; (u64{1} << r) < t.n_pes; ++r) {
    const u64 word = load<scope::system, order::relaxed>(cast_word(t, c.number, r));
    if (r != round && is_of(word, c.flag()))
      found = {(t.my_pe + t.n_pes - (1u << r)) % t.n_pes, static_cast<u32>(word), true};
  }
  for (u32 k = 0; k + 1 < t.n_pes; ++k) {
    const u32 from = other(t, k);
    const u64 word = load<scope::system, order::relaxed>(message(t, u64{c.epoch} + 1, from));
    if (!is_of(word, c.flag())) continue;
    const u32 tag = static_cast<u32>(word), refused = is_refusal(tag) ? (tag & k_tag_cast) >> k_tag_cast_shift : 0;
    const bool counts = refused == c.number + 1 || (from == parent && (refused == 0 || refused > c.number + 1));
    // Of several the one that says why.
    if (counts && (!found.is_there || (tag & ~k_tag_cast) != k_refuses)) found = {from, tag, true};
  }
  const u64 word = load<scope::system, order::relaxed>(round_word(t, c.epoch + 1, round));
  if (is_of(word, c.flag()) && !found.is_there) found = {parent, static_cast<u32>(word), true};
  return found;
}

// Waits for the parent, 2^round before this member. *is_reported: the member
// that found a mistake has told all of it.
XIO_DEVICE xio_status_t hear_cast(const slim_ctx& ctx, const xio_team_t& t, const cast& c, u32 round,
                                  bool* is_reported) {
  const u32 parent = (t.my_pe + t.n_pes - (1u << round)) % t.n_pes;
  const u64* place = cast_word(t, c.number, round);
  exchange x{c.epoch, c.tag, 0};
  contradiction other{0, 0, false};
  u64 word = 0;
  u32 looks = 0;
  await(t, parent + 1);
  const xio_status_t status = poll_members<0>(ctx, t, x, [&] {
    if (++looks % 64 == 0) other = contradiction_of(t, c, round, parent);
    // A contradiction comes behind the parent's word, if that comes.
    if (other.is_there) fence<scope::system, order::acquire>();
    word = load<scope::system, direct::k_watch_load>(place);
    return is_of(word, c.flag()) || other.is_there;
  });
  await(t, 0);
  fence<scope::system, order::acquire>();
  if (status == XIO_OK && static_cast<u32>(word) == c.tag && is_of(word, c.flag())) return hdp_flush(ctx);
  if (is_of(word, c.flag()) || !other.is_there) other = {parent, static_cast<u32>(word), false};
  *is_reported = other.is_there && is_refusal(other.tag);
  return tell_why(t, *ctx.view, x.header(), other.from, other.tag, status);
}

// Says why, in the word of the next exchange, which refuse_by_one makes. Not where another member has
// reported it to all.
XIO_DEVICE void refuse_cast(const slim_ctx& ctx, const xio_team_t& t, const cast& c, u32 why, bool is_reported) {
  const exchange next{c.epoch + 1, why | (c.number + 1) << k_tag_cast_shift, 0};
  store<scope::agent, order::relaxed>(&state_of(t).refused, next.tag);
  if (!is_reported) send_headers(thread_group::here(), ctx, t, next);
}

// Takes part in a cast, whose data at the root lies in registered memory, behind a release.
XIO_DEVICE xio_status_t pass_on(const slim_ctx& ctx, const xio_team_t& t, const cast& c, bool* is_reported) {
  const u32 n = t.n_pes, at = (t.my_pe + n - c.root) % n;
  u32 rounds = team_rounds_of(n);
  const unsigned char* data = c.from;
  if (at != 0) {
    for (rounds = 0; (at >> rounds & 1) == 0;) ++rounds;
    if (const xio_status_t heard = hear_cast(ctx, t, c, rounds, is_reported); heard != XIO_OK) return heard;
    data = c.place != nullptr ? c.place : data_behind(cast_word(t, c.number, rounds));
    fence_before_stores<scope::system>();
  }
  xio_status_t status = XIO_OK;
  for (u32 r = rounds; r-- != 0 && status == XIO_OK;) {
    if (at + (1u << r) >= n) continue;
    u64* word = cast_word(t, c.number, r);
    const outgoing_block b{c.place != nullptr ? c.place : data_behind(word), data, c.bytes};
    status = put_word_by_one(b, *ctx.view, pe_of(t, (t.my_pe + (1u << r)) % n), word, c.flagged(c.tag));
  }
  return status;
}

XIO_OUT_OF_LINE xio_status_t cast_by_one(xio_team_t t, slim_ctx ctx, cast c, u32 stated) {
  channel_state& s = state_of(t);
  store<scope::agent, order::relaxed>(&s.cast_epoch, c.epoch);
  store<scope::agent, order::relaxed>(&s.casts, c.number + 1);
  xio_status_t status = XIO_OK;
  for (u32 k = 0; k + 1 < t.n_pes; ++k)
    if (is_hole(ctx, pe_of(t, other(t, k)))) status = refuse_hole(t, *ctx.view, c.tag);
  const bool refuses = is_refusal(stated);
  bool is_reported = false;
  if (status == XIO_OK) status = refuses ? XIO_ERR_ARG : pass_on(ctx, t, c, &is_reported);
  if (status == XIO_ERR_ARG) refuse_cast(ctx, t, c, refuses ? stated : k_refuses, is_reported);
  if (status != XIO_OK) store<scope::agent, order::relaxed>(&s.broken, static_cast<u32>(static_cast<int>(status)));
  return status;
}

}  // namespace xio::dev::teams
