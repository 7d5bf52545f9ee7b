// SPDX-License-Identifier: MIT
#include "progress/shared_turns.hpp"

namespace xio::progress {

bool shared_turns::poll() {
  const std::uint32_t helped = helped_.load(std::memory_order_relaxed);
  if (helped != seen_) {
    seen_ = helped;
    away_until_ = clock::now() + k_away;
    return device_.assist();
  }
  if (away_until_ != clock::time_point{}) {
    if (clock::now() < away_until_) return device_.assist();
    away_until_ = {};
  }
  const std::unique_lock hold(turn_, std::try_to_lock);
  if (!hold.owns_lock()) return device_.assist();
  const bool worked = device_.poll();
  if (worked && device_.heavy()) kept_until_.store(clock::now() + k_away, std::memory_order_relaxed);
  return worked;
}

bool shared_turns::at_rest(sleeper::descriptors& found) {
  if (helped_.load(std::memory_order_relaxed) != seen_ || away_until_ != clock::time_point{}) return false;
  const std::unique_lock hold(turn_, std::try_to_lock);
  return hold.owns_lock() && !device_.poll() && device_.at_rest(found);
}

bool shared_turns::help() {
  const clock::time_point kept_until = kept_until_.load(std::memory_order_relaxed);
  if (kept_until != clock::time_point{} && clock::now() < kept_until) return device_.assist();
  const std::unique_lock hold(turn_, std::try_to_lock);
  if (!hold.owns_lock()) return device_.assist();
  const bool worked = device_.poll();
  if (!device_.heavy()) helped_.fetch_add(1, std::memory_order_relaxed);
  return worked;
}

}  // namespace xio::progress
