// SPDX-License-Identifier: MIT
#include "uverbs/device/receives.hpp"

#include <bit>
#include <cstdio>

#include "xio/wire/bnxt.hpp"
#include "xio/wire/ionic.hpp"
#include "xio/wire/mlx5.hpp"

namespace uverbs {
namespace {

// Receive entries are counted in 16 bits, completions in 24 (Programmer's Reference Manual, doorbell records).
class mlx5_receives final : public receive_side {
 public:
  mlx5_receives(std::uint32_t qpn, const firmware::rings& r) : qpn_(qpn), rings_(r) {}
  bool is_ready() const override {
    const std::uint32_t posted = read(rings_.receive_record) & 0xffff, taken = read(rings_.receive_cq_record);
    return ((posted - count_) & 0xffff) != 0 && ((count_ - taken) & 0xffffff) < rings_.receive_cq_depth;
  }
  void complete(std::uint32_t immediate, std::uint32_t bytes) override {
    namespace w = xio::wire::mlx5;
    auto* dw = reinterpret_cast<std::uint32_t*>(rings_.receive_completions) +
               (count_ & (rings_.receive_cq_depth - 1)) * w::k_cqe_dwords;
    dw[9] = xio::wire::be32(immediate);
    dw[w::k_cqe_bytes_at] = xio::wire::be32(bytes);
    dw[w::k_cqe_qpn_at] = w::cqe_send_opcode_qpn(0, qpn_);
    const auto log = static_cast<std::uint32_t>(std::countr_zero(rings_.receive_cq_depth));
    const std::uint32_t entry = count_ & (rings_.receive_depth - 1);
    // struct mlx5_cqe64: imm_inval_pkey at 36; opcode 1 is RESP_WR_IMM.
    __atomic_store_n(dw + w::k_cqe_state_at, w::cqe_state(entry, 1, w::cqe_owner_of(count_, log)), __ATOMIC_RELEASE);
    ++count_;
  }

 private:
  static std::uint32_t read(const std::uint32_t* record) {
    return xio::wire::be32(__atomic_load_n(record, __ATOMIC_ACQUIRE));
  }
  const std::uint32_t qpn_;
  const firmware::rings rings_;
  std::uint32_t count_ = 0;
};

// One entry of each ring stays free (ionic_queue.h, mask).
class ionic_receives final : public receive_side {
 public:
  ionic_receives(std::uint32_t qpn, const ionic_receive_rings& r) : qpn_(qpn), rings_(r) {}
  bool is_ready() const override {
    return ((posted_ - count_) & (rings_.depth - 1)) != 0 && count_ - taken_ < rings_.cq_depth - 1;
  }
  void complete(std::uint32_t immediate, std::uint32_t bytes) override {
    namespace w = xio::wire::ionic;
    const std::uint32_t index = count_ & (rings_.depth - 1);
    const w::base entry = w::get_base(reinterpret_cast<const std::uint32_t*>(rings_.entries + std::size_t{index} * 64));
    if (entry.index != index || entry.op != 0 || entry.sges != 0 || entry.flags != 0 || entry.immediate != 0)
      std::fprintf(stderr, "simulated RDMA device: receive %u of queue pair %#x is not one\n", index, qpn_);
    auto* dw =
        reinterpret_cast<std::uint32_t*>(rings_.completions) + (count_ & (rings_.cq_depth - 1)) * w::k_cqe_dwords;
    // struct ionic_v1_cqe: index and time, source and op (3: RDMA_IMM), immediate, length.
    dw[0] = index;
    dw[1] = 0;
    dw[2] = xio::wire::be32(3u << 24);
    dw[5] = xio::wire::be32(immediate);
    dw[6] = xio::wire::be32(bytes);
    const auto log = static_cast<std::uint32_t>(std::countr_zero(rings_.cq_depth));
    __atomic_store_n(dw + 7, w::cqe_state(w::color_of(count_, log), false, w::type_recv, qpn_), __ATOMIC_RELEASE);
    ++count_;
  }
  bool take_doorbell(const doorbell& d) override {
    const xio::wire::ionic::doorbell bell = xio::wire::ionic::get_doorbell(d.value);
    if (d.page != rings_.page || bell.reserved != 0) return false;
    if (d.offset == rings_.rq_type * sizeof d.value && bell.qid == qpn_) {
      posted_ = bell.index;
      return true;
    }
    if (d.offset != rings_.cq_type * sizeof d.value || bell.qid != rings_.cq_number) return false;
    taken_ += (bell.index - taken_) & (rings_.cq_depth - 1);
    return true;
  }

