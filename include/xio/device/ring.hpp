// SPDX-License-Identifier: MIT
// The ring: one lock-free queue of fixed-size entries with a doorbell, for every engine.
//
// post:   take credits (a credit is a free slot) -> take tickets -> lanes fill their slots in parallel ->
//         mark each slot's lap -> one of the posters rings for everybody.
// reap:   whoever waits drains completions, try-only.
//
// Nobody waits for another poster: a lane waits only for the device (credits, completion), and helps reap
// while it does. Why every published entry is rung exactly once: a wave marks its slots before it adds 1 to
// `pending`; the ringer leaves only by a compare-exchange of the very count it saw before its last scan, so
// that scan saw every wave that counted. A hole (a wave that has tickets but has not marked) ends the scan;
// its owner adds to `pending` later and becomes the ringer or keeps the present one scanning.
// docs/architecture.md tells the whole story; tests/model/ring.pml is the proof by exhaustion.
//
// A Codec knows one format:
//   static constexpr bool k_in_order                     completions come in ticket order
//   static void announce(const ring_view&, u64 from, u64 to)   entries [from,to) are published: doorbell; or bool,
//                                                        false where the device looks without one
//   static void drain(const ring_view&)                  consume completions: advance state->completed, give
//                                                        credits back, record failures (single caller)
//   static bool may_issue(const ring_view&)              a further gate before tickets are taken
//   static constexpr bool k_serial                       optional: entries carry a number that depends on all before
//                                                        them (bnxt: the PSN), see ring_take_tickets
#pragma once
#include "xio/device/platform.hpp"
#include "xio/device/view.hpp"

namespace xio::dev {

// A point in time after which waiting is an error.
struct deadline {
  u64 start;
  u64 ticks;  // 0: never

