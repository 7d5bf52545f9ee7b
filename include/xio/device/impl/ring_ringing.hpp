// SPDX-License-Identifier: MIT
// Ringing for the entries of a ring (ring.hpp): by the ringer, for every batch that is complete.
#pragma once
#include "xio/device/impl/ring_words.hpp"
#include "xio/device/impl/view.hpp"
#include "xio/device/platform/platform.hpp"

namespace xio::dev {

// How many doorbells it took: a codec that knows says whether any.
template <class Codec>
XIO_DEVICE u64 ring_announce(const ring_view& r, u64 from, u64 to) {
  if constexpr (requires { static_cast<bool>(Codec::announce(r, from, to)); }) {
    return Codec::announce(r, from, to) ? 1 : 0;
  } else {
    Codec::announce(r, from, to);
    return 1;
  }
}

// Where the complete entries from `from` on end. Several marks are looked at together, for a look takes long; at most
// depth steps, because credits bound what can be marked.
XIO_DEVICE u64 ring_scan(const ring_view& r, u64 from) {
  constexpr u32 together = k_looks_together;
  const u64* marks = r.marks;
  const u32 mask = r.depth - 1;
  u64 to = from;
  for (u64 start = ~from; start != to;) {
    start = to;
    u64 mark[together];
    XIO_UNROLL
    for (u32 i = 0; i < together; ++i) mark[i] = load<scope::agent, k_acquire_by_fence>(&marks[(start + i) & mask]);
    XIO_UNROLL
    for (u32 i = 0; i < together; ++i)
      if (to == start + i) to += ring_marked(mark[i], to);
    if (to - start < together) break;
  }
  if (to != from) fence_after_loads<scope::agent>();
  return to;
}

// A ringer that leaves releases what it rang, and the doorbell itself: a later doorbell must not be written before it.
// A ringer that must stay sees the marks of the waves that counted.
constexpr order k_leave = k_acquire_by_fence == order::relaxed ? order::release : order::acq_rel;

// The ringer calls it: it rings for [from, to), whose entries are complete.
template <class Codec>
XIO_DEVICE void ring_ring(const ring_view& r, u64 from, u64 to) {
  const u64 doorbells = ring_announce<Codec>(r, from, to);
  store<scope::agent, order::relaxed>(&r.state->published, to);
  // One thread at a time, but nobody waits for what an atomic adds.
  add<scope::agent, order::relaxed>(lone_word(&r.state->doorbells), doorbells);
}

// True: nobody has counted but the *seen that the ringer knew of, and it is the ringer no more.
XIO_DEVICE bool ring_leaves(const ring_view& r, u32* seen) {
  u32 expected = *seen;
  if (compare_exchange<scope::agent, k_leave>(&r.state->pending, expected, 0u)) return true;
  fence_after_loads<scope::agent>();
  *seen = expected;
  return false;
}

// The ringer calls it once it has rung for all entries below `from`. It rings for every complete entry behind them,
// until no other thread has asked for the doorbell meanwhile.
template <class Codec>
XIO_DEVICE void ring_serve(const ring_view& r, u64 from, u32 seen) {
  for (;;) {
    const u64 to = ring_scan(r, from);
    if (to != from)
      ring_ring<Codec>(r, from, to);
    else if (ring_leaves(r, &seen))
      return;
    from = to;
  }
}

// State of the ringing that a poster knows before it fills its slots.
struct ring_turn {
  bool mine;      // it is the ringer, and was before it took its tickets
  u64 published;  // of some time before; a poster that finds its own first ticket here is next for sure
};

template <class Codec>
constexpr bool k_ring_tries = requires {
  Codec::k_tries;
};

// The `slots` entries from `first` on are complete, and the caller's own or seen by it through lanes::sync. True, for
// codecs that try: the caller is still the ringer, and ring_serve_others is to follow before it does anything else.
template <class Codec>
XIO_DEVICE bool ring_publish(const ring_view& r, u64 first, u32 slots, const ring_turn& turn) {
  u64 from = first + slots;
  u32 seen = 1;
  if (turn.mine && turn.published == first) [[likely]] {
    // When it became the ringer no ticket behind these had been taken, so a wave that marks one counts later, and there
    // is nothing to scan for unless a wave has counted.
    ring_ring<Codec>(r, first, from);
    if (ring_leaves(r, &seen)) [[likely]]
      return false;
  } else {
    store<scope::agent, order::release>(ring_mark_at(r, first), ring_mark_of(first, slots));
    if (!turn.mine && fetch_add<scope::agent, order::acq_rel>(lone_word(&r.state->pending), 1u) != 0) return false;
    if constexpr (k_ring_tries<Codec>) return true;
    from = load<scope::agent, order::relaxed>(&r.state->published);
  }
  if constexpr (k_ring_tries<Codec>) return true;
  ring_serve<Codec>(r, from, seen);
  return false;
}

// By a ringer that has not served yet: seldom, so not in the leaf that posts.
template <class Codec>
XIO_DEVICE void ring_serve_others(const ring_view& r) {
  ring_serve<Codec>(r, load<scope::agent, order::relaxed>(&r.state->published), 1);
}

}  // namespace xio::dev
