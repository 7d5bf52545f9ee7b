// SPDX-License-Identifier: MIT
#include "transport/rdma/mlx5/receives.hpp"

#include "xio/wire/mlx5.hpp"

namespace xio::rdma::mlx5 {

namespace {

namespace w = wire::mlx5;

void announce(std::uint32_t* record, std::uint64_t count, std::uint32_t mask) {
  __atomic_store_n(record, wire::be32(static_cast<std::uint32_t>(count) & mask), __ATOMIC_RELEASE);
}
// Opcode of a receive's completion (MLX5_CQE_RESP_WR_IMM), and the dword of imm_inval_pkey in it (mlx5dv.h).
constexpr std::uint32_t k_write_immediate = 1, k_immediate_at = 9;
// MLX5_INVALID_LKEY (rdma-core providers/mlx5/mlx5.h)
constexpr std::uint32_t k_end_of_list = 0x100;
constexpr std::uint32_t k_ring_mask = 0xffff, k_completion_mask = 0xffffff;

}  // namespace

receives::receives(unsigned char* ring, const unsigned char* completions, std::uint32_t* ring_record,
                   std::uint32_t* completion_record)
    : completions_(completions), ring_record_(ring_record), completion_record_(completion_record) {
  // A list of no memory ends at once.
  for (std::uint32_t i = 0; i < k_entries; ++i)
    w::put_data(reinterpret_cast<std::uint32_t*>(ring + std::size_t{i} * k_entry_bytes), 0, k_end_of_list, 0);
}

arrival receives::read(std::uint64_t n) const {
  const auto* dw = reinterpret_cast<const std::uint32_t*>(completions_) + (n & (k_entries - 1)) * w::k_cqe_dwords;
  const std::uint32_t state = __atomic_load_n(dw + w::k_cqe_state_at, __ATOMIC_ACQUIRE);
  if (w::cqe_state_opcode(state) != k_write_immediate) return {};
  if (w::cqe_state_owner(state) != w::cqe_owner_of(n, k_log_entries)) return {};
  return {arrival::kind::immediate, wire::be32(dw[k_immediate_at])};
}

void receives::post(std::uint64_t end) { announce(ring_record_, end, k_ring_mask); }
void receives::give_back(std::uint64_t end) { announce(completion_record_, end, k_completion_mask); }

}  // namespace xio::rdma::mlx5
