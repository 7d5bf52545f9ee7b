// SPDX-License-Identifier: MIT
// NVMe on the ring: 64-byte SQEs by ticket, completions in any order by command id.
//
// CID = ticket mod op_count, so no pool of ids and no lock: the reaper keeps credits back that would let a ticket be
// taken op_count above the low mark, hence a CID that is taken again is idle. A credit is a free slot
// without anyone reading SQHD: were slot (t mod depth) still unfetched, tickets t-depth .. t-1 would all be incomplete
// (fetching goes in order), one more than there are credits.
//
// op_words[cid] = generation (ticket / op_count) << 16 | done << 15 | status (15 bits of the CQE), written by the
// reaper alone. Behind them lie the words of what failed, see failure_word: the proof for tickets whose op word was
// taken by a later command.
//
// Where commands come one at a time the count of them says it all: with k_even beside it, all that were taken off the
// CQ are those below the low mark, their slots are credits, and none of them failed. The thread that drains then keeps
// nothing else, so that it loads nothing before it polls the CQ, and publishes one word only. Commands that are taken
// off in this way leave no op word.
//
// Nothing is well for want of a trace: below the low mark a command without an op word was well if the word of what
// failed says so. Where that has forgotten a failure that may be this one, the result is not known, which is an error.
#pragma once
#include "xio/device/impl/deadline.hpp"
#include "xio/device/impl/ring.hpp"
#include "xio/device/impl/view.hpp"
#include "xio/device/platform/platform.hpp"
#include "xio/wire/nvme.hpp"
#include "xio/xio.h"

namespace xio::dev {

constexpr u64 k_no_ticket = ~u64{0};

// Failures: one word for all tickets that are equal modulo the number of words. Those come one after the other, for
// there are as many words as the longest queue has command ids. A word names the last ticket of its row that failed,
// and says which of the 16 before that one failed as well. So what it says of a ticket is exact until 16 laps of all
// words have passed, and also later as long as no failure of the row had to be forgotten. 0: none of the row has
// failed.
//   bits 0-14 the status, 15: a failure was forgotten, 16-31 the 16 laps before (16: the last one), 32-63 the lap.
struct failure_word {
  static constexpr u32 k_row_log2 = 14;  // 128 KiB; exact for a quarter of a million commands
  static constexpr u32 k_laps = 16;
  // In the place of a status: it failed, or it may be the one that was forgotten.
  static constexpr u32 k_not_known = 0x8000;

  XIO_HOST_DEVICE static constexpr u32 lap_of(u64 ticket) { return static_cast<u32>(ticket >> k_row_log2); }

  // Returns the new word when a later ticket has failed.
  XIO_HOST_DEVICE static constexpr u64 with(u64 word, u64 ticket, u32 status) {
    const u32 before = static_cast<u32>(word);
    const u32 later = lap_of(ticket) - static_cast<u32>(word >> 32) - 1;
    u32 laps = later < k_laps ? (before >> 16 << 1 | 1) << later : 1u << k_laps;  // bit 16 and above: forgotten
    if (word == 0) laps = 0;
    const u32 forgotten = laps >> k_laps != 0 ? k_not_known : before & k_not_known;
    return u64{lap_of(ticket)} << 32 | laps << 16 | forgotten | status;
  }
  // Returns what the word says of a ticket that is complete: 0 if it succeeded, its status, or k_not_known.
  XIO_HOST_DEVICE static constexpr u32 says(u64 word, u64 ticket) {
    const u32 low = static_cast<u32>(word);
    const int back = static_cast<int>(static_cast<u32>(word >> 32) - lap_of(ticket));
    if (word == 0 || back < 0) return 0;
    if (back == 0) return low & (k_not_known - 1);
    return low >> (back <= static_cast<int>(k_laps) ? back : 0) & k_not_known;
  }
};

// Bytes of the allocation at nvme_ring::op_words.
XIO_HOST_DEVICE constexpr u64 op_words_bytes(u64 op_count) {
  return (op_count + (u64{1} << failure_word::k_row_log2)) * sizeof(u64);
}

// Command ids of a queue: 4 depths leave room for a command that takes very long while others come and go.
XIO_HOST_DEVICE constexpr u32 op_count_for(u32 depth) { return 4 * depth; }

// Bytes that a command id has for its PRP list, for transfers of at most `chunk` bytes at any offset: whole pages where
// lists are chained, for every page but the first must begin one.
XIO_HOST_DEVICE constexpr u64 prp_room(u64 chunk, u64 page_bytes) {
  const u64 list = wire::nvme::prp_list_bytes(chunk, page_bytes);
  return list <= page_bytes ? list : wire::nvme::prp_list_pages(list / 8, page_bytes) * page_bytes;
}

struct nvme_codec {
  static constexpr bool k_in_order = false;
  static constexpr u32 k_done = 0x8000;

