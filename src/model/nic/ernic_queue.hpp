// SPDX-License-Identifier: MIT
// The dialect of AMD's emulated NIC, legacy personality (include/xio/wire/ernic.hpp): 128-byte entries, rings with both
// indices in memory, a doorbell that says nothing but whose it is.
#pragma once
#include <vector>

#include "proxy/ring_memory.hpp"
#include "proxy/wire_queue.hpp"
#include "xio/wire/ernic.hpp"

namespace xio::model::rdma {

using namespace xio::proxy;

// Outlives the queue.
struct ernic_memory {
  const std::uint32_t* slots;  // depth entries of 128 bytes
  std::uint32_t* indices;      // of the send queue
  std::uint32_t depth_log2;    // at most 15
  std::uint32_t* doorbell;     // a register: taken notice of, it is 0 again
  std::uint32_t* cq;           // indices, and a page behind them entries of 64 bytes
  std::uint32_t cq_depth_log2;
  // Number of the first entry, a multiple of the depth. Hardware starts at 0; tests start near a wrap.
  std::uint64_t start;
  // Where slots and their indices, and cq, are; the doorbell is host memory.
  ring_memory entries = {}, completions = {};
};

class ernic_queue final : public wire_queue {
 public:
  ernic_queue(const ernic_memory& memory, std::uint32_t number, std::uint64_t max_message);

  op_error poll_doorbells() override;
  bool waiting() const override { return next_ != producer_index_; }
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

  const ernic_memory memory_;
  const std::uint32_t number_;
  const std::uint64_t max_message_;
  std::uint64_t producer_index_;         // entries below were announced
  std::uint64_t next_;                   // the next entry to take
  std::uint64_t done_;                   // entries below have ended
  std::uint64_t cq_producer_index_ = 0;  // CQEs written
  std::uint64_t cq_consumer_index_ = 0;  // CQEs that the reader has given back
  std::uint32_t cq_head_ = 0;
  std::vector<std::uint64_t> requests_;  // the wr_id of every slot
  // The entry being decoded, out of the ring, which is the device's to change.
  std::uint32_t entry_[wire::ernic::k_wqe_dwords] = {};
};

}  // namespace xio::model::rdma
