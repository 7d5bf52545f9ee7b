// SPDX-License-Identifier: MIT
// Messages of a team's collective as packets: words of four bytes of data beside the number of the exchange, so that
// nothing has to come behind them.
#pragma once
#include "xio/device/impl/team.hpp"
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
    if (there != nullptr) continue;
    g.sync();
    if (!g.leader()) continue;
    const outgoing_block b{mine + 1, out + 1, u64{words} * 8};
    status = first_of(status, put_word_by_one(b, ctx_of(ctx), pe, mine, x.header()));
  }
  return status;
}

// Words of a message that one thread takes together: all are loaded before the first is looked at.
constexpr u32 k_taken_together = 4;

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
  const xio_status_t status = poll_members<2>(ctx, t, x, [&] {
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

// Takes what they sent: take(member, w, value) for each word.
template <class Group, class Count, class Take>
XIO_DEVICE xio_status_t take_packets(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, exchange& x,
                                     Count&& words_from, Take&& take) {
  xio_status_t status = XIO_OK;
  for (u32 k = 0; k + 1 < t.n_pes && was_heard(status); ++k) {
    const u32 from = other(t, k), words = words_from(from);
    // Word 0 is the header, which every thread that takes any sees anyway.
    if (words == 0 && g.rank() == k % g.count()) status = first_of(status, wait_header(ctx, t, x, from));
    for (u32 w = g.rank(); w < words && was_heard(status); w += k_taken_together * g.count()) {
      const u32 left = (words - w + g.count() - 1) / g.count();
      const u32 count = left < k_taken_together ? left : k_taken_together;
      u32 values[k_taken_together];
      const xio_status_t one = wait_words(ctx, t, x, from, {w + 1, g.count(), count}, values);
      status = first_of(status, one);
      XIO_UNROLL for (u32 i = 0; i < k_taken_together; ++i) if (one == XIO_OK && i < count)
          take(from, w + i * g.count(), values[i]);
    }
  }
  return status;
}

}  // namespace xio::dev::teams
