// SPDX-License-Identifier: MIT
// Messages of a team's collective as packets: words of four bytes of data beside the number of the exchange, so that
// nothing has to come behind them.
#pragma once
#include "xio/device/impl/team_network.hpp"
#include "xio/device/impl/work.hpp"

namespace xio::dev::teams {

// Stores bytes i .. i + 3 of a message of n bytes, as far as it has them. No alignment is asked of `to`.
XIO_DEVICE void store_part(unsigned char* to, u64 i, u64 n, u32 value) {
  if (i + 4 <= n && (reinterpret_cast<u64>(to + i) & 3) == 0) {
    *reinterpret_cast<u32*>(to + i) = value;
    return;
  }
  for (u32 k = 0; k < 4 && i + k < n; ++k) to[i + k] = static_cast<unsigned char>(value >> (8 * k));
}

// The header and `words` words to each of the others: word_of(member, w) is the data of word w. By stores where they
// are the way; else one copy, with the header behind it. words_to(member) may be 0.
template <class Group, class Count, class Word>
XIO_DEVICE xio_status_t send_packets(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, const exchange& x,
                                     Count&& words_to, Word&& word_of) {
  const u64 flagged = u64{x.flag()} << 32;
  u64* mine = message(t, x.epoch, t.my_pe);
  xio_status_t status = XIO_OK;
  for (u32 k = 0; k + 1 < t.n_pes; ++k) {
    const u32 to = other(t, k), words = words_to(to), pe = pe_of(t, to);
    unsigned char* there = direct_place(ctx, mine, pe);
    u64* out = there != nullptr ? reinterpret_cast<u64*>(there) : outgoing(t, x.epoch, to);
    for (u32 w = g.rank(); w <= words; w += g.count()) {
      const u64 value = w == 0 ? x.header() : flagged | word_of(to, w - 1);
      store<scope::system, direct::k_flag_store>(out + w, value);
    }
  }
  if (!has_engines(ctx)) return status;
  g.sync();
  for (u32 k = 0; g.leader() && k + 1 < t.n_pes; ++k) {
    const u32 to = other(t, k), pe = pe_of(t, to);
    if (is_hole(ctx, pe)) status = refuse_hole(t, ctx_of(ctx), x.tag);
    if (direct_place(ctx, mine, pe) != nullptr || status != XIO_OK) continue;
    const outgoing_block b{mine + 1, outgoing(t, x.epoch, to) + 1, u64{words_to(to)} * 8};
    status = first_of(status, put_word_by_one(b, ctx_of(ctx), pe, mine, x.header()));
  }
  return status;
}

// Words of a message that one thread takes together: all are loaded before the first is looked at.
constexpr u32 k_taken_together = 4;
// Looks at such a row in front of the loop.
constexpr u32 k_row_polls_in_line = k_polls_in_line < 2 ? k_polls_in_line : 2;

// Words first, first + step, ... of a message, `count` of them, 1 <= count <= k_taken_together.
struct word_row {
  u32 first, step, count;
};

// Waits for words of member `from`.
XIO_DEVICE xio_status_t wait_words(const xio_ctx_t& ctx, const xio_team_t& t, exchange& x, u32 from,
                                   const word_row& row, u32 (&values)[k_taken_together]) {
  const u64* in = message(t, x.epoch, from);
  const u32 flag = x.flag();
  u64 head = 0;
  const xio_status_t status = poll_members<k_row_polls_in_line>(ctx, t, x, [&] {
    u64 data[k_taken_together];
    head = load<scope::system, direct::k_watch_load>(in);
    XIO_UNROLL for (u32 k = 0; k < k_taken_together; ++k) data[k] =
        load<scope::system, direct::k_watch_load>(in + row.first + (k < row.count ? k : 0) * row.step);
    bool all = static_cast<u32>(head >> 32) == flag;
    if (all && static_cast<u32>(head) != x.tag) return true;
    XIO_UNROLL for (u32 k = 0; k < k_taken_together; ++k) {
      values[k] = static_cast<u32>(data[k]);
      all = all && static_cast<u32>(data[k] >> 32) == flag;
    }
    return all;
  });
  return said_of(ctx, t, x, from, head, status);
}

// Waits for all headers, a few at a time.
XIO_DEVICE xio_status_t hear_all(const xio_ctx_t& ctx, const xio_team_t& t, exchange& x) {
  xio_status_t status = XIO_OK;
  XIO_ROLLED for (u32 base = 0; base + 1 < t.n_pes && was_heard(status); base += k_taken_together) {
    const auto member = [&](u32 i) { return other(t, base + i + 1 < t.n_pes ? base + i : base); };
    const u64* at[k_taken_together];
    u64 heads[k_taken_together];
    XIO_UNROLL for (u32 i = 0; i < k_taken_together; ++i) at[i] = message(t, x.epoch, member(i));
    const xio_status_t one = poll_members<k_row_polls_in_line>(ctx, t, x, [&] {
      XIO_UNROLL for (u32 i = 0; i < k_taken_together; ++i) heads[i] = load<scope::system, direct::k_watch_load>(at[i]);
      bool all = true;
      XIO_UNROLL for (u32 i = 0; i < k_taken_together; ++i) all = all && static_cast<u32>(heads[i] >> 32) == x.flag();
      return all;
    });
    XIO_UNROLL for (u32 i = 0; i < k_taken_together; ++i) {
      const bool has_come = static_cast<u32>(heads[i] >> 32) == x.flag();
      if (has_come == (one == XIO_OK)) status = first_of(status, said_of(ctx, t, x, member(i), heads[i], one));
    }
    status = first_of(status, one);
  }
  return status;
}

// Takes the words that the others sent: take(member, w, value) for each. Nothing is taken before all members are known
// to be in one call.
template <class Group, class Count, class Take>
XIO_DEVICE xio_status_t take_packets(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, exchange& x,
                                     Count&& words_from, Take&& take) {
  // Of two members, those who take words of the other look at its header by that.
  xio_status_t status = t.n_pes > 2 ? hear_all(ctx, t, x) : XIO_OK;
  if (status != XIO_OK) return status;
  for (u32 k = 0; k + 1 < t.n_pes && was_heard(status); ++k) {
    const u32 from = other(t, k), words = words_from(from);
    if (words == 0 && t.n_pes == 2 && g.leader()) status = wait_header(ctx, t, x, from);
    for (u32 w = g.rank(); w < words && was_heard(status); w += k_taken_together * g.count()) {
      const u32 left = (words - w + g.count() - 1) / g.count();
      const u32 count = left < k_taken_together ? left : k_taken_together;
      u32 values[k_taken_together];
      const xio_status_t one = wait_words(ctx, t, x, from, {w + 1, g.count(), count}, values);
      status = first_of(status, one);
      XIO_UNROLL for (u32 i = 0; i < k_taken_together; ++i) if (status == XIO_OK && i < count)
          take(from, w + i * g.count(), values[i]);
    }
  }
  return status;
}

// A member says this in the first exchange of a call that writes to members' memory behind it.
struct statement {
  stated_call call;
  u64 bytes;
  u32 words;  // of packets with the size: 2 where the tag does not have all of it

