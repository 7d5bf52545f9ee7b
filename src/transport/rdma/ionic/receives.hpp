// SPDX-License-Identifier: MIT
// The receive side of an ionic queue pair, for writes with immediate: entries that hold no memory, and a completion
// queue of their own that a host thread reads.
#pragma once
#include <cstdint>

#include "transport/rdma/direct/nic.hpp"

namespace xio::rdma::ionic {

// Depths are powers of two. Doorbells are those of the host's mapping.
struct receive_rings {
  unsigned char *entries, *completions;
  std::uint32_t log_depth, log_cq_depth, queue_pair, completion_queue;
  std::uint64_t *doorbell, *cq_doorbell;
};

class receives {
 public:
  static constexpr std::uint32_t k_entry_bytes = 64;

  receives() = default;
  // Of memory that is zero. Nothing is posted yet.
  explicit receives(const receive_rings& r);
  // As direct_queue::poll_receives.
  bool poll(immediate_target& to);

 private:
  bool post(immediate_target& to);

  receive_rings rings_{};
  std::uint64_t next_ = 0;    // completion
  std::uint64_t posted_ = 0;  // entries
};

}  // namespace xio::rdma::ionic
