// SPDX-License-Identifier: MIT
// Receives of an mlx5 queue pair; receive_queue.hpp says how they are used. All of it is host memory.
#pragma once
#include <cstddef>

#include "transport/rdma/direct/receive_queue.hpp"

namespace xio::rdma::mlx5 {

class receives {
 public:
  // Entries of one data segment, which fill a page in front of the send queue, and their completions.
  static constexpr std::uint32_t k_log_entries = 8, k_entries = 1u << k_log_entries, k_entry_bytes = 16;
  static constexpr std::size_t k_ring_bytes = k_entries * k_entry_bytes, k_completion_bytes = k_entries * 64;

  // The first word of each doorbell record; both are zero.
  receives(unsigned char* ring, const unsigned char* completions, std::uint32_t* ring_record,
           std::uint32_t* completion_record);
  std::uint64_t room() const { return k_entries; }
  arrival read(std::uint64_t n) const;
  void post(std::uint64_t end);
  void give_back(std::uint64_t end);

 private:
  const unsigned char* completions_;
  std::uint32_t *ring_record_, *completion_record_;
};

}  // namespace xio::rdma::mlx5
