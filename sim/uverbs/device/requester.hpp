// SPDX-License-Identifier: MIT
// Carries the ops of one queue pair to its peer, a piece at a time and in order, and gives up when the queue pair's own
// timeout and retries are spent.
#pragma once
#include <chrono>
#include <memory>

#include "base/payload.hpp"
#include "proxy/executor.hpp"
#include "proxy/keys.hpp"
#include "uverbs/device/settings.hpp"
#include "uverbs/device/wire.hpp"
#include "uverbs/firmware/firmware.hpp"

namespace uverbs {

class requester final : public xio::proxy::executor {
 public:
  requester(const settings& s, std::uint32_t qpn, const firmware::queue_pair& q, const xio::payload_agent& payload,
            const xio::proxy::key_table& keys);

  bool begin(const xio::proxy::op& o) override;
  std::uint64_t advance(std::uint64_t budget) override;
  bool ended(xio::proxy::op_error* how) override;

 private:
  using clock = std::chrono::steady_clock;
  enum class stage { idle, sending, waiting, held_up, over };
  void compose();
  void take();
  void end(xio::proxy::op_error how);

  const std::uint32_t host_, qpn_, remote_qpn_;
  const xio::payload_agent& payload_;
  const xio::proxy::key_table& keys_;
  const std::chrono::nanoseconds patience_;  // 0: for ever
  sender sender_;
  std::unique_ptr<request_message> out_;
  std::unique_ptr<response_message> in_;
  xio::proxy::op op_;
  stage stage_ = stage::idle;
  std::uint64_t moved_ = 0;
  std::uint32_t psn_;
  xio::proxy::op_error how_;
  clock::time_point since_{};
  std::uint32_t held_up_ = 0;  // in a row
  const std::uint32_t most_held_up_;
};

}  // namespace uverbs
