// SPDX-License-Identifier: MIT
#include "gpu/host/chores.hpp"

#include <atomic>
#include <mutex>
#include <vector>

#include "gpu/chore.hpp"

namespace xio {
namespace {

// Never destroyed: kernels may wait until the process ends.
struct board {
  std::mutex guard;  // held while a chore runs
  std::vector<gpu::chore*> chores;
  std::atomic<bool> any{false};
};

board& the_board() {
  static board* const b = new board;
  return *b;
}

}  // namespace

bool host_exec::do_chores() {
  board& b = the_board();
  if (!b.any.load(std::memory_order_relaxed)) return false;
  const std::unique_lock hold(b.guard, std::try_to_lock);
  if (!hold.owns_lock()) return false;
  bool worked = false;
  for (gpu::chore* c : b.chores) worked |= c->work();
  return worked;
}

void gpu::add_chore(chore& c) {
  board& b = the_board();
  const std::lock_guard hold(b.guard);
  b.chores.push_back(&c);
  b.any.store(true, std::memory_order_relaxed);
}

void gpu::remove_chore(chore& c) {
  board& b = the_board();
  const std::lock_guard hold(b.guard);
  std::erase(b.chores, &c);
  b.any.store(!b.chores.empty(), std::memory_order_relaxed);
}

}  // namespace xio
