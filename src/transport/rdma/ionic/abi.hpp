// SPDX-License-Identifier: MIT
// What Linux's ionic_rdma gets and gives besides in system calls (uverbs/abi.hpp). Source: Linux 7.2
// include/uapi/rdma/ionic-abi.h; the clock's offset is rdma-core 65's kernel-headers/rdma/ionic-abi.h.
#pragma once
#include <cstdint>

namespace xio::rdma::ionic {

struct context_request {
  std::uint32_t reserved[2];
};

// struct ionic_ctx_resp. The doorbell page is the first that the context has to map: offset 0 of the file
// (drivers/infiniband/hw/ionic/ionic_controlpath.c, ionic_alloc_ucontext). It has 8 bytes for each type of queue.
// Linux 7.2 and older give all but the last word.
struct context_response {
  std::uint32_t reserved, page_shift;
  std::uint64_t doorbell_offset;  // in the page
  std::uint16_t version;
  std::uint8_t opcodes, admin_opcodes, sq_type, rq_type, cq_type, admin_type;
  std::uint8_t most_stride, most_special, pipelines, express_mask, express_types, reserved2[3];
  std::uint64_t clock_offset;
};
static_assert(sizeof(context_response) == 40);

// struct ionic_qdesc: page-aligned memory of 1 << depth_log2 entries.
struct queue_description {
  std::uint64_t address;
  std::uint32_t bytes;
  std::uint16_t mask;  // entries - 1
  std::uint8_t depth_log2, stride_log2;
};
static_assert(sizeof(queue_description) == 16);

// struct ionic_cq_req and _resp: a queue for each pipeline of the NIC (udma). The driver asks for room for more
// completions than it is asked for (IONIC_CQ_GRACE).
constexpr std::uint32_t k_cq_spare = 100, k_most_pipelines = 2;
struct cq_request {
  queue_description queues[2];
  std::uint8_t pipelines, reserved[7];
};
struct cq_response {
  std::uint32_t numbers[2];
  std::uint8_t pipelines, reserved[7];
};

// struct ionic_qp_req and _resp
struct qp_request {
  queue_description sends, receives;
  std::uint8_t send_special, receive_special, send_controller, receive_controller, pipelines, reserved[3];
};
struct qp_response {
  std::uint32_t number;
  std::uint8_t send_controller, receive_controller, pipeline, reserved;
  std::uint64_t send_offset, receive_offset;
};
static_assert(sizeof(cq_request) == 40 && sizeof(cq_response) == 16 && sizeof(qp_request) == 40 &&
              sizeof(qp_response) == 24);

}  // namespace xio::rdma::ionic
