// SPDX-License-Identifier: MIT
#include "base/descriptors.hpp"

#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "base/log.hpp"

namespace xio {

bool no_descriptor(int err) { return err == EMFILE || err == ENFILE; }

std::string text_of_no_descriptor(int err) {
  if (err == ENFILE) return "this machine has given out all it has; raise the sysctl fs.file-max";
  rlimit l{};
  getrlimit(RLIMIT_NOFILE, &l);
  return fmt::format("this process may open {} files; raise the limit of open files (ulimit -n)", l.rlim_cur);
}

bool raise_descriptor_limit(std::string_view why, int more) {
  rlimit l{};
  if (getrlimit(RLIMIT_NOFILE, &l) != 0 || l.rlim_cur >= l.rlim_max) return false;
  const rlim_t before = l.rlim_cur;
  l.rlim_cur = std::min(l.rlim_max, 2 * before + static_cast<rlim_t>(more));
  if (setrlimit(RLIMIT_NOFILE, &l) != 0) return false;
  log::info("raised this process's soft limit of open files from {} to {}, as {}", before, l.rlim_cur, why);
  return true;
}

unique_fd stream_socket(int family, int& err) {
  for (;;) {
    unique_fd fd(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    err = fd ? 0 : errno;
    if (err != EMFILE || !raise_descriptor_limit("a connection is to be made")) return fd;
  }
}

}  // namespace xio
