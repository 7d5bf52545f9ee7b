// SPDX-License-Identifier: MIT
// A workgroup whose lanes are OS threads (XIO_HOST_EXEC=threads), for ThreadSanitizer: what device code does not order
// is not ordered here either. Collectives are a mutex and a condition variable per lane.
#pragma once
#include <barrier>
#include <condition_variable>
#include <mutex>

#include "gpu/host/workgroup.hpp"

namespace xio::host_exec {

class thread_workgroup final : public workgroup {
 public:
  explicit thread_workgroup(unsigned threads);

  // Thread `index` of this team runs this: its lane of one workgroup after the other, until the grid is used up.
  void serve(launch& l, unsigned index);

  void pause(lane_state& me) override;
  std::uint64_t converged_lanes(lane_state& me, std::uintptr_t site) override;

 private:
  void lock() override { guard_.lock(); }
  void unlock() override { guard_.unlock(); }
  void block(lane_state& me) override;
  void wake(lane_state& l) override;

  struct sleeper {
    std::condition_variable awake;
    bool woken = false;
  };
  std::mutex guard_;
  std::unique_ptr<sleeper[]> sleepers_;
  std::barrier<> together_;
  bool more_ = true;
};

}  // namespace xio::host_exec
