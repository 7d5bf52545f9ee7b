// SPDX-License-Identifier: MIT
// The tests that there are.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace xio::perf {

enum class test_id {
  // clang-format off
  put_lat, get_lat, put_staged_lat, get_staged_lat, p_lat, g_lat, atomic_lat, put_bw, get_bw, p_bw, g_bw,
  atomic_bw, p_pingpong, put_pingpong, signal_pingpong, put_signal_pingpong, packet_pingpong, barrier, sync,
  team_barrier, team_sync, alltoall, alltoallv, fcollect, collect, broadcast, reduce, reduce_scatter,
  host_barrier, heap_malloc, team_create, ctx_create, nvme_read, nvme_write, sdma_copy
  // clang-format on
};

// A sample is the time of one of these.
enum class shape {
  latency,     // one op, complete
  bandwidth,   // an iteration of all workgroups, in a launch of many
  pingpong,    // a round trip of two PEs
  collective,  // a call of all PEs, or of a team
  host,        // a call of the host of all PEs
  storage      // one op of one of many groups
};

struct test {
  test_id id;
  const char* name;
  const char* text;
  shape how;
  bool sized;                       // runs over sizes; else one value
  bool scoped;                      // differs by scope
  std::uint64_t smallest, largest;  // where nothing else was asked for

  bool by_thread() const { return how != shape::collective || !sized; }  // a thread alone can call it
  bool reduces() const { return id == test_id::reduce || id == test_id::reduce_scatter; }
  bool of_team() const {
    if (how == shape::host) return id == test_id::team_create;
    return how == shape::collective && id != test_id::barrier && id != test_id::sync;
  }
};

const std::vector<test>& catalogue();
const test* find_test(const std::string& name);  // null: there is none
std::vector<std::string> test_names();           // `all`, too

}  // namespace xio::perf
