// SPDX-License-Identifier: MIT
// The part of HIP that real programs use beside XIO's own, on the host platform: shuffles, votes, atomics with an order
// and a scope, the workgroup of cooperative groups, and kernels that are overloads or templates.
#include "../gtest.hpp"
#include "xio/hip.h"
#include "xio/hip_groups.h"

namespace {

int lanes_per_wave() {
  const char* wave = std::getenv("XIO_HOST_WAVE");
  return wave != nullptr && std::strcmp(wave, "32") == 0 ? 32 : 64;
}

// --- Shuffles: HIP's programming guide, "Warp shuffle functions" ---

constexpr int k_forms = 8;

__global__ void shuffles(int* out) {
  const int lane = static_cast<int>(threadIdx.x), mine = 100 + lane;
  int* row = out + lane * k_forms;
  row[0] = __shfl(mine, 5);
  row[1] = __shfl(mine, 5, 16);
  row[2] = __shfl_up(mine, 3);
  row[3] = __shfl_up(mine, 3, 8);
  row[4] = __shfl_down(mine, 2);
  row[5] = __shfl_down(mine, 2, 8);
  row[6] = __shfl_xor(mine, 9);
  row[7] = __shfl_xor(mine, 1, 4);
}

TEST(hip_names, shuffles_give_the_value_of_another_lane_of_their_part) {
  const int n = lanes_per_wave();
  std::vector<int> out(static_cast<size_t>(n * k_forms));
  hipLaunchKernelGGL(shuffles, dim3(1), dim3(static_cast<unsigned>(n)), 0, nullptr, out.data());
  ASSERT_EQ(hipDeviceSynchronize(), hipSuccess);
  for (int lane = 0; lane < n; ++lane) {
    const int in8 = lane % 8;
    const int wanted[k_forms] = {5,
                                 lane / 16 * 16 + 5,
                                 lane < 3 ? lane : lane - 3,
                                 in8 < 3 ? lane : lane - 3,
                                 lane + 2 < n ? lane + 2 : lane,
                                 in8 + 2 < 8 ? lane + 2 : lane,
                                 lane ^ 9,
                                 lane ^ 1};
    for (int form = 0; form < k_forms; ++form)
      EXPECT_EQ(out[static_cast<size_t>(lane * k_forms + form)], 100 + wanted[form])
          << "lane " << lane << " form " << form;
  }
}

// A wave of 20 lanes: one that was not launched gives nothing.
__global__ void sum_by_shuffles(double* out) {
  double sum = threadIdx.x + 0.5;
  for (int delta = warpSize / 2; delta > 0; delta /= 2) {
    const double other = __shfl_down(sum, static_cast<unsigned>(delta));
    if (static_cast<int>(threadIdx.x) + delta < static_cast<int>(blockDim.x)) sum += other;
  }
  if (threadIdx.x == 0) *out = sum;
}

TEST(hip_names, a_reduction_by_shuffles_sums_all_lanes_of_a_part_wave) {
  double sum = 0;
  hipLaunchKernelGGL(sum_by_shuffles, dim3(1), dim3(20), 0, nullptr, &sum);
  ASSERT_EQ(hipDeviceSynchronize(), hipSuccess);
  EXPECT_EQ(sum, 200.0);  // 0.5 + 1.5 + ... + 19.5
}

// --- Votes ---

__global__ void votes(int* out) {
  const int lane = static_cast<int>(threadIdx.x);
  const int some = __any(lane == 7), none = __any(lane == 1000), every = __all(lane >= 0), not_every = __all(lane != 7);
  const bool ballots = __ballot(lane % 2) == (0xaaaaaaaaaaaaaaaaull & __activemask());
  // A part of the wave by its own mask, while the others do something else.
  int part = 1;
  if (lane < 4)
    part = __any_sync(0xf, lane == 3) != 0 && __all_sync(0xf, lane < 4) != 0 && __ballot_sync(0xf, 1) == 0xf;
  out[lane] = some | none << 1 | every << 2 | not_every << 3 | ballots << 4 | part << 5;
}

TEST(hip_names, votes_are_of_all_lanes_of_the_wave_or_of_a_mask) {
  const int n = lanes_per_wave();
  std::vector<int> out(static_cast<size_t>(n));
  hipLaunchKernelGGL(votes, dim3(1), dim3(static_cast<unsigned>(n)), 0, nullptr, out.data());
  ASSERT_EQ(hipDeviceSynchronize(), hipSuccess);
  for (const int got : out) EXPECT_EQ(got, 0b110101);
}

// --- Atomics ---

__global__ void atomics(unsigned* sum, double* real, int* least, int* most, unsigned* flag, int* bad) {
  const int me = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  __hip_atomic_fetch_add(sum, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  __hip_atomic_fetch_add(real, 0.25, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
  __hip_atomic_fetch_min(least, -me, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  __hip_atomic_fetch_max(most, me, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  if (me != 0) return;
  __hip_atomic_store(flag, 12u, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
  unsigned expected = 5;
  if (__hip_atomic_compare_exchange_strong(flag, &expected, 9u, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED,
                                           __HIP_MEMORY_SCOPE_SYSTEM) ||
      expected != 12)
    *bad = 1;
  if (!__hip_atomic_compare_exchange_strong(flag, &expected, 0xf0u, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED,
                                            __HIP_MEMORY_SCOPE_SYSTEM))
    *bad = 2;
  if (__hip_atomic_exchange(flag, 0x3cu, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT) != 0xf0) *bad = 3;
  if (__hip_atomic_fetch_and(flag, 0x0fu, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) != 0x3c) *bad = 4;
  if (__hip_atomic_fetch_or(flag, 0x30u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) != 0x0c) *bad = 5;
  if (__hip_atomic_fetch_xor(flag, 0xffu, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) != 0x3c) *bad = 6;
  if (__hip_atomic_fetch_sub(flag, 3u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP) != 0xc3) *bad = 7;
  if (__hip_atomic_load(flag, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM) != 0xc0) *bad = 8;
}

TEST(hip_names, atomics_with_order_and_scope_lose_nothing) {
  unsigned sum = 0, flag = 0;
  double real = 0;
  int least = 0, most = 0, bad = 0;
  hipLaunchKernelGGL(atomics, dim3(4), dim3(100), 0, nullptr, &sum, &real, &least, &most, &flag, &bad);
  ASSERT_EQ(hipDeviceSynchronize(), hipSuccess);
  EXPECT_PAIRS((sum, 400u), (real, 100.0), (least, -399), (most, 399), (bad, 0));
}

// --- Kernels of one name ---

__global__ void fill(int* out, int value) { *out = value; }
__global__ void fill(double* out, double value) { *out = value; }
template <class T>
__global__ void doubled(T* out, T value) {
  *out = static_cast<T>(value + value);
}
template <class T, int Times>
__global__ void times(T* out, T value) {
  *out = static_cast<T>(value * Times);
}

TEST(hip_names, a_launch_chooses_among_overloads_and_deduces_templates) {
  int whole = 0, twice = 0, five = 0;
  double real = 0;
  hipLaunchKernelGGL(fill, dim3(1), dim3(1), 0, nullptr, &whole, 3);
  hipLaunchKernelGGL(fill, dim3(1), dim3(1), 0, nullptr, &real, 2.5);
  hipLaunchKernelGGL(doubled, dim3(1), dim3(1), 0, nullptr, &twice, 21);
  hipLaunchKernelGGL(HIP_KERNEL_NAME(times<int, 5>), dim3(1), dim3(1), 0, nullptr, &five, 7);
  ASSERT_EQ(hipDeviceSynchronize(), hipSuccess);
  EXPECT_PAIRS((whole, 3), (real, 2.5), (twice, 42), (five, 35));
}

// The arguments are those of the launch, though the variables change after it.
TEST(hip_names, a_launch_copies_its_arguments) {
  int out = 0, value = 4;
  hipLaunchKernelGGL(fill, dim3(1), dim3(1), 0, nullptr, &out, value);
  value = 5;
  ASSERT_EQ(hipDeviceSynchronize(), hipSuccess);
  EXPECT_EQ(out, 4);
}

// --- The workgroup as a group ---

__global__ void by_group(unsigned* ranks, unsigned* sum) {
  namespace cg = cooperative_groups;
  const cg::thread_block group = cg::this_thread_block();
  ranks[group.group_index().x * group.size() + group.thread_rank()] = group.thread_rank() + 1000 * group.num_threads();
  group.sync();
  if (group.thread_rank() != 0) return;
  for (unsigned i = 0; i < group.size(); ++i)
    sum[group.group_index().x] += ranks[group.group_index().x * group.size() + i];
}

TEST(hip_names, a_workgroup_is_a_group) {
  std::vector<unsigned> ranks(2 * 30), sums(2);
  hipLaunchKernelGGL(by_group, dim3(2), dim3(5, 3, 2), 0, nullptr, ranks.data(), sums.data());
  ASSERT_EQ(hipDeviceSynchronize(), hipSuccess);
  for (unsigned i = 0; i < 60; ++i) EXPECT_EQ(ranks[i], i % 30 + 30000);
  for (const unsigned sum : sums) EXPECT_EQ(sum, 435u + 30 * 30000);
}

// --- Arithmetic, vectors, and what else a program has that was never written for XIO ---

struct event {
  int threadIdx, blockDim;  // a member may have such a name
};

__constant__ int scale;

__global__ void arithmetic(double* out, float4 v, int n) {
  const event e{static_cast<int>(threadIdx.x), 2};
  const dim3 block = blockDim;
  const double all[] = {sqrtf(v.x),
                        pow(2.0, 3.0),
                        max(1, 2),
                        static_cast<double>(min(2u, 7u)),
                        max(1.5f, v.y),
                        static_cast<double>(__clz(1)),
                        static_cast<double>(__brev(1u) >> 31),
                        rsqrtf(v.x),
                        static_cast<double>(__umulhi(1u << 31, 4)),
                        __int_as_float(__float_as_int(v.z)),
                        static_cast<double>(e.threadIdx + e.blockDim),
                        static_cast<double>(block.x),
                        static_cast<double>(scale * n),
                        static_cast<double>(make_uint3(1, 2, 3).z)};
  for (std::size_t i = 0; i < std::size(all); ++i) out[i] = all[i];
}

TEST(hip_names, arithmetic_vectors_symbols_and_launches_by_pointers) {
  static_assert(alignof(float4) == 16 && alignof(float2) == 8 && sizeof(float3) == 12 && alignof(double4) == 16);
  double got[14] = {};
  double* out = got;
  float4 v = make_float4(4, 2.5f, -3, 0);
  int n = 3;
  const int seven = 7;
  ASSERT_EQ(hipMemcpyToSymbol(HIP_SYMBOL(scale), &seven, sizeof seven), hipSuccess);
  EXPECT_EQ(hipMemcpyToSymbol(HIP_SYMBOL(scale), &seven, sizeof seven, 1), hipErrorInvalidValue);
  void* arguments[] = {&out, &v, &n};
  ASSERT_EQ(hipLaunchCooperativeKernel(arithmetic, dim3(1), dim3(1), arguments, 0, nullptr), hipSuccess);
  ASSERT_EQ(hipDeviceSynchronize(), hipSuccess);
  const double wanted[] = {2, 8, 2, 2, 2.5, 31, 1, 0.5, 2, -3, 2, 1, 21, 3};
  for (std::size_t i = 0; i < std::size(wanted); ++i) EXPECT_EQ(got[i], wanted[i]) << i;
  EXPECT_EQ(hipLaunchCooperativeKernel(arithmetic, dim3(1 << 20), dim3(1), arguments, 0, nullptr),
            hipErrorCooperativeLaunchTooLarge);
  int blocks = 0, threads = 0, peers = 1;
  EXPECT_PAIRS((hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, arithmetic, 64, 0), hipSuccess), (blocks, 1),
               (hipOccupancyMaxPotentialBlockSize(&blocks, &threads, arithmetic), hipSuccess), (threads, 1024),
               (hipDeviceCanAccessPeer(&peers, 0, 0), hipSuccess), (peers, 0),
               (hipDeviceEnablePeerAccess(1, 0), hipErrorInvalidDevice));
}

}  // namespace
