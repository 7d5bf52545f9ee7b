// SPDX-License-Identifier: MIT
#include "gpu/host/workgroup.hpp"

#include <algorithm>
#include <cstdlib>

#include "base/error.hpp"
#include "base/run_clock.hpp"
#include "gpu/host/settings.hpp"
#include "xio/hip_host.h"

__thread xio::host_exec::index3 threadIdx, blockIdx, blockDim, gridDim;

namespace xio::host_exec {

__thread lane* current = nullptr;

void make_current(lane_state* l) {
  current = l;
  if (l == nullptr) return;
  threadIdx = l->thread_index;
  blockIdx = l->block_index;
  blockDim = l->block_size;
  gridDim = l->grid_size;
}

namespace {

lane_state& self() { return *static_cast<lane_state*>(current); }

void* aligned(std::size_t bytes, std::size_t alignment) {
  alignment = std::max<std::size_t>(alignment, 256);
  void* p = std::aligned_alloc(alignment, (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment);
  if (p == nullptr) fail(XIO_ERR_NO_MEMORY, "{} bytes of workgroup memory; launch with less shared memory", bytes);
  return p;
}

index3 unflatten(std::uint64_t at, const index3& size) {
  return index3{static_cast<unsigned>(at % size.x), static_cast<unsigned>(at / size.x % size.y),
                static_cast<unsigned>(at / size.x / size.y)};
}

}  // namespace

// --- What device code calls --------------------------------------------------------------------------

void pause() { self().group->pause(self()); }

std::uint64_t deadline_clock() { return static_cast<std::uint64_t>(run_clock::now().time_since_epoch().count()); }
void sync_workgroup() { self().group->sync_workgroup(self()); }

// Lanes are together only when they stand at the same call, as the execution mask of a GPU never spans two
// program counters. The caller's address tells calls apart, and the depth of its stack tells ways to it apart.
std::uint64_t converged_lanes() {
  const auto call = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  const auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  lane_state& me = self();
  return me.group->converged_lanes(me, call ^ ((me.base - frame) << 20));
}

std::uint64_t whole_wave() { return self().group->whole_wave(self()); }
void sync_lanes(std::uint64_t mask) { self().group->converge(self(), mask, collective::sync, 0, 0); }
std::uint64_t ballot(std::uint64_t mask, bool predicate) {
  return self().group->converge(self(), mask, collective::ballot, predicate, 0);
}
std::uint64_t shuffle(std::uint64_t mask, std::uint64_t value, unsigned from_lane) {
  return self().group->converge(self(), mask, collective::shuffle, value, from_lane);
}
std::uint64_t match(std::uint64_t mask, std::uint64_t key) {
  return self().group->converge(self(), mask, collective::match, key, 0);
}
void* dynamic_shared() { return self().group->dynamic_shared(); }
void* static_shared(const void* tag, std::size_t bytes, std::size_t alignment) {
  return self().group->static_shared(tag, bytes, alignment);
}

// --- Life of a workgroup -----------------------------------------------------------------------------

void workgroup::block_free::operator()(void* p) const { std::free(p); }

void workgroup::prepare(launch& l, std::uint64_t index) {
  launch_ = &l;
  const unsigned threads = l.block_threads();
  const unsigned wave_size = config().wave_size;
  const index3 block_index = unflatten(index, l.grid);
  lanes_.resize(threads);
  waves_.resize((threads + wave_size - 1) / wave_size);
  at_barrier_.clear();
  live_ = threads;
  for (unsigned w = 0; w < waves_.size(); ++w) {
    wave& home = waves_[w];
    home.lanes = &lanes_[w * wave_size];
    home.count = std::min(wave_size, threads - w * wave_size);
    home.launched = home.count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << home.count) - 1;
    home.returned = home.whole = 0;
    home.points = home.ready_first = home.ready_count = 0;
    home.open = nullptr;
    for (unsigned i = 0; i < home.count; ++i) {
      lane_state& me = home.lanes[i];
      me.index = w * wave_size + i;
      me.thread_index = unflatten(me.index, l.block);
      me.block_index = block_index;
      me.block_size = l.block;
      me.grid_size = l.grid;
      me.lane_id = i;
      me.wave_size = wave_size;
      me.wave_live = home.count;
      me.call = nullptr;
      me.group = this;
      me.home = &home;
      me.on = nullptr;
    }
  }
  if (l.shared_bytes > dynamic_bytes_) {
    dynamic_.reset(aligned(l.shared_bytes, 256));
    dynamic_bytes_ = l.shared_bytes;
  }
}

void workgroup::run_lane(lane_state& me) noexcept {
  // Where its stack begins; converged_lanes() measures depth from here.
  me.base = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  try {
    launch_->kernel();
    look_behind(me);
  } catch (const abandoned&) {
  } catch (const std::exception& e) {
    launch_->fail_with(e.what());
  } catch (...) {
    launch_->fail_with("something that is no std::exception was thrown");
  }
  leave(me);
}

void workgroup::leave_kernel(launch& l, const std::string& why) {
  if (!why.empty()) l.fail_with(why);
  throw abandoned{};
}

void workgroup::forget_waiters() {
  at_barrier_.clear();
  for (wave& w : waves_) {
    w.whole = 0;
    w.points = 0;
  }
}

// Lanes that wait for a lane that has returned wait for one lane less.
void workgroup::leave(lane_state& me) {
  const lock_guard hold(*this);
  wave& w = *me.home;
  w.returned |= me.bit();
  --live_;
  check_points(w);
  if (live_ != 0 && at_barrier_.size() == live_) release_barrier();
}

// --- Collectives -------------------------------------------------------------------------------------

void workgroup::release_barrier() {
  for (lane_state* waiting : at_barrier_) wake(*waiting);
  at_barrier_.clear();
}

// Of two lanes that are to leave together what they are in. Where none is in a call of XIO it is the program's matter.
void workgroup::compare_calls(const lane_state& a, const lane_state& b, const char* whole, const char* of) {
  const std::string_view one = a.call != nullptr ? a.call : "", other = b.call != nullptr ? b.call : "";
  if (one == other && a.arguments == b.arguments) return;
  const bool first = !one.empty();
  const std::string_view in = first ? one : other, beside = first ? other : one;
  if (one == other)
    leave_kernel(*launch_, fmt::format("threads of one {} gave {} different arguments; all threads of a {} make a {} "
                                       "call together, with the same arguments",
                                       whole, in, whole, of));
  leave_kernel(
      *launch_,
      fmt::format("some threads of a {} are in {}, and others in {}; all threads of a {} make a {} "
                  "call together",
                  whole, in, beside.empty() ? "no call of a group, at __syncthreads or in another branch" : beside,
                  whole, of));
}

// The part of a thread that has ended is done by nobody. `in`: it is in what others left.
void workgroup::refuse_ended(const lane_state& in, const char* whole, const char* of) {
  if (in.call == nullptr) return;
  leave_kernel(*launch_,
               fmt::format("some threads of a {} are in {}, and others have ended; all threads of a {} make a "
                           "{} call together",
                           whole, in.call, whole, of));
}

// Before a thread ends: those that wait for it in a call.
void workgroup::look_behind(const lane_state& me) {
  const lock_guard hold(*this);
  if (!at_barrier_.empty()) refuse_ended(*at_barrier_.front(), "workgroup", "_wg");
  if (me.home->whole != 0) refuse_ended(me.home->lanes[__builtin_ctzll(me.home->whole)], "wave", "_wave");
}

void workgroup::sync_workgroup(lane_state& me) {
  const lock_guard hold(*this);
  if (live_ != lanes_.size()) refuse_ended(me, "workgroup", "_wg");
  if (!at_barrier_.empty()) compare_calls(*at_barrier_.front(), me, "workgroup", "_wg");
  // They wait for this lane, which would wait for them.
  if (me.home->whole != 0) compare_calls(me.home->lanes[__builtin_ctzll(me.home->whole)], me, "wave", "_wave");
  if (at_barrier_.size() + 1 == live_) return release_barrier();
  at_barrier_.push_back(&me);
  block(me);
}

std::uint64_t workgroup::whole_wave(lane_state& me) {
  const lock_guard hold(*this);
  wave& w = *me.home;
  if (w.returned != 0) refuse_ended(me, "wave", "_wave");
  if (w.whole != 0) {
    compare_calls(w.lanes[__builtin_ctzll(w.whole)], me, "wave", "_wave");
  } else {
    for (const lane_state* other : at_barrier_)
      if (other->home == &w) compare_calls(*other, me, "wave", "_wave");
  }
  w.whole |= me.bit();
  if ((w.whole | w.returned) != w.launched) {
    block(me);
    return me.result;
  }
  const std::uint64_t all = w.whole;
  w.whole = 0;
  for (std::uint64_t left = all & ~me.bit(); left != 0; left &= left - 1) {
    lane_state& other = w.lanes[__builtin_ctzll(left)];
    other.result = all;
    wake(other);
  }
  return all;
}

std::uint64_t workgroup::converge(lane_state& me, std::uint64_t mask, collective what, std::uint64_t value,
                                  unsigned from) {
  const lock_guard hold(*this);
  wave& w = *me.home;
  if ((mask & me.bit()) == 0 || (mask & ~w.launched) != 0)
    leave_kernel(*launch_, "a wave operation was called with a mask that the caller is not in");
  me.deposit = value;
  me.from = from;
  unsigned at = 0;
  while (at < w.points && w.at_point[at].mask != mask) ++at;
  if (at == w.points) w.at_point[w.points++] = convergence_point{mask, 0, what};
  convergence_point& m = w.at_point[at];
  if (m.what != what) leave_kernel(*launch_, "lanes of one mask called different wave operations");
  m.arrived |= me.bit();
  if (((m.arrived | w.returned) & mask) != mask) {
    block(me);
    return me.result;
  }
  const convergence_point complete = m;
  w.at_point[at] = w.at_point[--w.points];
  conclude(w, complete);
  for (std::uint64_t left = complete.arrived & ~me.bit(); left != 0; left &= left - 1)
    wake(w.lanes[__builtin_ctzll(left)]);
  return me.result;
}

// Gives every lane its result in one pass, so that a lane may bring its next value at once.
void workgroup::conclude(wave& w, convergence_point m) {
  std::uint64_t all = 0;
  switch (m.what) {
    case collective::sync: return;
    case collective::ballot:
      for (std::uint64_t left = m.arrived; left != 0; left &= left - 1)
        if (w.lanes[__builtin_ctzll(left)].deposit != 0) all |= left & -left;
      for (std::uint64_t left = m.arrived; left != 0; left &= left - 1) w.lanes[__builtin_ctzll(left)].result = all;
      return;
    case collective::shuffle:
      for (std::uint64_t left = m.arrived; left != 0; left &= left - 1) {
        lane_state& l = w.lanes[__builtin_ctzll(left)];
        const bool there = l.from < w.count && (m.arrived >> l.from & 1) != 0;
        l.result = there ? w.lanes[l.from].deposit : l.deposit;
      }
      return;
    case collective::match:
      for (std::uint64_t open = m.arrived; open != 0; open &= ~all) {
        const std::uint64_t key = w.lanes[__builtin_ctzll(open)].deposit;
        all = 0;
        for (std::uint64_t left = open; left != 0; left &= left - 1)
          if (w.lanes[__builtin_ctzll(left)].deposit == key) all |= left & -left;
        for (std::uint64_t left = all; left != 0; left &= left - 1) w.lanes[__builtin_ctzll(left)].result = all;
      }
      return;
  }
}

// After a lane of w has returned.
void workgroup::check_points(wave& w) {
  if (w.whole != 0 && (w.whole | w.returned) == w.launched) {
    const std::uint64_t all = w.whole;
    w.whole = 0;
    for (std::uint64_t left = all; left != 0; left &= left - 1) {
      lane_state& other = w.lanes[__builtin_ctzll(left)];
      other.result = all;
      wake(other);
    }
  }
  for (unsigned at = 0; at < w.points;) {
    const convergence_point m = w.at_point[at];
    if (((m.arrived | w.returned) & m.mask) != m.mask) {
      ++at;
      continue;
    }
    w.at_point[at] = w.at_point[--w.points];
    conclude(w, m);
    for (std::uint64_t left = m.arrived; left != 0; left &= left - 1) wake(w.lanes[__builtin_ctzll(left)]);
  }
}

// --- Shared memory -----------------------------------------------------------------------------------

void* workgroup::dynamic_shared() { return launch_->shared_bytes == 0 ? nullptr : dynamic_.get(); }

// Blocks stay with the worker that runs workgroups: a launch's first use allocates, later ones find it.
void* workgroup::static_shared(const void* tag, std::size_t bytes, std::size_t alignment) {
  const lock_guard hold(*this);
  for (const shared_block& b : static_)
    if (b.tag == tag && b.bytes == bytes) return b.memory.get();
  static_.push_back(shared_block{tag, bytes, std::unique_ptr<void, block_free>(aligned(bytes, alignment))});
  return static_.back().memory.get();
}

}  // namespace xio::host_exec
