// SPDX-License-Identifier: MIT
#include "gpu/host/fibers.hpp"

#include <algorithm>

#include "gpu/host/chores.hpp"
#include "gpu/host/relax.hpp"
#include "gpu/host/settings.hpp"

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

fiber_workgroup::fiber_workgroup() : stacks_(config().stack) {
  main_.owner = this;
#if defined(XIO_FIBERS_TSAN)
  main_.tsan_fiber = __tsan_get_current_fiber();
#endif
}

fiber_workgroup::~fiber_workgroup() {
#if defined(XIO_FIBERS_TSAN)
  for (const auto& s : strands_) __tsan_destroy_fiber(s->tsan_fiber);
#endif
}

// --- Strands -----------------------------------------------------------------------------------------

void fiber_workgroup::make_strand() {
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

void fiber_workgroup::go(strand& from, strand& to) {
  make_current(to.lane);
  switch_strand(from, to);
}

strand& fiber_workgroup::strand_of(lane_state& l) {
  if (l.on == nullptr) {
    l.on = idle_.back();
    idle_.pop_back();
    l.on->lane = &l;
  }
  return *l.on;
}

void fiber_workgroup::entry(boost::context::detail::transfer_t from) {
  // The lane that was made current for this strand says which it is.
  strand& self = *static_cast<lane_state*>(current)->on;
  enter_strand(from, self);
  self.owner->live_on(self);
}

// A strand's life: runs the lane it was given, then lanes that have not started, else rests until it gets one.
void fiber_workgroup::live_on(strand& self) {
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

// --- Turns -------------------------------------------------------------------------------------------

void fiber_workgroup::make_ready(lane_state& l) {
  l.home->push(l);
  ++ready_;
}

void fiber_workgroup::wake(lane_state& l) {
  make_ready(l);
  ++l.home->woken;
  if (l.home == &waves_[turn_]) ++turn_left_;
}

void fiber_workgroup::yield_thread() {
  if (ready_ < k_polls_per_yield && ++polls_ < polls_per_yield_) return relax();
  polls_ = 0;
  polls_per_yield_ = offer_core() ? k_polls_where_shared : std::min(2 * polls_per_yield_, k_polls_per_yield);
}

void fiber_workgroup::next_turn() {
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

// The next lane to run; null when all have returned.
lane_state* fiber_workgroup::pick() {
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

// Nobody can run: all lanes that have not returned are blocked. They come back and see that the launch failed.
void fiber_workgroup::abandon_blocked() {
  forget_waiters();
  for (lane_state& l : lanes_)
    if ((l.home->returned & l.bit()) == 0) make_ready(l);
}

void fiber_workgroup::block(lane_state& me) {
  lane_state* next = pick();
  if (next != &me) go(*me.on, strand_of(*next));
  if (launch_->failed.load(std::memory_order_relaxed)) leave_kernel(*launch_);
}

void fiber_workgroup::pause(lane_state& me) {
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
std::uint64_t fiber_workgroup::converged_lanes(lane_state& me, std::uintptr_t site) {
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

// --- The whole ---------------------------------------------------------------------------------------

void fiber_workgroup::run(launch& l, std::uint64_t index) {
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

}  // namespace xio::host_exec
