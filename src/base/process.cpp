// SPDX-License-Identifier: MIT
#include "base/process.hpp"

#include <unistd.h>

#include <atomic>

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

void refuse_forked(const char* function) {
  if (is_forked())
    fail(XIO_ERR_STATE,
         "{}: this process ({}) was forked from process {}, whose XIO it must not use; call XIO in the process that "
         "made the world, or start a program of its own with exec",
         function, getpid(), g_owner.load(std::memory_order_relaxed));
}

}  // namespace xio::process
