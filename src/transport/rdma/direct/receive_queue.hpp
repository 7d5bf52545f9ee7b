// SPDX-License-Identifier: MIT
// The receive side of a queue pair, for writes with immediate: entries that hold no memory, so that posting one is
// counting it, and completions that a host thread reads. Each vendor's format says how entries, completions and
// doorbells look:
//   std::uint64_t room() const               entries that may be posted beyond those that are complete
//   arrival read(std::uint64_t n) const      the nth completion
//   void post(std::uint64_t end)             entries before that one may be used
//   void give_back(std::uint64_t end)        completions before that one have been read
#pragma once
#include <algorithm>
#include <cstdint>

#include "transport/rdma/direct/nic.hpp"

namespace xio::rdma {

struct arrival {
  // none: nothing has come. other: a completion that holds no immediate of a write.
  enum class kind { none, other, immediate } what = kind::none;
  std::uint32_t immediate = 0;
};

template <class Format>
class receive_queue {
 public:
  // Nothing is posted yet.
  explicit receive_queue(const Format& format) : format_(format) {}
  // As direct_queue::poll_receives. A completion of an error is none: it is of a queue pair that is at its end, whose
  // own requests say why.
  bool poll(immediate_target& to) {
    const std::uint64_t first = next_;
    for (;; ++next_) {
      const arrival a = format_.read(next_);
      if (a.what == arrival::kind::none || (a.what == arrival::kind::immediate && !to.put(a.immediate))) break;
    }
    if (next_ != first) format_.give_back(next_);
    return post(to) || next_ != first;
  }

 private:
  bool post(immediate_target& to) {
    const std::uint64_t most = next_ + format_.room();
    if (posted_ == most) return false;
    const std::uint64_t end = std::min(most, to.most_sent());
    if (end <= posted_) return false;
    format_.post(posted_ = end);
    return true;
  }

  Format format_;
  std::uint64_t next_ = 0;    // completion
  std::uint64_t posted_ = 0;  // entries
};

}  // namespace xio::rdma
