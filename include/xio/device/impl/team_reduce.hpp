// SPDX-License-Identifier: MIT
// The reduces of a team. All ways combine each element in the members' order at one place or by the same steps at all,
// so that every member has the same bits. Ways by size, the same at every member:
//   packets     all to all (team_packets.hpp)
//   parts       all of it into an area of every other member, a word behind it, and each combines (one exchange)
//   reading     each member combines its share out of all members' sources, and stores it to all: two exchanges
//   getting     the same by engines, where they are the way to some member: gets to the areas, puts with a word behind
#pragma once
#include "xio/device/impl/combine.hpp"
#include "xio/device/impl/team_move.hpp"

namespace xio::dev::teams {

// A reduce as bytes. scatter: member p has block p of the result, which is `bytes` long; else everybody has all of it.
struct reduce_job {
  unsigned char* dst;
  const unsigned char* src;
  u64 bytes;
  u32 members;
  bool scatter;
  u32 kind = 0;  // see reduce_elements

  XIO_DEVICE const unsigned char* block(u32 p) const { return scatter ? src + p * bytes : src; }
};
template <class T>
XIO_DEVICE reduce_job job_of(const xio_team_t& t, T* dst, const T* src, u64 count, bool scatter) {
  // A count whose bytes are no number is refused as more than the heap has.
  const u64 bytes = count > ~u64{0} / sizeof(T) ? ~u64{0} : count * sizeof(T);
  return {reinterpret_cast<unsigned char*>(dst), reinterpret_cast<const unsigned char*>(src), bytes, t.n_pes, scatter};
}

// --- Packets -----------------------------------------------------------------------------------------

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
XIO_DEVICE xio_status_t reduce_piece(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, exchange& x,
                                     const reduce_job& job) {
  using unit = reduce_unit<T>;
  const unsigned char* src = job.src;
  const u32 bytes = static_cast<u32>(job.bytes);
  constexpr u32 each = sizeof(unit);
  const u32 units = (bytes + each - 1) / each, words = units * unit::k_words;
  xio_status_t status = send_packets(
      g, ctx, t, x, [&](u32) { return words; }, [&](u32, u32 w) { return rdma::source_word(src, w * 4, bytes); });
  g.sync();  // in place: all of it was sent
  // As many units as have the words that are taken together.
  constexpr u32 together = k_taken_together / unit::k_words;
  for (u32 i = g.rank(); i < units && was_heard(status); i += together * g.count()) {
    const u32 left = (units - i + g.count() - 1) / g.count(), here = left < together ? left : together;
    unit sum[together], part[together];
    xio_status_t one = XIO_OK;
    XIO_ROLLED for (u32 m = 0; m < t.n_pes && was_heard(one); ++m) {
      XIO_UNROLL for (u32 k = 0; k < unit::k_words && m != t.my_pe; ++k) {
        u32 values[k_taken_together];
        const word_row row{i * unit::k_words + k + 1, g.count() * unit::k_words, here};
        one = first_of(one, wait_words(ctx, t, x, m, row, values));
        XIO_UNROLL for (u32 j = 0; j < together; ++j) part[j].words[k] = values[j];
      }
      XIO_UNROLL for (u32 j = 0; j < together; ++j) {
        for (u32 k = 0; k < unit::k_words && m == t.my_pe; ++k)
          part[j].words[k] = rdma::source_word(src, ((i + j * g.count()) * unit::k_words + k) * 4, bytes);
        if (m == 0) sum[j] = part[j];
        for (u32 e = 0; e < unit::k_elements && m != 0; ++e)
          reduce_elements<Op, T>(&sum[j].elements[e], part[j].elements[e], job.kind);
      }
    }
    status = first_of(status, one);
    XIO_UNROLL for (u32 j = 0; j < together; ++j) for (u32 k = 0; k < unit::k_words && one == XIO_OK && j < here; ++k)
        store_part(job.dst, u64{i + j * g.count()} * sizeof(unit) + k * 4, bytes, sum[j].words[k]);
  }
  return status;
}

// --- Areas -------------------------------------------------------------------------------------------

// The area of an exchange: what it takes to find it is a modulo and a division, so it is found once.
struct parts {
  unsigned char* area;
  u64 bytes;  // of one part

