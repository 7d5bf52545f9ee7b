// SPDX-License-Identifier: MIT
// A workgroup in flight: its lanes, waves and shared memory, and the collectives, which are the same for fibers
// and OS threads. How a lane blocks and is woken is the scheduler's (launch.cpp).
#pragma once
#include <exception>
#include <vector>

#include "gpu/host/launch.hpp"

namespace xio::host_exec {

class workgroup;
struct strand;
struct wave;

struct lane_state : lane {
  workgroup* group = nullptr;
  wave* home = nullptr;
  unsigned index = 0;         // in the workgroup
  unsigned from = 0;          // shuffle: the lane asked for
  std::uint64_t deposit = 0;  // what it brought to a collective
  std::uint64_t result = 0;   // what it takes away
  strand* on = nullptr;       // fibers: where it runs; null before it starts
  std::uintptr_t base = 0;    // address where its stack begins

  std::uint64_t bit() const { return std::uint64_t{1} << lane_id; }
};

enum class collective { sync, ballot, shuffle, match };

// Lanes of one mask that are about to converge.
struct convergence_point {
  std::uint64_t mask, arrived;
  collective what;
};

// Lanes that stand at one call of converged_lanes(); lives on the stack of the lane that opened it.
struct convergence {
  std::uintptr_t site;
  std::uint64_t mask;
  convergence* next;
};

struct wave {
  lane_state* lanes = nullptr;
  unsigned count = 0;
  std::uint64_t launched = 0, returned = 0;
  std::uint64_t whole = 0;  // arrived at whole_wave()
  unsigned points = 0;
  convergence_point at_point[64];

  // Fibers: lanes that may run, first in first out, and the open groups of converged_lanes().
  unsigned char ready[64];
  unsigned ready_first = 0, ready_count = 0;
  convergence* open = nullptr;
  unsigned woken = 0;  // counts lanes that were woken

  void push(const lane_state& l) { ready[(ready_first + ready_count++) & 63] = static_cast<unsigned char>(l.lane_id); }
  lane_state& pop() {
    const unsigned at = ready_first;
    ready_first = (at + 1) & 63;
    --ready_count;
    return lanes[ready[at]];
  }
};

// Thrown inside a kernel to leave it, once another lane of the launch has failed.
struct abandoned {};

// Makes a lane the one that runs on this thread.
void make_current(lane_state* l);

class workgroup {
 public:
  workgroup() = default;
  virtual ~workgroup() = default;
  workgroup& operator=(workgroup&&) = delete;

  virtual void pause(lane_state& me) = 0;
  virtual std::uint64_t converged_lanes(lane_state& me, std::uintptr_t site) = 0;

  void sync_workgroup(lane_state& me);
  std::uint64_t whole_wave(lane_state& me);
  std::uint64_t converge(lane_state& me, std::uint64_t mask, collective what, std::uint64_t value, unsigned from);
  void* dynamic_shared();
  void* static_shared(const void* tag, std::size_t bytes, std::size_t alignment);

 protected:
  // Collectives run between lock and unlock; block() releases the lock while it waits and returns when another
  // lane has called wake(me).
  virtual void lock() {}
  virtual void unlock() {}
  virtual void block(lane_state& me) = 0;
  virtual void wake(lane_state& lane) = 0;

  void prepare(launch& l, std::uint64_t index);  // all lanes before their start
  void run_lane(lane_state& me) noexcept;        // the kernel, and everything it throws
  void forget_waiters();                         // nobody will be woken by a collective any more
  [[noreturn]] void leave_kernel(launch& l, const std::string& why = "");

  launch* launch_ = nullptr;
  std::vector<lane_state> lanes_;
  std::vector<wave> waves_;
  unsigned live_ = 0;

 private:
  struct lock_guard {
    explicit lock_guard(workgroup& g) : group(g) { group.lock(); }
    ~lock_guard() { group.unlock(); }
    workgroup& group;
  };
  struct block_free {
    void operator()(void* p) const;
  };
  struct shared_block {
    const void* tag;
    std::size_t bytes;
    std::unique_ptr<void, block_free> memory;
  };

  void compare_calls(const lane_state& a, const lane_state& b, const char* whole, const char* of);
  void refuse_ended(const lane_state& in, const char* whole, const char* of);
  void look_behind(const lane_state& me);
  void conclude(wave& w, convergence_point m);
  void check_points(wave& w);
  void release_barrier();
  void leave(lane_state& me);

  std::vector<lane_state*> at_barrier_;
  std::vector<shared_block> static_;
  std::unique_ptr<void, block_free> dynamic_;
  std::size_t dynamic_bytes_ = 0;
};

}  // namespace xio::host_exec
