// SPDX-License-Identifier: MIT
#include "transport/rdma/mlx5/receives.hpp"

#include <algorithm>

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

// Entries that hold nothing are all alike: posting one is counting it.
bool receives::post(immediate_target& to) {
  if (posted_ == next_ + k_entries) return false;
  const std::uint64_t upto = std::min(next_ + k_entries, to.most_sent());
  if (upto <= posted_) return false;
  announce(ring_record_, posted_ = upto, k_ring_mask);
  return true;
}

// A completion of an error is of a queue pair that is at its end, whose own requests say why.
bool receives::poll(immediate_target& to) {
  const std::uint64_t first = next_;
  for (;;) {
    const std::uint64_t at = next_ & (k_entries - 1);
    const auto* dw = reinterpret_cast<const std::uint32_t*>(completions_) + at * w::k_cqe_dwords;
    const std::uint32_t state = __atomic_load_n(dw + w::k_cqe_state_at, __ATOMIC_ACQUIRE);
    if (w::cqe_state_opcode(state) != k_write_immediate) break;
    if (w::cqe_state_owner(state) != w::cqe_owner_of(next_, k_log_entries)) break;
    if (!to.put(wire::be32(dw[k_immediate_at]))) break;
    ++next_;
  }
  if (next_ != first) announce(completion_record_, next_, k_completion_mask);
  return post(to) || next_ != first;
}

}  // namespace xio::rdma::mlx5
