// SPDX-License-Identifier: MIT
// Events of a process: set by interrupts of its GPUs, or by itself; waited for by its threads.
#pragma once
#include <condition_variable>
#include <mutex>
#include <vector>

#include "amdgpu/driver/kfd_uapi.hpp"

namespace amdgpu {

// Calls return 0 or an errno, as the kernel's would (linux drivers/gpu/drm/amd/amdkfd/kfd_events.c).
class events {
 public:
  int create(uapi::create_event_args& a);
  int destroy(std::uint32_t id);
  // Sets one of a signal or of a debugger, or resets it.
  int mark(std::uint32_t id, bool set);
  int wait(uapi::wait_events_args& a);

  // An interrupt of a queue: its event, which may be gone.
  void interrupt(std::uint32_t id);
  // A GPU touched memory that it must not: sets all events that are of that kind.
  void memory_fault(const uapi::memory_exception& what);

 private:
  struct event {
    bool used = false, auto_reset = false, is_set = false;
    std::uint32_t type = 0;
    std::uint64_t age = 1;
    uapi::memory_exception exception{};
  };
  event* find(std::uint32_t id);
  bool ready(const uapi::event_data& d);

  std::mutex lock_;
  std::condition_variable changed_;
  std::vector<event> events_ = std::vector<event>(uapi::k_signal_events);  // by id; 0 is none
};

}  // namespace amdgpu
