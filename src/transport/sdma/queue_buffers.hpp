// SPDX-License-Identifier: MIT
// The memory of one SDMA queue, ready for device code.
#pragma once
#include "memory/mode.hpp"
#include "transport/sdma/sdma.hpp"
#include "xio/wire/sdma.hpp"

namespace xio::sdma {

// The requirements of an engine on its queues.
struct queue_style {
  wire::sdma::generation generation;
  std::uint32_t chunk;    // most bytes of one copy
  std::uint16_t granule;  // 1 or 4, see dev::ring_view
  memory::ring_places where;
};

// The parts of a queue that a driver has made already.
struct queue_parts {
  unsigned char* ring = nullptr;
  std::uint64_t* wptr = nullptr;
  std::uint64_t* doorbell = nullptr;
};

class queue_buffers {
 public:
  // Throws XIO_ERR_CONFIG if the request's depth or first ticket cannot be.
  queue_buffers(const queue_request& request, const queue_style& style, const queue_parts& made = {});

  // Filled but for `id` and `index`.
  const dev::ring_view& view() const { return view_; }
  std::uint64_t ring_bytes() const;
  std::uint64_t start_bytes() const;  // what write pointer and doorbell hold at first

 private:
  void make_parts(const queue_style& style);
  void make_completion(const queue_style& style);
  void make_state();

  std::uint64_t ticket_start_;
  gpu::buffer ring_;   // engine and GPU
  gpu::buffer fence_;  // engine and GPU: completion
  gpu::buffer words_;  // engine and GPU: write pointer and doorbell, a line each
  gpu::buffer state_;  // GPU alone
  gpu::buffer marks_;  // GPU alone
  dev::ring_view view_{};
};

}  // namespace xio::sdma
