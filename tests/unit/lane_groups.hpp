// SPDX-License-Identifier: MIT
// Declarations that the test of lane groups and its kernel share. The kernel's compiler does not see GoogleTest, so
// they are in two files.
#pragma once
#include <cstdint>

namespace xio::test {

struct lane_counts {
  std::uint64_t called;  // by single lanes
  std::uint64_t served;  // lanes of the groups, as their leaders counted them
  std::uint64_t wrong;   // lanes that got another result than their leader's
};

// Each lane calls one function many times, from three places and after detours of its own. `together`: now and then all
// threads of the workgroup synchronise. False: the kernel failed.
bool call_in_groups(unsigned workgroups, unsigned threads, unsigned rounds, bool together, lane_counts* counts);

// Waves and workgroups whose leader returns the result of all: nothing, a request, a failure, both, again and again.
bool results_by_leaders(unsigned workgroups, unsigned threads, unsigned rounds, lane_counts* counts);

}  // namespace xio::test
