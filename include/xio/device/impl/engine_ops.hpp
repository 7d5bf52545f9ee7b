// SPDX-License-Identifier: MIT
// What an engine is asked to do to the heap of a PE, once the call has been checked. Structures by value: they travel
// in registers, and a call shows what is what.
#pragma once
#include "xio/device/impl/amo.hpp"
#include "xio/device/platform/platform.hpp"

namespace xio::dev {

// A copy from local memory to `offset` of the heap.
struct engine_copy {
  u64 offset;
  const void* src;
  u64 bytes;
};

// `count` rows of `width` bytes between local memory and the heap from `offset` on.
struct engine_rows {
  u64 offset;
  void* local;
  u64 dst_pitch, src_pitch, width, count;
  bool to_peer;

  // Bytes of the local side, from the first row's start to the last one's end.
  XIO_DEVICE u64 local_span() const { return (count - 1) * (to_peer ? src_pitch : dst_pitch) + width; }
};

// A change of the 8-byte word at `offset`, which a waiting PE looks at.
struct engine_signal_word {
  u64 offset;
  u64 value;
  int op;  // XIO_SIGNAL_SET or XIO_SIGNAL_ADD
};

// An atomic on the word of `width` bytes, 4 or 8, at `offset`.
struct engine_change {
  u64 offset;
  u32 width;
  amo op;
  u64 operand, compare;
};

}  // namespace xio::dev
