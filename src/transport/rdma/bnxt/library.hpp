// SPDX-License-Identifier: MIT
// What Broadcom's libbnxt_re gets and gives in its direct-verbs calls. Sizes and offsets are those of the header that
// comes with its drivers 231 to 238; MORI and rocSHMEM (August 2026) carry the same.
#pragma once
#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

namespace xio::rdma::bnxt::dv {

struct umem_attr {
  void* address;  // in a dma-buf: the place in it
  std::size_t bytes;
  std::uint32_t access, reserved;
  std::uint64_t page_sizes, mask;
  std::int32_t file, reserved2;
};
constexpr std::uint64_t k_umem_file = 1;
static_assert(sizeof(umem_attr) == 48 && offsetof(umem_attr, mask) == 32 && offsetof(umem_attr, file) == 40);

struct cq_attr {
  std::uint64_t handle;
  void* umem;
  std::uint64_t offset;
  std::uint32_t entries, reserved;
};
static_assert(sizeof(cq_attr) == 32 && offsetof(cq_attr, entries) == 24);

// A doorbell page that is mapped.
struct region {
  std::uint32_t handle, number;
  std::uint64_t bus_address;
  void* page;
};
static_assert(sizeof(region) == 24 && offsetof(region, page) == 16);

struct qp_attr {
  std::uint32_t type, sends, receives, send_spans, receive_spans, inline_bytes;
  ibv_cq *send_cq, *receive_cq;
  ibv_srq* shared_receives;
  std::uint64_t handle;
  region* page;
  void* send_umem;
  std::uint64_t send_offset;
  std::uint32_t send_bytes, send_slots;  // with the MSN table, which is at the end
  void* receive_umem;
  std::uint64_t receive_offset;
  std::uint32_t send_entry_bytes, msn_bytes, msn_entries, receive_bytes, receive_slots, receive_entry_bytes;
  std::uint64_t mask;
};
static_assert(sizeof(qp_attr) == 136 && offsetof(qp_attr, send_cq) == 24 && offsetof(qp_attr, page) == 56 &&
              offsetof(qp_attr, send_bytes) == 80 && offsetof(qp_attr, receive_umem) == 88 &&
              offsetof(qp_attr, send_entry_bytes) == 104 && offsetof(qp_attr, receive_entry_bytes) == 124);

// Pairs of an object and the place for its facts: QP, CQ, SRQ, AH, PD.
struct object_pairs {
  struct {
    void *in, *out;
  } of[5];
};
constexpr std::uint64_t k_of_cq = 2;
struct cq_facts {
  std::uint32_t number, entry_bytes;
  std::uint64_t mask;
};
static_assert(sizeof(object_pairs) == 80 && sizeof(cq_facts) == 16);

// Names begin with bnxt_re_dv_.
struct calls {
  void* (*umem_reg)(ibv_context*, umem_attr*);
  int (*umem_dereg)(void*);
  ibv_cq* (*create_cq)(ibv_context*, cq_attr*);
  int (*destroy_cq)(ibv_cq*);
  ibv_qp* (*create_qp)(ibv_pd*, qp_attr*);
  int (*destroy_qp)(ibv_qp*);
  int (*modify_qp)(ibv_qp*, ibv_qp_attr*, int mask, std::uint32_t type, std::uint32_t value);
  int (*init_obj)(object_pairs*, std::uint64_t kinds);
  int (*get_default_db_region)(ibv_context*, region*);
  // Null in some versions: queue pairs share the context's page then.
  region* (*alloc_db_region)(ibv_context*);
  int (*free_db_region)(ibv_context*, region*);
};

}  // namespace xio::rdma::bnxt::dv
