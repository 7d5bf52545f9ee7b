// SPDX-License-Identifier: MIT
// What Linux's bnxt_re gets and gives besides in system calls (uverbs/abi.hpp). Source: Linux 7.2
// include/uapi/rdma/bnxt_re-abi.h.
#pragma once
#include "transport/rdma/uverbs/abi.hpp"

namespace xio::rdma::bnxt {

// struct bnxt_re_uctx_req, BNXT_RE_COMP_MASK_REQ_UCNTX_*
struct context_request {
  std::uint64_t mask;
};
constexpr std::uint64_t k_any_size = 1, k_variable_entries = 2;

// struct bnxt_re_uctx_resp, BNXT_RE_UCNTX_CMASK_*
struct context_response {
  std::uint32_t device, queue_pairs, page, cqe_bytes, cq_entries, reserved;
  std::uint64_t mask;
  std::uint32_t chip0, chip1, mode, reserved1;
};
static_assert(sizeof(context_response) == 48);
constexpr std::uint64_t k_has_mode = 2, k_msn_table = 0x40;
constexpr std::uint32_t k_mode_variable = 1;  // BNXT_QPLIB_WQE_MODE_VARIABLE

// struct bnxt_re_pd_resp, packed
struct __attribute__((packed)) pd_response {
  std::uint32_t number, page;
  std::uint64_t offset;  // of the context's own doorbell page in the file
};
static_assert(sizeof(pd_response) == 16);

// struct bnxt_re_cq_req and _resp
struct cq_request {
  std::uint64_t address, handle, mask;
};
constexpr std::uint64_t k_cq_of_given_size = 1;  // BNXT_RE_CQ_FIXED_NUM_CQE_ENABLE
struct cq_response {
  std::uint32_t number, tail, phase, reserved;
  std::uint64_t mask;
};

// struct bnxt_re_qp_req and _resp
struct qp_request {
  std::uint64_t send_address, receive_address, handle, mask;
  std::uint32_t send_slots, sequence_entries;
};
static_assert(sizeof(qp_request) == 40);
constexpr std::uint64_t k_qp_of_given_size = 1;  // BNXT_RE_QP_REQ_MASK_FIXED_QUE_ATTR
struct qp_response {
  std::uint32_t number, reserved;
};

// A doorbell page of one's own: BNXT_RE_OBJECT_DBR, struct bnxt_re_db_region
constexpr std::uint16_t k_page_object = uverbs::k_driver_space + 3;
enum page_method : std::uint16_t { page_alloc = uverbs::k_driver_space, page_free = uverbs::k_driver_space + 1 };
enum page_attribute : std::uint16_t {
  page_handle = uverbs::k_driver_space,
  page_region = uverbs::k_driver_space + 1,
  page_offset = uverbs::k_driver_space + 2
};
struct page_description {
  std::uint32_t page, reserved;
  std::uint64_t reserved2;
};
constexpr std::uint16_t k_qp_page = uverbs::k_driver_more;  // BNXT_RE_CREATE_QP_ATTR_DBR_HANDLE

}  // namespace xio::rdma::bnxt
