// SPDX-License-Identifier: MIT
#include "gpu/host/threads.hpp"

#include <sched.h>

#include <chrono>

namespace xio::host_exec {

thread_workgroup::thread_workgroup(unsigned threads)
    : sleepers_(std::make_unique<sleeper[]>(threads)), together_(threads) {}

void thread_workgroup::serve(launch& l, unsigned index) {
  for (;;) {
    if (index == 0) {
      const std::uint64_t next = l.next.fetch_add(1, std::memory_order_relaxed);
      more_ = next < l.workgroups && !l.failed.load(std::memory_order_relaxed);
      try {
        if (more_) prepare(l, next);
      } catch (const std::exception& e) {
        l.fail_with(e.what());
        more_ = false;
      }
    }
    together_.arrive_and_wait();
    if (!more_) return;
    make_current(&lanes_[index]);
    run_lane(lanes_[index]);
    current = nullptr;
    together_.arrive_and_wait();
  }
}

void thread_workgroup::pause(lane_state&) {
  if (launch_->failed.load(std::memory_order_relaxed)) leave_kernel(*launch_);
  sched_yield();
}

std::uint64_t thread_workgroup::converged_lanes(lane_state& me, std::uintptr_t) { return me.bit(); }

// Called with the guard held. Looks up now and then: a launch that failed wakes nobody.
void thread_workgroup::block(lane_state& me) {
  sleeper& mine = sleepers_[me.index];
  std::unique_lock lock(guard_, std::adopt_lock);
  while (!mine.woken && !launch_->failed.load(std::memory_order_relaxed))
    mine.awake.wait_for(lock, std::chrono::milliseconds(100));
  lock.release();
  const bool woken = mine.woken;
  mine.woken = false;
  if (!woken) forget_waiters();
  if (launch_->failed.load(std::memory_order_relaxed)) leave_kernel(*launch_);
}

void thread_workgroup::wake(lane_state& l) {
  sleepers_[l.index].woken = true;
  sleepers_[l.index].awake.notify_one();
}

}  // namespace xio::host_exec
