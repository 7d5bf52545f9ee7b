// SPDX-License-Identifier: MIT
#include "base/sleeper.hpp"

#include <linux/membarrier.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <mutex>

#include "base/process.hpp"
#include "xio/device/platform/host_exec.hpp"

namespace xio {
namespace {

std::atomic<bool> g_may_sleep{false};
std::mutex g_lock;
std::vector<sleeper*>& g_asleep = *new std::vector<sleeper*>;  // never freed: threads may outlive exit handlers

bool barrier(int command) { return syscall(SYS_membarrier, command, 0, 0) == 0; }
bool can_make_barriers() {
  static const bool can = barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
  return can;
}

}  // namespace

// Of every platform: sources of the library that are compiled once look at it, too.
unsigned host_exec::sleepers = 0;
void host_exec::wake() { wake_sleepers(); }

bool let_sleep(bool may) { return g_may_sleep.exchange(may, std::memory_order_relaxed); }

void wake_sleepers() {
  // A child of fork has none of these threads, and perhaps their lock.
  if (__atomic_load_n(&host_exec::sleepers, __ATOMIC_RELAXED) == 0 || process::is_forked()) return;
  const std::lock_guard hold(g_lock);
  for (sleeper* s : g_asleep)
    if (!s->called_.exchange(true, std::memory_order_relaxed)) (void)eventfd_write(s->bell_.get(), 1);
}

bool sleeper::can_sleep() {
  if (!g_may_sleep.load(std::memory_order_relaxed) || !can_make_barriers()) return false;
  if (!bell_) bell_ = unique_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  return static_cast<bool>(bell_);
}

sleeper::slept sleeper::sleep(std::chrono::milliseconds most, const std::function<bool(descriptors&)>& may_sleep) {
  if (!can_sleep()) return slept::no;
  {
    const std::lock_guard hold(g_lock);
    called_.store(false, std::memory_order_relaxed);
    g_asleep.push_back(this);
    __atomic_fetch_add(&host_exec::sleepers, 1u, __ATOMIC_SEQ_CST);
  }
  all_.assign(1, pollfd{bell_.get(), POLLIN, 0});
  auto how = slept::no;
  if (barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) && may_sleep(all_))
    how = ::poll(all_.data(), all_.size(), static_cast<int>(most.count())) != 0 ? slept::until_called
                                                                                : slept::for_its_time;
  {
    const std::lock_guard hold(g_lock);
    std::erase(g_asleep, this);
    __atomic_fetch_sub(&host_exec::sleepers, 1u, __ATOMIC_SEQ_CST);
  }
  std::uint64_t rings;
  if (called_.load(std::memory_order_relaxed)) (void)eventfd_read(bell_.get(), &rings);
  return how;
}

}  // namespace xio
