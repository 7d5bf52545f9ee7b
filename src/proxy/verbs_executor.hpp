// SPDX-License-Identifier: MIT
// Ops carried by a real RDMA device: begin() writes work requests, advance() posts them as one chain and polls.
#pragma once
#include <infiniband/verbs.h>

#include <deque>
#include <string>
#include <vector>

#include "proxy/executor.hpp"

namespace xio::proxy {

// The sending half of a connected queue pair. Everything outlives the executor.
struct verbs_sender {
  ibv_qp* qp;
  ibv_cq* cq;  // its own
  std::uint32_t depth, max_sge, max_inline;
  unsigned char* bounce;  // registered memory: bounce_slots of bounce_bytes each
  std::uint32_t bounce_lkey, bounce_slots, bounce_bytes;
  std::string ends;  // for the log
};

op_error error_of(ibv_wc_status status);

class verbs_executor final : public executor {
 public:
  explicit verbs_executor(verbs_sender s);

  bool begin(const op& o) override;
  std::uint64_t advance(std::uint64_t budget) override;
  bool ended(op_error* how) override;

  // The device's own word for the failure; 0 if there was none.
  std::uint32_t vendor() const { return vendor_; }

 private:
  // Work requests are counted from 0 on; an op has ended when all below `end` have.
  struct begun {
    std::uint64_t end;
    op_error refused;  // found before anything was posted
  };
  bool has_room(const op& o, std::uint32_t requests) const;
  ibv_send_wr& stage(const op& o, std::uint64_t skip);
  ibv_sge* spans_of(std::size_t place) { return spans_.data() + place * s_.max_sge; }
  void stage_inline(const op& o);
  void stage_spans(const op& o, std::uint32_t requests);
  void stage_atomic(const op& o);
  void post();
  void collect(const ibv_wc& wc);
  void give_up(std::uint32_t vendor, const char* text);
  void stop(std::uint64_t at, op_error f, std::uint32_t vendor, const char* text);

  const verbs_sender s_;
  std::deque<begun> ops_;
  // The chain that is not posted yet.
  std::vector<ibv_send_wr> chain_;
  std::vector<bool> asked_;
  std::vector<ibv_sge> spans_;
  std::vector<unsigned char> small_;
  std::uint32_t staged_ = 0;
  std::uint64_t staged_bytes_ = 0;
  std::uint64_t posted_ = 0, done_ = 0;  // work requests
  std::uint32_t unasked_ = 0;            // posted since the last that asked for a completion
  // Bounce slots in use, oldest first: the work request that gives each back.
  std::deque<std::uint64_t> bounced_;
  std::uint64_t bounce_next_ = 0;
  op_error failed_;
  std::uint64_t failed_at_ = 0;
  std::uint32_t vendor_ = 0;
};

}  // namespace xio::proxy
