// SPDX-License-Identifier: MIT
// Why the model stops a queue. The number is what waits report as the vendor code.
#pragma once
#include <cstdint>

namespace xio::model::sdma {

enum class fault : std::uint32_t {
  none = 0,
  pointer_backwards = 1,    // the doorbell went down
  pointer_unaligned = 2,    // the doorbell is no multiple of 4
  pointer_beyond_ring = 3,  // more than the ring was rung
  pointer_not_stored = 4,   // the doorbell is ahead of the write pointer's memory
  bad_op = 5,               // an op, sub-op or code that this generation or model does not have
  reserved_bit = 6,         // a bit that must be 0 is set
  bad_count = 7,            // a count beyond the engine's limit
  straddle = 8,             // the packet goes over the ring's end
  cut_short = 9,            // the doorbell was rung in the middle of the packet
  unaligned = 10,           // an address, pitch or count that the engine wants aligned
  not_mapped = 11,          // an address that the queue may not touch
  overlap = 12,             // source and destination of a copy overlap
  poll_gave_up = 13,        // POLL_REGMEM ran out of retries
  unsupported = 14,         // a feature that the generation has and the model has not: TMZ, byte swaps, loops
  bad_pitch = 15,           // rows or slices of a tile run into each other
};

// "an address is not mapped"; never null.
const char* text_of(fault f);

}  // namespace xio::model::sdma
