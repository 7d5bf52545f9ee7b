// SPDX-License-Identifier: MIT
#include "proxy/immediate_desk.hpp"

#include "xio/wire/inbox.hpp"

namespace xio::proxy {

namespace {

namespace words = wire::inbox;

// Only the NICs of one PE write to one inbox, never those of several PEs: a claim fails rarely, and then not for long.
constexpr int k_attempts = 16;

}  // namespace

void immediate_desk::enrol(std::uint32_t number, const inbox& to) {
  const std::lock_guard hold(lock_);
  inboxes_.insert_or_assign(number, to);
}

void immediate_desk::forget(std::uint32_t number) {
  const std::lock_guard hold(lock_);
  inboxes_.erase(number);
}

bool immediate_desk::deliver(std::uint32_t number, std::uint32_t immediate) {
  const std::lock_guard hold(lock_);
  const auto found = inboxes_.find(number);
  return found != inboxes_.end() && drop(found->second, immediate);
}

std::uint64_t immediate_desk::room(std::uint32_t number) {
  const std::lock_guard hold(lock_);
  const auto found = inboxes_.find(number);
  if (found == inboxes_.end()) return 0;
  return payload_.atomic(found->second.at + words::k_head_at, 8, atomic_op::fetch, 0, 0) + found->second.entries;
}

// The counterpart of inbox_drop in include/xio/device/impl/inbox.hpp, for memory that may be a GPU's.
bool immediate_desk::drop(const inbox& to, std::uint32_t immediate) const {
  const auto load = [&](std::uint64_t at) { return payload_.atomic(to.at + at, 8, atomic_op::fetch, 0, 0); };
  std::uint64_t place = load(words::k_tail_at);
  for (int i = 0; i < k_attempts; ++i) {
    // Signed: a tail that others have moved since may lie behind the head by now.
    if (static_cast<std::int64_t>(place - load(words::k_head_at)) >= static_cast<std::int64_t>(to.entries))
      return false;
    const std::uint64_t was = payload_.atomic(to.at + words::k_tail_at, 8, atomic_op::compare_swap, place + 1, place);
    if (was == place) {
      const std::uint64_t at = words::entry_at(place, to.entries);
      payload_.atomic(to.at + at, 8, atomic_op::swap, words::entry(place, to.entries, immediate), 0);
      return true;
    }
    place = was;
  }
  return false;
}

}  // namespace xio::proxy
