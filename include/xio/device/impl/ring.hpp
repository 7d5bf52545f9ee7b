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
//   static constexpr bool k_serial                       optional: entries carry a number that depends on all before
//                                                        them (bnxt: the PSN), see ring_take_tickets
//   static bool is_serial(const ring_view&)              optional, beside k_serial: of some rings only
//   static constexpr bool k_tries                        optional: posting waits for nothing and rings for nobody else;
//                                                        without room it returns XIO_PENDING, see ring_post_by
#pragma once
#include "xio/device/impl/deadline.hpp"
#include "xio/device/impl/view.hpp"
#include "xio/device/platform/lanes.hpp"
#include "xio/device/platform/platform.hpp"

namespace xio::dev {

// A ring as an op holds it.
using held_ring = held<ring_view>;

// The order of changes to words by which one thread lets others know that a device has read a slot, or has written the
// data that was asked for. The thread passes on only what it loaded before; one that passes on what it has stored (a
// completion queue's doorbell) needs a release on every platform.
constexpr order k_handed_on = k_stores_follow_loads ? order::relaxed : order::acq_rel;

template <order O = k_handed_on>
XIO_DEVICE void ring_hand_on() {
  if constexpr (O != order::relaxed) fence_before_stores<scope::agent>();
}

// For codecs whose drain has stored words for the next one, or rung a doorbell of which the next one's must not come
// before: behind that, unless a release has come since.
XIO_DEVICE void ring_keep_stored() {
  if constexpr (k_handed_on == order::relaxed) fence<scope::agent, order::release>();
}

// Keeps the first failure of a ring; later ones are consequences.
XIO_DEVICE void ring_fail(const ring_view& r, xio_status_t status, u32 vendor, u64 ticket) {
  u32 none = 0;
  if (load<scope::agent, order::relaxed>(&r.state->failed) != 0) return;
  store<scope::agent, order::relaxed>(&r.state->failed_ticket, ticket);
  store<scope::agent, order::relaxed>(&r.state->vendor, vendor);
  store<scope::agent, order::relaxed>(&r.state->failed_at, wall_clock());
  compare_exchange<scope::agent, order::release>(&r.state->failed, none, static_cast<u32>(status));
  ring_keep_stored();
}

XIO_DEVICE xio_status_t ring_failure(const ring_view& r) {
  return static_cast<xio_status_t>(static_cast<int>(load<scope::agent, order::acquire>(&r.state->failed)));
}

// A batch is marked at its first slot: the ticket, by 47 bits, and how many slots there are, by 16. A batch of none
// does not exist, so memory of all zeroes marks nothing.
constexpr u64 k_mark_ends_batch = u64{1} << 63;
XIO_DEVICE u64 ring_mark_of(u64 ticket, u32 slots) { return ((ticket << 16) & ~k_mark_ends_batch) | slots; }
// The slots of the batch that begins with `ticket`, if `mark` is its mark; else 0.
XIO_DEVICE u32 ring_marked(u64 mark, u64 ticket) {
  const u64 slots = mark ^ ring_mark_of(ticket, 0);
  return slots <= 0xffff ? static_cast<u32>(slots) : 0;
}
XIO_DEVICE u64* ring_mark_at(const ring_view& r, u64 ticket) { return &r.marks[ticket & (r.depth - 1)]; }

// For codecs whose completions name an entry and not how long it is. The entry that asks for a completion leaves that
// beside itself; it is no batch's mark. If the batch is this entry alone its mark may lie here instead.
XIO_DEVICE void ring_keep_length(const ring_view& r, u64 ticket, u32 slots) {
  store<scope::agent, order::relaxed>(ring_mark_at(r, ticket), ring_mark_of(ticket, slots) | k_mark_ends_batch);
}
XIO_DEVICE u32 ring_length_in(u64 mark, u64 ticket) { return ring_marked(mark & ~k_mark_ends_batch, ticket); }
XIO_DEVICE u32 ring_kept_length(const ring_view& r, u64 ticket) {
  return ring_length_in(load<scope::agent, order::relaxed>(ring_mark_at(r, ticket)), ticket);
}

XIO_DEVICE unsigned char* ring_slot(const ring_view& r, u64 ticket, u32 slot_bytes) {
  return r.slots + (ticket & (r.depth - 1)) * static_cast<u64>(slot_bytes);
}

// How often a waiter looks before it lets others drain: on the host lanes share threads, so one that waits gives way.
constexpr u32 k_ring_polls = k_pauses_at_once ? 1 : 16;

// --- Reaping -----------------------------------------------------------------------------------------

// One thread at a time drains, and state->completed has k_reaping meanwhile. So a thread that begins learns in the same
// step what is complete, and the store that ends its turn publishes the new count.
template <order O = order::acquire>
XIO_DEVICE u64 ring_completed(const ring_view& r) {
  return load<scope::agent, O>(&r.state->completed) & ~(k_reaping | k_even);
}

// True: the caller may drain. Either way *completed is what is complete, with the flag of a codec out of order beside
// it. `O` is for callers that have a fence behind it.
template <order O = order::acquire>
XIO_DEVICE bool ring_try_reaping(const ring_view& r, u64* completed) {
  const u64 was = fetch_or<scope::agent, O>(&r.state->completed, k_reaping);
  *completed = was & ~k_reaping;
  return (was & k_reaping) == 0;
}
// The same for a thread that waits. first: in its first round it does not check whether another thread drains.
XIO_DEVICE bool ring_try_reaping_early(const ring_view& r, bool first, u64* completed) {
  if (!first) {
    const u64 word = load<scope::agent, k_acquire_by_fence>(&r.state->completed);
    *completed = word & ~k_reaping;
    if (word != *completed) return false;
  }
  return ring_try_reaping<k_acquire_by_fence>(r, completed);
}
// The count alone.
template <class Codec>
XIO_DEVICE u64 ring_count_of(u64 completed) {
  return Codec::k_in_order ? completed : completed & ~k_even;
}
XIO_DEVICE void ring_end_reaping(const ring_view& r, u64 completed) {
  constexpr order o = k_handed_on == order::relaxed ? order::relaxed : order::release;
  store<scope::agent, o>(&r.state->completed, completed);
}

// For codecs: all tickets below `upto` are complete, after those below `from` were. Called from drain only. O: release
// where the device must see what drain stored before it sees what the new credits let others post.
template <order O = k_handed_on>
XIO_DEVICE void ring_complete(const ring_view& r, u64 from, u64 upto) {
  ring_hand_on<O>();
  store<scope::agent, k_release_by_fence>(&r.state->completed, upto | k_reaping);
  add<scope::agent, k_release_by_fence>(lone_word(&r.state->credits), static_cast<i64>(upto - from));
}

// Called by the thread that may drain: it drains until done(completed), or k_ring_polls times, and then lets others
// drain. Returns true if done() held; the caller then sees what the device wrote.
template <class Codec, class Done>
XIO_DEVICE bool ring_reap_until(const ring_view& r, u64 completed, Done&& done) {
  bool good = false;
  u32 failed = 0;
  for (u32 i = 0; i < k_ring_polls && !good && failed == 0; ++i) {
    failed = load<scope::agent, order::relaxed>(&r.state->failed);  // in one look with what drain looks at
    completed = Codec::drain(r, completed);
    good = done(ring_count_of<Codec>(completed));
  }
  ring_end_reaping(r, completed);
  return good;
}

template <class Codec>
XIO_DEVICE void ring_reap(const ring_view& r) {
  u64 completed = load<scope::agent, order::relaxed>(&r.state->completed);
  if ((completed & k_reaping) != 0 || !ring_try_reaping(r, &completed)) return;
  ring_end_reaping(r, Codec::drain(r, completed));
}

// Waits for n slots, or says why not. One lane of a wave at a time.
template <class Codec>
XIO_DEVICE xio_status_t ring_wait_credits(const ring_view& r, u32 n, const world_view& w) {
  const deadline end = deadline::in(w);
  const i64 wanted = static_cast<i64>(n);
  for (;;) {
    if (const xio_status_t failure = ring_failure(r); failure != XIO_OK) return failure;
    // Only what may be had is taken: or many that take and give back keep the number so low that nobody finds enough.
    if (load<scope::agent, order::relaxed>(&r.state->credits) >= wanted) {
      const i64 had = fetch_add<scope::agent, order::acquire>(&r.state->credits, -wanted);
      if (had >= wanted) return XIO_OK;
      add<scope::agent, order::relaxed>(&r.state->credits, wanted);
    }
    ring_reap<Codec>(r);
    const bool there = load<scope::agent, order::relaxed>(&r.state->credits) >= wanted;
    if (there ? end.passed() : !end.wait_more()) {
      ring_fail(r, XIO_ERR_TIMEOUT, 0, ring_completed<order::relaxed>(r));
      return XIO_ERR_TIMEOUT;
    }
  }
}

// --- Ringing -----------------------------------------------------------------------------------------

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

// By the ringer: rings for [from, to), which is complete.
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

// By the ringer, who has rung for all below `from`: rings for every entry behind it that is complete, until nobody has
// come in between.
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

// --- Posting -----------------------------------------------------------------------------------------

template <class Codec>
constexpr bool k_ring_is_serial = requires {
  Codec::k_serial;
};
template <class Codec>
XIO_DEVICE bool ring_is_serial(const ring_view& r) {
  if constexpr (requires { Codec::is_serial(r); }) return Codec::is_serial(r);
  return k_ring_is_serial<Codec>;
}
// A copy of a view in registers of the wave: all lanes that are here have come with the same ring.
XIO_DEVICE ring_view ring_in_registers(const ring_view& in_memory) {
  const ring_view& at = uniform(in_memory);
  ring_view r{};
  r.state = view_field(at.state);
  r.marks = view_field(at.marks);
  r.slots = view_field(at.slots);
  r.depth = view_field(at.depth);
  r.depth_log2 = view_field(at.depth_log2);
  r.kind = view_field(at.kind);
  r.id = view_field(at.id);
  r.index = view_field(at.index);
  r.chunk = view_field(at.chunk);
  r.doorbell = view_field(at.doorbell);
  r.doorbell_record = view_field(at.doorbell_record);
  r.completion = view_field(at.completion);
  r.cq_doorbell = view_field(at.cq_doorbell);
  r.cq_depth = view_field(at.cq_depth);
  r.cq_depth_log2 = view_field(at.cq_depth_log2);
  r.remote_heap = view_field(at.remote_heap);
  r.remote_key = view_field(at.remote_key);
  r.scratch_lkey = view_field(at.scratch_lkey);
  r.nic = view_field(at.nic);
  r.atomics = view_field(at.atomics);
  r.inline_bytes = view_field(at.inline_bytes);
  r.gather_bytes = view_field(at.gather_bytes);
  r.path_mtu = view_field(at.path_mtu);
  r.variant = view_field(at.variant);
  r.cq_id = view_field(at.cq_id);
  r.slots_lkey = view_field(at.slots_lkey);
  r.aux = view_field(at.aux);
  r.alone = view_field(at.alone);
  r.granule = view_field(at.granule);
  r.least_slots = view_field(at.least_slots);
  return r;
}

// The result of a leaf for one lane. k_not_yet beside XIO_PENDING: the lane has not had its turn, and is to come again;
// else there was no room.
struct posted_ops {
  u64 ticket;
  xio_status_t status;
  bool serves;  // this lane is the ringer, and must call ring_serve_others now
};
constexpr u64 k_not_yet = 1;

// Free slots. Of a ring that one thread at a time posts to: by its tickets.
XIO_DEVICE i64 ring_room(const ring_view& r) { return load<scope::agent, order::relaxed>(&r.state->credits); }
XIO_DEVICE i64 ring_room_alone(const ring_view& r) {
  const u64 issued = load<scope::agent, order::relaxed>(&r.state->issued);
  return static_cast<i64>(r.depth - (issued - ring_completed<order::relaxed>(r)));
}

// The slots that the lanes that are here need together, or the most that they take at once.
XIO_DEVICE u32 ring_slots_wanted(const ring_view& r, u32 slots) {
  const u32 all = converged_lanes().count() * slots;
  return all < r.depth / 2 ? all : r.depth / 2;
}

// By the kernel: calls the leaf try_once() until it has posted or says why not. slots() is what one lane needs;
// find_room(slots, &since) waits until as many are free, see ring_wait_for. serve() rings for others. It comes before
// the lane looks at its status: lanes that go on here wait for room, perhaps for that of entries which this ringer has
// to ring for.
template <class Slots, class Room, class Serve, class Try>
XIO_DEVICE posted_ops ring_post_by(const ring_view& r, bool alone, Slots&& slots, Room&& find_room, Serve&& serve,
                                   Try&& try_once) {
  u64 since = 0;
  for (;;) {
    posted_ops done = try_once();
    if (done.serves) [[unlikely]]
      serve();
    if (done.status != XIO_PENDING) [[likely]]
      return done;
    if (done.ticket == k_not_yet) continue;
    done.status = find_room(alone ? slots() : ring_slots_wanted(r, slots()), &since);
    if (done.status != XIO_OK) return done;
  }
}

// By who took n slots that were not there, or of a ring that has failed. Seldom, so out of line. Where a view is held
// in registers, by value: its address would put it into memory.
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

// The demand of one lane on a ring.
struct ring_claim {
  u32 slots;    // at most 255
  u32 packets;  // of a serial ring, 24 bits; else 0
  u32 bytes;    // of payload, for statistics
};

// The demand of a group of lanes together, and the part of it that belongs to the lanes before the caller.
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

// The same of lanes that all claim as many slots and no packets.
XIO_DEVICE ring_share ring_sum_equal(const lanes& group, const ring_claim& mine) {
  const u32 count = group.count();
  if (count == 1) return ring_share{mine.slots, 0, 0, 0, mine.bytes};
  u64 bytes = static_cast<u64>(mine.bytes) * count;
  if (group.ballot(mine.bytes == static_cast<u32>(group.first(mine.bytes))) != group.mask) {
    bytes = 0;
    for (u64 left = group.mask; left != 0; left &= left - 1) bytes += group.shuffle(mine.bytes, lowest_bit(left));
  }
  return ring_share{mine.slots * count, mine.slots * group.rank(), 0, 0, bytes};
}

// Credits, then tickets, by one lane for all.
template <class Codec>
XIO_DEVICE xio_status_t ring_reserve_for(const ring_view& r, const world_view& w, u32 slots, u64 packets, u64* first,
                                         u64* serial, ring_turn* turn) {
  const xio_status_t status = ring_take_credits<Codec>(r, slots, w, &turn->mine);
  if (status != XIO_OK) return status;
  turn->published = load<scope::agent, order::relaxed>(&r.state->published);
  *first = ring_take_tickets<Codec>(r, slots, packets, serial);
  return XIO_OK;
}

// The same by the leader; every lane gets the first ticket and number, the leader also its turn.
template <class Codec>
XIO_DEVICE xio_status_t ring_reserve(const lanes& group, const ring_view& r, const world_view& w, const ring_share& sum,
                                     u64* first, u64* serial, ring_turn* turn) {
  xio_status_t status = XIO_OK;
  if (group.rank() == 0) status = ring_reserve_for<Codec>(r, w, sum.slots, sum.packets, first, serial, turn);
  if (group.count() == 1) return status;
  status = static_cast<xio_status_t>(static_cast<int>(group.first(static_cast<u64>(static_cast<int>(status)))));
  *first = group.first(*first);
  if constexpr (k_ring_is_serial<Codec>) *serial = group.first(*serial);
  return status;
}

// Statistics.
XIO_DEVICE void ring_count(const ring_view& r, u32 ops, u64 bytes) {
  add<scope::agent, order::relaxed>(lone_word(&r.state->ops), u64{ops});
  add<scope::agent, order::relaxed>(lone_word(&r.state->bytes), bytes);
}

// Posts for the lanes of `group`, which fits the ring whole; `sum` is their share. fill(ticket, last) writes the lane's
// `slots` entries; `last` says that the lane's last entry ends the batch and must ask for a completion. On a serial
// ring it is fill(ticket, last, number). *serves as in posted_ops.
template <class Codec, class Fill>
XIO_DEVICE xio_status_t ring_post_batch(const lanes& group, const ring_view& r, const world_view& w,
                                        const ring_claim& mine, const ring_share& sum, u64* ticket, bool* serves,
                                        Fill& fill) {
  u64 first = 0, serial = 0;
  ring_turn turn{};
  const xio_status_t status = ring_reserve<Codec>(group, r, w, sum, &first, &serial, &turn);
  if (status != XIO_OK) {
    *serves = turn.mine;
    return status;
  }
  const bool leads = group.rank() == 0;
  const u64 at = first + sum.slots_before;
  const bool last = group.rank() == group.count() - 1;
  if constexpr (k_ring_is_serial<Codec>) {
    fill(at, last, serial + sum.packets_before);
  } else {
    fill(at, last);
  }
  group.sync();
  if (leads) {
    ring_count(r, group.count(), sum.bytes);
    *serves = ring_publish<Codec>(r, first, sum.slots, turn);
  }
  *ticket = at + mine.slots - 1;
  return XIO_OK;
}

// ring_post for one lane, without all that lanes do together.
template <class Codec, class Fill>
XIO_DEVICE xio_status_t ring_post_lone(const ring_view& r, const world_view& w, const ring_claim& mine, u64* ticket,
                                       Fill&& fill) {
  u64 first = 0, serial = 0;
  ring_turn turn{};
  const xio_status_t status = ring_reserve_for<Codec>(r, w, mine.slots, mine.packets, &first, &serial, &turn);
  if (status != XIO_OK) return status;
  // Here, and not when all is announced: the turn to drain is asked for next, and would wait for these.
  ring_count(r, 1, mine.bytes);
  if constexpr (k_ring_is_serial<Codec>) {
    fill(first, true, serial);
  } else {
    fill(first, true);
  }
  ring_publish<Codec>(r, first, mine.slots, turn);
  *ticket = first + mine.slots - 1;
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
    bool serves = false;  // not of codecs that wait
    if (now) status = ring_post_batch<Codec>(turn, r, w, mine, ring_sum(turn, mine), ticket, &serves, fill);
  }
  return status;
}

