// SPDX-License-Identifier: MIT
// The queue pairs of a NIC, and those of them that one poll looks at: all that had work lately, and a few of the others
// in turn, so that queue pairs that rest cost the busy ones little.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace xio::proxy {

// Queue: number() and at_rest(), which is true while nothing but a doorbell can give it work.
template <class Queue>
class queue_rota {
 public:
  // Of those at rest, in one poll: while some queue pair has work, and after k_patience polls without any.
  static constexpr std::size_t k_slice = 8, k_big_slice = 128;
  // So many polls without work and a queue pair is no longer looked at in each.
  static constexpr unsigned k_patience = 1000;

  void add(std::unique_ptr<Queue> q) { all_.push_back({std::move(q), 0}); }
  Queue* find(std::uint32_t number) const {
    for (const entry& e : all_)
      if (e.queue->number() == number) return e.queue.get();
    return nullptr;
  }
  bool erase(std::uint32_t number) {
    const auto e = std::ranges::find_if(all_, [&](const entry& x) { return x.queue->number() == number; });
    if (e == all_.end()) return false;
    if (e < all_.begin() + static_cast<std::ptrdiff_t>(n_busy_)) --n_busy_;
    all_.erase(e);
    return true;
  }
  template <class Body>
  void for_each(Body&& body) {
    for (entry& e : all_) body(*e.queue);
  }

  // After a turn of each: whether all rest.
  template <class Turn>
  bool all_rest(Turn&& turn) {
    return std::ranges::none_of(all_, [&](entry& e) { return turn(*e.queue) || !e.queue->at_rest(); });
  }

  // turn(queue), which is true if it had work, for those whose turn it is. True if any had.
  template <class Turn>
  bool poll(Turn&& turn) {
    bool worked = false;
    for (std::size_t i = n_busy_; i-- != 0;) {
      entry& e = all_[i];
      if (turn(*e.queue)) {
        worked = true;
        e.polls_without_work = 0;
      } else if (e.queue->at_rest() && ++e.polls_without_work >= k_patience) {
        std::swap(e, all_[--n_busy_]);
      }
    }
    worked |= turn_resting(turn);
    polls_without_work_ = worked ? 0 : polls_without_work_ + 1;
    return worked;
  }

 private:
  struct entry {
    std::unique_ptr<Queue> queue;
    unsigned polls_without_work;
  };

  template <class Turn>
  bool turn_resting(Turn&& turn) {
    bool worked = false;
    const std::size_t slice = polls_without_work_ < k_patience ? k_slice : k_big_slice;
    for (std::size_t left = std::min(slice, all_.size() - n_busy_); left != 0; --left) {
      if (next_ < n_busy_ || next_ >= all_.size()) next_ = n_busy_;
      entry& e = all_[next_++];
      const bool some = turn(*e.queue);
      worked |= some;
      if (!some && e.queue->at_rest()) continue;
      e.polls_without_work = 0;
      std::swap(e, all_[n_busy_++]);
    }
    return worked;
  }

  std::vector<entry> all_;  // the first n_busy_ of them had work lately
  std::size_t n_busy_ = 0;
  std::size_t next_ = 0;  // of those at rest
  std::size_t polls_without_work_ = 0;
};

}  // namespace xio::proxy
