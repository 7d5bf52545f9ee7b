// SPDX-License-Identifier: MIT
// One RC queue pair of a real RDMA device, from its making until it can send.
#pragma once
#include "proxy/verbs_port.hpp"

namespace xio::proxy {

struct verbs_delete {
  void operator()(ibv_qp* p) const {
    if (ibv_destroy_qp(p) == 0) return;
    // It stays, but must not go on writing to memory that is used for something else.
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_ERR;
    ibv_modify_qp(p, &a, IBV_QP_STATE);
  }
  void operator()(ibv_cq* p) const { ibv_destroy_cq(p); }
  void operator()(ibv_mr* p) const { ibv_dereg_mr(p); }
};
template <class T>
using verbs_owned = std::unique_ptr<T, verbs_delete>;

class verbs_queue {
 public:
  // receives: where its receive completions go; outlives it. Stands at INIT with its receives posted.
  verbs_queue(const verbs_port& port, const verbs_path& path, std::uint32_t number, ibv_cq* receives);

  // Receives that every queue pair has posted: so many writes with immediate may come before the owner takes one.
  static constexpr std::uint32_t k_receives = 32;
  // Inline payload that the device does not take inline goes through one of these.
  static constexpr std::uint32_t k_bounce_slots = 32;
  static constexpr std::uint32_t k_bounce_bytes = 1024;

  const verbs_address& identity() const { return mine_; }
  // INIT to RTR to RTS.
  void connect(const verbs_address& remote, int pe);
  // Posts one receive; messages for it hold no payload. Returns the device's errno.
  int post_receive();

  ibv_qp* qp() const { return qp_.get(); }
  ibv_cq* send_cq() const { return send_cq_.get(); }
  // The room that the device granted, at most what was requested.
  std::uint32_t depth() const { return depth_; }
  std::uint32_t max_sge() const { return max_sge_; }
  std::uint32_t max_inline() const { return max_inline_; }
  unsigned char* bounce() { return bounce_.data(); }
  std::uint32_t bounce_lkey() const { return bounce_mr_->lkey; }
  // "rxe0:1 gid[1] ... qpn 17 <-> ... of PE 1"
  const std::string& ends() const { return ends_; }

 private:
  void create(ibv_cq* receives);
  bool create_send_cq();
  bool create_pair(ibv_cq* receives);
  bool halve_depth();
  void shrink_send_cq(int err);
  void shrink_pair(int err);
  void to_init();
  void to_rtr(const verbs_address& remote, std::uint8_t mtu);
  void to_rts(const verbs_address& remote);
  ibv_ah_attr address_of(const verbs_address& remote) const;

  const verbs_port port_;
  const verbs_path path_;
  const std::uint32_t number_;
  std::uint32_t depth_ = 0, max_sge_ = 0, max_inline_ = 0;
  verbs_address mine_;
  std::string ends_;
  std::vector<unsigned char> bounce_;
  verbs_owned<ibv_mr> bounce_mr_;
  verbs_owned<ibv_cq> send_cq_;
  verbs_owned<ibv_qp> qp_;
};

}  // namespace xio::proxy