// For a lone poster: waits until entries up to ticket `upto` have room.
template <class Codec>
XIO_DEVICE xio_status_t ring_wait_alone(const ring_view& r, const world_view& w, u64 upto) {
  const deadline end = deadline::in(w);
  for (;;) {
    ring_reap<Codec>(r);
    if (ring_failure(r) != XIO_OK) return ring_failure(r);
    if (upto - ring_completed(r) <= r.depth) return XIO_OK;
    if (!end.wait_more()) {
      ring_fail(r, XIO_ERR_TIMEOUT, 0, ring_completed<order::relaxed>(r));
      return XIO_ERR_TIMEOUT;
    }
  }
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
                                           const ring_claim& all, u64* ticket, bool* serves, Fill&& fill) {
  const ring_share sum{all.slots, 0, all.packets, 0, all.bytes};
  u64 first = 0, serial = 0;
  ring_turn turn{};
  const xio_status_t status = ring_reserve<Codec>(group, r, w, sum, &first, &serial, &turn);
  if (status != XIO_OK) {
    *serves = turn.mine;
    return status;
  }
  const bool leads = group.rank() == 0;
  fill(first, serial);
  group.sync();
  if (leads) {
    ring_count(r, group.count(), all.bytes);
    *serves = ring_publish<Codec>(r, first, all.slots, turn);
  }
  *ticket = first + all.slots - 1;
  return XIO_OK;
}

