// SPDX-License-Identifier: MIT
// Receives of a bnxt queue pair, with a completion queue of their own; receive_queue.hpp says how they are used.
#pragma once
#include "transport/rdma/direct/receive_queue.hpp"

namespace xio::rdma::bnxt {

// Doorbells are those of the host's mapping.
struct receive_rings {
  unsigned char *entries, *completions;
  std::uint32_t queue_pair, completion_queue;
  std::uint64_t *doorbell, *cq_doorbell;
};

class receives {
 public:
  // Of six SGEs, as the vendor's library has them: entries do not straddle the end of their ring, which is whole pages,
  // as is their completion queue.
  static constexpr std::uint32_t k_log_entries = 6, k_entries = 1u << k_log_entries, k_spans = 6, k_entry_slots = 8;
  static constexpr std::uint32_t k_log_completions = 7, k_completions = 1u << k_log_completions;

  // Of memory that is zero.
  explicit receives(const receive_rings& r);
  // One entry stays free, as the driver has it.
  std::uint64_t room() const { return k_entries - 1; }
  arrival read(std::uint64_t n) const;
  void post(std::uint64_t end);
  void give_back(std::uint64_t end);

 private:
  receive_rings rings_;
};

}  // namespace xio::rdma::bnxt