  XIO_DEVICE static deadline in(const world_view& w) {
    return deadline{w.timeout_ticks ? wall_clock() : 0, w.timeout_ticks};
  }
  XIO_DEVICE bool passed() const { return ticks != 0 && wall_clock() - start > ticks; }
};

// Keeps the first failure of a ring; later ones are consequences.
XIO_DEVICE void ring_fail(const ring_view& r, xio_status_t status, u32 vendor, u64 ticket) {
  u32 none = 0;
  if (load<scope::agent, order::relaxed>(&r.state->failed) != 0) return;
  store<scope::agent, order::relaxed>(&r.state->failed_ticket, ticket);
  store<scope::agent, order::relaxed>(&r.state->vendor, vendor);
  compare_exchange<scope::agent, order::release>(&r.state->failed, none, static_cast<u32>(status));
}

XIO_DEVICE xio_status_t ring_failure(const ring_view& r) {
  return static_cast<xio_status_t>(static_cast<int>(load<scope::agent, order::acquire>(&r.state->failed)));
}

XIO_DEVICE u32 ring_lap(const ring_view& r, u64 ticket) { return static_cast<u32>(ticket >> r.depth_log2) + 1; }

XIO_DEVICE unsigned char* ring_slot(const ring_view& r, u64 ticket, u32 slot_bytes) {
  return r.slots + (ticket & (r.depth - 1)) * static_cast<u64>(slot_bytes);
}

// Drains completions if nobody else is at it.
template <class Codec>
XIO_DEVICE void ring_reap(const ring_view& r) {
  if (load<scope::agent, order::relaxed>(&r.state->reaping) != 0) return;
  if (exchange<scope::agent, order::acquire>(&r.state->reaping, 1u) != 0) return;
  Codec::drain(r);
  store<scope::agent, order::release>(&r.state->reaping, 0u);
}

// For codecs: all tickets below `upto` are complete. Called from drain only.
XIO_DEVICE void ring_complete(const ring_view& r, u64 upto) {
  const u64 from = load<scope::agent, order::relaxed>(&r.state->completed);
  store<scope::agent, order::release>(&r.state->completed, upto);
  fetch_add<scope::agent, order::release>(&r.state->credits, static_cast<i64>(upto - from));
}

// Takes n slots, or says why not. One lane of a wave at a time.
template <class Codec>
XIO_DEVICE xio_status_t ring_take_credits(const ring_view& r, u32 n, const world_view& w) {
  const deadline end = deadline::in(w);
  const i64 wanted = static_cast<i64>(n);
  // The first time without a look, which would cost as much. Later only what may be had is taken: or many that take and
  // give back keep the number so low that nobody finds enough.
  for (bool enough = true;; enough = load<scope::agent, order::relaxed>(&r.state->credits) >= wanted) {
    if (const xio_status_t failure = ring_failure(r); failure != XIO_OK) return failure;
    if (enough) {
      const i64 had = fetch_add<scope::agent, order::acquire>(&r.state->credits, -wanted);
      if (had >= wanted && Codec::may_issue(r)) return XIO_OK;
      fetch_add<scope::agent, order::relaxed>(&r.state->credits, wanted);
    }
    ring_reap<Codec>(r);
    if (load<scope::agent, order::relaxed>(&r.state->credits) < wanted || !Codec::may_issue(r)) pause();
    if (end.passed()) {
      ring_fail(r, XIO_ERR_TIMEOUT, 0, load<scope::agent, order::relaxed>(&r.state->completed));
      return XIO_ERR_TIMEOUT;
    }
  }
}

// How many doorbells it took: a codec that knows says whether any.
template <class Codec>
XIO_DEVICE u64 ring_tell(const ring_view& r, u64 from, u64 to) {
  if constexpr (requires { static_cast<bool>(Codec::announce(r, from, to)); }) {
    return Codec::announce(r, from, to) ? 1 : 0;
  } else {
    Codec::announce(r, from, to);
    return 1;
  }
}

// Rings for every entry that is complete, unless somebody who must look again is already at it.
template <class Codec>
XIO_DEVICE void ring_announce(const ring_view& r) {
  ring_state* s = r.state;
  if (fetch_add<scope::agent, order::acq_rel>(&s->pending, 1u) != 0) return;
  u32 seen = 1;
  for (;;) {
    const u64 from = load<scope::agent, order::relaxed>(&s->published);
    u64 to = from;
    // At most depth steps: credits bound what can be marked.
    while (load<scope::agent, order::acquire>(&r.sequence[to & (r.depth - 1)]) == ring_lap(r, to)) ++to;
    if (to != from) {
      const u64 rung = ring_tell<Codec>(r, from, to);
      store<scope::agent, order::relaxed>(&s->published, to);
      store<scope::agent, order::relaxed>(&s->doorbells, load<scope::agent, order::relaxed>(&s->doorbells) + rung);
    }
    u32 expected = seen;
    if (compare_exchange<scope::agent, order::acq_rel>(&s->pending, expected, 0u)) return;
    seen = expected;
  }
}

template <class Codec>
constexpr bool k_ring_is_serial = requires {
  Codec::k_serial;
};

// Takes n tickets; nothing can wait from here to ring_announce. Who took credits later may take tickets earlier, and
// then these are slots of which only he has seen that they are free: acquire and release hand that on.
//
// Where entries are numbered by something that each of them uses up (packets), that number and the ticket are taken in
// one step from ring_state::serial: 40 bits of ticket below, 24 bits of number above. A carry out of the ticket adds 1
// to the number every 2^40 tickets, and is taken off again here.
template <class Codec>
XIO_DEVICE u64 ring_take_tickets(const ring_view& r, u32 n, u64 packets, u64* serial) {
  ring_state* s = r.state;
  if constexpr (!k_ring_is_serial<Codec>) {
    return fetch_add<scope::agent, order::acq_rel>(&s->issued, static_cast<u64>(n));
  } else {
    const u64 word = fetch_add<scope::agent, order::acq_rel>(&s->serial, (packets << 40) + n);
    const u64 done = load<scope::agent, order::relaxed>(&s->completed);
    const u64 ticket = done + ((word - done) & ((u64{1} << 40) - 1));
    *serial = ((word >> 40) - (ticket >> 40)) & 0xffffff;
    u64 issued = load<scope::agent, order::relaxed>(&s->issued);
    while (issued < ticket + n && !compare_exchange<scope::agent, order::acq_rel>(&s->issued, issued, ticket + n)) {
    }
    return ticket;
  }
}

// What one lane wants of a ring.
struct ring_claim {
  u32 slots;    // at most 255
  u32 packets;  // of a serial ring, 24 bits; else 0
  u32 bytes;    // of payload, for statistics
};

// What a group of lanes wants together, and what the lanes before the caller want of it.
struct ring_share {
  u32 slots, slots_before;
  u64 packets, packets_before;
  u64 bytes;
};

XIO_DEVICE ring_share ring_sum(const lanes& group, const ring_claim& mine) {
  const u32 count = group.count();
  if (count == 1) return ring_share{mine.slots, 0, mine.packets, 0, mine.bytes};
  // Outside the condition: every lane must take part in the shuffle.
  const u64 claim = (static_cast<u64>(mine.slots) << 56) | (static_cast<u64>(mine.packets) << 32) | mine.bytes;
  const u64 leaders = group.first(claim);
  if (group.ballot(claim == leaders) == group.mask) {
    const u32 rank = group.rank();
    return ring_share{mine.slots * count, mine.slots * rank, static_cast<u64>(mine.packets) * count,
                      static_cast<u64>(mine.packets) * rank, static_cast<u64>(mine.bytes) * count};
  }
  ring_share sum{0, 0, 0, 0, 0};
  for (u64 left = group.mask; left != 0; left &= left - 1) {
    const u32 lane = lowest_bit(left);
    const u64 theirs = group.shuffle(claim, lane);
    const u32 slots = static_cast<u32>(theirs >> 56);
    const u64 packets = (theirs >> 32) & 0xffffff;
    if (lane < lane_id()) {
      sum.slots_before += slots;
      sum.packets_before += packets;
    }
    sum.slots += slots;
    sum.packets += packets;
    sum.bytes += theirs & 0xffffffffu;
  }
  return sum;
}

// Credits, then tickets, by the leader for all; every lane gets the first ticket and number.
template <class Codec>
XIO_DEVICE xio_status_t ring_reserve(const lanes& group, const ring_view& r, const world_view& w, const ring_share& sum,
                                     u32 ops, u64* first, u64* serial) {
  xio_status_t status = XIO_OK;
  if (group.rank() == 0) {
    status = ring_take_credits<Codec>(r, sum.slots, w);
    if (status == XIO_OK) {
      *first = ring_take_tickets<Codec>(r, sum.slots, sum.packets, serial);
      fetch_add<scope::agent, order::relaxed>(&r.state->ops, static_cast<u64>(ops));
      fetch_add<scope::agent, order::relaxed>(&r.state->bytes, sum.bytes);
    }
  }
  if (group.count() == 1) return status;
  status = static_cast<xio_status_t>(static_cast<int>(group.first(static_cast<u64>(static_cast<int>(status)))));
  *first = group.first(*first);
  if constexpr (k_ring_is_serial<Codec>) *serial = group.first(*serial);
  return status;
}

XIO_DEVICE void ring_mark(const ring_view& r, u64 ticket, u32 slots) {
  for (u32 i = 0; i < slots; ++i)
    store<scope::agent, order::release>(&r.sequence[(ticket + i) & (r.depth - 1)], ring_lap(r, ticket + i));
}

// Posts for the lanes of `group`, which fits the ring whole. fill(ticket, last) writes the lane's `slots` entries;
// `last` says that the lane's last entry ends the batch and must ask for a completion. On a serial ring it is
// fill(ticket, last, number).
template <class Codec, class Fill>
XIO_DEVICE xio_status_t ring_post_batch(const lanes& group, const ring_view& r, const world_view& w,
                                        const ring_claim& mine, u64* ticket, Fill& fill) {
  const ring_share sum = ring_sum(group, mine);
  u64 first = 0, serial = 0;
  const xio_status_t status = ring_reserve<Codec>(group, r, w, sum, group.count(), &first, &serial);
  if (status != XIO_OK) return status;
  const u64 at = first + sum.slots_before;
  const bool last = group.rank() == group.count() - 1;
  if constexpr (k_ring_is_serial<Codec>) {
    fill(at, last, serial + sum.packets_before);
  } else {
    fill(at, last);
  }
  ring_mark(r, at, mine.slots);
  group.sync();
  if (group.rank() == 0) ring_announce<Codec>(r);
  *ticket = at + mine.slots - 1;
  return XIO_OK;
}

// Posts one claim for each lane of `group`, all lanes to the same ring and each claim at most depth/2 slots. Gives the
// ticket of the lane's last entry. Blocks only for free slots, with the world's deadline.
template <class Codec, class Fill>
XIO_DEVICE xio_status_t ring_post(const lanes& group, const ring_view& r, const world_view& w, const ring_claim& mine,
                                  u64* ticket, Fill&& fill) {
  // A wave wider than the ring goes in rounds, so that it cannot starve behind single lanes. One call for all of it:
  // what fill writes is long.
  const u32 cap = r.depth / 2;
  const u32 count = group.count();
  const u32 rank = group.rank();
  const bool ones = group.ballot(mine.slots <= 1) == group.mask;
  const bool twos = group.ballot(mine.slots <= 2) == group.mask;
  const u32 most = ones ? 1 : twos ? 2 : cap;
  u32 per_round = count == 1 || count * most <= cap ? count : cap / most;
  if (per_round == 0) per_round = 1;
  xio_status_t status = XIO_OK;
  for (u32 base = 0; base < count; base += per_round) {
    const bool now = rank >= base && rank < base + per_round;
    const lanes turn{per_round == count ? group.mask : group.ballot(now)};
    if (now) status = ring_post_batch<Codec>(turn, r, w, mine, ticket, fill);
  }
  return status;
}

// Posts one claim where one thread at a time posts and waits (ring_view::alone): tickets and free slots are plain
// arithmetic, and the caller itself rings. fill(ticket, true) writes the entries.
template <class Codec, class Fill>
XIO_DEVICE xio_status_t ring_post_alone(const ring_view& r, const world_view& w, const ring_claim& mine, u64* ticket,
                                        Fill&& fill) {
  static_assert(!k_ring_is_serial<Codec>);
  ring_state* s = r.state;
  const u64 at = load<scope::agent, order::relaxed>(&s->issued);
  if (ring_failure(r) != XIO_OK) return ring_failure(r);
  if (at + mine.slots - load<scope::agent, order::acquire>(&s->completed) > r.depth) {
    const deadline end = deadline::in(w);
    for (;;) {
      ring_reap<Codec>(r);
      if (ring_failure(r) != XIO_OK) return ring_failure(r);
      if (at + mine.slots - load<scope::agent, order::acquire>(&s->completed) <= r.depth) break;
      pause();
      if (end.passed()) {
        ring_fail(r, XIO_ERR_TIMEOUT, 0, load<scope::agent, order::relaxed>(&s->completed));
        return XIO_ERR_TIMEOUT;
      }
    }
  }
  fill(at, true);
  const u64 to = at + mine.slots;
  store<scope::agent, order::relaxed>(&s->issued, to);
  store<scope::agent, order::relaxed>(&s->published, to);
  store<scope::agent, order::relaxed>(&s->ops, load<scope::agent, order::relaxed>(&s->ops) + 1);
  store<scope::agent, order::relaxed>(&s->bytes, load<scope::agent, order::relaxed>(&s->bytes) + mine.bytes);
  store<scope::agent, order::relaxed>(&s->doorbells, load<scope::agent, order::relaxed>(&s->doorbells) + 1);
  Codec::announce(r, at, to);
  *ticket = to - 1;
  return XIO_OK;
}

// Posts one claim for the whole group: fill(ticket, number) is called by every lane and together they write the entry.
// Every lane gets the ticket of its last slot.
template <class Codec, class Fill>
XIO_DEVICE xio_status_t ring_post_together(const lanes& group, const ring_view& r, const world_view& w,
                                           const ring_claim& all, u64* ticket, Fill&& fill) {
  const ring_share sum{all.slots, 0, all.packets, 0, all.bytes};
  u64 first = 0, serial = 0;
  const xio_status_t status = ring_reserve<Codec>(group, r, w, sum, group.count(), &first, &serial);
  if (status != XIO_OK) return status;
  fill(first, serial);
  // The leader's marks release what all lanes have written: sync orders their stores before it.
  group.sync();
  if (group.rank() == 0) {
    ring_mark(r, first, all.slots);
    ring_announce<Codec>(r);
  }
  *ticket = first + all.slots - 1;
  return XIO_OK;
}

// Whether a ticket of an in-order ring is complete: XIO_OK, XIO_PENDING, or the failure that took it.
XIO_DEVICE xio_status_t ring_test(const ring_view& r, u64 ticket) {
  if (load<scope::agent, order::acquire>(&r.state->completed) > ticket) return XIO_OK;
  return ring_failure(r) == XIO_OK ? XIO_PENDING : ring_failure(r);
}

// Waits until every ticket below `upto` is complete. The caller sees what the device wrote.
template <class Codec>
XIO_DEVICE xio_status_t ring_wait_below(const ring_view& r, u64 upto, const world_view& w) {
  const deadline end = deadline::in(w);
  xio_status_t status = XIO_OK;
  while (load<scope::agent, order::acquire>(&r.state->completed) < upto) {
    if (status = ring_failure(r); status != XIO_OK) break;
    ring_reap<Codec>(r);
    if (load<scope::agent, order::acquire>(&r.state->completed) >= upto) break;
    pause();
    if (end.passed()) {
      ring_fail(r, XIO_ERR_TIMEOUT, 0, load<scope::agent, order::relaxed>(&r.state->completed));
      status = XIO_ERR_TIMEOUT;
      break;
    }
  }
  fence<scope::system, order::acquire>();
  return status;
}

// Waits for everything posted so far.
template <class Codec>
XIO_DEVICE xio_status_t ring_quiet(const ring_view& r, const world_view& w) {
  const u64 upto = load<scope::agent, order::relaxed>(&r.state->issued);
  const xio_status_t status = ring_wait_below<Codec>(r, upto, w);
  return status != XIO_OK ? status : ring_failure(r);
}

}  // namespace xio::dev