  // Where member `writer` writes its part for `reader`, as an address of this PE. Nobody writes to itself.
  XIO_DEVICE unsigned char* of(u32 writer, u32 reader) const {
    return area + (writer < reader ? writer : writer - 1) * bytes;
  }
};
XIO_DEVICE parts parts_of(const xio_team_t& t, u64 epoch) {
  auto* areas = static_cast<unsigned char*>(t.work) + team_messages_bytes(t.n_pes, t.packet_bytes);
  return {areas + epoch % k_team_areas * t.area_bytes, team_part_bytes(t.n_pes, t.area_bytes)};
}

template <xio_reduction Op, class T, class Group>
XIO_DEVICE void combine_parts(const Group& g, const xio_team_t& t, const parts& in, const reduce_job& job, u64 at,
                              u64 bytes) {
  unsigned char* to = job.dst + at;
  const unsigned char* own = job.block(t.my_pe) + at;
  const auto source = [&](u32 m) -> const unsigned char* { return m == t.my_pe ? own : in.of(m, t.my_pe); };
  const auto result = [&](u32) { return to; };
  combine<Op, T, direct::source::own>(g, combination_of(t.my_pe, t.n_pes, 1, job.kind, source, result), bytes);
}

// Everything fits the areas.
template <xio_reduction Op, class T, class Group>
XIO_DEVICE xio_status_t reduce_parts(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, u32 tag,
                                     const channel_values& found, const reduce_job& job) {
  exchange x;
  g.sync();
  if (!enter(g, t, tag, found, &x)) return refuse_channel(g, ctx, t, tag);
  const parts areas = parts_of(t, x.epoch);
  const u32 me = t.my_pe;
  const xio_status_t sent = send_blocks(g, ctx, t, x, [=](u32 to) {
    return outgoing_block{areas.of(me, to), job.block(to), job.bytes};
  });
  xio_status_t status = end(g, t, x, first_of(sent, wait_headers(g, ctx, t, x)));
  // In place: an engine may still be reading what the result is about to replace.
  if (job.dst == job.src && status == XIO_OK) status = complete_call(g, ctx, t, status);
  if (status == XIO_OK) combine_parts<Op, T>(g, t, areas, job, 0, job.bytes);
  g.sync();
  return status;
}

// --- Reading -----------------------------------------------------------------------------------------

// The part of a reduce that one member combines.
struct share_of_bytes {
  u64 from, bytes;
};
XIO_DEVICE share_of_bytes share_of(const xio_team_t& t, const reduce_job& job) {
  if (job.scatter) return {0, job.bytes};
  const u64 words = job.bytes / 16, from = words * t.my_pe / t.n_pes * 16;
  return {from, (t.my_pe + 1 == t.n_pes ? job.bytes : words * (t.my_pe + 1) / t.n_pes * 16) - from};
}

// Out of all members' sources and to all.
template <xio_reduction Op, class T, class Group>
XIO_DEVICE void combine_share(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, const reduce_job& job,
                              const share_of_bytes& share) {
  const u64 from = share.from;
  const auto place = [&](const unsigned char* here, u32 m) {
    return m == t.my_pe ? const_cast<unsigned char*>(here) : direct_place(ctx, here, pe_of(t, m));
  };
  const auto source = [&](u32 m) -> const unsigned char* { return place(job.block(t.my_pe) + from, m); };
  const auto result = [&](u32 k) { return place(job.dst + from, k == 0 ? t.my_pe : other(t, k - 1)); };
  combine<Op, T, direct::source::peer>(
      g, combination_of(t.my_pe, t.n_pes, job.scatter ? 1 : t.n_pes, job.kind, source, result), share.bytes);
}

// All have come, with the same tag and size, and their ordinary stores from before are visible: exchange_headers for
// tags that do not have all of the size.
template <class Group>
XIO_SLOW_PATH xio_status_t agree_visibly(Group g, xio_ctx_t ctx, xio_team_t t, statement own, exchange* x) {
  channel_values found = load_channel(t);
  g.sync();
  fence<scope::system, order::release>();
  not_before(found.broken);
  if (!enter(g, t, own.call.tag, found, x)) return refuse_channel(g, ctx, t, own.call.tag);
  const xio_status_t status = agree(g, ctx, t, *x, own);
  // All threads see the stores that members made before their words: one thread has seen a word, and its fence comes
  // first.
  fence<scope::system, order::acquire>();
  g.sync();
  return status;
}
template <class Group>
XIO_DEVICE xio_status_t exchange_sizes(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, u32 tag, u64 bytes) {
  exchange x;
  return agree_visibly(g, ctx, t, {{tag, {}}, bytes}, &x);
}

// The second exchange is behind the stores, and then nobody's source is read any more. Members that have nothing to
// combine, or refuse, exchange once. A loop, since the exchange is 3,000 instructions on gfx90a.
template <xio_reduction Op, class T, class Group>
XIO_SLOW_PATH xio_status_t reduce_reading(Group g, xio_ctx_t ctx, xio_team_t t, u32 tag, reduce_job job,
                                          objection why) {
  const stated_call own{tag, why};
  bool combines = own.is_good() && job.bytes != 0;
  bool compares = combines && (tag & k_tag_folded) != 0;
  XIO_ROLLED for (;; combines = compares = false) {
    const xio_status_t status =
        compares ? exchange_sizes(g, ctx, t, tag, job.bytes) : exchange_headers(g, ctx, t, own.stated());
    if (!own.is_good()) {
      const xio_status_t mine = refuse_own(g, ctx, t, tag, why);
      return was_heard(status) ? mine : status;
    }
    if (status != XIO_OK || !combines) return status;
    combine_share<Op, T>(g, ctx, t, job, share_of(t, job));
  }
}

// To send all of it to each takes one way of the link, and getting three at least. So many bytes out of a PE take less
// than these do.
constexpr u64 k_most_parts = 16 << 10;

// --- Getting -----------------------------------------------------------------------------------------

// A member's share of a reduce, cut into pieces, and each into batches of members whose contributions are got together:
// so many steps, which take turns with two halves of the work memory while the sum lies in front of them. All areas are
// one here, and no other member writes to them: those that send parts have heard that this call is over.
struct getting {
  share_of_bytes share;
  u32 members, together, batches;
  u64 piece, steps;
  unsigned char* sum;

