// SPDX-License-Identifier: MIT
// How collectives are done; the calls are in device/collective.hpp.
#pragma once
#include <type_traits>

#include "xio/device/impl/team.hpp"
#include "xio/device/impl/work.hpp"
#include "xio/device/reduction.hpp"

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
    const signal_word header{mine, x.header(), XIO_SIGNAL_SET};
    status = first_of(status,
                      put_signal(g, ctx, mine + 1, out + 1, u64{words} * 8, header, static_cast<int>(pe), true).status);
  }
  return status;
}

// Takes what they sent: take(member, w, value) for each word.
template <class Group, class Count, class Take>
XIO_DEVICE xio_status_t take_packets(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, const exchange& x,
                                     Count&& words_from, Take&& take) {
  xio_status_t status = XIO_OK;
  for (u32 k = 0; k + 1 < t.n_pes; ++k) {
    const u32 from = other(t, k), words = words_from(from);
    for (u32 w = g.rank(); w <= words; w += g.count()) {
      u32 value;
      const xio_status_t one = wait_word(ctx, t, x, from, w, &value);
      status = first_of(status, one);
      if (one == XIO_OK && w != 0) take(from, w - 1, value);
    }
  }
  return status;
}

// The part of a collective that moves blocks: block(m) of this PE goes to place(m) at member m.
struct blocks {
  const unsigned char* src;
  u64 src_step;        // from one member's block to the next one's
  unsigned char* dst;  // by sender
  u64 dst_step;
  u64 bytes;
  u32 root;  // the only sender, or k_all_send
  XIO_DEVICE bool sends(u32 member) const { return root == ~u32{0} || root == member; }
};

template <class Group>
XIO_DEVICE xio_status_t move_small(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, const exchange& x,
                                   const blocks& b) {
  const u32 words = static_cast<u32>((b.bytes + 3) / 4), n = static_cast<u32>(b.bytes);
  const xio_status_t sent = send_packets(
      g, ctx, t, x, [&](u32) { return b.sends(t.my_pe) ? words : 0; },
      [&](u32 to, u32 w) { return rdma::source_word(b.src + to * b.src_step, w * 4, n); });
  const xio_status_t taken = take_packets(
      g, ctx, t, x, [&](u32 from) { return b.sends(from) ? words : 0; },
      [&](u32 from, u32 w, u32 value) { store_part(b.dst + from * b.dst_step, u64{w} * 4, b.bytes, value); });
  return first_of(sent, taken);
}

template <class Group>
XIO_DEVICE xio_status_t move_large(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, const exchange& x,
                                   const blocks& b) {
  xio_status_t status = XIO_OK;
  unsigned char* place = b.dst + t.my_pe * b.dst_step;
  for (u32 k = 0; b.sends(t.my_pe) && k + 1 < t.n_pes; ++k) {
    const u32 to = other(t, k), pe = pe_of(t, to);
    const unsigned char* from = b.src + to * b.src_step;
    if (unsigned char* there = direct_place(ctx, place, pe)) {
      direct::copy(g, there, from, b.bytes);
    } else {
      status = first_of(status, put(g, ctx, place, from, b.bytes, static_cast<int>(pe), false).status);
    }
  }
  // A header by an engine comes behind that engine's copies, wherever these went.
  const bool engines = (ctx.flags & ctx_all_mapped) == 0;
  if (engines) status = first_of(status, quiet(g, ctx));
  g.sync();
  status = first_of(status, send_headers(g, ctx, t, x));
  return first_of(status, wait_headers(g, ctx, t, x));
}

XIO_DEVICE bool is_symmetric(const xio_ctx_t& ctx, const void* p, u64 bytes) {
  u64 offset;
  return bytes == 0 || (p != nullptr && heap_offset(ctx, p, bytes, &offset));
}

template <class Group>
XIO_DEVICE xio_status_t move(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, u32 tag, const blocks& b) {
  const u64 all = b.dst_step == 0 ? b.bytes : b.dst_step * t.n_pes;
  const bool good =
      is_symmetric(ctx, b.dst, all) && (b.bytes == 0 || b.src != nullptr) && (b.root == ~u32{0} || b.root < t.n_pes);
  exchange x;
  if (!begin(g, t, good ? tag : k_refuses, &x)) return broken_status(t);
  if (!good) {
    const xio_status_t sent = send_headers(g, ctx, t, x);
    wait_headers(g, ctx, t, x);
    return end(g, t, x, first_of(sent, XIO_ERR_ARG));
  }
  if (b.root == ~u32{0} && b.bytes != 0)
    direct::copy(g, b.dst + t.my_pe * b.dst_step, b.src + t.my_pe * b.src_step, b.bytes);
  return end(g, t, x, b.bytes <= t.packet_bytes ? move_small(g, ctx, t, x, b) : move_large(g, ctx, t, x, b));
}

template <class Group>
XIO_DEVICE xio_status_t alltoall(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, void* dst, const void* src,
                                 u64 bytes) {
  if (!is_usable(ctx, t)) return XIO_ERR_STATE;
  const blocks b{
      static_cast<const unsigned char*>(src), bytes, static_cast<unsigned char*>(dst), bytes, bytes, ~u32{0}};
  return move(g, ctx, t, tag_of(op::alltoall, bytes), b);
}
template <class Group>
XIO_DEVICE xio_status_t fcollect(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, void* dst, const void* src,
                                 u64 bytes) {
  if (!is_usable(ctx, t)) return XIO_ERR_STATE;
  const blocks b{static_cast<const unsigned char*>(src), 0, static_cast<unsigned char*>(dst), bytes, bytes, ~u32{0}};
  return move(g, ctx, t, tag_of(op::fcollect, bytes), b);
}
template <class Group>
XIO_DEVICE xio_status_t broadcast(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, void* dst, const void* src,
                                  u64 bytes, int root) {
  if (!is_usable(ctx, t)) return XIO_ERR_STATE;
  // ~0 stands for all.
  const u32 from = root < 0 ? t.n_pes : static_cast<u32>(root);
  const blocks b{static_cast<const unsigned char*>(src), 0, static_cast<unsigned char*>(dst), 0, bytes, from};
  return move(g, ctx, t, tag_of(op::broadcast, bytes, from), b);
}