 private:
  const std::uint32_t qpn_;
  const ionic_receive_rings rings_;
  std::uint32_t posted_ = 0, taken_ = 0, count_ = 0;
};

// Doorbells count slots of 16 bytes, and say by the epoch in which lap they are (Linux bnxt_re, qplib_res.h,
// bnxt_qplib_ring_prod_db).
class bnxt_receives final : public receive_side {
 public:
  bnxt_receives(std::uint32_t qpn, const bnxt_receive_rings& r) : qpn_(qpn), rings_(r) {}
  bool is_ready() const override { return posted_ != count_ && count_ - taken_ < rings_.cq_depth; }
  void complete(std::uint32_t immediate, std::uint32_t bytes) override {
    namespace w = xio::wire::bnxt;
    const std::uint32_t index = count_ & (rings_.depth - 1);
    const auto* entry =
        reinterpret_cast<const std::uint32_t*>(rings_.entries + std::size_t{index} * rings_.entry_bytes);
    // Type 80h, three slots of which the third is an SGE without bytes, and the entry's number.
    if (entry[0] != 0x30080 || entry[2] != index || entry[11] != 0)
      std::fprintf(stderr, "simulated RDMA device: receive %u of queue pair %#x is not one\n", index, qpn_);
    auto* dw = reinterpret_cast<std::uint32_t*>(rings_.completions) + (count_ & (rings_.cq_depth - 1)) * 8;
    dw[0] = bytes;
    dw[1] = immediate;
    // Flags: an immediate, of a write (BNXT_RE_RC_FLAGS_IMM, _RDMA).
    const std::uint32_t flags = (1u << 1 | 1u << 3) << 16;
    const auto log = static_cast<std::uint32_t>(std::countr_zero(rings_.cq_depth));
    __atomic_store_n(dw + 6, w::cqe_state(w::cqe_phase_of(count_, log), w::cqe_receive_rc, w::ok) | flags,
                     __ATOMIC_RELEASE);
    ++count_;
  }
  bool take_doorbell(const doorbell& d) override {
    namespace w = xio::wire::bnxt;
    const w::doorbell bell = w::get_doorbell(d.value);
    if (d.offset != 0 || bell.valid == 0 || bell.reserved != 0) return false;
    if (bell.type == w::bell_rq && d.page == rings_.page && bell.queue == qpn_) {
      const std::uint32_t slots = rings_.entry_bytes / 16;
      if (bell.index % slots == 0) move(&posted_, bell.index / slots, bell.epoch, rings_.depth);
      return true;
    }
    if (bell.type != w::bell_cq || d.page != rings_.cq_page || bell.queue != rings_.cq_number) return false;
    move(&taken_, bell.index, bell.epoch, rings_.cq_depth);
    return true;
  }

 private:
  // To the next position with this index in a lap of this epoch.
  static void move(std::uint32_t* count, std::uint32_t index, std::uint32_t epoch, std::uint32_t depth) {
    *count += (epoch * depth + index - *count) & (2 * depth - 1);
  }
  const std::uint32_t qpn_;
  const bnxt_receive_rings rings_;
  std::uint32_t posted_ = 0, taken_ = 0, count_ = 0;
};

}  // namespace

std::unique_ptr<receive_side> make_bnxt_receives(std::uint32_t qpn, const bnxt_receive_rings& r) {
  return std::make_unique<bnxt_receives>(qpn, r);
}

std::unique_ptr<receive_side> make_ionic_receives(std::uint32_t qpn, const ionic_receive_rings& r) {
  return std::make_unique<ionic_receives>(qpn, r);
}

std::unique_ptr<receive_side> make_mlx5_receives(std::uint32_t qpn, const firmware::rings& r) {
  return r.receive_depth == 0 ? nullptr : std::make_unique<mlx5_receives>(qpn, r);
}

}  // namespace uverbs
