// SPDX-License-Identifier: MIT
#include "proxy/verbs_queue.hpp"

#include <cerrno>
#include <cstring>
#include <random>

#include "base/error.hpp"
#include "base/log.hpp"

namespace xio::proxy {

namespace {

// Least send work requests: one entry of the model can need this many on a device that gathers one span at a time.
constexpr std::uint32_t k_least_depth = 32;
// Wait before a peer without receives is asked again: code 12 is 0.64 ms (InfiniBand specification, table 45).
constexpr std::uint8_t k_rnr_timer_code = 12;

std::uint32_t random_psn() {
  std::random_device source;
  return source() & 0xffffff;
}

// The most likely cause of a failed step, by its errno.
const char* hint(int err) {
  switch (err) {
    case EINVAL: return "the device does not take one of these values";
    case ENOMEM: return "raise the limit of locked memory (ulimit -l)";
    case EPERM:
    case EACCES: return "ask for access to the device in /dev/infiniband";
    case ETIMEDOUT:
    case ENETUNREACH:
    case EHOSTUNREACH:
      return "no way to the peer's address (ah_attr.grh.dgid) was found: check routes and cables, or choose another "
             "XIO_RDMA_GID_INDEX";
    case ENODEV:
    case ENXIO: return "the device is gone; see the kernel's log";
    default: return "see the kernel's log";
  }
}

// Whether a device may take a smaller queue after that.
bool is_no_room(int err) { return err == EINVAL || err == ENOMEM; }

// The same where a queue pair is led to its peer: without a way there the kernel finds no device for it either.
const char* hint_on_the_way(int err) { return hint(err == ENODEV || err == ENXIO ? ENETUNREACH : err); }

}  // namespace

verbs_queue::verbs_queue(const verbs_port& port, const verbs_path& path, std::uint32_t number, ibv_cq* receives)
    : port_(port), path_(path), number_(number), mine_(port.identity) {
  create(receives);
  mine_.qpn = qp_->qp_num;
  mine_.psn = random_psn();
  ends_ = text_of(mine_);
  to_init();
  for (std::uint32_t i = 0; i < k_receives; ++i) {
    if (const int err = post_receive(); err != 0)
      fail(XIO_ERR_IO, "{}: receive {} of {} cannot be posted: {}; {}", ends_, i, k_receives, errno_text(err),
           hint(err));
  }
}

void verbs_queue::create(ibv_cq* receives) {
  depth_ = std::min({std::max(path_.depth, k_least_depth), port_.max_wr, port_.max_cqe});
  max_sge_ = std::clamp<std::uint32_t>(port_.max_sge, 1, k_max_spans);
  bounce_.resize(std::size_t{k_bounce_slots} * k_bounce_bytes);
  bounce_mr_.reset(ibv_reg_mr(port_.domain.get(), bounce_.data(), bounce_.size(), IBV_ACCESS_LOCAL_WRITE));
  if (bounce_mr_ == nullptr) {
    const int err = errno;
    fail(XIO_ERR_IO, "{}: {} bytes of staging memory cannot be registered: {}; {}", text_of(mine_), bounce_.size(),
         errno_text(err), hint(err));
  }
  // A device names its limits one by one and may not have room for all together (rdma-core providers/mlx5/verbs.c:
  // mlx5_calc_sq_size).
  const std::uint32_t depth = depth_, max_sge = max_sge_;
  bool no_memory = false;
  while (!create_send_cq() || !create_pair(receives)) {
    const int err = errno;
    no_memory = no_memory || err == ENOMEM;
    if (send_cq_ == nullptr)
      shrink_send_cq(err);
    else
      shrink_pair(err);
  }
  // Fewer spans alone cost little, and deep queues of some devices always have fewer.
  if (max_sge_ != max_sge || depth_ != depth)
    log::line(no_memory || depth_ != depth ? log::level::warn : log::level::info,
              "{}: room for {} send requests of {} spans instead of {} of {}{}{}", text_of(mine_), depth_, max_sge_,
              depth, max_sge, no_memory ? "; " : "", no_memory ? hint(ENOMEM) : "");
}

// Every work request completes after an error, so that the queue must hold them all. False with errno if the device
// makes none of this size.
bool verbs_queue::create_send_cq() {
  if (send_cq_ != nullptr) return true;
  send_cq_.reset(ibv_create_cq(port_.context.get(), static_cast<int>(depth_), nullptr, nullptr, 0));
  return send_cq_ != nullptr;
}

// The same of the queue pair.
bool verbs_queue::create_pair(ibv_cq* receives) {
  // Devices do not say how much they take inline; they refuse to make a queue pair.
  for (const std::uint32_t inlined : {256u, 128u, 64u, 0u}) {
    ibv_qp_init_attr wanted{};
    wanted.send_cq = send_cq_.get();
    wanted.recv_cq = receives;
    wanted.qp_type = IBV_QPT_RC;
    wanted.cap.max_send_wr = depth_;
    wanted.cap.max_recv_wr = k_receives;
    wanted.cap.max_send_sge = max_sge_;
    wanted.cap.max_recv_sge = 1;
    wanted.cap.max_inline_data = inlined;
    qp_.reset(ibv_create_qp(port_.domain.get(), &wanted));
    if (qp_ == nullptr) continue;
    max_inline_ = std::min<std::uint32_t>(wanted.cap.max_inline_data, 256);
    return true;
  }
  return false;
}

// False if it is the least. The completion queue goes with its depth: what it takes may be what is missing.
bool verbs_queue::halve_depth() {
  if (depth_ <= k_least_depth) return false;
  depth_ = std::max(depth_ / 2, k_least_depth);
  send_cq_.reset();
  return true;
}

void verbs_queue::shrink_send_cq(int err) {
  if (!is_no_room(err))
    fail(XIO_ERR_IO, "{}: no completion queue of {} entries for the sends of queue pair {}: {}; {}", text_of(mine_),
         depth_, number_, errno_text(err), hint(err));
  if (!halve_depth())
    fail(XIO_ERR_IO,
         "{}: no completion queue of as few as {} entries for the sends of queue pair {}: {}; {}, or end other users "
         "of the device",
         text_of(mine_), depth_, number_, errno_text(err), hint(err));
}

// Spans of no room go into a further request, and requests of none wait.
void verbs_queue::shrink_pair(int err) {
  if (!is_no_room(err))
    fail(XIO_ERR_IO, "{}: no queue pair {} with {} send and {} receive requests: {}; {}", text_of(mine_), number_,
         depth_, k_receives, errno_text(err), hint(err));
  if (max_sge_ > 1)
    max_sge_ /= 2;
  else if (!halve_depth())
    fail(XIO_ERR_IO,
         "{}: no queue pair {} with as few as {} send and {} receive requests: {}; {}, or end other users of the "
         "device",
         text_of(mine_), number_, depth_, k_receives, errno_text(err), hint(err));
}

int verbs_queue::post_receive() {
  ibv_recv_wr wr{};
  wr.wr_id = number_;
  ibv_recv_wr* bad = nullptr;
  return ibv_post_recv(qp_.get(), &wr, &bad);
}

void verbs_queue::to_init() {
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_INIT;
  a.pkey_index = path_.pkey_index;
  a.port_num = mine_.port;
  a.qp_access_flags =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  const int err = ibv_modify_qp(qp_.get(), &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (err != 0)
    fail(XIO_ERR_IO, "{} does not go from RESET to INIT with port {}, pkey_index {}, access flags {:#x}: {}; {}", ends_,
         a.port_num, a.pkey_index, a.qp_access_flags, errno_text(err), hint(err));
}

ibv_ah_attr verbs_queue::address_of(const verbs_address& remote) const {
  ibv_ah_attr ah{};
  ah.port_num = mine_.port;
  ah.sl = path_.sl;
  ah.dlid = remote.lid;
  // The upper half of the GID is the number of the InfiniBand subnet.
  const bool other_subnet = std::memcmp(mine_.address.data(), remote.address.data(), 8) != 0;
  ah.is_global = mine_.link == link_layer::ethernet || port_.needs_grh || other_subnet || remote.lid == 0;
  if (ah.is_global == 0) return ah;
  std::memcpy(ah.grh.dgid.raw, remote.address.data(), remote.address.size());
  ah.grh.sgid_index = static_cast<std::uint8_t>(mine_.gid_index);
  ah.grh.hop_limit = path_.hop_limit;
  ah.grh.traffic_class = path_.traffic_class;
  return ah;
}

void verbs_queue::to_rtr(const verbs_address& remote, std::uint8_t mtu) {
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_RTR;
  a.path_mtu = static_cast<ibv_mtu>(mtu);
  a.dest_qp_num = remote.qpn;
  a.rq_psn = remote.psn;
  a.max_dest_rd_atomic = mine_.responder_depth;
  a.min_rnr_timer = k_rnr_timer_code;
  a.ah_attr = address_of(remote);
  const int err = ibv_modify_qp(qp_.get(), &a,
                                IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (err != 0)
    fail(XIO_ERR_IO,
         "{} does not go from INIT to RTR with path_mtu {}, rq_psn {:#x}, max_dest_rd_atomic {}, min_rnr_timer {}, sl "
         "{}, sgid_index {}, hop_limit {}, traffic_class {}: {}; {}",
         ends_, mtu_bytes(mtu), a.rq_psn, a.max_dest_rd_atomic, a.min_rnr_timer, a.ah_attr.sl, a.ah_attr.grh.sgid_index,
         a.ah_attr.grh.hop_limit, a.ah_attr.grh.traffic_class, errno_text(err), hint_on_the_way(err));
}

void verbs_queue::to_rts(const verbs_address& remote) {
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_RTS;
  a.timeout = path_.timeout;
  a.retry_cnt = path_.retry;
  a.rnr_retry = path_.rnr_retry;
  a.sq_psn = mine_.psn;
  a.max_rd_atomic = std::min(port_.initiator_depth, remote.responder_depth);
  const int err = ibv_modify_qp(
      qp_.get(), &a,
      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  if (err != 0)
    fail(XIO_ERR_IO,
         "{} does not go from RTR to RTS with timeout {}, retry_cnt {}, rnr_retry {}, sq_psn {:#x}, max_rd_atomic {}: "
         "{}; {}",
         ends_, a.timeout, a.retry_cnt, a.rnr_retry, a.sq_psn, a.max_rd_atomic, errno_text(err), hint(err));
}

void verbs_queue::connect(const verbs_address& remote, int pe) {
  check_pair(mine_, remote, pe);
  ends_ = fmt::format("{} <-> {} of PE {}", text_of(mine_), text_of(remote), pe);
  to_rtr(remote, agree_mtu(mine_, remote, pe, path_.mtu));
  to_rts(remote);
}

}  // namespace xio::proxy
