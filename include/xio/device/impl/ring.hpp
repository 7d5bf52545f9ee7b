// SPDX-License-Identifier: MIT
// The ring: one lock-free queue of fixed-size entries with a doorbell, for every engine.
//
// post:   take credits (a credit is a free slot), try to become the ringer -> take tickets -> lanes fill their slots
//         in parallel -> the ringer rings, for its own batch at once if nothing is missing before it; others mark
//         theirs and count, and the ringer rings for everybody.
// reap:   a lane that waits drains completions, try-only.
//
// Nobody waits for another poster: a lane waits only for the device (credits, completion), and helps reap
// while it does. Why every published entry is rung exactly once: a wave marks its batch before it adds 1 to
// `pending`; the ringer leaves only by a compare-exchange of the very count it saw before its last scan, so
// that scan saw every wave that counted. A hole (a wave that has tickets but has not marked) ends the scan;
// its owner adds to `pending` later and becomes the ringer or keeps the present one scanning. A wave that becomes the
// ringer by counting may itself be the hole at which the last one left, so it scans from where that one ended. A wave
// that was the ringer before it took its tickets cannot be a hole: it rings for its own batch and leaves without a scan
// if no other wave counted.
// docs/architecture.md has the full explanation; tests/model/ring.pml is the proof by exhaustion.
//
// A Codec knows one format:
//   static constexpr bool k_in_order                     completions come in ticket order
//   static void announce(const ring_view&, u64 from, u64 to)   entries [from,to) are published: doorbell; or bool,
//                                                        false where the device looks without one
//   static u64 drain(const ring_view&, u64 completed)    consume completions: advance state->completed, give credits
//                                                        back, record failures (single caller); returns the new
//                                                        `completed`; see ring_keep_stored
//   static void take_view(const ring_view& from, ring_view* to)
//                                                        where rings are held in registers: copies the fields of
//                                                        the engine's part that the codec uses, by view_field
//   static constexpr bool k_serial                       optional: entries carry a number that depends on all before
//                                                        them (bnxt: the PSN), see ring_take_tickets
//   static bool is_serial(const ring_view&)              optional, beside k_serial: of some rings only
//   static constexpr bool k_tries                        optional: posting waits for nothing and rings for nobody else;
//                                                        without room it returns XIO_PENDING, see ring_post_by
#pragma once
#include <type_traits>

#include "xio/device/impl/ring_claims.hpp"
#include "xio/device/impl/ring_drain.hpp"
#include "xio/device/impl/ring_ringing.hpp"
#include "xio/device/impl/ring_words.hpp"
#include "xio/device/impl/view.hpp"
#include "xio/device/platform/lanes.hpp"
#include "xio/device/platform/platform.hpp"

