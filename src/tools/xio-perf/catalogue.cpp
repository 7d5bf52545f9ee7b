// SPDX-License-Identifier: MIT
#include "tools/xio-perf/catalogue.hpp"

namespace xio::perf {
namespace {
constexpr std::uint64_t k_k = 1024;
constexpr std::uint64_t k_m = k_k * k_k;
}  // namespace

const std::vector<test>& catalogue() {
  using enum test_id;
  static const std::vector<test> all{
      {put_lat, "put_lat", "put and quiet", shape::latency, true, true, 8, 4 * k_m},
      {get_lat, "get_lat", "blocking get", shape::latency, true, true, 8, 4 * k_m},
      {put_staged_lat, "put_staged_lat", "put by one thread through lent shared memory, and quiet", shape::latency,
       true, false, k_k, 4 * k_m},
      {get_staged_lat, "get_staged_lat", "blocking get by one thread through lent shared memory", shape::latency, true,
       false, k_k, 4 * k_m},
      {p_lat, "p_lat", "values stored one by one by a workgroup, and quiet", shape::latency, true, false, 8, 64 * k_k},
      {g_lat, "g_lat", "one value fetched", shape::latency, false, false, 8, 8},
      {atomic_lat, "atomic_lat", "one atomic; quiet where it fetches nothing", shape::latency, false, false, 8, 8},
      {put_bw, "put_bw", "puts by many workgroups", shape::bandwidth, true, true, k_k, 4 * k_m},
      {get_bw, "get_bw", "gets by many workgroups", shape::bandwidth, true, true, k_k, 4 * k_m},
      {p_bw, "p_bw", "values stored by all threads, each on its own", shape::bandwidth, true, false, k_k, 4 * k_m},
      {g_bw, "g_bw", "values fetched by all threads, each on its own", shape::bandwidth, true, false, k_k, 4 * k_m},
      {atomic_bw, "atomic_bw", "atomics by all threads, each on words of its own", shape::bandwidth, true, false, k_k,
       k_m},
      {p_pingpong, "p_pingpong", "a value stored, back and forth", shape::pingpong, false, false, 8, 8},
      {put_pingpong, "put_pingpong", "put, fence and a stored flag, back and forth", shape::pingpong, true, true, 8,
       64 * k_k},
      {signal_pingpong, "signal_pingpong", "a signal, back and forth", shape::pingpong, false, false, 8, 8},
      {put_signal_pingpong, "put_signal_pingpong", "put with signal, back and forth", shape::pingpong, true, true, 8,
       64 * k_k},
      {packet_pingpong, "packet_pingpong", "a packet of up to 64 bytes that carries its own flags, back and forth",
       shape::pingpong, true, false, 4, 64},
      {barrier, "barrier", "a barrier of all PEs", shape::collective, false, true, 0, 0},
      {sync, "sync", "a sync of all PEs", shape::collective, false, true, 0, 0},
      {team_barrier, "team_barrier", "a barrier of a team", shape::collective, false, true, 0, 0},
      {team_sync, "team_sync", "a sync of a team", shape::collective, false, true, 0, 0},
      {alltoall, "alltoall", "a block from each member to each", shape::collective, true, true, 8, k_m},
      {alltoallv, "alltoallv", "the same by lists of offsets and sizes", shape::collective, true, true, 8, k_m},
      {fcollect, "fcollect", "every member's block to all", shape::collective, true, true, 8, k_m},
      {collect, "collect", "the same where blocks may differ in size", shape::collective, true, true, 8, k_m},
      {broadcast, "broadcast", "a block of PE 0 to all", shape::collective, true, true, 8, k_m},
      {reduce, "reduce", "words of all members, combined for all", shape::collective, true, true, 8, k_m},
      {reduce_scatter, "reduce_scatter", "words of all, combined, a block for each", shape::collective, true, true, 8,
       k_m},
      {host_barrier, "host_barrier", "a barrier of the hosts of all PEs", shape::host, false, false, 0, 0},
      {heap_malloc, "malloc", "memory of the symmetric heap, taken and freed", shape::host, false, false, 4 * k_k,
       4 * k_k},
      {team_create, "team_create", "a team, made and destroyed", shape::host, false, false, 0, 0},
      {ctx_create, "ctx_create", "a context, made and destroyed", shape::host, false, false, 0, 0},
      {nvme_read, "nvme_read", "reads of a drive into the heap, one in flight for each caller", shape::storage, true,
       true, 4 * k_k, 64 * k_k},
      {nvme_write, "nvme_write", "writes from the heap to a drive, one in flight for each caller", shape::storage, true,
       true, 4 * k_k, 64 * k_k},
      {sdma_copy, "sdma_copy", "copies by a copy engine; alone, within the heap", shape::bandwidth, true, false,
       64 * k_k, 4 * k_m}};
  return all;
}

const test* find_test(const std::string& name) {
  for (const test& t : catalogue())
    if (name == t.name) return &t;
  return nullptr;
}

std::vector<std::string> test_names() {
  std::vector<std::string> names;
  for (const test& t : catalogue()) names.emplace_back(t.name);
  names.emplace_back("all");
  return names;
}

}  // namespace xio::perf
