// SPDX-License-Identifier: MIT
// Waits of kernels as spans of XIO_TRACE, from the notes that kernels write for xio-info --job.
#pragma once
#include <tuple>

#include "ctx/wait_page.hpp"

namespace xio {

// Which wait a note is of: kind, address, workgroup and beginning.
using wait_key = std::tuple<std::uint32_t, std::uint64_t, std::uint32_t, std::uint64_t>;
inline wait_key key_of(const dev::wait_note& n) { return {n.kind, n.address, n.workgroup, n.since}; }

class wait_trace {
 public:
  // Reads the notes: some times in each beat of the kernels' clock.
  void sample(const wait_page& p);
  // Keeps the waits that last, as long as they are so far.
  ~wait_trace();

 private:
  struct seen {
    dev::wait_note last;
    std::uint64_t at;  // when it was seen first
  };
  void keep(const dev::wait_note& n) const;
  // Of a tick of the kernels' clock, by the notes that were seen soonest.
  std::uint64_t host_time(std::uint64_t ticks) const;

  std::map<wait_key, seen> waits_;
  std::uint64_t ticks_per_ms_ = 1, newest_ = 0;
  std::int64_t apart_ = INT64_MAX;  // by how many ns the host's clock is ahead of the kernels'
};

}  // namespace xio
