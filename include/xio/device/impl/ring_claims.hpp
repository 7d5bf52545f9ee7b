// SPDX-License-Identifier: MIT
// What lanes that post to a ring (ring.hpp) together claim of it, and which part is each lane's.
#pragma once
#include "xio/device/platform/lanes.hpp"
#include "xio/device/platform/platform.hpp"

namespace xio::dev {

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

// The same of lanes that all claim as many slots and no packets. Bytes are added up only where ring_post_batch wants
// them.
XIO_DEVICE ring_share ring_sum_equal(const lanes& group, const ring_claim& mine) {
  const u32 count = group.count();
  if constexpr (k_keys_take_turns) return ring_share{mine.slots * count, mine.slots * group.rank(), 0, 0, 0};
  if (count == 1) return ring_share{mine.slots, 0, 0, 0, mine.bytes};
  u64 bytes = static_cast<u64>(mine.bytes) * count;
  if (group.ballot(mine.bytes == static_cast<u32>(group.first(mine.bytes))) != group.mask) {
    bytes = 0;
    for (u64 left = group.mask; left != 0; left &= left - 1) bytes += group.shuffle(mine.bytes, lowest_bit(left));
  }
  return ring_share{mine.slots * count, mine.slots * group.rank(), 0, 0, bytes};
}

}  // namespace xio::dev
