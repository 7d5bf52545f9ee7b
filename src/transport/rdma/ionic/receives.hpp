// SPDX-License-Identifier: MIT
// Receives of an ionic queue pair, with a completion queue of their own; receive_queue.hpp says how they are used.
#pragma once
#include "transport/rdma/direct/receive_queue.hpp"
#include "xio/device/platform/platform.hpp"
#include "xio/wire/ionic.hpp"

namespace xio::rdma::ionic {

namespace w = wire::ionic;

// Depths are powers of two. Doorbells are those of the host's mapping.
struct receive_rings {
  unsigned char *entries, *completions;
  std::uint32_t log_depth, log_cq_depth, queue_pair, completion_queue;
  std::uint64_t *doorbell, *cq_doorbell;
};

class receives {
 public:
  static constexpr std::uint32_t k_entry_bytes = 64;

  // Of memory that is zero. Entries have no memory, so each keeps its place in every lap.
  explicit receives(const receive_rings& r) : rings_(r) {
    for (std::uint32_t i = 0; i < 1u << r.log_depth; ++i)
      w::put_base(reinterpret_cast<std::uint32_t*>(r.entries + std::size_t{i} * k_entry_bytes), i, 0, 0, 0, 0);
  }
  // One entry stays free, or a full ring would look empty.
  std::uint64_t room() const { return (std::uint64_t{1} << rings_.log_depth) - 1; }
  arrival read(std::uint64_t n) const {
    const std::uint64_t at = n & ((std::uint64_t{1} << rings_.log_cq_depth) - 1);
    const auto* dw = reinterpret_cast<const std::uint32_t*>(rings_.completions) + at * w::k_cqe_dwords;
    const std::uint32_t state = __atomic_load_n(dw + w::k_cqe_state_at, __ATOMIC_ACQUIRE);
    if (w::cqe_state_color(state) != w::color_of(n, rings_.log_cq_depth)) return {};
    if (w::cqe_state_type(state) != w::type_recv || w::cqe_state_error(state)) return {};
    const bool counts = (wire::be32(dw[k_op_at]) >> k_op_shift & k_op_mask) == k_write_immediate;
    return {counts ? arrival::kind::immediate : arrival::kind::other, wire::be32(dw[k_immediate_at])};
  }
  void post(std::uint64_t end) { ring(rings_.doorbell, rings_.queue_pair, end, rings_.log_depth); }
  void give_back(std::uint64_t end) { ring(rings_.cq_doorbell, rings_.completion_queue, end, rings_.log_cq_depth); }

 private:
  // Dwords of a receive's completion, and what ended it (ionic_fw_types.h, struct ionic_v1_cqe,
  // IONIC_V1_CQE_RECV_OP_RDMA_IMM).
  static constexpr std::uint32_t k_op_at = 2, k_immediate_at = 5;
  static constexpr std::uint32_t k_op_shift = 24, k_op_mask = 0x1f, k_write_immediate = 3;

  static void ring(std::uint64_t* doorbell, std::uint32_t queue, std::uint64_t index, std::uint32_t log_depth) {
    const auto place = static_cast<std::uint32_t>(index & ((std::uint64_t{1} << log_depth) - 1));
    dev::ring_doorbell(doorbell, w::doorbell_value(queue, place));
  }

  receive_rings rings_;
};

}  // namespace xio::rdma::ionic
