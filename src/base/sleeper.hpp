// SPDX-License-Identifier: MIT
// Threads that sleep until another thread gives them work. That thread stores the work first and calls
// wake_sleepers(), which costs one load while no thread sleeps. Nothing is lost: a thread that wants to sleep first
// says so, then makes all threads of the process pass a barrier, and only then looks for work a last time. If another
// thread has not yet seen that it sleeps, the work was stored before that barrier, and the last look finds it.
#pragma once
#include <poll.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <vector>

#include "base/unique_fd.hpp"

namespace xio {

// Whether threads may sleep: not where kernels run that wake nobody, as on a GPU. Returns what was before.
bool let_sleep(bool may);

void wake_sleepers();

class sleeper {
 public:
  using descriptors = std::vector<pollfd>;  // of which one that is ready is work, too

  enum class slept { no, until_called, for_its_time };
  // Sleeps until wake_sleepers(), a descriptor, or for `most`. may_sleep(descriptors) is the last look: false if there
  // is work. It does not sleep where there was work or this system has no such barrier.
  slept sleep(std::chrono::milliseconds most, const std::function<bool(descriptors&)>& may_sleep);
  // Whether this process has threads that sleep at all.
  bool can_sleep();

 private:
  friend void wake_sleepers();

  unique_fd bell_;
  std::atomic<bool> called_{false};
  descriptors all_;
};

}  // namespace xio
