// SPDX-License-Identifier: MIT
// The dialect of AMD's emulated NIC, legacy personality (include/xio/wire/ernic.hpp): 128-byte entries, rings with both
// indices in memory, a doorbell that says nothing but whose it is.
#pragma once
#include "model/nic/dialect_queue.hpp"
#include "xio/wire/ernic.hpp"

namespace xio::model::rdma {

// Outlives the queue.
struct ernic_memory : dialect_memory {
  std::uint32_t* indices;    // of the send queue
  std::uint32_t depth_log2;  // at most 15
  std::uint32_t* doorbell;   // a register: taken notice of, it is 0 again
  std::uint32_t* cq;         // indices, and a page behind them entries of 64 bytes
  std::uint32_t cq_depth_log2;
};

class ernic_queue final : public dialect_queue<ernic_memory, wire::ernic::k_wqe_dwords> {
 public:
  ernic_queue(const ernic_memory& memory, std::uint32_t number, std::uint64_t max_message);

  op_error poll_doorbells() override;
  op_error fetch(op& out) override;
  void complete(const receipt& r) override;
  void complete_in_error(const receipt& r, op_error f) override;
  void drop(const receipt& r) override;
  void flush() override;

 private:
  op_error poll_sq_doorbell();
  op_error poll_cq_doorbell();
  op_error decode_copy(op& out) const;
  op_error decode_atomic(op& out) const;
  op_error decode_spans(op& out) const;
  std::uint64_t& request(std::uint64_t ticket) { return requests_[ticket & (requests_.size() - 1)]; }
  void post_cqe(const receipt& r, std::uint32_t status, rule why);
  void post_cqe(std::uint64_t wr_id, std::uint32_t opcode, std::uint64_t bytes, std::uint32_t status, rule why);

  std::uint32_t cq_head_ = 0;
  std::vector<std::uint64_t> requests_;  // the wr_id of every slot
};

}  // namespace xio::model::rdma
