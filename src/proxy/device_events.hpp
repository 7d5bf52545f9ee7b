// SPDX-License-Identifier: MIT
// What an RDMA device says without being asked: its port's link, its own failure.
#pragma once
#include <infiniband/verbs.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace xio::proxy {

// Logs it with its meaning and cure, unless it is of another port. True: the device has failed for good. `name` is of
// the device, as sentences have it; about: the port that the event names, if its type is one of a port.
bool report_event(const std::string& name, int port, ibv_event_type type, int about);

// A look for events is a system call: says when one is due, for a thread that comes by again and again.
class event_timer {
 public:
  bool is_due() {
    if (++turns_ % k_turns != 0) return false;
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return false;
    next_ = now + k_between;
    return true;
  }

 private:
  static constexpr std::uint32_t k_turns = 64;
  static constexpr std::chrono::milliseconds k_between{10};
  std::uint32_t turns_ = 0;
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace xio::proxy
