// SPDX-License-Identifier: MIT
#include "base/sleeper.hpp"

#include <linux/membarrier.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <mutex>

namespace xio {

namespace {

std::atomic<unsigned*> g_word{nullptr};
std::mutex g_lock;
std::vector<sleeper*> g_asleep;

bool barrier(int command) { return syscall(SYS_membarrier, command, 0, 0) == 0; }
bool can_make_barriers() {
  static const bool can = barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
  return can;
}

}  // namespace

unsigned* let_sleep_by(unsigned* word) { return g_word.exchange(word, std::memory_order_acq_rel); }

void wake_sleepers() {
  const unsigned* const word = g_word.load(std::memory_order_acquire);
  if (word == nullptr || __atomic_load_n(word, __ATOMIC_RELAXED) == 0) return;
  const std::lock_guard hold(g_lock);
  for (sleeper* s : g_asleep)
    if (!s->called_.exchange(true, std::memory_order_relaxed)) (void)eventfd_write(s->bell_.get(), 1);
}

bool sleeper::can_sleep() {
  if (g_word.load(std::memory_order_acquire) == nullptr || !can_make_barriers()) return false;
  if (!bell_) bell_ = unique_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  return static_cast<bool>(bell_);
}

bool sleeper::sleep(std::chrono::milliseconds most, const std::function<bool(descriptors&)>& may_sleep) {
  if (!can_sleep()) return false;
  unsigned* const word = g_word.load(std::memory_order_acquire);
  {
    const std::lock_guard hold(g_lock);
    called_.store(false, std::memory_order_relaxed);
    g_asleep.push_back(this);
    __atomic_fetch_add(word, 1u, __ATOMIC_SEQ_CST);
  }
  all_.assign(1, pollfd{bell_.get(), POLLIN, 0});
  const bool sleeps = barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) && may_sleep(all_);
  if (sleeps) (void)::poll(all_.data(), all_.size(), static_cast<int>(most.count()));
  {
    const std::lock_guard hold(g_lock);
    std::erase(g_asleep, this);
    __atomic_fetch_sub(word, 1u, __ATOMIC_SEQ_CST);
  }
  std::uint64_t rings;
  if (called_.load(std::memory_order_relaxed)) (void)eventfd_read(bell_.get(), &rings);
  return sleeps;
}

}  // namespace xio