  XIO_DEVICE static u64 generation(const ring_view& r, u64 ticket) { return ticket >> r.nvme.op_count_log2; }
  XIO_DEVICE static u32 cid(const ring_view& r, u64 ticket) { return static_cast<u32>(ticket) & (r.nvme.op_count - 1); }
  XIO_DEVICE static u64* failure_at(const ring_view& r, u64 ticket) {
    return r.nvme.op_words + r.nvme.op_count + (ticket & ((u64{1} << failure_word::k_row_log2) - 1));
  }

  // Whether a register was written: with shadow doorbells (NVMe base 2.0, B.5) only where the drive asks for it.
  XIO_DEVICE static bool announce(const ring_view& r, u64 from, u64 to) {
    const u32 mask = r.depth - 1;
    const u32 tail = static_cast<u32>(to) & mask;
    if (r.nvme.shadow_tail != nullptr &&
        !shadow_asks(r.nvme.shadow_tail, r.nvme.tail_event, static_cast<u32>(from) & mask, tail, mask))
      return false;
    ring_doorbell(r.nvme.sq_doorbell, tail);
    return true;
  }

  // The low mark, with k_even, as all that drain take it and give it.
  XIO_DEVICE static u64 drain(const ring_view& r, u64 completed) {
    u64 word = 0;
    return drain(r, completed, k_no_ticket, &word);
  }
  // *word_of_it becomes the op word of `awaited` when that completes.
  XIO_DEVICE static u64 drain(const ring_view& r, u64 completed, u64 awaited, u64* word_of_it) {
    drainer d = drainer::of(r, completed);
    return poll<false>(r, d, completed, awaited, word_of_it);
  }

  // Of one command: XIO_OK, XIO_PENDING, XIO_ERR_STORAGE, or the failure of the queue. Three loads in one look, because
  // each takes as long as all.
  XIO_DEVICE static xio_status_t test(const ring_view& r, u64 ticket) {
    const u32 failed = load<scope::agent, order::relaxed>(&r.state->failed);
    const u64 low = ring_completed<k_acquire_by_fence>(r);
    const u64 word = load<scope::agent, k_acquire_by_fence>(&r.nvme.op_words[cid(r, ticket)]);
    fence_after_loads<scope::agent>();
    return status_of(r, ticket, failed, low, word);
  }

  // Returns the status that those three words give.
  XIO_DEVICE static xio_status_t status_of(const ring_view& r, u64 ticket, u32 failed, u64 low, u64 word) {
    if (ticket >= low && is_done(r, ticket, word)) return status_in(word);
    if (ticket >= low) return failed == 0 ? XIO_PENDING : failure_of(r, ticket);
    // The word may have been loaded before the low mark.
    if (!is_done(r, ticket, word)) word = load<scope::agent, order::acquire>(&r.nvme.op_words[cid(r, ticket)]);
    if (is_done(r, ticket, word)) return status_in(word);
    return failure_in(r, ticket) == 0 ? XIO_OK : XIO_ERR_STORAGE;
  }

  // Waits for one command. The caller sees what the drive wrote.
  XIO_DEVICE static xio_status_t wait(const ring_view& ring, const world_view& w, u64 ticket) {
    held_ring r = ring;
    deadline end{};
    xio_status_t status = XIO_PENDING;
    for (bool first = true;; first = false) {
      // In one look with what test() looks at.
      u64 completed = 0;
      const u32 failed = load<scope::agent, order::relaxed>(&r.state->failed);
      const bool reaping = ring_try_reaping_early(r, first, &completed);
      const u64 word = load<scope::agent, k_acquire_by_fence>(&r.nvme.op_words[cid(r, ticket)]);
      fence_after_loads<scope::agent>();
      status = status_of(r, ticket, failed, completed & ~k_even, word);
      if (reaping) {
        if (status == XIO_PENDING) {
          // A thread that fetched the CQE itself sees what the drive wrote.
          if (reap_for(r, ticket, completed, &status)) return status;
        } else {
          ring_end_reaping(r, completed);
        }
      }
      if (status != XIO_PENDING) break;
      if (first) end = deadline::in(w);
      note_queue(r, ticket + 1, end.start);
      if (end.wait_more() || first) continue;
      ring_fail(r, XIO_ERR_TIMEOUT, 0, ticket);
      status = XIO_ERR_TIMEOUT;
      break;
    }
    fence<scope::system, order::acquire>();
    return status;
  }

