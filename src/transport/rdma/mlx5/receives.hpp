// SPDX-License-Identifier: MIT
// Receives of an mlx5 queue pair; receive_queue.hpp says how they are used. All of it is host memory.
#pragma once
#include <cstddef>

#include "transport/rdma/direct/receive_queue.hpp"
#include "xio/wire/mlx5.hpp"

namespace xio::rdma::mlx5 {

namespace w = wire::mlx5;

class receives {
 public:
  // Entries of one data segment, which fill a page in front of the send queue, and their completions.
  static constexpr std::uint32_t k_log_entries = 8, k_entries = 1u << k_log_entries, k_entry_bytes = 16;
  static constexpr std::size_t k_ring_bytes = k_entries * k_entry_bytes, k_completion_bytes = k_entries * 64;

  // The first word of each doorbell record; both are zero.
  receives(unsigned char* ring, const unsigned char* completions, std::uint32_t* ring_record,
           std::uint32_t* completion_record)
      : completions_(completions), ring_record_(ring_record), completion_record_(completion_record) {
    // A list of no memory ends at once.
    for (std::uint32_t i = 0; i < k_entries; ++i)
      w::put_data(reinterpret_cast<std::uint32_t*>(ring + std::size_t{i} * k_entry_bytes), 0, k_end_of_list, 0);
  }
  std::uint64_t room() const { return k_entries; }
  arrival read(std::uint64_t n) const {
    const auto* dw = reinterpret_cast<const std::uint32_t*>(completions_) + (n & (k_entries - 1)) * w::k_cqe_dwords;
    const std::uint32_t state = __atomic_load_n(dw + w::k_cqe_state_at, __ATOMIC_ACQUIRE);
    if (w::cqe_state_opcode(state) != k_write_immediate) return {};
    if (w::cqe_state_owner(state) != w::cqe_owner_of(n, k_log_entries)) return {};
    return {arrival::kind::immediate, wire::be32(dw[k_immediate_at])};
  }
  void post(std::uint64_t end) { announce(ring_record_, end, k_ring_mask); }
  void give_back(std::uint64_t end) { announce(completion_record_, end, k_completion_mask); }

 private:
  static void announce(std::uint32_t* record, std::uint64_t count, std::uint32_t mask) {
    __atomic_store_n(record, wire::be32(static_cast<std::uint32_t>(count) & mask), __ATOMIC_RELEASE);
  }
  // Opcode of a receive's completion (MLX5_CQE_RESP_WR_IMM), and the dword of imm_inval_pkey in it (mlx5dv.h).
  static constexpr std::uint32_t k_write_immediate = 1, k_immediate_at = 9;
  // MLX5_INVALID_LKEY (rdma-core providers/mlx5/mlx5.h)
  static constexpr std::uint32_t k_end_of_list = 0x100;
  static constexpr std::uint32_t k_ring_mask = 0xffff, k_completion_mask = 0xffffff;

  const unsigned char* completions_;
  std::uint32_t *ring_record_, *completion_record_;
};

}  // namespace xio::rdma::mlx5
