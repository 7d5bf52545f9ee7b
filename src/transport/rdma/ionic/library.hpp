// SPDX-License-Identifier: MIT
// What libionic gives in the direct-verbs calls of AMD's drivers: MORI and rocSHMEM (August 2026) carry the same
// header.
#pragma once
#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

namespace xio::rdma::ionic::dv {

// Doorbells: 8 bytes for each type of queue from `doorbells` on, in that page.
struct context_facts {
  void* page;
  std::uint64_t* doorbells;
  std::uint8_t sq_type, rq_type, cq_type, reserved[5];
};
struct ring {
  void* at;
  std::size_t bytes;
  std::uint64_t doorbell;  // the queue's number << k_number_shift
  std::uint16_t mask;      // entries - 1
  std::uint8_t depth_log2, stride_log2, reserved[4];
};
constexpr unsigned k_number_shift = 24;
struct pair_rings {
  ring receives, sends;
};
static_assert(sizeof(context_facts) == 24 && sizeof(ring) == 32 && sizeof(pair_rings) == 64);
static_assert(offsetof(context_facts, sq_type) == 16 && offsetof(ring, mask) == 24 && offsetof(ring, depth_log2) == 26);

// The queue that memory is asked for: in the low half of a resource type, below the number of the driver.
enum memory_of : std::uint32_t { of_cq = 1, of_sends = 2, of_receives = 3, of_reordering = 4 };
constexpr std::uint64_t k_driver = 21;

// Names begin with ionic_dv_. The result comes first. 0, or an errno.
struct calls {
  int (*get_ctx)(context_facts*, ibv_context*);
  int (*get_cq)(ring*, ibv_cq*, std::uint8_t pipeline);
  int (*get_qp)(pair_rings*, ibv_qp*);
  std::uint8_t (*qp_get_udma_idx)(ibv_qp*);
  // All off: rings are in memory that is given, and not in the NIC's.
  int (*pd_set_sqcmb)(ibv_pd*, bool enable, bool express, bool require);
  int (*pd_set_rqcmb)(ibv_pd*, bool enable, bool express, bool require);
  int (*pd_set_udma_mask)(ibv_pd*, std::uint8_t mask);
};

}  // namespace xio::rdma::ionic::dv