// Of the tickets below `upto` of a ring that has failed: its failure, or XIO_OK if they were complete before.
// Looks at them after the failure, for both may have come since the caller looked.
XIO_DEVICE xio_status_t ring_failure_below(const ring_view& r, u64 upto) {
  const xio_status_t failure = ring_failure(r);
  return ring_completed(r) >= upto ? XIO_OK : failure;
}

// Whether a ticket of an in-order ring is complete: XIO_OK, XIO_PENDING, or the failure that took it.
XIO_DEVICE xio_status_t ring_test(const ring_view& r, u64 ticket) {
  if (ring_completed(r) > ticket) return XIO_OK;
  return ring_failure(r) == XIO_OK ? XIO_PENDING : ring_failure_below(r, ticket + 1);
}

// Waits until every ticket below `upto` is complete. The caller sees what the device wrote.
template <class Codec>
XIO_DEVICE xio_status_t ring_wait_below(const ring_view& r, u64 upto, const world_view& w) {
  deadline end{};
  xio_status_t status = XIO_OK;
  for (bool first = true;; first = false) {
    // One look, because each takes as long as all.
    u64 completed = 0;
    const u32 failed = load<scope::agent, order::relaxed>(&r.state->failed);
    const bool reaping = ring_try_reaping_early(r, first, &completed);
    fence_after_loads<scope::agent>();
    const u64 count = ring_count_of<Codec>(completed);
    if (count >= upto || failed != 0) {
      if (reaping) ring_end_reaping(r, completed);
      if (count < upto) status = ring_failure_below(r, upto);
      break;
    }
    if (reaping && ring_reap_until<Codec>(r, completed, [&](u64 now) { return now >= upto; })) return XIO_OK;
    if (ring_completed(r) >= upto) break;
    // An entry that is there at once needs no clock. And even if the first pause takes long, the queue is polled again
    // before the wait times out.
    if (first) end = deadline::in(w);
    if (!end.wait_more() && !first) {
      ring_fail(r, XIO_ERR_TIMEOUT, 0, ring_completed<order::relaxed>(r));
      status = XIO_ERR_TIMEOUT;
      break;
    }
  }
  fence<scope::system, order::acquire>();
  return status;
}

