// SPDX-License-Identifier: MIT
#include "base/thread.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <system_error>

#include "base/error.hpp"

namespace xio {
namespace {

std::string now(int resource, rlim_t unit) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "unlimited";
  return std::to_string(limit.rlim_cur / unit);
}

// Whether a thread's stack has no room below the limit of this process's memory: the system says EAGAIN for that, too.
bool has_no_room() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return false;
  pthread_attr_t attr;
  std::size_t stack = 0;
  if (pthread_getattr_default_np(&attr) != 0) return false;
  pthread_attr_getstacksize(&attr, &stack);
  pthread_attr_destroy(&attr);
  void* const there = mmap(nullptr, stack, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (there != MAP_FAILED) munmap(there, stack);
  return there == MAP_FAILED;
}

}  // namespace

std::string thread_cure() {
  if (has_no_room()) return "raise the limit of memory (ulimit -v, now " + now(RLIMIT_AS, 1024) + ")";
  return "raise the limit of processes (ulimit -u, now " + now(RLIMIT_NPROC, 1) + ") or the cgroup's pids.max";
}

std::thread start_thread(const char* purpose, std::function<void()> body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error& e) {
    const std::string cure = thread_cure();
    fail(XIO_ERR_NO_MEMORY, "no thread could be made for {}: {}; {}", purpose, errno_text(e.code().value()), cure);
  }
}

}  // namespace xio
