// SPDX-License-Identifier: MIT
#include "gpu/host/pool.hpp"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <vector>

#include "base/error.hpp"
#include "base/thread.hpp"
#include "gpu/host/relax.hpp"
#include "gpu/host/settings.hpp"

namespace xio::host_exec {
namespace {

struct job {
  std::function<void(unsigned)> task;
  std::function<void()> last;
  std::atomic<unsigned> running;
};

struct worker {
  std::thread thread;
  std::mutex guard;
  std::condition_variable wake;
  std::atomic<bool> has_job{false};
  bool stop = false;
  std::shared_ptr<job> todo;
  unsigned index = 0;
};

// Chores (chores.hpp) write files. One that exceeds the file-size limit has an errno for that, and the process shall
// live.
void block_file_size_signal() {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &one, nullptr);
}

struct pool {
  std::mutex guard;
  std::vector<worker*> idle;  // the last to finish is the first to run: its caches and stacks are warm
  std::vector<std::unique_ptr<worker>> all;
  std::atomic<bool> looking{false};  // only one idle worker at a time spends cycles on looking out

  void run(unsigned count, const std::shared_ptr<job>& j) {
    std::vector<worker*> taken;
    {
      const std::lock_guard lock(guard);
      while (idle.size() < count) add_worker();
      taken.assign(idle.end() - count, idle.end());
      idle.resize(idle.size() - count);
    }
    for (unsigned i = 0; i < count; ++i) {
      worker& w = *taken[count - 1 - i];
      const std::lock_guard lock(w.guard);
      w.todo = j;
      w.index = i;
      w.has_job.store(true, std::memory_order_release);
      w.wake.notify_one();
    }
  }
  void serve(worker& me) {
    block_file_size_signal();
    while (await(me)) {
      const std::shared_ptr<job> j = std::move(me.todo);
      j->task(me.index);
      const bool last = j->running.fetch_sub(1, std::memory_order_acq_rel) == 1;
      {
        const std::lock_guard lock(guard);
        idle.push_back(&me);
      }
      // After the line above, so that a thread that hears of the end finds this one idle and need not start another.
      if (last) j->last();
    }
  }
  // A worker that has just finished looks out for its next job before it sleeps.
  bool await(worker& me) {
    if (!looking.exchange(true, std::memory_order_acquire)) {
      for (short_wait w; !me.has_job.load(std::memory_order_acquire) && w.goes_on();) {
      }
      looking.store(false, std::memory_order_release);
    }
    std::unique_lock lock(me.guard);
    me.wake.wait(lock, [&] { return me.has_job.load(std::memory_order_relaxed) || me.stop; });
    me.has_job.store(false, std::memory_order_relaxed);
    return !me.stop;
  }
  void add_worker() {
    if (all.size() >= k_max_threads)
      fail(XIO_ERR_NO_MEMORY, "kernels in flight want more than {} threads; launch fewer at once or lower XIO_HOST_CUS",
           k_max_threads);
    auto made = std::make_unique<worker>();
    worker* w = made.get();
    all.reserve(all.size() + 1);
    idle.reserve(all.size() + 1);
    try {
      w->thread = std::thread([this, w] { serve(*w); });
    } catch (const std::system_error& e) {
      fail(XIO_ERR_NO_MEMORY, "thread {} for kernels: {}; {}, or lower XIO_HOST_CUS", all.size() + 1, e.what(),
           thread_cure());
    }
    all.push_back(std::move(made));
    idle.push_back(w);
  }
  void stop_idle() {
    std::vector<worker*> resting;
    {
      const std::lock_guard lock(guard);
      resting.swap(idle);
    }
    for (worker* w : resting) {
      {
        const std::lock_guard lock(w->guard);
        w->stop = true;
        w->wake.notify_one();
      }
      w->thread.join();
    }
  }
};

// Never destroyed: a kernel that still runs when the process ends goes down with it, as on a GPU. Idle workers are
// stopped and joined. A forked child has none of its parent's threads and begins with an empty pool.
struct pool_owner {
  pool* now = new pool;
  pool_owner() {
    pthread_atfork(nullptr, nullptr, [] { instance().now = new pool; });
  }
  ~pool_owner() { now->stop_idle(); }
  static pool_owner& instance() {
    static pool_owner owner;
    return owner;
  }
};

}  // namespace

void run_on_threads(unsigned count, std::function<void(unsigned)> task, std::function<void()> last) {
  const auto j = std::make_shared<job>();
  j->task = std::move(task);
  j->last = std::move(last);
  j->running = count;
  pool_owner::instance().now->run(count, j);
}

}  // namespace xio::host_exec