// For leaves that wait for a ring in order: until every ticket below `upto` is complete; or, with `slots`, until that
// many are free, or were just now; with k_drain_once not at all, but completions are fetched if nobody else does. The
// caller sees what the device wrote. `*since` is when an op began to wait for room, 0 at first: its deadline counts for
// all of its tries. drain(completed) is the codec's; AloneToo: of rings with ring_view::alone, too.
constexpr u32 k_drain_once = ~0u;
template <bool AloneToo, class Drain>
XIO_DEVICE xio_status_t ring_wait_for(const ring_view& r, const world_view* w, u64 upto, u32 slots, u64* since,
                                      Drain&& drain) {
  const auto enough = [&](u64 completed) {
    if (slots == 0) return completed >= upto;
    if constexpr (AloneToo)
      if (r.alone != 0) return ring_room_alone(r) >= static_cast<i64>(slots);
    return ring_room(r) >= static_cast<i64>(slots);
  };
  xio_status_t status = XIO_OK;
  u64 completed = 0;
  u32 drains = 0;  // of the turn that this thread has to drain, those that are left; the last ends it
  // One piece of code for every step, however a thread comes to it: it is long.
  XIO_ROLLED for (;;) {
    not_before(slots);  // else the compiler keeps all comparisons with it in registers, from before the loop on
    const bool once = slots == k_drain_once;
    const u32 failed = load<scope::agent, order::relaxed>(&r.state->failed);
    if (drains > 1) {
      completed = drain(completed);
      --drains;
    } else if (ring_try_reaping_early(r, !once && *since == 0, &completed)) {
      drains = once ? 2 : k_ring_polls + 1;
    }
    fence_after_loads<scope::agent>();
    const bool ends = once ? drains <= 1 : failed != 0 || enough(completed);
    if (drains > 1 && !ends) continue;
    if (drains != 0) ring_end_reaping(r, completed);
    drains = 0;
    if (ends) {
      if (failed != 0 && !once) status = ring_failure_below(r, slots != 0 ? ~u64{0} : upto);
      if (slots == 0 || once || status != XIO_OK) break;
    }
    // Even if the first pause takes long, there is another look before the wait times out. And room may be there
    // again and again, and be taken by others.
    const bool waits = *since != 0;
    if (!waits) *since = deadline_clock();
    const deadline end{*since, w->timeout_ticks};
    if (ends ? end.passed() : !end.wait_more() && waits) {
      ring_fail(r, XIO_ERR_TIMEOUT, 0, ring_completed<order::relaxed>(r));
      status = XIO_ERR_TIMEOUT;
      break;
    }
    if (ends) break;
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
