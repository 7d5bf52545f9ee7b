// SPDX-License-Identifier: MIT
// Events of a process: set by interrupts of its GPUs, or by itself; waited for by its threads.
#pragma once
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <span>
#include <vector>

#include "amdgpu/driver/kfd_uapi.hpp"

namespace amdgpu {

// Calls return 0 or an errno, as the kernel's would (linux drivers/gpu/drm/amd/amdkfd/kfd_events.c).
class events {
 public:
  int create(uapi::create_event_args& a) {
    if (a.type >= uapi::k_event_types) return EINVAL;
    const std::lock_guard hold(lock_);
    const auto unused = std::find_if(events_.begin() + 1, events_.end(), [](const event& e) { return !e.used; });
    if (unused == events_.end()) return ENOSPC;
    *unused = event{};
    unused->used = true;
    unused->auto_reset = a.auto_reset != 0;
    unused->type = a.type;
    // Not 0, or libhsakmt believes that there are no mailboxes; it has allocated the page itself.
    a.page_offset = k_events_page;
    a.event_id = a.trigger_data = a.slot_index = static_cast<std::uint32_t>(unused - events_.begin());
    return 0;
  }
  int destroy(std::uint32_t id) {
    const std::lock_guard hold(lock_);
    event* e = find(id);
    if (e == nullptr) return EINVAL;
    e->used = false;
    changed_.notify_all();
    return 0;
  }
  // Sets one of a signal or of a debugger, or resets it.
  int mark(std::uint32_t id, bool set) {
    const std::lock_guard hold(lock_);
    event* e = find(id);
    if (e == nullptr || (e->type != uapi::event_signal && e->type != uapi::event_debug)) return EINVAL;
    e->is_set = set;
    if (!set) return 0;
    ++e->age;
    changed_.notify_all();
    return 0;
  }
  int wait(uapi::wait_events_args& a) {
    const std::span asked(reinterpret_cast<uapi::event_data*>(a.events_at), a.count);
    std::unique_lock hold(lock_);
    a.result = uapi::wait_fail;
    for (const uapi::event_data& d : asked)
      if (find(d.event_id) == nullptr) return EINVAL;
    const auto done = [&] {
      const auto is_ready = [&](const uapi::event_data& d) { return ready(d); };
      return a.all != 0 ? std::ranges::all_of(asked, is_ready) : std::ranges::any_of(asked, is_ready);
    };
    bool happened = true;
    if (a.timeout_ms == 0xffffffffu)
      changed_.wait(hold, done);
    else
      happened = changed_.wait_for(hold, std::chrono::milliseconds(a.timeout_ms), done);
    a.result = happened ? uapi::wait_complete : uapi::wait_timeout;
    if (!happened) return 0;
    for (uapi::event_data& d : asked) {
      event* e = find(d.event_id);
      if (e == nullptr || !ready(d)) continue;
      if (e->type == uapi::event_memory) d.memory = e->exception;
      if (e->type == uapi::event_signal && d.last_event_age != 0) d.last_event_age = e->age;
      if (e->auto_reset) e->is_set = false;
    }
    return 0;
  }

  // An interrupt of a queue: its event, which may be gone.
  void interrupt(std::uint32_t id) { mark(id, true); }
  // A GPU touched memory that it must not: sets all events that are of that kind.
  void memory_fault(const uapi::memory_exception& what) {
    const std::lock_guard hold(lock_);
    for (event& e : events_) {
      if (!e.used || e.type != uapi::event_memory) continue;
      e.exception = what;
      e.is_set = true;
    }
    changed_.notify_all();
  }

 private:
  static constexpr std::uint64_t k_events_page = std::uint64_t{1} << 62;  // KFD_MMAP_TYPE_EVENTS in kfd_priv.h

  struct event {
    bool used = false, auto_reset = false, is_set = false;
    std::uint32_t type = 0;
    std::uint64_t age = 1;
    uapi::memory_exception exception{};
  };
  event* find(std::uint32_t id) { return id != 0 && id < events_.size() && events_[id].used ? &events_[id] : nullptr; }
  bool ready(const uapi::event_data& d) {
    const event* e = find(d.event_id);
    if (e == nullptr) return true;  // destroyed meanwhile: nobody will set it
    return e->is_set || (e->type == uapi::event_signal && d.last_event_age != 0 && d.last_event_age != e->age);
  }

  std::mutex lock_;
  std::condition_variable changed_;
  std::vector<event> events_ = std::vector<event>(uapi::k_signal_events);  // by id; 0 is none
};

}  // namespace amdgpu
