// SPDX-License-Identifier: MIT
#include "lane_groups.hpp"

#include <xio/hip.h>

#include "xio/device/impl/scope.hpp"

namespace xio::test {
namespace {

using namespace xio::dev;

__device__ u32 next(u32& x) {
  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  return x;
}

// As ops do it: one lane of those that are here works for all of them, while others may come by another call.
XIO_OUT_OF_LINE u64 result_of(lane_counts* counts, u32 turns) {
  const lanes here = converged_lanes();
  u64 result = 0;
  if (here.leader()) {
    for (u32 i = 0; i < turns; ++i) pause();
    result = (u64{1} << 63) | lane_id();
    add<scope::agent, order::relaxed>(&counts->served, u64{here.count()});
  }
  here.sync();
  const u64 got = here.first(result);
  const bool good = got == ((u64{1} << 63) | lowest_bit(here.mask)) && (here.mask >> lane_id() & 1) != 0;
  if (!good) add<scope::agent, order::relaxed>(&counts->wrong, u64{1});
  return got;
}

__global__ void call_kernel(lane_counts* counts, u32 rounds, bool together) {
  const u32 me = workgroup_index() * workgroup_size() + thread_in_workgroup();
  u32 x = me * 2654435761u + 1;
  u64 calls = 0;
  for (u32 i = 0; i < rounds; ++i) {
    for (u32 detour = next(x) % 8; detour != 0; --detour) {
      if (load<scope::agent, order::relaxed>(&counts->wrong) != 0) break;
    }
    for (u32 look = next(x) % 4; look != 0; --look, ++calls) result_of(counts, i % 4);
    result_of(counts, 2);
    if (next(x) % 2 == 0) {
      result_of(counts, 0);
      ++calls;
    }
    ++calls;
    if (together && i % 4 == 0) __syncthreads();
  }
  add<scope::agent, order::relaxed>(&counts->called, calls);
}

template <class Group>
__device__ void result_for_all(const Group& g, lane_counts* counts, u32 round) {
  const posted said{round % 2 == 0 ? 0 : u64{round} << 33 | 1, round % 4 < 2 ? XIO_OK : XIO_ERR_TRANSPORT};
  const posted got = by_leader(g, [&] { return said; });
  if (got.request != said.request || got.status != said.status)
    add<scope::agent, order::relaxed>(&counts->wrong, u64{1});
  add<scope::agent, order::relaxed>(&counts->served, u64{1});
}

__global__ void leaders_kernel(lane_counts* counts, u32 rounds) {
  for (u32 round = 0; round < rounds; ++round) {
    result_for_all(wave_group::here(), counts, round);
    result_for_all(workgroup_group::here(), counts, round);
  }
  add<scope::agent, order::relaxed>(&counts->called, u64{2} * rounds);
}

// Runs a kernel with counts that are 0, and gives them back. False: it failed.
template <class Launch>
bool counted(lane_counts* counts, Launch&& launch) {
  lane_counts* there = nullptr;
  if (hipMalloc(reinterpret_cast<void**>(&there), sizeof *there) != hipSuccess) return false;
  bool good = hipMemset(there, 0, sizeof *there) == hipSuccess;
  launch(there);
  good = hipDeviceSynchronize() == hipSuccess && good;
  good = hipMemcpy(counts, there, sizeof *there, hipMemcpyDeviceToHost) == hipSuccess && good;
  return hipFree(there) == hipSuccess && good;
}

}  // namespace

bool results_by_leaders(unsigned workgroups, unsigned threads, unsigned rounds, lane_counts* counts) {
  return counted(counts, [&](lane_counts* there) {
    hipLaunchKernelGGL(leaders_kernel, dim3(workgroups), dim3(threads), 0, nullptr, there, rounds);
  });
}

bool call_in_groups(unsigned workgroups, unsigned threads, unsigned rounds, bool together, lane_counts* counts) {
  return counted(counts, [&](lane_counts* there) {
    hipLaunchKernelGGL(call_kernel, dim3(workgroups), dim3(threads), 0, nullptr, there, rounds, together);
  });
}

}  // namespace xio::test
