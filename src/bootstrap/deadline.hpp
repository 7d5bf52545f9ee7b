// SPDX-License-Identifier: MIT
// One point in time that bounds a whole call, however many waits the call is made of.
#pragma once
#include <algorithm>
#include <climits>

#include "base/run_clock.hpp"

namespace xio::bootstrap {

class deadline {
 public:
  using clock = run_clock;

  // 0 milliseconds: never, as XIO_TIMEOUT_MS defines it.
  static deadline in(std::uint64_t ms) {
    deadline d;
    d.never_ = ms == 0;
    d.at_ = clock::now() + std::chrono::milliseconds(ms);
    return d;
  }

  deadline and_then(std::chrono::milliseconds more) const {
    deadline d = *this;
    d.at_ += more;
    return d;
  }

  bool never() const { return never_; }
  bool passed() const { return !never_ && clock::now() >= at_; }

  // Milliseconds left, at most `most`, for poll(2); rounded up so that a wait does not end just before. Never more than
  // what run_clock allows between two looks, so a poll that ends is no deadline that has passed.
  int poll_ms(int most = INT_MAX) const {
    most = std::min(most, static_cast<int>(run_clock::k_longest_pause.count()));
    if (never_) return most;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(at_ - clock::now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, most));
  }

  deadline earlier(const deadline& other) const {
    if (never_) return other;
    if (other.never_) return *this;
    return at_ <= other.at_ ? *this : other;
  }

 private:
  clock::time_point at_{};
  bool never_ = true;
};

}  // namespace xio::bootstrap
