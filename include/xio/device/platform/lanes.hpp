// SPDX-License-Identifier: MIT
// Lanes of one wave that act together: which lanes they are, and how they exchange values.
#pragma once
#include "xio/device/platform/platform.hpp"

namespace xio::dev {

// Some lanes of one wave that act together. All member functions are collective over the group.
struct lanes {
  u64 mask;

  XIO_DEVICE u32 count() const { return popcount(mask); }
  // Place of the caller among them, 0 first.
  XIO_DEVICE u32 rank() const { return lanes_before(mask); }
  XIO_DEVICE bool leader() const { return lane_id() == lowest_bit(mask); }
  XIO_DEVICE bool alone() const { return (mask & (mask - 1)) == 0; }

  XIO_DEVICE void sync() const { sync_lanes(mask); }
  XIO_DEVICE u64 ballot(bool predicate) const { return ballot_of(mask, predicate); }
  // The value that lane `from` (a lane id in the mask) holds.
  XIO_DEVICE u64 shuffle(u64 value, u32 from) const { return shuffle_in(mask, value, from); }
  // The leader's value.
  XIO_DEVICE u64 first(u64 value) const { return first_in(mask, value); }
};

// The lanes that are here with the caller (its execution mask). Which lanes those are is the compiler's and
// the scheduler's choice; correct code works for any result that contains the caller.
XIO_CONVERGENT lanes converged_lanes() { return lanes{converged_mask()}; }

// All lanes of the wave; every lane must call, and none may have left the kernel.
XIO_DEVICE lanes whole_wave() { return lanes{wave_mask()}; }

// Runs body(group) once for every lane, with the group of converged lanes that gave the same key. Where a wave's lanes
// run in lockstep (k_keys_take_turns) the groups run one after another: a lane that holds part of one ring never waits
// for another ring's lanes.
//
// There every lane stays until the last group has run. Where a lane leaves a loop when its turn is over, what it does
// last is behind the loop for LLVM: all lanes would come together there and run the body at once, as one group of many
// keys.
template <class Body>
XIO_CONVERGENT void for_each_key(u64 key, Body&& body) {
  if constexpr (k_keys_take_turns) {
    for (u64 left = converged_mask(); left != 0;) {
      const bool turn = key == value_of_lane(key, lowest_bit(left));
      const lanes group{ballot_of(left, turn)};
      if (turn) body(group);
      left &= ~group.mask;
    }
  } else {
    body(lanes{same_key_mask(key)});
  }
}

// A group of converged lanes with the same key and kind: where keys take turns that of the first lane, which the caller
// need not be in (false); elsewhere the caller's. For code that must be there without a loop around it: what does not
// change in a loop is kept in registers for all of it.
XIO_CONVERGENT bool joins_group(u64 key, u32 kind, lanes* group) { return group_mask(key, kind, &group->mask); }

// Runs body() for lanes that may have come with several addresses: where keys take turns once for each, so that what
// lies there is the wave's and not a lane's (platform.hpp, uniform). Elsewhere lanes go by themselves.
template <class T, class Body>
XIO_CONVERGENT void for_each_address(const T* at, Body&& body) {
  if constexpr (k_keys_take_turns) {
    for_each_key(reinterpret_cast<u64>(at), [&](const lanes&) { body(); });
  } else {
    (void)at;
    body();
  }
}

}  // namespace xio::dev