  // Waits for `count` commands with tickets that end at `last`; returns the first status that is not XIO_OK.
  XIO_DEVICE static xio_status_t wait(const ring_view& r, const world_view& w, u64 last, u32 count) {
    xio_status_t status = XIO_OK;
    for (u32 i = count; i-- > 0;) {
      const xio_status_t one = wait(r, w, last - i);
      if (status == XIO_OK) status = one;
    }
    return status;
  }
  XIO_DEVICE static xio_status_t test(const ring_view& r, u64 last, u32 count) {
    xio_status_t status = XIO_OK;
    for (u32 i = count; i-- > 0;) {
      const xio_status_t one = test(r, last - i);
      if (one == XIO_PENDING) return one;
      if (status == XIO_OK) status = one;
    }
    return status;
  }

  // SCT<<8 | SC of a command that is complete; 0 where it succeeded, XIO_STORAGE_CODE_UNKNOWN where that is not known.
  XIO_DEVICE static u32 code(const ring_view& r, u64 ticket) {
    const u64 word = load<scope::agent, order::acquire>(&r.nvme.op_words[cid(r, ticket)]);
    const u32 status = is_done(r, ticket, word) ? static_cast<u32>(word) & (k_done - 1) : failure_in(r, ticket);
    const u32 code = wire::nvme::status_code(status);
    return code == 0 && status != 0 ? XIO_STORAGE_CODE_UNKNOWN : code;
  }

  // Of a command that is complete and whose op word is another's: 0 if it was well, its status, or
  // failure_word::k_not_known.
  XIO_DEVICE static u32 failure_in(const ring_view& r, u64 ticket) {
    if (load<scope::agent, order::acquire>(&r.state->op_errors) == 0) return 0;
    return failure_said(failure_at(r, ticket), ticket);
  }
  // Seldom.
  XIO_OUT_OF_LINE static u32 failure_said(const u64* word, u64 ticket) {
    return failure_word::says(load<scope::agent, order::relaxed>(word), ticket);
  }

 private:
  // Slots of completed commands, which the reaper gives back as credits but for those that would let tickets pass
  // op_count above the low mark. That is seldom: three depths must have come and gone while one command is in flight.
  struct slots_owed {
    u32 count;  // of those kept back
    u32 room;   // tickets that may still be given

    XIO_DEVICE static slots_owed of(const ring_view& r, u64 low) {
      const u64 granted = load<scope::agent, order::relaxed>(&r.state->granted);
      return {load<scope::agent, order::relaxed>(&r.state->kept_back),
              static_cast<u32>(low + r.nvme.op_count - granted)};
    }
    // Behind a ring_hand_on.
    XIO_DEVICE void give(const ring_view& r, u32 more) {
      count += more;
      const u32 now = count < room ? count : room;
      count -= now;
      room -= now;
      add<scope::agent, k_release_by_fence>(&r.state->credits, i64{now});
    }
    // The low mark is `higher` than it was.
    XIO_DEVICE void end(const ring_view& r, u64 low, u64 higher) {
      room += static_cast<u32>(higher);
      if (count != 0) give(r, 0);
      store<scope::agent, order::relaxed>(&r.state->kept_back, count);
      store<scope::agent, order::relaxed>(&r.state->granted, low + r.nvme.op_count - room);
    }
  };

  // State that only the draining thread changes: it is loaded once, however often the thread polls for completions, and
  // not at all where it follows from the low mark.
  struct drainer {
    u64 head;
    slots_owed owed;
    u64 oldest;  // the op word of the low mark
    bool well;   // no op has failed yet

