// SPDX-License-Identifier: MIT
// Receives of a bnxt queue pair, with a completion queue of their own; receive_queue.hpp says how they are used.
#pragma once
#include "transport/rdma/direct/receive_queue.hpp"
#include "xio/device/platform/platform.hpp"
#include "xio/wire/bnxt.hpp"

namespace xio::rdma::bnxt {

namespace w = wire::bnxt;

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

  // Of memory that is zero. Entries have no memory, so each keeps its place in every lap.
  explicit receives(const receive_rings& r) : rings_(r) {
    for (std::uint32_t i = 0; i < k_entries; ++i) {
      auto* dw = reinterpret_cast<std::uint32_t*>(r.entries + std::size_t{i} * k_entry_slots * w::k_slot_bytes);
      dw[0] = k_opcode | k_used_slots << k_size_shift;
      dw[k_number_at] = i;
    }
  }
  // One entry stays free, as the driver has it.
  std::uint64_t room() const { return k_entries - 1; }
  arrival read(std::uint64_t n) const {
    const auto* dw =
        reinterpret_cast<const std::uint32_t*>(rings_.completions) + (n & (k_completions - 1)) * w::k_cqe_dwords;
    const std::uint32_t state = __atomic_load_n(dw + w::k_cqe_state_at, __ATOMIC_ACQUIRE);
    if (w::cqe_state_phase(state) != w::cqe_phase_of(n, k_log_completions)) return {};
    if (w::cqe_state_type(state) != w::cqe_receive_rc || w::cqe_state_status(state) != w::ok) return {};
    const std::uint32_t flags = state >> k_flags_shift;
    const bool counts = (flags & k_has_immediate) != 0 && (flags & k_is_write) != 0;
    return {counts ? arrival::kind::immediate : arrival::kind::other, dw[k_immediate_at]};
  }
  void post(std::uint64_t end) {
    dev::ring_doorbell(rings_.doorbell,
                       w::doorbell_at(w::bell_rq, rings_.queue_pair, end, k_log_entries, k_entry_slots));
  }
  void give_back(std::uint64_t end) {
    dev::ring_doorbell(rings_.cq_doorbell, w::doorbell_at(w::bell_cq, rings_.completion_queue, end, k_log_completions));
  }

 private:
  // Header of a receive: opcode, and the slots that are used, of which one SGE is the least (rdma-core
  // providers/bnxt_re/verbs.c, bnxt_re_post_recv). The number of the entry is at the third dword.
  static constexpr std::uint32_t k_opcode = 0x80, k_used_slots = 3, k_size_shift = 16, k_number_at = 2;
  // Dwords of its completion, and its flags (bnxt_re-abi.h, struct bnxt_re_rc_cqe, BNXT_RE_RC_FLAGS_*).
  static constexpr std::uint32_t k_immediate_at = 1, k_flags_shift = 16, k_has_immediate = 2, k_is_write = 8;

  receive_rings rings_;
};

}  // namespace xio::rdma::bnxt
