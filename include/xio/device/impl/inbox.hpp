// SPDX-License-Identifier: MIT
// An inbox: immediates of one PE, in the symmetric heap of the PE that takes them. Writers are the NIC that received
// one (src/proxy/immediate_desk.cpp) or lanes of the peer; readers are lanes of the owner. Nobody holds a lock: a
// writer claims a place by the tail and fills it at once, a reader takes an entry by moving the head over it.
#pragma once
#include "xio/device/impl/direct.hpp"
#include "xio/device/impl/view.hpp"
#include "xio/device/platform/platform.hpp"
#include "xio/wire/inbox.hpp"

namespace xio::dev {

// Where in the heap of any PE its inbox for PE `from` lies.
XIO_DEVICE u64 inbox_offset(const ctx_view& c, u32 from) {
  return c.inboxes + from * wire::inbox::bytes(c.inbox_entries);
}

XIO_DEVICE u64* inbox_word(unsigned char* inbox, u64 at) { return reinterpret_cast<u64*>(inbox + at); }

// Puts one in behind everything that the caller has stored; false if there is no room.
XIO_DEVICE bool inbox_drop(unsigned char* inbox, u32 entries, u32 immediate) {
  u64* tail = inbox_word(inbox, wire::inbox::k_tail_at);
  u64 place = load<scope::system, order::relaxed>(tail);
  do {
    // Acquire: the PE that moved the head has read the entry that will be overwritten.
    const u64 head = load<scope::system, order::acquire>(inbox_word(inbox, wire::inbox::k_head_at));
    if (static_cast<i64>(place - head) >= static_cast<i64>(entries)) return false;
  } while (!compare_exchange<scope::system, order::relaxed>(tail, place, place + 1));
  store<scope::system, order::release>(inbox_word(inbox, wire::inbox::entry_at(place, entries)),
                                       wire::inbox::entry(place, entries, immediate));
  return true;
}

// Takes the oldest; false if there is none. The caller needs an acquire before it looks at the data.
XIO_DEVICE bool inbox_poll(unsigned char* inbox, u32 entries, u32* immediate) {
  u64* head = inbox_word(inbox, wire::inbox::k_head_at);
  u64 place = load<scope::system, order::relaxed>(head);
  for (;;) {
    const u64 found =
        load<scope::system, direct::k_watch_load>(inbox_word(inbox, wire::inbox::entry_at(place, entries)));
    const u32 value = static_cast<u32>(found);
    if (found == wire::inbox::entry(place, entries, value)) {
      // The head only grows: if it is still there the entry has been this one all the time.
      if (compare_exchange<scope::system, order::acq_rel>(head, place, place + 1)) {
        *immediate = value;
        return true;
      }
      continue;
    }
    // Another lap: empty, or taken by somebody else between the two loads.
    const u64 now = load<scope::system, order::relaxed>(head);
    if (now == place) return false;
    place = now;
  }
}

}  // namespace xio::dev