namespace xio::dev {

template <class Codec>
concept ring_codec = requires(const ring_view& r, u64 ticket) {
  typename std::bool_constant<Codec::k_in_order>;
  Codec::announce(r, ticket, ticket);
  requires std::is_same_v<decltype(Codec::drain(r, ticket)), u64>;
};
// Of rings that leaves hold in registers.
template <class Codec>
concept held_codec = ring_codec<Codec> && requires(const ring_view& from, ring_view* to) {
  Codec::take_view(from, to);
};

template <class Codec>
constexpr bool k_ring_is_serial = requires {
  Codec::k_serial;
};
template <class Codec>
XIO_DEVICE bool ring_is_serial(const ring_view& r) {
  if constexpr (requires { Codec::is_serial(r); }) return Codec::is_serial(r);
  return k_ring_is_serial<Codec>;
}
// A copy of a view's head in registers of the wave. `at` is uniform: the same ring for all lanes that are here.
XIO_DEVICE ring_view head_in_registers(const ring_view& at) {
  ring_view r{};
  r.state = view_field(at.state);
  r.marks = view_field(at.marks);
  r.slots = view_field(at.slots);
  r.depth = view_field(at.depth);
  r.kind = view_field(at.kind);
  r.id = view_field(at.id);
  r.index = view_field(at.index);
  r.chunk = view_field(at.chunk);
  r.alone = view_field(at.alone);
  return r;
}
// The same of any lane's view, with what the codec needs of the engine's part.
template <held_codec Codec>
XIO_DEVICE ring_view ring_in_registers(const ring_view& in_memory) {
  const ring_view& at = uniform(in_memory);
  ring_view r = head_in_registers(at);
  Codec::take_view(at, &r);
  return r;
}

// The result of a leaf that posts, for one lane. Bits of mend_* say what the kernel has to do before the lane goes on,
// and for how many slots it has to wait where there was no room. XIO_PENDING: nothing was posted.
struct posted_ops {
  u64 ticket;
  xio_status_t status;
  u32 mend{0};
};
constexpr u32 mend_slots = 0xffffff;    // to wait for as much room
constexpr u32 mend_serves = 1u << 31;   // this lane is the ringer, and must call ring_serve_others now
constexpr u32 mend_not_yet = 1u << 30;  // the lane has not had its turn, and is to come again
constexpr u32 mend_key = 1u << 29;      // of local memory: see rdma_post.hpp, as for the others
constexpr u32 mend_rest = 1u << 28;     // the rest of the op is to be posted
constexpr u32 mend_no_row = 1u << 27;   // each lane is to post for itself

// By the kernel: calls the leaf try_once() until it has posted or says why not. find_room(slots, &since) waits until as
// many are free, see ring_wait_for. serve() rings for others. It comes before the lane looks at its status: lanes that
// go on here wait for room, perhaps for that of entries which this ringer has to ring for.
template <class Room, class Serve, class Try>
XIO_DEVICE posted_ops ring_post_by(Room&& find_room, Serve&& serve, Try&& try_once) {
  u64 since = 0;
  for (;;) {
    posted_ops done = try_once();
    if (done.mend == 0) [[likely]]
      return done;
    if ((done.mend & mend_serves) != 0) serve();
    if (done.status != XIO_PENDING) return done;
    if ((done.mend & mend_not_yet) != 0) continue;
    done.status = find_room(done.mend & mend_slots, &since);
    if (done.status != XIO_OK) return done;
  }
}

// A poster calls it that has subtracted n credits of a ring with fewer, or of one that has failed: it gives them back
// and waits for room. That is rare, so it is out of line. A platform that keeps the view in registers passes it by
// value, since its address would put it into memory.
template <class Codec>
XIO_OUT_OF_LINE xio_status_t ring_take_credits_late(held_ring r, u32 n, const world_view& w, bool mine) {
  add<scope::agent, order::relaxed>(&r.state->credits, static_cast<i64>(n));
  // A wave that waits must not be the ringer: its credits come from entries for which the ringer may have yet to ring.
  if (mine) ring_serve<Codec>(r, load<scope::agent, order::relaxed>(&r.state->published), 1);
  return ring_wait_credits<Codec>(r, n, w);
}

// Takes n slots, or says why not, and tries to become the ringer: both in one step, for each takes as long as both. The
// first time without a look whether there are slots, which would cost as much. `mine` as in ring_turn: the fence keeps
// the try before the tickets too, on which ring_publish's first way stands. Where it fails in a codec that tries,
// `mine` says that the caller is to serve: a wave that goes away to wait must not be the ringer.
template <class Codec>
XIO_DEVICE xio_status_t ring_take_credits(const ring_view& r, u32 n, const world_view& w, bool* mine) {
  ring_state* s = r.state;
  const i64 wanted = static_cast<i64>(n);
  u32 none = 0;
  const u32 failed = load<scope::agent, order::relaxed>(&s->failed);
  const i64 had = fetch_add<scope::agent, k_acquire_by_fence>(lone_word(&s->credits), -wanted);
  *mine = compare_exchange<scope::agent, k_acquire_by_fence>(&s->pending, none, 1u);
  fence_after_loads<scope::agent>();
  if (had >= wanted && failed == 0) [[likely]]
    return XIO_OK;
  const bool was = *mine;
  *mine = false;
  if constexpr (k_ring_tries<Codec>) {
    add<scope::agent, order::relaxed>(lone_word(&s->credits), wanted);
    *mine = was;
    return failed != 0 ? ring_failure(r) : XIO_PENDING;
  } else {
    return ring_take_credits_late<Codec>(r, n, w, was);
  }
}

// Takes n tickets; nothing can wait from here to ring_publish. A wave that took credits later may take tickets earlier,
// and only the wave with the later credits has seen that the slots of the other are free: k_handed_on passes that on.
//
// Where entries are numbered by something that each of them uses up (packets), that number and the ticket are taken in
// one step from ring_state::serial: 40 bits of ticket below, 24 bits of number above. A carry out of the ticket adds 1
// to the number every 2^40 tickets, and is taken off again here.
template <class Codec>
XIO_DEVICE u64 ring_take_tickets(const ring_view& r, u32 n, u64 packets, u64* serial) {
  ring_state* s = r.state;
  if constexpr (k_ring_is_serial<Codec>) {
    if (!ring_is_serial<Codec>(r))
      return fetch_add<scope::agent, k_handed_on>(lone_word(&s->issued), static_cast<u64>(n));
    const u64 word = fetch_add<scope::agent, order::acq_rel>(lone_word(&s->serial), (packets << 40) + n);
    const u64 done = ring_completed<order::relaxed>(r);
    const u64 ticket = done + ((word - done) & ((u64{1} << 40) - 1));
    *serial = ((word >> 40) - (ticket >> 40)) & 0xffffff;
    u64 issued = load<scope::agent, order::relaxed>(&s->issued);
    while (issued < ticket + n && !compare_exchange<scope::agent, order::acq_rel>(&s->issued, issued, ticket + n)) {
    }
    return ticket;
  } else {
    return fetch_add<scope::agent, k_handed_on>(lone_word(&s->issued), static_cast<u64>(n));
  }
}

// A poster's place in a ring: its first ticket, the number of a serial ring that goes with it, and its turn to ring.
struct ring_place {
  u64 first, serial;
  ring_turn turn;
};

// Credits, then tickets, by one lane for all.
template <class Codec>
XIO_DEVICE xio_status_t ring_reserve_for(const ring_view& r, const world_view& w, u32 slots, u64 packets,
                                         ring_place* taken) {
  const xio_status_t status = ring_take_credits<Codec>(r, slots, w, &taken->turn.mine);
  if (status != XIO_OK) return status;
  taken->turn.published = load<scope::agent, order::relaxed>(&r.state->published);
  taken->first = ring_take_tickets<Codec>(r, slots, packets, &taken->serial);
  return XIO_OK;
}

// The same by the leader; every lane gets the first ticket and number, the leader also its turn.
template <class Codec>
XIO_DEVICE xio_status_t ring_reserve(const lanes& group, const ring_view& r, const world_view& w, const ring_share& sum,
                                     ring_place* taken) {
  xio_status_t status = XIO_OK;
  if (group.rank() == 0) status = ring_reserve_for<Codec>(r, w, sum.slots, sum.packets, taken);
  if constexpr (!k_keys_take_turns)  // else the first one's are free for all
    if (group.count() == 1) return status;
  status = static_cast<xio_status_t>(static_cast<int>(group.first(static_cast<u64>(static_cast<int>(status)))));
  taken->first = group.first(taken->first);
  if constexpr (k_ring_is_serial<Codec>) taken->serial = group.first(taken->serial);
  return status;
}

// Statistics.
XIO_DEVICE void ring_count(const ring_view& r, u32 ops, u64 bytes) {
  add<scope::agent, order::relaxed>(lone_word(&r.state->ops), u64{ops});
  add<scope::agent, order::relaxed>(lone_word(&r.state->bytes), bytes);
}

// The result of a lane that has posted: the ticket of its last entry, and whether it must serve, see mend_serves.
struct ring_result {
  u64 ticket;
  bool serves;
};

// The caller's claim, and the share of all that post with it.
struct ring_batch {
  const ring_claim& mine;
  const ring_share& sum;
};

// Posts for the lanes of `group`, which fits the ring whole. fill(ticket, last) writes the lane's `slots` entries;
// `last` says that the lane's last entry ends the batch and must ask for a completion. On a serial ring it is
// fill(ticket, last, number).
template <class Codec, class Fill>
XIO_DEVICE xio_status_t ring_post_batch(const lanes& group, const ring_view& r, const world_view& w,
                                        const ring_batch& b, ring_result* result, Fill& fill) {
  const ring_claim& mine = b.mine;
  const ring_share& sum = b.sum;
  ring_place taken{};
  const xio_status_t status = ring_reserve<Codec>(group, r, w, sum, &taken);
  if (status != XIO_OK) {
    result->serves = taken.turn.mine;
    return status;
  }
  const bool leads = group.rank() == 0;
  const u64 at = taken.first + sum.slots_before;
  const bool last = group.rank() == group.count() - 1;
  if constexpr (k_ring_is_serial<Codec>) {
    fill(at, last, taken.serial + sum.packets_before);
  } else {
    fill(at, last);
  }
  group.sync();
  // Lanes in lockstep add their bytes by one instruction.
  if constexpr (k_keys_take_turns) add<scope::agent, order::relaxed>(lone_word(&r.state->bytes), u64{mine.bytes});
  if (leads) {
    if constexpr (k_keys_take_turns)
      add<scope::agent, order::relaxed>(lone_word(&r.state->ops), u64{group.count()});
    else
      ring_count(r, group.count(), sum.bytes);
    result->serves = ring_publish<Codec>(r, taken.first, sum.slots, taken.turn);
  }
  result->ticket = at + mine.slots - 1;
  return XIO_OK;
}

// ring_post for one lane, without all that lanes do together.
template <class Codec, class Fill>
XIO_DEVICE xio_status_t ring_post_lone(const ring_view& r, const world_view& w, const ring_claim& mine, u64* ticket,
                                       Fill&& fill) {
  ring_place taken{};
  const xio_status_t status = ring_reserve_for<Codec>(r, w, mine.slots, mine.packets, &taken);
  if (status != XIO_OK) return status;
  // Here, and not when all is announced: the turn to drain is asked for next, and would wait for these.
  ring_count(r, 1, mine.bytes);
  if constexpr (k_ring_is_serial<Codec>) {
    fill(taken.first, true, taken.serial);
  } else {
    fill(taken.first, true);
  }
  ring_publish<Codec>(r, taken.first, mine.slots, taken.turn);
  *ticket = taken.first + mine.slots - 1;
  return XIO_OK;
}

// How many lanes of a group post in one round: a wave wider than the ring goes in rounds, so that it cannot starve
// behind single lanes.
XIO_DEVICE u32 ring_lanes_per_round(const lanes& group, const ring_view& r, u32 slots) {
  const u32 count = group.count();
  if (count == 1) return 1;
  const u32 cap = r.depth / 2;
  const bool ones = group.ballot(slots <= 1) == group.mask;
  const bool twos = group.ballot(slots <= 2) == group.mask;
  const u32 most = ones ? 1 : twos ? 2 : cap;
  if (count * most <= cap) return count;
  return cap / most == 0 ? 1 : cap / most;
}

// Posts one claim for each lane of `group`, all lanes to the same ring and each claim at most depth/2 slots. Gives the
// ticket of the lane's last entry. Blocks only for free slots, with the world's deadline.
template <class Codec, class Fill>
XIO_DEVICE xio_status_t ring_post(const lanes& group, const ring_view& r, const world_view& w, const ring_claim& mine,
                                  u64* ticket, Fill&& fill) {
  if constexpr (k_lone_lanes_apart)
    if (group.alone()) return ring_post_lone<Codec>(r, w, mine, ticket, fill);
  // One call for all rounds: what fill writes is long.
  const u32 count = group.count();
  const u32 rank = group.rank();
  const u32 per_round = ring_lanes_per_round(group, r, mine.slots);
  xio_status_t status = XIO_OK;
  for (u32 base = 0; base < count; base += per_round) {
    const bool now = rank >= base && rank < base + per_round;
    const lanes turn{per_round == count ? group.mask : group.ballot(now)};
    ring_result result{*ticket, false};  // codecs that wait serve by themselves
    if (now) status = ring_post_batch<Codec>(turn, r, w, {mine, ring_sum(turn, mine)}, &result, fill);
    *ticket = result.ticket;
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
  if (at + mine.slots - ring_completed(r) > r.depth) {
    if constexpr (k_ring_tries<Codec>) return XIO_PENDING;
    if (const xio_status_t status = ring_wait_alone<Codec>(r, w, at + mine.slots); status != XIO_OK) return status;
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
                                           const ring_claim& all, ring_result* result, Fill&& fill) {
  const ring_share sum{all.slots, 0, all.packets, 0, all.bytes};
  ring_place taken{};
  const xio_status_t status = ring_reserve<Codec>(group, r, w, sum, &taken);
  if (status != XIO_OK) {
    result->serves = taken.turn.mine;
    return status;
  }
  const bool leads = group.rank() == 0;
  fill(taken.first, taken.serial);
  group.sync();
  if (leads) {
    ring_count(r, group.count(), all.bytes);
    result->serves = ring_publish<Codec>(r, taken.first, all.slots, taken.turn);
  }
  result->ticket = taken.first + all.slots - 1;
  return XIO_OK;
}

}  // namespace xio::dev
