// SPDX-License-Identifier: MIT
// Receives of an ionic queue pair, with a completion queue of their own; receive_queue.hpp says how they are used.
#pragma once
#include "transport/rdma/direct/receive_queue.hpp"

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

  // Of memory that is zero.
  explicit receives(const receive_rings& r);
  // One entry stays free, or a full ring would look empty.
  std::uint64_t room() const { return (std::uint64_t{1} << rings_.log_depth) - 1; }
  arrival read(std::uint64_t n) const;
  void post(std::uint64_t end);
  void give_back(std::uint64_t end);

 private:
  receive_rings rings_;
};

}  // namespace xio::rdma::ionic
