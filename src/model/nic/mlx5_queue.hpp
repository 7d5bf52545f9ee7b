// SPDX-License-Identifier: MIT
// The mlx5 dialect: work queue entries of include/xio/wire/mlx5.hpp, a doorbell record and word, a collapsed CQE.
#pragma once
#include "model/nic/dialect_queue.hpp"
#include "xio/wire/mlx5.hpp"

namespace xio::model::rdma {

// Outlives the queue.
struct mlx5_memory : dialect_memory {
  std::uint32_t depth;                   // a power of two, at most 32768
  const std::uint32_t* doorbell_record;  // send word of the doorbell record, or null: the queue pair has none
  const std::uint64_t* doorbell;         // the 8 bytes of the UAR that this queue rings
  std::uint32_t* cqe;                    // 64 bytes; op_own invalid to begin with
  // A collapsed CQ shows the newest CQE only, so those of flushed entries cover the one that says why. Off: the first
  // error stays to be read, which hardware does not promise. On: as bad as it gets.
  bool flushes_cover_error;
  // An ordinary completion queue of 1 << cq_depth_log2 entries in the collapsed one's place. Its overrun is ignored.
  bool queued_cq;
  std::uint32_t cq_depth_log2;
};

class mlx5_queue final
    : public dialect_queue<mlx5_memory, wire::mlx5::k_max_segments * wire::mlx5::k_segment_dwords + 4> {
 public:
  mlx5_queue(const mlx5_memory& memory, std::uint32_t number, std::uint64_t max_message);

  op_error poll_doorbells() override;
  op_error fetch(op& out) override;
  void complete(const receipt& r) override;
  void complete_in_error(const receipt& r, op_error f) override;
  void drop(const receipt& r) override;
  void flush() override;

 private:
  using control = wire::mlx5::control;
  op_error check_control(const control& c, std::uint64_t first) const;
  op_error decode_copy(const control& c, op& out) const;
  op_error decode_atomic(const control& c, op& out) const;
  op_error decode_masked(const control& c, const std::uint32_t* dw, op& out) const;
  op_error decode_spans(const std::uint32_t* dw, std::uint32_t count, op& out) const;
  op_error decode_remote(op& out) const;
  bool record_covers(std::uint32_t producer) const;
  const std::uint32_t* slot(std::uint64_t ticket) const;
  void post_cqe(const receipt& r, std::uint32_t cqe_opcode, std::uint32_t syndromes);

  std::uint64_t word_;  // the doorbell as it was last
};

}  // namespace xio::model::rdma
