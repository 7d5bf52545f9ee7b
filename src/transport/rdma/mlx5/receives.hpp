// SPDX-License-Identifier: MIT
// The receive side of an mlx5 queue pair, for writes with immediate: entries that hold no memory, and completions that
// a host thread reads. All of it is host memory.
#pragma once
#include <cstddef>
#include <cstdint>

#include "transport/rdma/direct/nic.hpp"

namespace xio::rdma::mlx5 {

class receives {
 public:
  // Entries of one data segment, which fill a page in front of the send queue, and their completions.
  static constexpr std::uint32_t k_log_entries = 8, k_entries = 1u << k_log_entries, k_entry_bytes = 16;
  static constexpr std::size_t k_ring_bytes = k_entries * k_entry_bytes, k_completion_bytes = k_entries * 64;

  receives() = default;
  // The first word of each doorbell record; both are zero.
  receives(unsigned char* ring, const unsigned char* completions, std::uint32_t* ring_record,
           std::uint32_t* completion_record);
  // As direct_queue::poll_receives.
  bool poll(immediate_target& to);

 private:
  bool post(immediate_target& to);

  const unsigned char* completions_ = nullptr;
  std::uint32_t *ring_record_ = nullptr, *completion_record_ = nullptr;
  std::uint64_t next_ = 0;    // completion
  std::uint64_t posted_ = 0;  // entries
};

}  // namespace xio::rdma::mlx5
