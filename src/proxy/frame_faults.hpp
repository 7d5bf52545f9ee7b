// SPDX-License-Identifier: MIT
// Faults on purpose, for tests: asked once per frame that a NIC sends.
#pragma once
#include <chrono>
#include <cstdint>

namespace xio::proxy {

struct frame_fate {
  bool drop = false;
  bool twice = false;
  bool swap = false;  // goes behind the frame that follows
  std::chrono::microseconds wait{0};
};

class frame_faults {
 public:
  virtual ~frame_faults() = default;
  // A frame of queue `number`. Called under the NIC's lock.
  virtual frame_fate next_frame(std::uint32_t number) = 0;
};

}  // namespace xio::proxy
