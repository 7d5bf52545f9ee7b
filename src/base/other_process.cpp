// SPDX-License-Identifier: MIT
#include "base/other_process.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace xio {
namespace {

// By number: glibc has the functions from 2.36 on.
int open_pidfd(pid_t pid) {
#ifdef SYS_pidfd_open
  return static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
#else
  static_cast<void>(pid);
  return -1;
#endif
}

// The letter behind the name, which may itself have parentheses (proc(5), /proc/pid/stat).
char state_letter(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const auto name_ends = line.rfind(')');
  return name_ends == std::string::npos || name_ends + 2 >= line.size() ? '?' : line[name_ends + 2];
}

}  // namespace

other_process::other_process(pid_t pid) : fd_(open_pidfd(pid)), pid_(pid) {}

bool other_process::has_ended() const {
  pollfd p{fd_.get(), POLLIN, 0};
  return fd_ && poll(&p, 1, 0) > 0 && (p.revents & POLLIN) != 0;
}

bool other_process::is_stopped() const {
  if (!fd_) return false;
  const char state = state_letter(pid_);
  // In this order: the number may be another process's by then.
  return (state == 'T' || state == 't') && !has_ended();
}

bool other_process::kill() const {
#ifdef SYS_pidfd_send_signal
  return fd_ && syscall(SYS_pidfd_send_signal, fd_.get(), SIGKILL, nullptr, 0) == 0;
#else
  return false;
#endif
}

}  // namespace xio