    XIO_DEVICE static drainer of(const ring_view& r, u64 completed) {
      const u64 low = completed & ~k_even;
      if (low != completed) return {low, {0, r.nvme.op_count - (r.depth - 1)}, 0, true};
      // The first look needs the head, and takes longest: the others are under way with it.
      const u64 head = load<scope::agent, order::relaxed>(&r.state->cq_head);
      const slots_owed owed = slots_owed::of(r, low);
      const u64 errors = load<scope::agent, order::relaxed>(&r.state->op_errors);
      return {head, owed, op_word(r, low), errors == 0};
    }
  };

  // One lap of the CQ at most. The first entry by itself: where several are in one line of host memory a GPU's loads of
  // them take a microsecond each, one after the other. d.head becomes what it is then; of the rest of `d` that holds
  // only where nothing came. Quick: with a short way for one command alone.
  template <bool Quick>
  XIO_DEVICE static u64 poll(const ring_view& r, drainer& d, u64 completed, u64 awaited, u64* word_of_it) {
    constexpr u32 together = 4;
    ring_state* s = r.state;
    const u64 low = completed & ~k_even;
    const u64 first = d.head;
    u32 word[together] = {state_of(r, first)};
    const u64 issued = load<scope::agent, order::relaxed>(&s->issued);
    if (Quick && completed != low && issued - low == 1 && ends_well(r, low, word[0]) && !turns(r, low, low + 1)) {
      fence_after_loads<scope::system>();
      ring_hand_on();
      add<scope::agent, k_release_by_fence>(&s->credits, i64{1});
      if (low == awaited) *word_of_it = done_word(r, low, word[0]);
      d.head = low + 1;
      return completed + 1;
    }
    slots_owed owed = d.owed;
    u64 oldest = d.oldest;
    u64 head = first;
    bool sound = true, well = d.well;
    bool known = true;  // all that came are of the tickets that had been taken by then
    u32 wanted = 1;
    while (sound && head - first < r.nvme.cq_depth) {
      if (head != first) {
        XIO_UNROLL
        for (u32 i = 0; i < together; ++i)
          if (i < wanted) word[i] = state_of(r, head + i);
      }
      u32 run = 0;
      XIO_UNROLL
      for (u32 i = 0; i < together; ++i)
        if (i < wanted && run == i && is_new(r, head + i, word[i])) ++run;
      if (run == 0) break;
      // The phases first, then the rest of the entries and the data that they stand for.
      fence_after_loads<scope::system>();
      ring_hand_on();
      XIO_ROLLED
      for (u32 i = 0; i < run && sound; ++i) {
        const u64 ticket = ticket_of(r, low, word[0]);
        known = known && ticket < issued;
        well = well && wire::nvme::cqe_status(word[0]) == 0;
        const u64 before = ticket == low ? oldest : op_word(r, ticket);
        sound = retire(r, ticket, word[0], before, ticket < issued || was_taken(r, ticket));
        if (ticket == low) oldest = done_word(r, ticket, word[0]);
        if (ticket == awaited && sound) *word_of_it = done_word(r, ticket, word[0]);
        XIO_UNROLL
        for (u32 k = 1; k < together; ++k) word[k - 1] = word[k];  // an index would put them into scratch memory
      }
      owed.give(r, run);
      if (turns(r, head, head + run)) ring_cq(r, head + run);
      head += run;
      // No more than may be in flight of what was when this began.
      const u64 left = issued - low <= head - first ? 0 : issued - low - (head - first);
      if (run < wanted || left == 0) break;
      wanted = left < together ? static_cast<u32>(left) : together;
    }
    if (head == first) return completed;
    d.head = head;
    store<scope::agent, order::relaxed>(&s->cq_head, head);
    const bool all = sound && known && issued - low == head - first;
    const u64 now = all ? issued : first_pending(r, low);
    owed.end(r, now, now - low);
    const bool even = sound && well && head == now;  // then none is kept back: they are as many ids as four depths
    // After the entries, never among them: retire() rebuilds tickets from the low mark.
    ring_hand_on<order::release>();
    if (now != low) store<scope::agent, k_release_by_fence>(&s->completed, now | k_reaping);
    return even ? now | k_even : now;
  }

  // Whether an entry says that the command `ticket` is complete and that nothing was amiss.
  XIO_DEVICE static bool ends_well(const ring_view& r, u64 ticket, u32 dw3) {
    return is_new(r, ticket, dw3) && wire::nvme::cqe_status(dw3) == 0 && wire::nvme::cqe_cid(dw3) == cid(r, ticket);
  }

