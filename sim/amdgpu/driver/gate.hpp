// SPDX-License-Identifier: MIT
// Between threads that run kernels and calls that change what is mapped: memory does not go away within a turn.
#pragma once
#include <condition_variable>
#include <mutex>

namespace amdgpu {

class gate {
 public:
  // Threads take turns between these two, and may hold no other lock that a change waits for.
  void enter() {
    std::unique_lock hold(lock_);
    may_enter_.wait(hold, [&] { return changes_ == 0; });
    ++inside_;
  }
  void leave() {
    const std::lock_guard hold(lock_);
    if (--inside_ == 0 && changes_ != 0) may_change_.notify_one();
  }
  // A change comes before turns that have not begun.
  void close() {
    std::unique_lock hold(lock_);
    ++changes_;
    may_change_.wait(hold, [&] { return inside_ == 0 && !changing_; });
    changing_ = true;
  }
  void open() {
    const std::lock_guard hold(lock_);
    changing_ = false;
    if (--changes_ == 0)
      may_enter_.notify_all();
    else
      may_change_.notify_one();
  }

 private:
  std::mutex lock_;
  std::condition_variable may_enter_, may_change_;
  unsigned inside_ = 0, changes_ = 0;
  bool changing_ = false;
};

class turn {
 public:
  explicit turn(gate& g) : gate_(g) { gate_.enter(); }
  ~turn() { gate_.leave(); }
  turn& operator=(turn&&) = delete;

 private:
  gate& gate_;
};

class change {
 public:
  explicit change(gate& g) : gate_(g) { gate_.close(); }
  ~change() { gate_.open(); }
  change& operator=(change&&) = delete;

 private:
  gate& gate_;
};

}  // namespace amdgpu