// --- Reduce ------------------------------------------------------------------------------------------

template <xio_reduction Op, class T>
XIO_DEVICE T reduced(T a, T b) {
  if constexpr (Op == xio_reduction::min) return b < a ? b : a;
  if constexpr (Op == xio_reduction::max) return a < b ? b : a;
  if constexpr (Op == xio_reduction::bit_and) return static_cast<T>(a & b);
  if constexpr (Op == xio_reduction::bit_or) return static_cast<T>(a | b);
  if constexpr (Op == xio_reduction::bit_xor) return static_cast<T>(a ^ b);
  if constexpr (std::is_integral_v<T>) {
    // Unsigned and at least 32 bits wide: wraps where signed numbers would overflow.
    const u64 x = static_cast<u64>(a), y = static_cast<u64>(b);
    if constexpr (Op == xio_reduction::sum) return static_cast<T>(x + y);
    if constexpr (Op == xio_reduction::prod) return static_cast<T>(x * y);
  } else {
    if constexpr (Op == xio_reduction::sum) return a + b;
    if constexpr (Op == xio_reduction::prod) return a * b;
  }
}

// One or several elements in whole words.
template <class T>
union reduce_unit {
  static constexpr u32 k_words = sizeof(T) > 4 ? sizeof(T) / 4 : 1;
  static constexpr u32 k_elements = sizeof(T) > 4 ? 1 : 4 / sizeof(T);
  u32 words[k_words];
  T elements[k_elements];
};

// A vector that fits packets: everybody sends all of it to everybody, and sums in the members' order, so that every
// member has the same result.
template <xio_reduction Op, class T, class Group>
XIO_DEVICE xio_status_t reduce_piece(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, const exchange& x,
                                     unsigned char* dst, const unsigned char* src, u32 bytes) {
  using unit = reduce_unit<T>;
  const u32 units = (bytes + sizeof(unit) - 1) / sizeof(unit), words = units * unit::k_words;
  xio_status_t status = send_packets(
      g, ctx, t, x, [&](u32) { return words; }, [&](u32, u32 w) { return rdma::source_word(src, w * 4, bytes); });
  g.sync();  // in place: all of it was sent
  for (u32 i = g.rank(); i < units; i += g.count()) {
    unit sum{};
    xio_status_t one = XIO_OK;
    for (u32 m = 0; m < t.n_pes; ++m) {
      unit part{};
      for (u32 k = 0; k < unit::k_words; ++k) {
        const u32 w = i * unit::k_words + k;
        if (m == t.my_pe) {
          part.words[k] = rdma::source_word(src, w * 4, bytes);
        } else {
          one = first_of(one, wait_word(ctx, t, x, m, w + 1, &part.words[k]));
        }
      }
      for (u32 e = 0; e < unit::k_elements; ++e)
        sum.elements[e] = m == 0 ? part.elements[e] : reduced<Op, T>(sum.elements[e], part.elements[e]);
    }
    status = first_of(status, one);
    for (u32 k = 0; one == XIO_OK && k < unit::k_words; ++k)
      store_part(dst, u64{i} * sizeof(unit) + k * 4, bytes, sum.words[k]);
  }
  return status;
}

template <xio_reduction Op, class T, class Group>
XIO_DEVICE xio_status_t reduce(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, T* dst, const T* src,
                               u64 count) {
  static_assert(std::is_arithmetic_v<T> && sizeof(T) <= 8, "a reduce takes integers, float and double");
  static_assert(std::is_integral_v<T> || Op < xio_reduction::bit_and, "and, or, xor take integers");
  if (!is_usable(ctx, t)) return XIO_ERR_STATE;
  const u64 bytes = count * sizeof(T);
  const u32 kind = static_cast<u32>(Op) << 5 | static_cast<u32>(sizeof(T)) | (std::is_integral_v<T> ? 0u : 16u);
  if (count == 0) return exchange_headers(g, ctx, t, tag_of(op::reduce, 0, kind));
  if (dst == nullptr || src == nullptr) {
    const xio_status_t others = exchange_headers(g, ctx, t, k_refuses);
    return first_of(others, XIO_ERR_ARG);
  }
  auto* to = reinterpret_cast<unsigned char*>(dst);
  const auto* from = reinterpret_cast<const unsigned char*>(src);
  xio_status_t status = XIO_OK;
  for (u64 at = 0; at < bytes && status == XIO_OK; at += t.packet_bytes) {
    const u64 left = bytes - at;
    exchange x;
    if (!begin(g, t, tag_of(op::reduce, bytes, kind), &x)) return broken_status(t);
    const u32 here = static_cast<u32>(left < t.packet_bytes ? left : t.packet_bytes);
    status = end(g, t, x, reduce_piece<Op, T>(g, ctx, t, x, to + at, from + at, here));
  }
  return status;
}

}  // namespace xio::dev::teams
