// SPDX-License-Identifier: MIT
#include "gpu/host/launch.hpp"

#include <sched.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/log.hpp"
#include "gpu/host/chores.hpp"
#include "gpu/host/pool.hpp"
#include "gpu/host/relax.hpp"
#include "gpu/host/settings.hpp"
#include "gpu/host/stacks.hpp"
#include "gpu/host/strand.hpp"
#include "gpu/host/workgroup.hpp"

namespace xio::host_exec {

namespace {

// Lanes that only synchronise with each other never end their wave's turn; other waves run after so many switches all
// the same.
constexpr unsigned k_turn_switches = 4096;
// How often the lane that opened a group lets others catch up.
constexpr unsigned k_converging_laps = 4;
// A lonely lane polls a few times before it offers its core to somebody else: so many times where nobody has wanted it,
// and once where somebody has, for then what it waits for may itself be waiting for a core.
constexpr unsigned k_polls_per_yield = 64, k_polls_where_shared = 1;

}  // namespace

// A workgroup whose lanes are fibers of one OS thread. Waves take turns; a wave's turn ends when each of its lanes
// has paused, waits or has returned. A lane that returns without ever waiting leaves its stack to the next one, so
// that kernels which do not wait run all lanes on one stack, without a switch.
class fiber_workgroup final : public workgroup {
 public:
  fiber_workgroup() : stacks_(config().stack) {
    main_.owner = this;
#if defined(XIO_FIBERS_TSAN)
    main_.tsan_fiber = __tsan_get_current_fiber();
#endif
  }
  ~fiber_workgroup() override {
#if defined(XIO_FIBERS_TSAN)
    for (const auto& s : strands_) __tsan_destroy_fiber(s->tsan_fiber);
#endif
  }

  // Runs workgroup `index` of l to its end on the calling thread.
  void run(launch& l, std::uint64_t index) {
    prepare(l, index);
    ready_ = 0;
    if (lanes_.size() == 1) {
      // Nobody to switch to: the OS thread's own stack will do.
      make_current(&lanes_[0]);
      run_lane(lanes_[0]);
      current = nullptr;
      return;
    }
    // All that can fail comes first: a started workgroup always finds a stack.
    while (strands_.size() < lanes_.size()) make_strand();
    for (lane_state& lane : lanes_) make_ready(lane);
    turn_ = static_cast<unsigned>(waves_.size()) - 1;
    turn_left_ = 0;
    paused_ = false;
    strand& first = strand_of(*pick());
    go(main_, first);
    current = nullptr;
  }

  void pause(lane_state& me) override {
    if (launch_->failed.load(std::memory_order_relaxed)) leave_kernel(*launch_);
    if (ready_ == 0) {
      if (!do_chores()) yield_thread();
      return;
    }
    paused_ = true;
    make_ready(me);
    lane_state* next = pick();
    if (next != &me) go(*me.on, strand_of(*next));
  }
  // The first lane of a wave to come opens a group, lets the wave's other lanes run once, and closes it.
  std::uint64_t converged_lanes(lane_state& me, std::uintptr_t site) override {
    wave& w = *me.home;
    for (convergence* group = w.open; group != nullptr; group = group->next) {
      if (group->site != site) continue;
      group->mask |= me.bit();
      block(me);
      return me.result;
    }
    if (w.ready_count == 0) return me.bit();
    convergence group{site, me.bit(), w.open};
    w.open = &group;
    // Lanes that were woken meanwhile stand behind this one in the queue: they get a turn too.
    unsigned seen, laps = 0;
    do {
      seen = w.woken;
      make_ready(me);  // behind all others
      ++turn_left_;
      lane_state* next = pick();
      if (next != &me) go(*me.on, strand_of(*next));
    } while (w.woken != seen && ++laps < k_converging_laps);
    convergence** link = &w.open;
    while (*link != &group) link = &(*link)->next;
    *link = group.next;
    for (std::uint64_t left = group.mask & ~me.bit(); left != 0; left &= left - 1) {
      lane_state& other = w.lanes[__builtin_ctzll(left)];
      other.result = group.mask;
      wake(other);
    }
    return group.mask;
  }

