// SPDX-License-Identifier: MIT
// A process that is not this one's child: whether it still lives, and its end. By a pidfd, which stays with that
// process however its number is used later.
#pragma once
#include <sys/types.h>

#include "base/unique_fd.hpp"

namespace xio {

class other_process {
 public:
  other_process() = default;
  // Of a process that lives now. Where it has ended already, or the system has no pidfds, nothing is known.
  explicit other_process(pid_t pid);

  bool is_known() const { return static_cast<bool>(fd_); }
  // True is proof: the process is gone, all of its threads with it. False where nothing is known.
  bool has_ended() const;
  // Whether a signal or a debugger has stopped it.
  bool is_stopped() const;
  // Sends SIGKILL; false if that may not be.
  bool kill() const;
  int fd() const { return fd_.get(); }  // readable once it has ended

 private:
  unique_fd fd_;
  pid_t pid_ = 0;
};

}  // namespace xio