  // Whether to write the consumer index to the CQ's doorbell when entries are taken from `from` to `to`: twice a lap.
  // Less than half of the CQ lags behind, so the drive can always post the other half, and those trigger the next ring.
  // A CQ of two SQs has room for all that is in flight besides.
  XIO_DEVICE static bool turns(const ring_view& r, u64 from, u64 to) {
    return ((from ^ to) >> (r.nvme.cq_depth_log2 - 1)) != 0;
  }

  // Tells the drive, or the host thread that watches for it (then there is no event word), by memory. True: the drive
  // wants its register written too, because the value passes the one that it named. Either it sees the new word when it
  // looks for the last time before it goes to sleep, or the fence lets us see the event that it wrote before.
  XIO_DEVICE static bool shadow_asks(u32* word, const u32* event, u32 old, u32 now, u32 mask) {
    store<scope::system, order::release>(word, now);
    if (event == nullptr) return false;
    fence<scope::system, order::seq_cst>();
    const u32 at = load<scope::system, order::relaxed>(event);
    return ((now - at - 1) & mask) < ((now - old) & mask);
  }

  XIO_DEVICE static u32 state_of(const ring_view& r, u64 head) {
    return load<scope::system, k_acquire_by_fence>(entry(r, head) + k_state_at);
  }
  XIO_DEVICE static const u32* entry(const ring_view& r, u64 head) {
    return reinterpret_cast<const u32*>(r.nvme.completions) + (head & (r.nvme.cq_depth - 1)) * 4;
  }

  // The dword that holds phase, command id and status.
  static constexpr u32 k_state_at = 3;

  // The phase tag of the first lap is 1 on a zeroed CQ and turns with every lap.
  XIO_DEVICE static bool is_new(const ring_view& r, u64 head, u32 dw3) {
    return wire::nvme::cqe_phase(dw3) == (static_cast<u32>(~(head >> r.nvme.cq_depth_log2)) & 1);
  }

  XIO_DEVICE static bool is_done(const ring_view& r, u64 ticket, u64 word) {
    return (word & ~u64{k_done - 1}) == ((generation(r, ticket) << 16) | k_done);
  }
  XIO_DEVICE static u64 op_word(const ring_view& r, u64 ticket) {
    return load<scope::agent, order::relaxed>(&r.nvme.op_words[cid(r, ticket)]);
  }
  XIO_DEVICE static xio_status_t status_in(u64 word) { return (word & (k_done - 1)) == 0 ? XIO_OK : XIO_ERR_STORAGE; }

  // Of a command that was not seen complete, where the queue has failed. As ring_failure_below: both may have come
  // since, and what was complete may have given its id to another command.
  XIO_DEVICE static xio_status_t failure_of(const ring_view& r, u64 ticket) {
    const xio_status_t failure = ring_failure(r);
    const u64 word = load<scope::agent, order::acquire>(&r.nvme.op_words[cid(r, ticket)]);
    if (is_done(r, ticket, word)) return status_in(word);
    if (ring_completed(r) <= ticket) return failure;
    return failure_in(r, ticket) == 0 ? XIO_OK : XIO_ERR_STORAGE;
  }

  // Called by the thread that may drain, as ring_reap_until. Returns true if this thread took the completion off the
  // queue; *status is then that of the command.
  XIO_DEVICE static bool reap_for(const ring_view& r, u64 ticket, u64 completed, xio_status_t* status) {
    // Another thread may have drained since the caller loaded `completed`. The op word is loaded first, but the thread
    // polls the queue before it waits for that load.
    const u64 before = (completed & k_even) != 0 ? 0 : op_word(r, ticket);
    u64 word = before;
    bool done = false;
    u32 failed = 0;
    drainer d = drainer::of(r, completed);
    for (u32 i = 0; i < k_ring_polls && !done && failed == 0; ++i) {
      const u64 head = d.head;
      failed = load<scope::agent, order::relaxed>(&r.state->failed);  // in one look with the queue
      completed = poll<true>(r, d, completed, ticket, &word);
      done = is_done(r, ticket, word);
      if (!done && d.head != head) d = drainer::of(r, completed);
    }
    ring_end_reaping(r, completed);
    if (done) *status = status_in(word);
    return done && !is_done(r, ticket, before);
  }

