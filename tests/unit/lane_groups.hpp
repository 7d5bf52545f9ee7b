// SPDX-License-Identifier: MIT
// What the test of lane groups and its kernel share. GoogleTest and the kernel's compiler do not meet.
#pragma once
#include <cstdint>

namespace xio::test {

struct lane_counts {
  std::uint64_t called;  // by single lanes
  std::uint64_t served;  // lanes of the groups, told by their leaders
  std::uint64_t wrong;   // lanes that got another answer than their leader's
};

// Each lane calls one function many times, from three places and after detours of its own. `together`: and now and then
// all threads of the workgroup meet. False: the kernel failed.
bool call_in_groups(unsigned workgroups, unsigned threads, unsigned rounds, bool together, lane_counts* counts);

// Waves and workgroups whose leader answers for all: nothing, a request, a failure, both, again and again.
bool results_by_leaders(unsigned workgroups, unsigned threads, unsigned rounds, lane_counts* counts);

}  // namespace xio::test
