// SPDX-License-Identifier: MIT
#include "model/shared_turns.hpp"

namespace xio::model {

bool shared_turns::poll() {
  const std::uint32_t helped = helped_.load(std::memory_order_relaxed);
  if (helped != seen_) {
    seen_ = helped;
    away_until_ = clock::now() + k_away;
    return false;
  }
  if (away_until_ != clock::time_point{}) {
    if (clock::now() < away_until_) return false;
    away_until_ = {};
  }
  const std::unique_lock hold(turn_, std::try_to_lock);
  return hold.owns_lock() && device_.poll();
}

bool shared_turns::help() {
  const std::unique_lock hold(turn_, std::try_to_lock);
  if (!hold.owns_lock()) return false;
  helped_.fetch_add(1, std::memory_order_relaxed);
  return device_.poll();
}

}  // namespace xio::model