  XIO_DEVICE getting(const xio_team_t& t, const reduce_job& job) : share(share_of(t, job)), members(t.n_pes) {
    piece = share.bytes < t.area_bytes ? (share.bytes + 15) / 16 * 16 : t.area_bytes;
    const u64 places = piece == 0 ? 2 : k_team_areas * u64{t.area_bytes} / piece - 1;
    together = places / 2 < members ? static_cast<u32>(places / 2) : members;
    batches = (members + together - 1) / together;
    steps = piece == 0 ? 0 : (share.bytes + piece - 1) / piece * batches;
    sum = static_cast<unsigned char*>(t.work) + team_messages_bytes(t.n_pes, t.packet_bytes);
  }
  XIO_DEVICE u64 at(u64 step) const { return step / batches * piece; }
  XIO_DEVICE u64 bytes(u64 step) const { return share.bytes - at(step) < piece ? share.bytes - at(step) : piece; }
  XIO_DEVICE u32 first(u64 step) const { return static_cast<u32>(step % batches) * together; }
  XIO_DEVICE u32 count(u64 step) const { return members - first(step) < together ? members - first(step) : together; }
  // Where the contribution of a member of that step comes to.
  XIO_DEVICE unsigned char* place(u64 step, u32 m) const {
    return sum + (1 + (step & 1) * together + m - first(step)) * piece;
  }
};

// Posts the gets of a step, or waits for them: for the queues to its members alone.
XIO_OUT_OF_LINE xio_status_t get_step(xio_team_t t, const ctx_view& c, getting all, const unsigned char* from, u64 step,
                                      bool waits) {
  waited done{0, XIO_OK};
  for (u32 m = all.first(step), end = m + all.count(step); m != end && done.status == XIO_OK; ++m) {
    const u32 pe = pe_of(t, m);
    const peer_view& p = c.peers[pe];
    if (m == t.my_pe || !is_behind_engine(p)) continue;
    await(t, m + 1);
    if (waits) {
      for_queues_to(p, [&](const ring_view& r) { quiet_next(r, *c.world, &done); });
      if (is_excluded(p.small)) done.status = XIO_ERR_PEER;
      continue;
    }
    const u64 offset = heap_offset_of(c, from) + all.share.from + all.at(step), bytes = all.bytes(step);
    done.status = engine_get(c, p.small, pe, all.place(step, m), offset, bytes).status;
    record_unposted(c, done.status, call_of(call_kind::get, from, all.place(step, m), bytes, static_cast<int>(pe)));
  }
  await(t, 0);
  fence<scope::system, order::acquire>();
  return waits ? first_of(done.status, hdp_flush(c)) : done.status;
}

template <xio_reduction Op, class T, class Group>
XIO_DEVICE void combine_step(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, const reduce_job& job,
                             const getting& all, u64 step) {
  const u64 at = all.share.from + all.at(step);
  const u32 first = all.first(step), before = first != 0 ? 1 : 0;
  const auto source = [&](u32 i) -> const unsigned char* {
    const u32 m = first + i - before;
    if (i < before) return all.sum;
    if (m == t.my_pe) return job.block(m) + at;
    const unsigned char* there = direct_place(ctx, job.block(t.my_pe) + at, pe_of(t, m));
    return there != nullptr ? there : all.place(step, m);
  };
  const bool last = first + all.count(step) == all.members;
  const auto result = [&](u32) { return last ? job.dst + at : all.sum; };
  combine<Op, T, direct::source::peer>(g, combination_of(~0u, all.count(step) + before, 1, job.kind, source, result),
                                       all.bytes(step));
}

// When all have come each member gets what the others have for its share, combines that, and sends them the result. A
// share is read by the member alone that writes it, so dst may be src.
template <xio_reduction Op, class T, class Group>
XIO_SLOW_PATH xio_status_t reduce_getting(Group g, xio_ctx_t ctx, xio_team_t t, u32 tag, reduce_job job) {
  exchange x;
  if (const xio_status_t come = agree_visibly(g, ctx, t, {{tag, {}}, job.bytes}, &x); come != XIO_OK) return come;
  const getting all(t, job);
  const unsigned char* from = job.block(t.my_pe);
  xio_status_t status = XIO_OK;
  const auto get = [&](u64 step, bool waits) {
    return step < all.steps ? get_step(t, ctx_of(ctx), all, from, step, waits) : XIO_OK;
  };
  XIO_ROLLED for (u64 step = 0; step < all.steps && status == XIO_OK; ++step) {
    status = by_leader(g, [&] {
               const xio_status_t now = step == 0 ? get(0, false) : XIO_OK;
               const xio_status_t next = first_of(now, get(step + 1, false));
               return posted{0, first_of(next, get(step, true))};
             }).status;
    fence<scope::system, order::acquire>();
    if (status == XIO_OK) combine_step<Op, T>(g, ctx, t, job, all, step);
    g.sync();
  }
  go_on(g, t, &x);
  unsigned char* mine = job.dst + all.share.from;
  if (status == XIO_OK)
    status = send_blocks(g, ctx, t, x, [=](u32) {
      return outgoing_block{mine, mine, job.scatter ? 0 : all.share.bytes};
    });
  return end(g, t, x, status == XIO_OK ? wait_headers(g, ctx, t, x) : status);
}

// --- All of it ---------------------------------------------------------------------------------------

template <xio_reduction Op, class T, class Group>
XIO_DEVICE xio_status_t reduce_by_packets(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, u32 tag,
                                          const channel_values& found, const reduce_job& job) {
  exchange x;
  g.sync();
  if (!enter(g, t, tag, found, &x)) return refuse_channel(g, ctx, t, tag);
  if constexpr (Op == k_by_kind) {
    return end(g, t, x,
               kinds<T>::log2_size(job.kind) == 3 ? reduce_piece<Op, u64>(g, ctx, t, x, job)
                                                  : reduce_piece<Op, u32>(g, ctx, t, x, job));
  } else {
    return end(g, t, x, reduce_piece<Op, T>(g, ctx, t, x, job));
  }
}

// Packets may come from any memory.
XIO_DEVICE objection objection_to(const xio_ctx_t& ctx, const xio_team_t& t, const reduce_job& job) {
  const u64 in = job.scatter ? job.bytes * t.n_pes : job.bytes;
  if (job.dst == nullptr || job.src == nullptr) return {refusal::null_pointer};
  if (job.bytes > ctx.arena_bytes) return {refusal::not_symmetric, 0, job.bytes};
  if (overlap(job.dst, job.src, job.bytes, in) && (job.scatter || job.dst != job.src)) return {refusal::overlap};
  if (!job.scatter && job.bytes <= t.packet_bytes) return {};
  const bool reached = is_symmetric(ctx, job.dst, job.bytes) && is_symmetric(ctx, job.src, in);
  return reached ? objection{} : objection{refusal::not_symmetric, 0, job.bytes};
}

// Operation and type, as a tag has them.
template <xio_reduction Op, class T>
XIO_DEVICE constexpr u32 kind_of(const reduce_job& job) {
  if constexpr (Op == k_by_kind) {
    return kinds<T>::detail(job.kind);
  } else {
    return static_cast<u32>(Op) << k_reduction_shift | (std::is_integral_v<T> ? 0u : k_floats) |
           (std::is_same_v<T, xio_bfloat16_t> ? k_brain_floats : 0u) |
           (sizeof(T) == 1   ? 0u
            : sizeof(T) == 2 ? 1u
            : sizeof(T) == 4 ? 2u
                             : 3u);
  }
}

template <xio_reduction Op, class T, class Group>
XIO_DEVICE xio_status_t exchange_reduce(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t,
                                        const reduce_job& job) {
  // Loaded first: it comes while the arguments are looked at.
  channel_values found = load_channel(t);
  const u64 part = team_part_bytes(t.n_pes, t.area_bytes);
  // Members whose ways to each other differ are in different calls.
  const bool reads = job.bytes > part && all_are_direct(ctx, t);
  const u32 tag =
      tag_of(job.scatter ? op::reduce_scatter : op::reduce, job.bytes, kind_of<Op, T>(job) | (reads ? k_reads : 0));
  const objection why = job.bytes == 0 ? objection{} : objection_to(ctx, t, job);
  if (!why.is_none() || job.bytes == 0 || reads) return reduce_reading<Op, T>(g, ctx, t, tag, job, why);
  if (!job.scatter && job.bytes <= t.packet_bytes) return reduce_by_packets<Op, T>(g, ctx, t, tag, found, job);
  const bool is_little = job.scatter || t.n_pes == 2 || job.bytes * (t.n_pes - 1) <= k_most_parts;
  // Of a folded tag the sizes are compared by the other way alone.
  if (job.bytes <= part && (tag & k_tag_folded) == 0 && (is_little || !goes_by_network(ctx, t)))
    return reduce_parts<Op, T>(g, ctx, t, tag, found, job);
  return reduce_getting<Op, T>(g, ctx, t, tag, job);
}

template <xio_reduction Op, class T, class Group>
XIO_DEVICE xio_status_t reduce(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, const reduce_job& job) {
  static_assert(k_is_reducible<T>, "a reduce takes integers, float, double, xio_half_t and xio_bfloat16_t");
  static_assert(std::is_integral_v<T> || Op < xio_reduction::bit_and, "and, or, xor take integers");
  if (const xio_status_t wrong = check_team(ctx, t, job.scatter ? op::reduce_scatter : op::reduce); wrong != XIO_OK)
    return wrong;
  return complete_call(g, ctx, t, exchange_reduce<Op, T>(g, ctx, t, job));
}

}  // namespace xio::dev::teams
