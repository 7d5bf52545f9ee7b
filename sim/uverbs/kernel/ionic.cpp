// SPDX-License-Identifier: MIT
// Queues as Linux 6.18's ionic_rdma makes them for users (drivers/infiniband/hw/ionic/ionic_controlpath.c;
// drivers/infiniband/core/uverbs_std_types_cq.c, _qp.c): what is checked, in its order, and the errno.
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>

#include <bit>
#include <cstdio>

#include "uverbs/kernel/context.hpp"

namespace uverbs {
namespace {

constexpr std::uint32_t k_page = 4096, k_page_shift = 12;
constexpr std::uint32_t k_cq_grace = 100, k_most_spans = 8, k_most_stride_log2 = 9, k_payload_at = 32;
constexpr std::uint32_t k_pipelines = 2;
// The software NIC reads entries of these sizes alone.
constexpr std::uint32_t k_wqe_log2 = 6, k_cqe_log2 = 5, k_most_depth_log2 = 15;

// By their place in the calls, for headers of the build have no ionic.
struct description {
  std::uint64_t address;
  std::uint32_t bytes;
  std::uint16_t mask;
  std::uint8_t depth_log2, stride_log2;
};
struct cq_request {
  description queues[2];
  std::uint8_t pipelines, reserved[7];
};
struct qp_request {
  description sends, receives;
  std::uint8_t send_special, receive_special, send_controller, receive_controller, pipelines, reserved[3];
};

// ib_copy_validate_udata_in: all of it must be there.
template <class T>
bool read_request(const call& c, T* to) {
  if (c.room(UVERBS_ATTR_UHW_IN) < sizeof *to) return false;
  std::memcpy(to, c.input(UVERBS_ATTR_UHW_IN), sizeof *to);
  return true;
}

// ionic_validate_qdesc. 0, or the errno.
int validate(const description& q) {
  if (q.address == 0 || q.bytes == 0 || q.mask == 0 || q.depth_log2 == 0 || q.stride_log2 == 0) return EINVAL;
  if (q.address % k_page != 0 || q.mask != (1u << q.depth_log2) - 1) return EINVAL;
  return q.bytes < std::uint64_t{1} << (q.depth_log2 + q.stride_log2) ? EINVAL : 0;
}

// And ib_umem_get_va: memory of the process alone.
int pin(const description& q, bool refused) {
  if (const int err = validate(q); err != 0) return err;
  return refused || !is_mapped(q.address, q.bytes) ? EFAULT : 0;
}

// The device's own rule, which firmware would find out.
int check_stride(const char* what, const description& q, std::uint32_t stride_log2) {
  if (q.stride_log2 == stride_log2 && q.depth_log2 <= k_most_depth_log2) return 0;
  std::fprintf(stderr, "simulated RDMA device: a %s of 2^%u entries of 2^%u bytes\n", what, q.depth_log2,
               q.stride_log2);
  return EINVAL;
}

}  // namespace

// ionic_alloc_ucontext. Offset 0 of the file is the context's doorbell page from then on.
int context::ionic_context(const call& c) {
  if (c.room(UVERBS_ATTR_UHW_IN) < 2 * sizeof(std::uint32_t)) return EINVAL;
  own_page_ = device_.add_page();
  const bool first = device_.chosen().interface1;
  struct {
    std::uint32_t reserved, page_shift;
    std::uint64_t doorbell_offset;
    std::uint16_t version;
    std::uint8_t opcodes, admin_opcodes, sq_type, rq_type, cq_type, admin_type;
    std::uint8_t most_stride, most_special, pipelines, express_mask, express_types, reserved2[3];
  } r{};
  r.page_shift = k_page_shift;
  r.version = device_.chosen().no_rdma ? 0 : first ? 1 : 2;
  r.opcodes = r.admin_opcodes = 64;
  r.sq_type = device::k_ionic_sq_type;
  r.rq_type = device::k_ionic_rq_type;
  r.cq_type = device::k_ionic_cq_type;
  r.most_stride = k_most_stride_log2;
  r.most_special = k_most_spans;
  r.pipelines = k_pipelines;
  static_assert(sizeof r == 32);
  c.write(UVERBS_ATTR_UHW_OUT, &r, sizeof r);
  return 0;
}

int context::ionic_cq(const call& c) {
  if (c.method() == UVERBS_METHOD_CQ_DESTROY)
    return remove(static_cast<std::uint32_t>(c.value(UVERBS_ATTR_DESTROY_CQ_HANDLE)), kind::queue);
  if (is_old()) return EPROTONOSUPPORT;
  if (const int err =
          c.check({UVERBS_ATTR_CREATE_CQ_HANDLE, UVERBS_ATTR_CREATE_CQ_CQE, UVERBS_ATTR_CREATE_CQ_USER_HANDLE,
                   UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, UVERBS_ATTR_CREATE_CQ_RESP_CQE},
                  {UVERBS_ATTR_CREATE_CQ_FLAGS, UVERBS_ATTR_CREATE_CQ_EVENT_FD});
      err != 0)
    return err;
  const auto entries = static_cast<std::uint32_t>(c.value(UVERBS_ATTR_CREATE_CQ_CQE));
  if (entries == 0 || static_cast<std::uint32_t>(c.value(UVERBS_ATTR_CREATE_CQ_COMP_VECTOR)) != 0) return EINVAL;
  cq_request wanted{};
  if (!read_request(c, &wanted)) return EINVAL;
  const std::uint32_t pipelines = wanted.pipelines & ((1u << k_pipelines) - 1);
  if (pipelines == 0) return EINVAL;
  object o{kind::queue};
  std::uint32_t numbers[4] = {0, 0, pipelines};
  for (std::uint32_t i = 0; i < k_pipelines; ++i) {
    if ((pipelines >> i & 1) == 0) continue;
    const description& q = wanted.queues[i];
    if (entries + k_cq_grace > 0xffff) return EINVAL;
    if (const int err = pin(q, device_.chosen().no_pin); err != 0) return err;
    if (const int err = check_stride("completion queue", q, k_cqe_log2); err != 0) return err;
    o.at = reinterpret_cast<unsigned char*>(q.address);
    o.entries = q.mask + 1u;
    o.id = numbers[i] = next_cq_number_++;
  }
  o.pipelines = pipelines;
  c.set_handle(UVERBS_ATTR_CREATE_CQ_HANDLE, keep(o));
  c.write(UVERBS_ATTR_CREATE_CQ_RESP_CQE, &entries, sizeof entries);
  c.write(UVERBS_ATTR_UHW_OUT, numbers, sizeof numbers);
  return 0;
}

int context::ionic_qp(const call& c) {
  if (c.method() == UVERBS_METHOD_QP_DESTROY)
    return remove(static_cast<std::uint32_t>(c.value(UVERBS_ATTR_DESTROY_QP_HANDLE)), kind::pair);
  if (const int err =
          c.check({UVERBS_ATTR_CREATE_QP_HANDLE, UVERBS_ATTR_CREATE_QP_USER_HANDLE, UVERBS_ATTR_CREATE_QP_CAP,
                   UVERBS_ATTR_CREATE_QP_TYPE, UVERBS_ATTR_CREATE_QP_RESP_CAP, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM},
                  {UVERBS_ATTR_CREATE_QP_PD_HANDLE, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE,
                   UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, UVERBS_ATTR_CREATE_QP_FLAGS});
      err != 0)
    return err;
  object* domain = find(c.value(UVERBS_ATTR_CREATE_QP_PD_HANDLE), kind::domain);
  object* cq = find(c.value(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE), kind::queue);
  object* receive_cq = find(c.value(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE), kind::queue);
  if (domain == nullptr || cq == nullptr || receive_cq == nullptr) return ENOENT;
  ib_uverbs_qp_cap cap{};
  qp_request wanted{};
  if (!c.read(UVERBS_ATTR_CREATE_QP_CAP, &cap) || !read_request(c, &wanted)) return EINVAL;
  if (c.value(UVERBS_ATTR_CREATE_QP_TYPE) != IB_UVERBS_QPT_RC) return EOPNOTSUPP;
  std::uint32_t pipelines = cq->pipelines & receive_cq->pipelines;
  if (wanted.pipelines != 0) pipelines &= wanted.pipelines;
  if (pipelines == 0) return EINVAL;
  if (device_.chosen().old_firmware) return EBADRQC;
  const std::uint32_t most_spans = std::min((1u << k_most_stride_log2) / 16 - 2, k_most_spans);
  if (cap.max_send_wr > 0xffff || cap.max_send_sge < 1 || cap.max_send_sge > most_spans) return EINVAL;
  if (cap.max_inline_data > (1u << k_most_stride_log2) - k_payload_at) return EINVAL;
  if (const int err = pin(wanted.sends, device_.chosen().no_pin); err != 0) return err;
  if (cap.max_recv_wr > 0xffff || cap.max_recv_sge < 1 || cap.max_recv_sge > most_spans) return EINVAL;
  if (const int err = pin(wanted.receives, device_.chosen().no_pin); err != 0) return err;
  // A controller's memory would hold the ring; this NIC has none to lend.
  if ((wanted.send_controller | wanted.receive_controller) != 0) return EINVAL;
  if (const int err = check_stride("send queue", wanted.sends, k_wqe_log2); err != 0) return err;
  if (const int err = check_stride("receive queue", wanted.receives, k_wqe_log2); err != 0) return err;
  object o{kind::pair};
  const auto pipeline = static_cast<std::uint32_t>(std::countr_zero(pipelines));
  o.id = device_.next_number() | pipeline << 16;
  o.at = reinterpret_cast<unsigned char*>(wanted.sends.address);
  o.entries = wanted.sends.mask + 1u;
  o.parent = static_cast<std::uint32_t>(c.value(UVERBS_ATTR_CREATE_QP_PD_HANDLE));
  o.cq = static_cast<std::uint32_t>(c.value(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE));
  o.receive_cq = static_cast<std::uint32_t>(c.value(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE));
  o.receives = reinterpret_cast<unsigned char*>(wanted.receives.address);
  o.receive_entries = wanted.receives.mask + 1u;
  ++domain->users;
  ++cq->users;
  ++receive_cq->users;
  cap.max_send_wr = wanted.sends.mask;
  cap.max_recv_wr = wanted.receives.mask;
  c.set_handle(UVERBS_ATTR_CREATE_QP_HANDLE, keep(o));
  c.write(UVERBS_ATTR_CREATE_QP_RESP_CAP, &cap, sizeof cap);
  c.write(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, &o.id, sizeof o.id);
  std::uint32_t response[6] = {o.id, pipeline << 16};
  c.write(UVERBS_ATTR_UHW_OUT, response, sizeof response);
  return 0;
}

}  // namespace uverbs
