// SPDX-License-Identifier: MIT
// The bnxt_re dialect of Thor2: static-mode work queue entries of include/xio/wire/bnxt.hpp, an MSN table, doorbells
// with an epoch, a completion queue with a phase.
#pragma once
#include "proxy/ring_memory.hpp"
#include "proxy/wire_queue.hpp"
#include "xio/wire/bnxt.hpp"

namespace xio::model::rdma {

using namespace xio::proxy;

// Outlives the queue; completion entries are zero to begin with.
struct bnxt_memory {
  const std::uint32_t* slots;        // depth entries of 128 bytes
  const std::uint64_t* msns;         // depth << table_log2 entries
  std::uint32_t depth_log2;          // at most 15
  const std::uint64_t* doorbell;     // the DPI page's word as this send queue rings it
  std::uint32_t* cqes;               // entries of 32 bytes
  std::uint32_t cq_depth_log2;       // at most 23
  const std::uint64_t* cq_doorbell;  // and as its completion queue rings it
  std::uint32_t cq_number;
  // Index of the first entry, a multiple of the depth, and the number of its first packet. Hardware starts at 0; tests
  // start near a wrap.
  std::uint64_t start;
  std::uint32_t first_psn, path_mtu;
  bool by_slots;  // variable mode, with entries of 8 slots alone
  std::uint32_t table_log2 = 0;
  // Where slots, MSNs and completions are; doorbells are host memory.
  ring_memory entries = {}, completions = {};
};

class bnxt_queue final : public wire_queue {
 public:
  bnxt_queue(const bnxt_memory& memory, std::uint32_t number, std::uint64_t max_message);

  op_error poll_doorbells() override;
  bool waiting() const override { return next_ != producer_index_; }
  op_error fetch(op& out) override;
  void complete(const receipt& r) override;
  void complete_in_error(const receipt& r, op_error f) override;
  void drop(const receipt& r) override;
  void flush() override;

 private:
  using header = wire::bnxt::header;
  // Doorbells and MSN entries count these for an entry.
  std::uint32_t unit() const { return memory_.by_slots ? wire::bnxt::k_wqe_slots : 1; }
  op_error poll_sq_doorbell();
  op_error poll_cq_doorbell();
  op_error check_header(const header& h) const;
  op_error decode_copy(const header& h, op& out) const;
  op_error decode_atomic(const header& h, op& out) const;
  op_error decode_spans(const header& h, op& out) const;
  op_error check_sequence(std::uint64_t first, std::uint64_t bytes);
  void post_cqe(std::uint32_t type, std::uint32_t status, std::uint64_t upto);

  const bnxt_memory memory_;
  const std::uint32_t number_;
  const std::uint64_t max_message_;
  std::uint64_t word_, cq_word_;         // the doorbells as they were last
  std::uint64_t producer_index_;         // entries below were announced
  std::uint64_t next_;                   // the next entry to take
  std::uint64_t done_;                   // entries below have ended
  std::uint64_t cq_producer_index_ = 0;  // CQEs written
  std::uint64_t cq_consumer_index_ = 0;  // CQEs that the CQ's doorbell has given back
  std::uint32_t psn_;                    // of the next entry's first packet
  // The entry being decoded, out of the ring, which is the device's to change.
  std::uint32_t entry_[wire::bnxt::k_wqe_bytes / 4];
};

}  // namespace xio::model::rdma
