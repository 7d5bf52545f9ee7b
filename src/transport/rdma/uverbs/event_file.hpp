// SPDX-License-Identifier: MIT
// A device's events, read by system calls alone: for those that no library of ours has opened.
#pragma once
#include <atomic>

#include "proxy/device_events.hpp"
#include "transport/rdma/uverbs/domain.hpp"

namespace xio::rdma::uverbs {

class event_file {
 public:
  // A kernel that gives none is taken, and nothing is heard of.
  event_file(const domain& d, int port);
  // Looks now and then. For one thread.
  void poll();
  bool has_failed() const { return failed_.load(std::memory_order_acquire); }

 private:
  const std::string name_;
  const int port_;
  unique_fd fd_;
  proxy::event_timer timer_;
  std::atomic<bool> failed_{false};
};

}  // namespace xio::rdma::uverbs
