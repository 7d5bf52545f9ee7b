// SPDX-License-Identifier: MIT
// The words of a ring (ring.hpp) that all who use it share: its failure, the marks of batches, slots and free slots.
#pragma once
#include "xio/device/impl/view.hpp"
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

// Whether that is the failure of a queue whose PE was excluded, for which nobody waits any more. The host writes it;
// engines never do.
XIO_DEVICE bool is_excluded(xio_status_t failure) { return failure == XIO_ERR_PEER; }

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

// The count of complete tickets. One thread at a time drains, and state->completed has k_reaping meanwhile. So a thread
// that begins learns in the same step what is complete, and the store that ends its turn publishes the new count.
template <order O = order::acquire>
XIO_DEVICE u64 ring_completed(const ring_view& r) {
  return load<scope::agent, O>(&r.state->completed) & ~(k_reaping | k_even);
}

// Free slots. Of a ring that one thread at a time posts to: by its tickets.
XIO_DEVICE i64 ring_room(const ring_view& r) { return load<scope::agent, order::relaxed>(&r.state->credits); }
XIO_DEVICE i64 ring_room_alone(const ring_view& r) {
  const u64 issued = load<scope::agent, order::relaxed>(&r.state->issued);
  return static_cast<i64>(r.depth - (issued - ring_completed<order::relaxed>(r)));
}

}  // namespace xio::dev
