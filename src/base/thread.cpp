// SPDX-License-Identifier: MIT
#include "base/thread.hpp"

#include <sys/resource.h>

#include <string>
#include <system_error>
#include <utility>

#include "base/error.hpp"

namespace xio {

std::thread start_thread(const char* purpose, std::function<void()> body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error& e) {
    rlimit limit{};
    std::string now = "unlimited";
    if (getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) now = std::to_string(limit.rlim_cur);
    fail(
        XIO_ERR_NO_MEMORY,
        "no thread could be made for {}: {}; raise the limit of processes (ulimit -u, now {}) or the cgroup's pids.max",
        purpose, errno_text(e.code().value()), now);
  }
}

}  // namespace xio
