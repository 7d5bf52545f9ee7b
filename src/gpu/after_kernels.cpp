// SPDX-License-Identifier: MIT
#include "gpu/after_kernels.hpp"

#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/run_clock.hpp"
#include "base/thread.hpp"

namespace xio::gpu {

namespace {

// How long an exiting process waits for calls that were given and not made. Longer ones stand behind a kernel, and the
// system takes back what they would have freed.
constexpr std::uint64_t k_exit_ms = 1000;

class caller {
 public:
  // It is never destroyed: its thread may be in a call when the process ends.
  static caller& only() {
    static caller* one = new caller;
    return *one;
  }

  // False: it will not be made.
  bool give(std::function<void()> call, bool awaited) {
    {
      std::unique_lock lock(mutex_);
      // A child of fork has no such thread and must free nothing of its parent's.
      if ((exiting_ && !awaited) || (started_ && owner_ != getpid())) return false;
      if (started_ || start()) {
        calls_.push_back(std::move(call));
        changed_.notify_all();
        return true;
      }
    }
    call();
    return true;
  }

  bool wait_for_all(std::uint64_t timeout_ms) {
    std::unique_lock lock(mutex_);
    const auto end = run_clock::now() + std::chrono::milliseconds(timeout_ms);
    while (!calls_.empty() || busy_) {
      changed_.wait_for(lock, std::chrono::milliseconds(5));
      if (timeout_ms != 0 && run_clock::now() >= end) return calls_.empty() && !busy_;
    }
    return true;
  }

  // At exit: the runtime's own handlers come next and may not run beside a call, so that only those are made from here
  // on that their givers wait for.
  void end() {
    wait_for_all(k_exit_ms);
    const std::lock_guard lock(mutex_);
    exiting_ = true;
    calls_.clear();
  }

 private:
  bool start() {
    try {
      start_thread("calls that wait for kernels", [this] { run(); }).detach();
    } catch (const error& e) {
      log::debug("{}", e.what());
      return false;
    }
    owner_ = getpid();
    started_ = true;
    // Registered behind the runtime's, which a first call has loaded: so it runs before them.
    std::atexit([] { only().end(); });
    return true;
  }

  [[noreturn]] void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return !calls_.empty(); });
      auto call = std::move(calls_.front());
      calls_.pop_front();
      busy_ = true;
      lock.unlock();
      // A runtime that is going away refuses even its first call; that ends no process.
      try {
        call();
      } catch (const std::exception& e) {
        log::debug("a call that waits for kernels: {}", e.what());
      }
      call = nullptr;  // and what it owns
      lock.lock();
      busy_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> calls_;
  bool started_ = false, busy_ = false, exiting_ = false;
  pid_t owner_ = 0;
};

}  // namespace

void after_kernels(std::function<void()> call) noexcept {
  try {
    (void)caller::only().give(std::move(call), false);
  } catch (const std::exception& e) {
    log::warn("memory of the GPU's runtime is not freed: {}", e.what());
  }
}

bool after_kernels_within(std::function<void()> call, std::uint64_t timeout_ms) {
  struct turn {
    std::mutex mutex;
    std::condition_variable made;
    bool is_made = false;
  };
  const auto mine = std::make_shared<turn>();
  const bool given = caller::only().give(
      [mine, call = std::move(call)] {
        const auto over = [&] {
          const std::lock_guard lock(mine->mutex);
          mine->is_made = true;
          mine->made.notify_all();
        };
        try {
          call();
        } catch (...) {
          over();
          throw;
        }
        over();
      },
      true);
  if (!given) return false;
  std::unique_lock lock(mine->mutex);
  const auto end = run_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (!mine->is_made) {
    mine->made.wait_for(lock, std::chrono::milliseconds(5));
    if (timeout_ms != 0 && run_clock::now() >= end) break;
  }
  return mine->is_made;
}

}  // namespace xio::gpu
