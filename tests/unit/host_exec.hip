// SPDX-License-Identifier: MIT
// The host executor through the HIP names and platform.hpp: where a thread is, waves, collectives, convergence,
// shared memory. tests/source.sh runs it with fibers and with threads, with waves of 64 and of 32 lanes.
#include "../gtest.hpp"
#include "xio/device/platform/lanes.hpp"
#include "xio/hip.h"

using namespace xio::dev;

namespace {

bool threads_mode() {
  const char* mode = std::getenv("XIO_HOST_EXEC");
  return mode != nullptr && std::strcmp(mode, "threads") == 0;
}

unsigned lanes_per_wave() {
  const char* wave = std::getenv("XIO_HOST_WAVE");
  return wave != nullptr && std::strcmp(wave, "32") == 0 ? 32 : 64;
}

u64 mask_of(unsigned lanes) { return lanes == 64 ? ~u64{0} : (u64{1} << lanes) - 1; }

template <class Kernel, class... Arguments>
hipError_t run(Kernel kernel, dim3 grid, dim3 block, Arguments... arguments) {
  hipLaunchKernelGGL(kernel, grid, block, 0, nullptr, arguments...);
  return hipDeviceSynchronize();
}

// --- Where am I ---

struct place {
  unsigned tx, ty, tz, bx, by, bz, lane, wave, linear, group;
};

__global__ void store_place(place* out) {
  const unsigned at = workgroup_index() * workgroup_size() + thread_in_workgroup();
  out[at] = {threadIdx.x, threadIdx.y, threadIdx.z,           blockIdx.x,       blockIdx.y, blockIdx.z,
             lane_id(),   wave_size(), thread_in_workgroup(), workgroup_index()};
}

TEST(host_exec, every_thread_of_a_3d_grid_runs_once_and_knows_where) {
  const dim3 grid(3, 2, 2), block(5, 4, 7);  // 140 threads: waves of 64, 64, 12
  std::vector<place> out(12 * 140, place{99, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  ASSERT_EQ(run(store_place, grid, block, out.data()), hipSuccess);
  unsigned at = 0;
  for (unsigned bz = 0; bz < 2; ++bz)
    for (unsigned by = 0; by < 2; ++by)
      for (unsigned bx = 0; bx < 3; ++bx)
        for (unsigned t = 0; t < 140; ++t, ++at) {
          const place& p = out[at];
          ASSERT_EQ(p.bx, bx);
          ASSERT_EQ(p.by, by);
          ASSERT_EQ(p.bz, bz);
          ASSERT_EQ(p.tx, t % 5);
          ASSERT_EQ(p.ty, t / 5 % 4);
          ASSERT_EQ(p.tz, t / 20);
          ASSERT_EQ(p.lane, t % lanes_per_wave());
          ASSERT_EQ(p.wave, lanes_per_wave());
          ASSERT_EQ(p.linear, t);
          ASSERT_EQ(p.group, at / 140);
        }
}

__global__ void count_up(unsigned* n) { atomicAdd(n, 1u); }

TEST(host_exec, thousands_of_workgroups) {
  unsigned n = 0;
  ASSERT_EQ(run(count_up, dim3(threads_mode() ? 300 : 5000), dim3(threads_mode() ? 8 : 70), &n), hipSuccess);
  EXPECT_EQ(n, threads_mode() ? 2400u : 350000u);
}

TEST(host_exec, sizes_that_cannot_be_are_refused) {
  hipLaunchKernelGGL(count_up, dim3(1), dim3(1025), 0, nullptr, static_cast<unsigned*>(nullptr));
  EXPECT_PAIRS((hipGetLastError(), hipErrorInvalidConfiguration), (hipGetLastError(), hipSuccess));
  hipLaunchKernelGGL(count_up, dim3(0), dim3(1), 0, nullptr, static_cast<unsigned*>(nullptr));
  EXPECT_PAIRS((hipGetLastError(), hipErrorInvalidConfiguration), (hipDeviceSynchronize(), hipSuccess));
}

// --- Barrier and shared memory ---

__global__ void reverse_through_shared(int* data, int rounds) {
  HIP_DYNAMIC_SHARED(int, box)
  const unsigned n = blockDim.x;
  for (int r = 0; r < rounds; ++r) {
    box[threadIdx.x] = data[blockIdx.x * n + threadIdx.x];
    __syncthreads();
    data[blockIdx.x * n + threadIdx.x] = box[n - 1 - threadIdx.x];
    __syncthreads();
  }
}

TEST(host_exec, barrier_orders_dynamic_shared_memory) {
  const unsigned n = threads_mode() ? 40 : 250;
  std::vector<int> data(20 * n);
  for (unsigned i = 0; i < data.size(); ++i) data[i] = static_cast<int>(i);
  hipLaunchKernelGGL(reverse_through_shared, dim3(20), dim3(n), n * sizeof(int), nullptr, data.data(), 7);
  ASSERT_EQ(hipDeviceSynchronize(), hipSuccess);
  for (unsigned i = 0; i < data.size(); ++i) ASSERT_EQ(data[i], static_cast<int>(i / n * n + (n - 1 - i % n)));
}

__global__ void sum_in_xio_shared(u64* out) {
  XIO_SHARED(u64, total);
  XIO_SHARED(u64, second);
  if (threadIdx.x == 0) total = second = 0;
  sync_workgroup();
  atomicAdd(&total, u64{threadIdx.x});
  atomicAdd(&second, u64{1});
  sync_workgroup();
  if (threadIdx.x == 0) out[blockIdx.x] = total * 1000 + second;
}

TEST(host_exec, xio_shared_is_one_per_workgroup_and_name) {
  std::vector<u64> out(40);
  ASSERT_EQ(run(sum_in_xio_shared, dim3(40), dim3(100), out.data()), hipSuccess);
  for (u64 v : out) EXPECT_EQ(v, 4950u * 1000 + 100);
}

__global__ void sum_in_static_shared(int* out) {
  __shared__ int box[128];
  box[threadIdx.x] = static_cast<int>(threadIdx.x + blockIdx.x);
  __syncthreads();
  int sum = 0;
  for (unsigned i = 0; i < blockDim.x; ++i) sum += box[i];
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

TEST(host_exec, static_shared_with_fibers) {
  if (threads_mode()) GTEST_SKIP() << "__shared__ is for fibers";
  std::vector<int> out(50);
  ASSERT_EQ(run(sum_in_static_shared, dim3(50), dim3(128), out.data()), hipSuccess);
  for (int b = 0; b < 50; ++b) EXPECT_EQ(out[b], 127 * 128 / 2 + 128 * b);
}

__global__ void some_leave_before_the_barrier(unsigned* passed) {
  if (threadIdx.x % 3 == 0) return;
  __syncthreads();
  atomicAdd(passed, 1u);
  if (threadIdx.x % 3 == 1) return;
  __syncthreads();
  atomicAdd(passed, 1000u);
}

TEST(host_exec, lanes_that_left_are_not_waited_for) {
  unsigned passed = 0;
  ASSERT_EQ(run(some_leave_before_the_barrier, dim3(1), dim3(99), &passed), hipSuccess);
  EXPECT_EQ(passed, 66u + 33000u);
}

// --- Wave operations ---

__global__ void wave_operations(unsigned* bad) {
  const unsigned waves_first = thread_in_workgroup() - lane_id();
  const unsigned in_wave = workgroup_size() - waves_first < wave_size() ? workgroup_size() - waves_first : wave_size();
  const u64 all = in_wave == 64 ? ~u64{0} : (u64{1} << in_wave) - 1;
  const lanes w = whole_wave();
  if (w.mask != all || w.count() != in_wave || w.rank() != lane_id()) atomicAdd(bad, 1u);
  for (unsigned round = 0; round < 20; ++round) {
    u64 expected = 0;
    for (unsigned l = 0; l < in_wave; ++l)
      if ((l + round) % 3 == 0) expected |= u64{1} << l;
    if (w.ballot((lane_id() + round) % 3 == 0) != expected) atomicAdd(bad, 1u);
    const unsigned from = (lane_id() + round) % in_wave;
    if (w.shuffle(u64{lane_id()} * 0x100000001 + round, from) != u64{from} * 0x100000001 + round) atomicAdd(bad, 1u);
    if (w.first(lane_id() + 7) != 7) atomicAdd(bad, 1u);
    w.sync();
    // Two groups with disjoint masks at work at the same time, one doing more than the other.
    const bool odd = lane_id() % 2 != 0;
    const lanes half{w.ballot(odd) ^ (odd ? 0 : all)};
    if (!half.alone()) {
      for (int i = 0; i < (odd ? 3 : 5); ++i)
        if (half.ballot(lane_id() % 4 == (odd ? 1 : 2)) !=
            (half.mask & (odd ? 0x2222222222222222 : 0x4444444444444444)))
          atomicAdd(bad, 1u);
    }
    if (in_wave > 1 && !w.alone()) {
      u64 same = 0;
      for (unsigned l = 0; l < in_wave; ++l)
        if (l % 5 == lane_id() % 5) same |= u64{1} << l;
      if (xio::host_exec::match(w.mask, u64{lane_id() % 5} << 40) != same) atomicAdd(bad, 1u);
    }
  }
  if (__ballot(1) != all) atomicAdd(bad, 1u);
  if (__shfl(3.5 * lane_id(), 0) != 0.0) atomicAdd(bad, 1u);
}

TEST(host_exec, wave_operations_on_whole_and_partial_waves) {
  for (unsigned threads : {1u, 2u, 31u, 32u, 33u, 64u, 65u, 129u}) {
    unsigned bad = 0;
    ASSERT_EQ(run(wave_operations, dim3(3), dim3(threads), &bad), hipSuccess);
    EXPECT_EQ(bad, 0u) << threads << " threads";
  }
}

__global__ void wave_shrinks(u64* seen) {
  // Lane l takes part in l rounds; whole_wave() is who is left.
  for (unsigned round = 0; round < lane_id(); ++round) {
    const u64 mask = whole_wave().mask;
    if (lane_id() == wave_size() - 1) seen[round] = mask;
  }
}

TEST(host_exec, whole_wave_is_who_has_not_left) {
  const unsigned n = lanes_per_wave();
  std::vector<u64> seen(64);
  ASSERT_EQ(run(wave_shrinks, dim3(1), dim3(n), seen.data()), hipSuccess);
  for (unsigned round = 0; round + 1 < n; ++round) EXPECT_EQ(seen[round], mask_of(n) & ~mask_of(round + 1)) << round;
}

// --- Convergence ---

__global__ void uniform_loop(unsigned rounds, unsigned* whole, unsigned* bad) {
  for (unsigned i = 0; i < rounds; ++i) {
    const lanes g = converged_lanes();
    if ((g.mask >> lane_id() & 1) == 0) atomicAdd(bad, 1u);
    if (g.first(lane_id()) != lowest_bit(g.mask)) atomicAdd(bad, 1u);
    if (g.leader() && g.count() == wave_size()) atomicAdd(whole, 1u);
  }
}

TEST(host_exec, lanes_of_a_uniform_loop_come_together) {
  unsigned whole = 0, bad = 0;
  ASSERT_EQ(run(uniform_loop, dim3(1), dim3(256), 100u, &whole, &bad), hipSuccess);
  EXPECT_EQ(bad, 0u);
  if (!threads_mode()) {
    EXPECT_GE(whole, 90u * 256 / lanes_per_wave());
  }
}

__global__ void diverging(unsigned* mixed, u32* flag) {
  for (unsigned i = 0; i < 50; ++i) {
    const unsigned way = (lane_id() + i) % 5;
    if (way == 0) {
      const lanes g = converged_lanes();
      if (g.ballot(way == 0) != g.mask) atomicAdd(mixed, 1u);
    } else if (way == 1) {
      const lanes g = converged_lanes();
      if (g.shuffle(way, lowest_bit(g.mask)) != 1) atomicAdd(mixed, 1u);
    } else if (way == 2) {
      xio::dev::pause();
    } else if (way == 3) {
      for_each_key(lane_id() % 3, [&](const lanes& g) {
        if (g.ballot(lane_id() % 3 == static_cast<unsigned>(g.first(lane_id())) % 3) != g.mask) atomicAdd(mixed, 1u);
      });
    } else if (lane_id() == 4 && i == 30) {
      return;
    }
  }
  // One lane of each wave waits for what another wave does last.
  if (lane_id() == 0)
    while (load<scope::system, order::acquire>(flag) == 0 && thread_in_workgroup() != workgroup_size() - wave_size())
      xio::dev::pause();
  if (thread_in_workgroup() == workgroup_size() - wave_size()) store<scope::system, order::release>(flag, 1u);
}

TEST(host_exec, diverging_lanes_neither_mix_nor_hang) {
  unsigned mixed = 0;
  u32 flag = 0;
  ASSERT_EQ(run(diverging, dim3(1), dim3(256), &mixed, &flag), hipSuccess);
  EXPECT_EQ(mixed, 0u);
}

// --- Failure ---

__global__ void one_throws(u32* never) {
  if (threadIdx.x == 5) throw std::runtime_error("on purpose");
  if (threadIdx.x % 2 == 0) __syncthreads();
  while (load<scope::system, order::acquire>(never) == 0) xio::dev::pause();
}

__global__ void waits_for_nobody() {
  if (threadIdx.x == 0) xio::host_exec::ballot(3, true);  // lane 1 never calls
  if (threadIdx.x == 1) __syncthreads();                  // lane 0 never calls
}

TEST(host_exec, an_exception_is_a_launch_failure) {
  u32 never = 0;
  EXPECT_EQ(run(one_throws, dim3(2), dim3(70), &never), hipErrorLaunchFailure);
  unsigned n = 0;
  EXPECT_EQ(run(count_up, dim3(2), dim3(70), &n), hipSuccess);
  EXPECT_EQ(n, 140u);
}

TEST(host_exec, a_workgroup_that_waits_for_nobody_is_a_launch_failure) {
  if (threads_mode()) GTEST_SKIP() << "only the fibers' scheduler sees it";
  EXPECT_EQ(run(waits_for_nobody, dim3(1), dim3(2)), hipErrorLaunchFailure);
  unsigned n = 0;
  EXPECT_EQ(run(count_up, dim3(1), dim3(2), &n), hipSuccess);
}

}  // namespace