  XIO_DEVICE static bool was_taken(const ring_view& r, u64 ticket) {
    return ticket < load<scope::agent, order::relaxed>(&r.state->issued);
  }

  // The ticket that a completion names, if it names any: those in flight are less than op_count above the low mark.
  XIO_DEVICE static u64 ticket_of(const ring_view& r, u64 low, u32 dw3) {
    return low + ((wire::nvme::cqe_cid(dw3) - static_cast<u32>(low)) & (r.nvme.op_count - 1));
  }

  XIO_DEVICE static u64 done_word(const ring_view& r, u64 ticket, u32 dw3) {
    return (generation(r, ticket) << 16) | k_done | wire::nvme::cqe_status(dw3);
  }

  // False: the drive named a command that is not in flight. before: its word. Behind a ring_hand_on.
  XIO_DEVICE static bool retire(const ring_view& r, u64 ticket, u32 dw3, u64 before, bool taken) {
    const u32 id = wire::nvme::cqe_cid(dw3);
    const u32 status = wire::nvme::cqe_status(dw3);
    if (id >= r.nvme.op_count || !taken || is_done(r, ticket, before)) {
      ring_fail(r, XIO_ERR_TRANSPORT, dw3, ticket);
      return false;
    }
    if (status != 0) {
      record_failure(r, ticket, status);
      fence_before_stores<scope::agent>();
    }
    store<scope::agent, k_release_by_fence>(&r.nvme.op_words[id], done_word(r, ticket, dw3));
    return true;
  }

  // Before the op word and the low mark say that it is complete, so who sees those sees this.
  XIO_DEVICE static void record_failure(const ring_view& r, u64 ticket, u32 status) {
    ring_state* s = r.state;
    u64* at = failure_at(r, ticket);
    store<scope::agent, order::relaxed>(at, failure_word::with(load<scope::agent, order::relaxed>(at), ticket, status));
    const u64 count = load<scope::agent, order::relaxed>(&s->op_errors);
    if (load<scope::agent, order::relaxed>(&s->failed) == 0) {
      store<scope::agent, order::relaxed>(&s->vendor, wire::nvme::status_code(status));
      store<scope::agent, order::relaxed>(&s->failed_ticket, ticket);
      store<scope::agent, order::relaxed>(&s->failed_at, wall_clock());
    }
    store<scope::agent, order::release>(&s->op_errors, count + 1);
  }

  // Tells the drive that its entries below `head` were taken.
  XIO_DEVICE static void ring_cq(const ring_view& r, u64 head) {
    const u32 mask = r.nvme.cq_depth - 1;
    const u32 now = static_cast<u32>(head) & mask;
    const u64 announced = load<scope::agent, order::relaxed>(&r.state->cq_announced);
    store<scope::agent, order::relaxed>(&r.state->cq_announced, head);
    if (r.nvme.tail_event != nullptr) {
      // The words of the CQ lie as far behind those of the SQ as its register does. Where the host rings,
      // cq_doorbell is the word that it watches.
      const i64 behind = r.nvme.cq_doorbell - r.nvme.sq_doorbell;
      if (!shadow_asks(r.nvme.shadow_tail + behind, r.nvme.tail_event + behind, static_cast<u32>(announced) & mask, now,
                       mask))
        return;
    }
    ring_doorbell(r.nvme.cq_doorbell, now);
    if (r.nvme.sq_doorbell != nullptr)
      store<scope::agent, order::relaxed>(&r.state->cq_doorbells,
                                          load<scope::agent, order::relaxed>(&r.state->cq_doorbells) + 1);
  }

  XIO_DEVICE static u64 first_pending(const ring_view& r, u64 low) {
    while (is_done(r, low, op_word(r, low))) ++low;
    return low;
  }
};
static_assert(ring_codec<nvme_codec>, "nvme_codec lacks what ring.hpp asks of a codec");

// The same codec for all that do not wait for single commands: draining is one function.
XIO_LEAF u64 drain_storage_leaf(const ring_view& r, u64 completed) {
  const return_kept<> back;
  return nvme_codec::drain(r, completed);
}
struct shared_nvme_codec : nvme_codec {
  XIO_DEVICE static u64 drain(const ring_view& r, u64 completed) { return drain_storage_leaf(r, completed); }
};

}  // namespace xio::dev
