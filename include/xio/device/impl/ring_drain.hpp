// SPDX-License-Identifier: MIT
// Draining a ring (ring.hpp) and waiting for it: for completions, or for free slots.
#pragma once
#include "xio/device/impl/deadline.hpp"
#include "xio/device/impl/ring_words.hpp"
#include "xio/device/impl/view.hpp"
#include "xio/device/impl/wait_note.hpp"
#include "xio/device/platform/platform.hpp"

namespace xio::dev {

// --- Draining ----------------------------------------------------------------------------------------

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

// --- Waiting for free slots --------------------------------------------------------------------------

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

// --- Waiting for completions -------------------------------------------------------------------------

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

// Waits until every ticket below `upto` is complete. The caller sees what the device wrote. `since`: see deadline::in.
template <class Codec>
XIO_DEVICE xio_status_t ring_wait_below(const ring_view& r, u64 upto, const world_view& w, u64* since) {
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
    if (first) end = deadline::in(w, since);
    note_queue(r, upto, end.start);
    if (!end.wait_more() && !first) {
      ring_fail(r, XIO_ERR_TIMEOUT, 0, ring_completed<order::relaxed>(r));
      status = XIO_ERR_TIMEOUT;
      break;
    }
  }
  fence<scope::system, order::acquire>();
  return status;
}

template <class Codec>
XIO_DEVICE xio_status_t ring_wait_below(const ring_view& r, u64 upto, const world_view& w) {
  u64 since = 0;
  return ring_wait_below<Codec>(r, upto, w, &since);
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
    note_queue(r, slots != 0 ? completed + 1 : upto, *since);
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
XIO_DEVICE xio_status_t ring_quiet(const ring_view& r, const world_view& w, u64* since) {
  const u64 upto = load<scope::agent, order::relaxed>(&r.state->issued);
  const xio_status_t status = ring_wait_below<Codec>(r, upto, w, since);
  return status != XIO_OK ? status : ring_failure(r);
}
template <class Codec>
XIO_DEVICE xio_status_t ring_quiet(const ring_view& r, const world_view& w) {
  u64 since = 0;
  return ring_quiet<Codec>(r, w, &since);
}

}  // namespace xio::dev