 private:
  void block(lane_state& me) override {
    lane_state* next = pick();
    if (next != &me) go(*me.on, strand_of(*next));
    if (launch_->failed.load(std::memory_order_relaxed)) leave_kernel(*launch_);
  }
  void wake(lane_state& l) override {
    make_ready(l);
    ++l.home->woken;
    if (l.home == &waves_[turn_]) ++turn_left_;
  }

  // The next lane to run; null when all have returned.
  lane_state* pick() {
    if (ready_ == 0) {
      if (live_ == 0) return nullptr;
      launch_->fail_with("every lane of a workgroup waits for a lane that does not come");
      abandon_blocked();
    }
    if (turn_left_ == 0 || budget_ == 0 || waves_[turn_].ready_count == 0) next_turn();
    --turn_left_;
    --budget_;
    --ready_;
    return &waves_[turn_].pop();
  }
  void next_turn() {
    do {
      if (++turn_ < waves_.size()) continue;
      turn_ = 0;
      // Every lane has had its turn and somebody waits for the outside: let it run.
      if (paused_ && !do_chores()) yield_thread();
      paused_ = false;
    } while (waves_[turn_].ready_count == 0);
    turn_left_ = waves_[turn_].ready_count;
    budget_ = k_turn_switches;
  }
  void make_ready(lane_state& l) {
    l.home->push(l);
    ++ready_;
  }
  // Nobody can run: all lanes that have not returned are blocked. They come back and see that the launch failed.
  void abandon_blocked() {
    forget_waiters();
    for (lane_state& l : lanes_)
      if ((l.home->returned & l.bit()) == 0) make_ready(l);
  }
  void yield_thread() {
    if (ready_ < k_polls_per_yield && ++polls_ < polls_per_yield_) return relax();
    polls_ = 0;
    polls_per_yield_ = offer_core() ? k_polls_where_shared : std::min(2 * polls_per_yield_, k_polls_per_yield);
  }
  strand& strand_of(lane_state& l) {
    if (l.on == nullptr) {
      l.on = idle_.back();
      idle_.pop_back();
      l.on->lane = &l;
    }
    return *l.on;
  }
  void go(strand& from, strand& to) {
    make_current(to.lane);
    switch_strand(from, to);
  }
  // A strand's life: runs the lane it was given, then lanes that have not started, else rests until it gets one.
  void live_on(strand& self) {
    for (;;) {
      run_lane(*self.lane);
      lane_state* next = pick();
      if (next != nullptr && next->on == nullptr) {
        next->on = &self;
        self.lane = next;
        make_current(next);
        continue;
      }
      idle_.push_back(&self);
      go(self, next == nullptr ? main_ : *next->on);
    }
  }
  static void entry(boost::context::detail::transfer_t from) {
    // The lane that was made current for this strand says which it is.
    strand& self = *static_cast<lane_state*>(current)->on;
    enter_strand(from, self);
    self.owner->live_on(self);
  }
  void make_strand() {
    const stack memory = stacks_.make();
    auto made = std::make_unique<strand>();
    made->bottom = memory.bottom;
    made->bytes = memory.bytes;
    made->owner = this;
    made->context = boost::context::detail::make_fcontext(memory.bottom + memory.bytes, memory.bytes, &entry);
#if defined(XIO_FIBERS_TSAN)
    made->tsan_fiber = __tsan_create_fiber(0);
#endif
    idle_.push_back(made.get());
    strands_.push_back(std::move(made));
  }

  strand main_;  // the OS thread's own stack
  signal_stack signals_;
  stack_slabs stacks_;
  std::vector<std::unique_ptr<strand>> strands_;
  std::vector<strand*> idle_;
  unsigned ready_ = 0;      // lanes in the waves' queues
  unsigned turn_ = 0;       // wave whose turn it is
  unsigned turn_left_ = 0;  // lanes it may still run
  unsigned budget_ = 0;     // switches until another wave runs in any case
  bool paused_ = false;     // a lane has paused since the first wave's turn
  unsigned polls_ = 0;      // since the core was last offered to others
  unsigned polls_per_yield_ = 1;
};

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
