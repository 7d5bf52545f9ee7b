// SPDX-License-Identifier: MIT
// The ionic dialect: coloured entries of include/xio/wire/ionic.hpp, doorbells that say an index, completions by
// message number in one collapsed CQE or in a coloured completion queue.
#pragma once
#include "model/nic/dialect_queue.hpp"
#include "xio/wire/ionic.hpp"

namespace xio::model::rdma {

// Outlives the queue.
struct ionic_memory : dialect_memory {
  wire::ionic::interface face;
  std::uint32_t depth_log2;  // at most 15
  const std::uint64_t* doorbell;
  std::uint32_t* cqes;               // entries of 32 bytes
  bool collapsed;                    // there is one, and it is overwritten
  std::uint32_t cq_depth_log2;       // of a completion queue, at most 15
  const std::uint64_t* cq_doorbell;  // and what its reader rings
  std::uint32_t cq_number;
};

class ionic_queue final : public dialect_queue<ionic_memory, wire::ionic::k_wqe_dwords> {
 public:
  ionic_queue(const ionic_memory& memory, std::uint32_t number, std::uint64_t max_message);

  op_error poll_doorbells() override;
  op_error fetch(op& out) override;
  void complete(const receipt& r) override;
  void complete_in_error(const receipt& r, op_error f) override;
  void drop(const receipt&) override {}
  void flush() override { next_ = producer_index_; }

 private:
  using base = wire::ionic::base;
  op_error poll_sq_doorbell();
  op_error poll_cq_doorbell();
  op_error check_base(const base& b, std::uint64_t position, wire::ionic::verb* what) const;
  op_error decode_copy(const base& b, op& out) const;
  op_error decode_atomic(const base& b, op& out) const;
  void post_cqe(std::uint32_t type, bool error, std::uint32_t status_or_length, std::uint64_t count,
                std::uint64_t index);

  std::uint64_t word_, cq_word_;  // the doorbells as they were last
};

}  // namespace xio::model::rdma
