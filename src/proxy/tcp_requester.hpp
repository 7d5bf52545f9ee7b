// SPDX-License-Identifier: MIT
// The sending half of a queue pair over TCP: cuts ops into numbered frames, and gives up when the peer is silent for as
// long as a NIC's RC transport tries. The stream loses nothing; what faults on purpose lose is sent again, from the
// first frame that is missing on (go-back-N).
#pragma once
#include "base/payload.hpp"
#include "proxy/executor.hpp"
#include "proxy/keys.hpp"
#include "proxy/tcp_link.hpp"

namespace xio::proxy::tcp {

class requester final : public executor {
 public:
  requester(const payload_agent& payload, const key_table& keys, const tcp_settings& settings, std::uint32_t number,
            std::uint32_t remote_number, std::shared_ptr<link> way);
  ~requester() override { link_->leave_line(this); }

  bool begin(const op& o) override;
  std::uint64_t advance(std::uint64_t budget) override;
  bool ended(op_error* how) override;

  // Handles acknowledgements and replies. False: the frame makes no sense.
  bool handle(const frame_head& h, const unsigned char* payload);

 private:
  struct slot {
    op o;
    std::uint64_t first_psn;
    std::uint32_t frames;   // 0: nothing to send
    std::uint32_t replied;  // of reads and atomics
  };
  slot& at(std::uint64_t index) { return slots_[index % slots_.size()]; }
  const slot& at(std::uint64_t index) const { return slots_[index % slots_.size()]; }
  bool find_slot();
  bool done(const slot& s) const;
  void poll_link();
  void check_time(clock::time_point now);
  void give_up(const std::string& what);
  bool may_send() const;
  std::uint32_t send_one();
  op_error gather(const op& o, std::uint64_t from, std::uint32_t bytes, unsigned char* to) const;
  op_error scatter(const op& o, std::uint64_t from, std::uint32_t bytes, const unsigned char* data) const;
  // The first frame whose acknowledgement or reply is missing.
  std::uint64_t missing() const;
  std::uint64_t awaited() const;
  void acknowledge(std::uint64_t below);
  void go_back(std::uint64_t psn);
  void reply_lost(std::uint64_t psn);
  void progress();
  void stop(std::uint64_t index, op_error f);
  std::uint64_t index_of(std::uint64_t psn) const;
  bool handle_reply(const frame_head& h, const unsigned char* payload);
  bool handle_refusal(const frame_head& h);

  const payload_agent& payload_;
  const key_table& keys_;
  const tcp_settings& settings_;
  const std::uint32_t number_, remote_number_;
  const std::shared_ptr<link> link_;

  std::vector<slot> slots_;
  std::uint64_t head_ = 0, tail_ = 0;  // ops not reported yet
  // The next frame to send.
  std::uint64_t send_op_ = 0;
  std::uint32_t send_frame_ = 0;
  std::uint64_t next_psn_ = 0;                // of the next op
  std::uint64_t sent_ = 0;                    // no frame from here on has ever been sent
  std::uint64_t acked_ = 0;                   // all below are done at the peer
  std::deque<std::uint64_t> awaiting_reply_;  // ops that wait for replies
  std::uint64_t went_back_ = ~std::uint64_t{0};
  clock::time_point progress_{};
  clock::time_point not_before_{};  // after not_ready
  unsigned tries_ = 0, rnr_tries_ = 0;
  std::uint64_t stop_at_ = ~std::uint64_t{0};
  op_error stop_why_;
};

}  // namespace xio::proxy::tcp
