// SPDX-License-Identifier: MIT
#include "gpu/host/launch.hpp"

#include <sched.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/log.hpp"
#include "gpu/host/fibers.hpp"
#include "gpu/host/pool.hpp"
#include "gpu/host/settings.hpp"
#include "gpu/host/workgroup.hpp"

namespace xio::host_exec {

namespace {

// A workgroup whose lanes are OS threads (XIO_HOST_EXEC=threads), for ThreadSanitizer: what device code does not order
// is not ordered here either. Collectives are a mutex and a condition variable per lane.
class thread_workgroup final : public workgroup {
 public:
  explicit thread_workgroup(unsigned threads) : sleepers_(std::make_unique<sleeper[]>(threads)), together_(threads) {}

  // Thread `index` of this team runs this: its lane of one workgroup after the other, until the grid is used up.
  void serve(launch& l, unsigned index) {
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

  void pause(lane_state&) override {
    if (launch_->failed.load(std::memory_order_relaxed)) leave_kernel(*launch_);
    sched_yield();
  }
  std::uint64_t converged_lanes(lane_state& me, std::uintptr_t) override { return me.bit(); }

 private:
  void lock() override { guard_.lock(); }
  void unlock() override { guard_.unlock(); }
  // Called with the guard held. Looks up now and then: a launch that failed wakes nobody.
  void block(lane_state& me) override {
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
  void wake(lane_state& l) override {
    sleepers_[l.index].woken = true;
    sleepers_[l.index].awake.notify_one();
  }

  struct sleeper {
    std::condition_variable awake;
    bool woken = false;
  };
  std::mutex guard_;
  std::unique_ptr<sleeper[]> sleepers_;
  std::barrier<> together_;
  bool more_ = true;
};

}  // namespace

void launch::fail_with(const std::string& sentence) {
  const std::lock_guard lock(guard_);
  if (sentence_.empty()) {
    sentence_ = sentence;
    log::error("a kernel failed: {}", sentence);
  }
  failed.store(true, std::memory_order_release);
}

std::string launch::failure() {
  const std::lock_guard lock(guard_);
  return sentence_;
}

std::string check_launch(const launch& l) {
  const auto empty = [](const index3& size) { return size.x == 0 || size.y == 0 || size.z == 0; };
  if (empty(l.grid) || empty(l.block)) return "a kernel launch needs at least one workgroup of one thread";
  const std::uint64_t threads = std::uint64_t{l.block.x} * l.block.y * l.block.z;
  if (l.block.x > k_max_workgroup || l.block.y > k_max_workgroup || l.block.z > k_max_workgroup ||
      threads > k_max_workgroup)
    return fmt::format("a workgroup of {}x{}x{} threads is larger than {}; use more and smaller workgroups", l.block.x,
                       l.block.y, l.block.z, k_max_workgroup);
  return {};
}

namespace {

void run_fibers(launch& l) {
  static thread_local fiber_workgroup group;  // its stacks stay with the thread
  try {
    while (!l.failed.load(std::memory_order_relaxed)) {
      const std::uint64_t next = l.next.fetch_add(1, std::memory_order_relaxed);
      if (next >= l.workgroups) break;
      group.run(l, next);
    }
  } catch (const std::exception& e) {
    l.fail_with(e.what());
  }
}

}  // namespace

void start(const std::shared_ptr<launch>& l) {
  const settings& s = config();
  l->workgroups = std::uint64_t{l->grid.x} * l->grid.y * l->grid.z;
  unsigned resident = static_cast<unsigned>(std::min<std::uint64_t>(l->workgroups, s.cus));
  const auto finished = [l] { l->on_finished(*l); };
  if (!s.threads)
    return run_on_threads(
        resident, [l](unsigned) { run_fibers(*l); }, finished);
  const unsigned team = l->block_threads();
  resident = std::max(1u, std::min(resident, k_max_threads / team));
  const auto groups = std::make_shared<std::vector<std::unique_ptr<thread_workgroup>>>();
  for (unsigned i = 0; i < resident; ++i) groups->push_back(std::make_unique<thread_workgroup>(team));
  run_on_threads(
      resident * team, [l, groups, team](unsigned i) { (*groups)[i / team]->serve(*l, i % team); }, finished);
}

}  // namespace xio::host_exec