  XIO_DEVICE statement(const stated_call& own, u64 size)
      : call(own), bytes(size), words((own.stated() & k_tag_folded) != 0 ? 2 : 0) {}
  XIO_DEVICE u32 part(u32 w) const { return static_cast<u32>(bytes >> (32 * w)); }
};

// To one member, by one thread.
XIO_DEVICE xio_status_t send_statement(const xio_ctx_t& ctx, const xio_team_t& t, const exchange& x,
                                       const statement& own, u32 to) {
  u64* mine = message(t, x.epoch, t.my_pe);
  const u32 pe = pe_of(t, to);
  if (is_hole(ctx, pe)) return refuse_hole(t, ctx_of(ctx), x.tag);
  unsigned char* there = direct_place(ctx, mine, pe);
  u64* out = there != nullptr ? reinterpret_cast<u64*>(there) : outgoing(t, x.epoch, to);
  for (u32 w = 0; w < own.words; ++w) store<scope::system, direct::k_flag_store>(out + 1 + w, x.flagged(own.part(w)));
  if (there == nullptr)
    return put_word_by_one({mine + 1, out + 1, u64{own.words} * 8}, ctx_of(ctx), pe, mine, x.header());
  store<scope::system, direct::k_flag_store>(out, x.header());
  return XIO_OK;
}

// Waits for that of member `from`.
XIO_DEVICE xio_status_t hear_statement(const xio_ctx_t& ctx, const xio_team_t& t, exchange& x, const statement& own,
                                       u32 from) {
  if (own.words == 0) return wait_header(ctx, t, x, from);
  u32 values[k_taken_together];
  const xio_status_t status = wait_words(ctx, t, x, from, {1, 1, own.words}, values);
  if (status != XIO_OK || (values[0] == own.part(0) && values[1] == own.part(1))) return status;
  return tell_why(t, ctx_of(ctx), x.header(), from, x.tag, XIO_OK);
}

// An exchange of rounds that carry something, which the group has stored in outgoing(t, x.epoch, 0).
template <class Group>
XIO_DEVICE xio_status_t carry_and_end(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, const exchange& x,
                                      const stated_call& own, load_of_rounds load) {
  fence<scope::system, order::release>();
  g.sync();
  xio_status_t status = g.leader() ? carry_rounds(t, slim_of(ctx), x, load) : XIO_OK;
  if (!own.is_good() && was_heard(status)) status = refuse_own(g, ctx, t, own.tag, own.why);
  status = end(g, t, x, status);
  fence<scope::system, order::acquire>();
  return status;
}

template <class Group>
XIO_SLOW_PATH xio_status_t agree_in_rounds(Group g, xio_ctx_t ctx, xio_team_t t, exchange x, statement own) {
  if (g.leader()) store<scope::system, order::relaxed>(outgoing(t, x.epoch, 0), own.bytes);
  return carry_and_end(g, ctx, t, x, own.call, {own.words * 4, false});
}

// That exchange. XIO_OK: all members are in one call, and find no fault with their arguments.
template <class Group>
XIO_DEVICE xio_status_t agree(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, exchange& x,
                              const statement& own) {
  if (t.n_pes > k_all_to_all && goes_by_network(ctx, t)) [[unlikely]]
    return agree_in_rounds(g, ctx, t, x, own);
  xio_status_t sent = XIO_OK, heard = XIO_OK;
  for (u32 k = g.rank(); k + 1 < t.n_pes; k += g.count())
    sent = first_of(sent, send_statement(ctx, t, x, own, other(t, k)));
  for (u32 k = g.rank(); k + 1 < t.n_pes && was_heard(heard); k += g.count())
    heard = first_of(heard, hear_statement(ctx, t, x, own, other(t, k)));
  if (!own.call.is_good() && was_heard(heard)) heard = refuse_own(g, ctx, t, own.call.tag, own.call.why);
  return end(g, t, x, first_of(sent, heard));
}

}  // namespace xio::dev::teams
