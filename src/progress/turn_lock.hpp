// SPDX-License-Identifier: MIT
// A lock between the turns of a thread that polls and the calls of other threads. Turns give way to calls, or a device
// that is always busy would keep them out: a mutex alone may go to the poller again and again.
#pragma once
#include <mutex>

#include "base/sleeper.hpp"

namespace xio::progress {

class turn_lock {
 public:
  // For a call: waits for the turn under way at most. The turn behind it finds the work that it leaves.
  std::unique_lock<std::mutex> visit() {
    visitors_.fetch_add(1, std::memory_order_acq_rel);
    wake_sleepers();
    std::unique_lock hold(lock_);
    visitors_.fetch_sub(1, std::memory_order_acq_rel);
    return hold;
  }

  // For a turn: whether a call waits, so that there is to be none now.
  bool visited() const { return visitors_.load(std::memory_order_acquire) != 0; }
  // Held during a turn.
  std::mutex& lock() { return lock_; }

 private:
  std::atomic<int> visitors_{0};
  std::mutex lock_;
};

}  // namespace xio::progress
