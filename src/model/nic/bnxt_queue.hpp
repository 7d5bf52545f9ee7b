// SPDX-License-Identifier: MIT
// The bnxt_re dialect of Thor2: static-mode work queue entries of include/xio/wire/bnxt.hpp, an MSN table, doorbells
// with an epoch, a completion queue with a phase.
#pragma once
#include "model/nic/dialect_queue.hpp"
#include "xio/wire/bnxt.hpp"

namespace xio::model::rdma {

// Outlives the queue; completion entries are zero to begin with.
struct bnxt_memory : dialect_memory {
  const std::uint64_t* msns;         // depth << table_log2 entries
  std::uint32_t depth_log2;          // at most 15
  const std::uint64_t* doorbell;     // the DPI page's word as this send queue rings it
  std::uint32_t* cqes;               // entries of 32 bytes
  std::uint32_t cq_depth_log2;       // at most 23
  const std::uint64_t* cq_doorbell;  // and as its completion queue rings it
  std::uint32_t cq_number;
  std::uint32_t first_psn;  // the number of the first entry's first packet
  std::uint32_t path_mtu;
  bool by_slots;  // variable mode, with entries of 8 slots alone
  std::uint32_t table_log2 = 0;
};

class bnxt_queue final : public dialect_queue<bnxt_memory, wire::bnxt::k_wqe_bytes / 4> {
 public:
  bnxt_queue(const bnxt_memory& memory, std::uint32_t number, std::uint64_t max_message);

  op_error poll_doorbells() override;
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

  std::uint64_t word_, cq_word_;  // the doorbells as they were last
  std::uint32_t psn_;             // of the next entry's first packet
};

}  // namespace xio::model::rdma
