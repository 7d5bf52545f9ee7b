// SPDX-License-Identifier: MIT
// Streams, events and progress on the host platform: kernels that wait for each other all get their turn.
#include <sched.h>

#include "../gtest.hpp"
#include "xio/device/platform/platform.hpp"
#include "xio/hip.h"

using namespace xio::dev;

namespace {

class streams {
 public:
  explicit streams(int n, unsigned flags = hipStreamNonBlocking) : all_(n) {
    for (auto& s : all_) EXPECT_EQ(hipStreamCreateWithFlags(&s, flags), hipSuccess);
  }
  ~streams() {
    for (auto& s : all_) EXPECT_EQ(hipStreamDestroy(s), hipSuccess);
  }
  hipStream_t operator[](int i) const { return all_[i]; }

 private:
  std::vector<hipStream_t> all_;
};

__global__ void hand_over(u32* word, u32 me, u32 players, u32 rounds) {
  if (threadIdx.x == 0)
    for (u32 i = 0; i < rounds; ++i) {
      while (load<scope::system, order::acquire>(word) % players != me) xio::dev::pause();
      fetch_add<scope::system, order::acq_rel>(word, 1u);
    }
  __syncthreads();
}

TEST(host_streams, kernels_on_two_streams_hand_a_flag_to_each_other) {
  const streams s(2);
  u32 word = 0;
  for (u32 i = 0; i < 2; ++i)
    hipLaunchKernelGGL(hand_over, dim3(1), dim3(64), 0, s[static_cast<int>(i)], &word, i, 2, 1000);
  ASSERT_EQ(hipStreamSynchronize(s[0]), hipSuccess);
  ASSERT_EQ(hipStreamSynchronize(s[1]), hipSuccess);
  EXPECT_EQ(word, 2000u);
}

__global__ void spin_until(u32* flag) {
  while (load<scope::system, order::acquire>(flag) == 0) xio::dev::pause();
}

TEST(host_streams, a_spinning_kernel_starves_nobody) {
  const streams s(4);
  u32 stop = 0, word = 0;
  hipLaunchKernelGGL(spin_until, dim3(2), dim3(256), 0, s[3], &stop);
  EXPECT_EQ(hipStreamQuery(s[3]), hipErrorNotReady);
  for (u32 i = 0; i < 3; ++i)
    hipLaunchKernelGGL(hand_over, dim3(1), dim3(256), 0, s[static_cast<int>(i)], &word, i, 3, 100);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(hipStreamSynchronize(s[i]), hipSuccess);
  EXPECT_EQ(word, 300u);
  EXPECT_EQ(hipStreamQuery(s[3]), hipErrorNotReady);
  store<scope::system, order::release>(&stop, 1u);
  EXPECT_EQ(hipStreamSynchronize(s[3]), hipSuccess);
  EXPECT_EQ(hipStreamQuery(s[3]), hipSuccess);
}

// By threads that share one core. Counts how often this one looked in vain.
__global__ void hand_over_on_one_core(u32* word, u32 me, u32 rounds, u64* looks) {
  cpu_set_t before, one;
  CPU_ZERO(&one);
  if (sched_getaffinity(0, sizeof before, &before) != 0) return;
  for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  if (sched_setaffinity(0, sizeof one, &one) != 0) return;
  for (u32 i = 0; i < rounds; ++i) {
    for (; load<scope::system, order::acquire>(word) % 2 != me; ++*looks) xio::dev::pause();
    fetch_add<scope::system, order::acq_rel>(word, 1u);
  }
  sched_setaffinity(0, sizeof before, &before);
}

TEST(host_streams, a_lane_that_waits_for_one_on_its_own_core_gives_way_at_once) {
  constexpr u32 rounds = 2000;
  const streams s(2);
  u32 word = 0;
  u64 looks[2] = {};
  for (u32 i = 0; i < 2; ++i)
    hipLaunchKernelGGL(hand_over_on_one_core, dim3(1), dim3(1), 0, s[static_cast<int>(i)], &word, i, rounds, &looks[i]);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(hipStreamSynchronize(s[i]), hipSuccess);
  EXPECT_EQ(word, 2 * rounds);
  // The first waits look longer: nobody has taken the core yet.
  EXPECT_LT(looks[0] + looks[1], 2 * rounds * u64{8});
}

__global__ void append(u32* list, u32* n, u32 what) { list[fetch_add<scope::system, order::acq_rel>(n, 1u)] = what; }

// Nothing is appended while a kernel spins, which ends now.
void expect_held_up(u32* n, u32* stop, int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
  EXPECT_EQ((load<scope::system, order::acquire>(n)), 0u);
  store<scope::system, order::release>(stop, 1u);
}

TEST(host_streams, a_stream_keeps_its_order) {
  const streams s(1);
  std::vector<u32> list(200);
  u32 n = 0, copied = 0;
  for (u32 i = 0; i < 100; ++i) hipLaunchKernelGGL(append, dim3(1), dim3(1), 0, s[0], list.data(), &n, i);
  ASSERT_EQ(hipMemcpyAsync(&copied, &n, sizeof n, hipMemcpyDefault, s[0]), hipSuccess);
  for (u32 i = 100; i < 200; ++i) hipLaunchKernelGGL(append, dim3(1), dim3(1), 0, s[0], list.data(), &n, i);
  ASSERT_EQ(hipStreamSynchronize(s[0]), hipSuccess);
  EXPECT_PAIRS((n, 200u), (copied, 100u));
  for (u32 i = 0; i < 200; ++i) ASSERT_EQ(list[i], i);
}

TEST(host_streams, the_default_stream_waits_for_blocking_streams_and_they_for_it) {
  const streams s(1, hipStreamDefault);
  u32 stop = 0, n = 0;
  std::vector<u32> list(3);
  hipLaunchKernelGGL(spin_until, dim3(1), dim3(1), 0, s[0], &stop);
  hipLaunchKernelGGL(append, dim3(1), dim3(1), 0, s[0], list.data(), &n, 1);
  hipLaunchKernelGGL(append, dim3(1), dim3(1), 0, nullptr, list.data(), &n, 2);
  hipLaunchKernelGGL(append, dim3(1), dim3(1), 0, s[0], list.data(), &n, 3);
  expect_held_up(&n, &stop, 20);
  ASSERT_EQ(hipDeviceSynchronize(), hipSuccess);
  EXPECT_EQ(list, (std::vector<u32>{1, 2, 3}));
}

__global__ void spin_then_fail(u32* flag) {
  while (load<scope::system, order::acquire>(flag) == 0) xio::dev::pause();
  throw std::runtime_error("meant to fail");
}

TEST(host_streams, work_of_a_destroyed_stream_is_waited_for_and_its_failure_reported) {
  hipStream_t s = nullptr;
  ASSERT_EQ(hipStreamCreateWithFlags(&s, hipStreamNonBlocking), hipSuccess);
  u32 stop = 0;
  hipLaunchKernelGGL(spin_then_fail, dim3(1), dim3(1), 0, s, &stop);
  ASSERT_EQ(hipStreamDestroy(s), hipSuccess);
  std::atomic<bool> returned{false};
  hipError_t said = hipSuccess;
  std::thread waiter([&] {
    said = hipDeviceSynchronize();
    returned = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(returned);
  store<scope::system, order::release>(&stop, 1u);
  waiter.join();
  EXPECT_EQ(said, hipErrorLaunchFailure);
  EXPECT_EQ(hipDeviceSynchronize(), hipSuccess) << "a failure is reported once";
}

TEST(host_streams, a_failure_that_nobody_asked_for_outlives_its_stream) {
  for (const bool ended_before : {true, false}) {
    hipStream_t s = nullptr;
    ASSERT_EQ(hipStreamCreateWithFlags(&s, hipStreamNonBlocking), hipSuccess);
    u32 stop = ended_before ? 1 : 0;
    hipEvent_t end;
    ASSERT_EQ(hipEventCreate(&end), hipSuccess);
    hipLaunchKernelGGL(spin_then_fail, dim3(1), dim3(1), 0, s, &stop);
    ASSERT_EQ(hipEventRecord(end, s), hipSuccess);
    if (ended_before) {
      ASSERT_EQ(hipEventSynchronize(end), hipSuccess);
    }
    ASSERT_EQ(hipStreamDestroy(s), hipSuccess);
    store<scope::system, order::release>(&stop, 1u);
    ASSERT_EQ(hipEventSynchronize(end), hipSuccess);
    EXPECT_PAIRS((hipDeviceSynchronize(), hipErrorLaunchFailure), (hipDeviceSynchronize(), hipSuccess),
                 (hipEventDestroy(end), hipSuccess));
  }
}

TEST(host_streams, freeing_memory_waits_and_leaves_failures_to_their_stream) {
  const streams s(1);
  u32 stop = 0, *other = nullptr;
  ASSERT_EQ(hipMalloc(&other, sizeof *other), hipSuccess);
  hipLaunchKernelGGL(spin_then_fail, dim3(1), dim3(1), 0, s[0], &stop);
  std::thread release([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    store<scope::system, order::release>(&stop, 1u);
  });
  EXPECT_EQ(hipFree(other), hipSuccess);
  EXPECT_EQ(hipStreamQuery(s[0]), hipSuccess) << "no kernel runs when memory goes";
  EXPECT_PAIRS((hipStreamSynchronize(s[0]), hipErrorLaunchFailure), (hipStreamSynchronize(s[0]), hipSuccess));
  release.join();
}

TEST(host_streams, the_default_stream_waits_for_a_destroyed_blocking_stream) {
  hipStream_t s = nullptr;
  ASSERT_EQ(hipStreamCreate(&s), hipSuccess);
  u32 stop = 0, n = 0;
  std::vector<u32> list(2);
  hipLaunchKernelGGL(spin_until, dim3(1), dim3(1), 0, s, &stop);
  hipLaunchKernelGGL(append, dim3(1), dim3(1), 0, s, list.data(), &n, 1);
  ASSERT_EQ(hipStreamDestroy(s), hipSuccess);
  hipLaunchKernelGGL(append, dim3(1), dim3(1), 0, nullptr, list.data(), &n, 2);
  expect_held_up(&n, &stop, 20);
  ASSERT_EQ(hipDeviceSynchronize(), hipSuccess);
  EXPECT_EQ(list, (std::vector<u32>{1, 2}));
}

TEST(host_streams, events_order_streams_and_tell_time) {
  const streams s(2);
  u32 stop = 0, n = 0;
  std::vector<u32> list(2);
  hipEvent_t before, after;
  ASSERT_EQ(hipEventCreate(&before), hipSuccess);
  ASSERT_EQ(hipEventCreate(&after), hipSuccess);
  ASSERT_EQ(hipEventRecord(before, s[0]), hipSuccess);
  hipLaunchKernelGGL(spin_until, dim3(1), dim3(2), 0, s[0], &stop);
  hipLaunchKernelGGL(append, dim3(1), dim3(1), 0, s[0], list.data(), &n, 1);
  ASSERT_EQ(hipEventRecord(after, s[0]), hipSuccess);
  EXPECT_EQ(hipEventQuery(after), hipErrorNotReady);
  ASSERT_EQ(hipStreamWaitEvent(s[1], after, 0), hipSuccess);
  hipLaunchKernelGGL(append, dim3(1), dim3(1), 0, s[1], list.data(), &n, 2);
  expect_held_up(&n, &stop, 30);
  ASSERT_EQ(hipStreamSynchronize(s[1]), hipSuccess);
  EXPECT_EQ(list, (std::vector<u32>{1, 2}));
  ASSERT_EQ(hipEventSynchronize(after), hipSuccess);
  float ms = 0;
  ASSERT_EQ(hipEventElapsedTime(&ms, before, after), hipSuccess);
  EXPECT_GE(ms, 29.0f);
  EXPECT_PAIRS((hipEventDestroy(before), hipSuccess), (hipEventDestroy(after), hipSuccess));
}

TEST(host_streams, host_functions_run_in_order_and_may_wait) {
  const streams s(2);
  struct shared {
    u32 go = 0, seen = 0;
  } state;
  ASSERT_EQ(hipLaunchHostFunc(
                s[0],
                [](void* p) {
                  auto* st = static_cast<shared*>(p);
                  while (__atomic_load_n(&st->go, __ATOMIC_ACQUIRE) == 0) std::this_thread::yield();
                  __atomic_store_n(&st->seen, 1u, __ATOMIC_RELEASE);
                },
                &state),
            hipSuccess);
  // Not held up by the function that waits on the other stream.
  hipLaunchKernelGGL(hand_over, dim3(1), dim3(1), 0, s[1], &state.go, 0, 1, 1);
  ASSERT_EQ(hipStreamSynchronize(s[0]), hipSuccess);
  EXPECT_EQ(state.seen, 1u);
  ASSERT_EQ(hipStreamSynchronize(s[1]), hipSuccess);
}

TEST(host_streams, memory_calls_copy_and_set) {
  unsigned char *a = nullptr, *b = nullptr;
  ASSERT_EQ(hipMalloc(&a, 1000), hipSuccess);
  ASSERT_EQ(hipHostMalloc(&b, 1000, hipHostMallocMapped), hipSuccess);
  ASSERT_EQ(hipMemset(a, 0x5a, 1000), hipSuccess);
  ASSERT_EQ(hipMemset(b, 0, 1000), hipSuccess);
  ASSERT_EQ(hipMemcpy(b + 1, a, 998, hipMemcpyDeviceToHost), hipSuccess);
  EXPECT_PAIRS((b[0], 0), (b[1], 0x5a), (b[998], 0x5a), (b[999], 0),
               (hipMemcpy(nullptr, a, 1, hipMemcpyDefault), hipErrorInvalidValue), (hipFree(a), hipSuccess),
               (hipHostFree(b), hipSuccess));
}

}  // namespace
