// SPDX-License-Identifier: MIT
// The receive side of a bnxt queue pair, for writes with immediate: entries that hold no memory, and a completion queue
// of their own that a host thread reads.
#pragma once
#include <cstdint>

#include "transport/rdma/direct/nic.hpp"

namespace xio::rdma::bnxt {

// Doorbells are those of the host's mapping.
struct receive_rings {
  unsigned char *entries, *completions;
  std::uint32_t queue_pair, completion_queue;
  std::uint64_t *doorbell, *cq_doorbell;
};

class receives {
 public:
  // Of two SGEs, so that entries do not straddle the end of their ring, which is a page, as is their completion queue.
  static constexpr std::uint32_t k_log_entries = 6, k_entries = 1u << k_log_entries, k_spans = 2, k_entry_slots = 4;
  static constexpr std::uint32_t k_log_completions = 7, k_completions = 1u << k_log_completions;

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

}  // namespace xio::rdma::bnxt
