// SPDX-License-Identifier: MIT
#include "base/process.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <mutex>

#include "base/error.hpp"

namespace xio::process {
namespace {
std::atomic<pid_t> g_owner{0};  // 0: nobody yet
}

void claim() noexcept {
  pid_t nobody = 0;
  g_owner.compare_exchange_strong(nobody, getpid(), std::memory_order_relaxed);
}

// getpid() and not pthread_atfork(): a bare clone() runs no handlers.
bool is_forked() noexcept {
  const pid_t owner = g_owner.load(std::memory_order_relaxed);
  return owner != 0 && owner != getpid();
}

std::array<std::uint64_t, 2> tag() {
  static std::mutex once;
  static std::array<std::uint64_t, 2> made;
  static pid_t maker = 0;
  const std::lock_guard lock(once);
  if (maker != getpid()) {
    if (getrandom(made.data(), sizeof made, 0) != static_cast<ssize_t>(sizeof made))
      fail(XIO_ERR_IO, "random bytes to name this process: {}", errno_text(errno));
    maker = getpid();
  }
  return made;
}

void refuse_forked(const char* function) {
  if (is_forked())
    fail(XIO_ERR_STATE,
         "{}: this process ({}) was forked from process {}, whose XIO it must not use; call XIO in the process that "
         "made the world, or start a program of its own with exec",
         function, getpid(), g_owner.load(std::memory_order_relaxed));
}

}  // namespace xio::process
