// SPDX-License-Identifier: MIT
// HIP calls on the host platform with what is no handle, no more one, or another kind of memory: an error of HIP's, and
// the process lives and what is live works.
#include "../gtest.hpp"
#include "xio/device/impl/forms.hpp"
#include "xio/hip.h"

namespace {

template <class Call>
void is(hipError_t wanted, Call&& call) {
  (void)hipGetLastError();
  EXPECT_PAIRS((call(), wanted), (hipGetLastError(), wanted));
}

__global__ void count(int* n) { atomicAdd(n, 1); }

TEST(host_misuse, memory_is_freed_once_and_as_what_it_is) {
  char *device = nullptr, *host = nullptr;
  ASSERT_EQ(hipMalloc(&device, 100), hipSuccess);
  ASSERT_EQ(hipHostMalloc(&host, 100), hipSuccess);
  int local = 0;
  auto* own = new char[64];
  for (void* wrong : {reinterpret_cast<void*>(0x1234), static_cast<void*>(device + 16), static_cast<void*>(host),
                      static_cast<void*>(&local), static_cast<void*>(own)})
    is(hipErrorInvalidValue, [&] { return hipFree(wrong); });
  for (void* wrong : {reinterpret_cast<void*>(0x1234), static_cast<void*>(host + 16), static_cast<void*>(device),
                      static_cast<void*>(&local), static_cast<void*>(own)})
    is(hipErrorInvalidValue, [&] { return hipHostFree(wrong); });
  delete[] own;
  // None of that has freed them.
  EXPECT_PAIRS((hipMemset(device, 7, 100), hipSuccess),
               (hipMemcpy(host, device, 100, hipMemcpyDeviceToHost), hipSuccess), (host[99], 7),
               (hipFree(device), hipSuccess));
  is(hipErrorInvalidValue, [&] { return hipFree(device); });
  EXPECT_EQ(hipHostFree(host), hipSuccess);
  is(hipErrorInvalidValue, [&] { return hipHostFree(host); });
  EXPECT_EQ(hipFree(nullptr), hipSuccess);
  EXPECT_EQ(hipHostFree(nullptr), hipSuccess);
}

TEST(host_misuse, copies_stay_in_their_blocks) {
  char* block = nullptr;
  ASSERT_EQ(hipMalloc(&block, 100), hipSuccess);
  char other[200] = {};
  is(hipErrorInvalidValue, [&] { return hipMemcpy(block, other, 101, hipMemcpyHostToDevice); });
  is(hipErrorInvalidValue, [&] { return hipMemcpy(block + 60, other, 41, hipMemcpyHostToDevice); });
  is(hipErrorInvalidValue, [&] { return hipMemcpy(other, block + 1, 100, hipMemcpyDeviceToHost); });
  is(hipErrorInvalidValue, [&] { return hipMemset(block, 0, 101); });
  is(hipErrorInvalidValue, [&] { return hipMemset(block, 0, SIZE_MAX); });
  is(hipErrorInvalidValue, [&] { return hipMemcpy(nullptr, other, 1, hipMemcpyHostToDevice); });
  is(hipErrorInvalidValue, [&] { return hipMemset(nullptr, 0, 1); });
  is(hipErrorInvalidMemcpyDirection,
     [&] { return hipMemcpy(block, other, 1, static_cast<hipMemcpyKind>(hipMemcpyDefault + 1)); });
  is(hipErrorInvalidMemcpyDirection, [&] { return hipMemcpy(block, other, 1, static_cast<hipMemcpyKind>(-1)); });
  EXPECT_PAIRS((hipMemcpy(block + 60, other, 40, hipMemcpyHostToDevice), hipSuccess),
               (hipMemset(block, 0, 100), hipSuccess), (hipFree(block), hipSuccess));
}

// Every call that takes a stream.
void refused_everywhere(hipStream_t s, hipEvent_t event) {
  int n = 0;
  char byte = 0;
  is(hipErrorInvalidHandle, [&] { return hipStreamSynchronize(s); });
  is(hipErrorInvalidHandle, [&] { return hipStreamQuery(s); });
  is(hipErrorInvalidHandle, [&] { return hipStreamWaitEvent(s, event); });
  is(hipErrorInvalidHandle, [&] { return hipEventRecord(event, s); });
  is(hipErrorInvalidHandle, [&] { return hipMemsetAsync(&byte, 1, 1, s); });
  is(hipErrorInvalidHandle, [&] { return hipMemcpyAsync(&byte, "x", 1, hipMemcpyHostToHost, s); });
  is(hipErrorInvalidHandle, [&] {
    return hipLaunchHostFunc(
        s, [](void*) {}, nullptr);
  });
  is(hipErrorInvalidHandle, [&] {
    hipLaunchKernelGGL(count, dim3(1), dim3(1), 0, s, &n);
    return hipPeekAtLastError();
  });
  is(hipErrorInvalidHandle, [&] { return hipStreamDestroy(s); });
  EXPECT_PAIRS((hipDeviceSynchronize(), hipSuccess), (n, 0), (byte, 0));
}

TEST(host_misuse, streams) {
  hipEvent_t event = nullptr;
  ASSERT_EQ(hipEventCreate(&event), hipSuccess);
  refused_everywhere(reinterpret_cast<hipStream_t>(0x99), event);
  refused_everywhere(reinterpret_cast<hipStream_t>(event), event);
  hipStream_t gone = nullptr;
  ASSERT_EQ(hipStreamCreate(&gone), hipSuccess);
  ASSERT_EQ(hipStreamDestroy(gone), hipSuccess);
  refused_everywhere(gone, event);
  // A stale handle does not become another stream's.
  std::set<hipStream_t> later;
  for (int i = 0; i < 100; ++i) {
    hipStream_t s = nullptr;
    ASSERT_EQ(hipStreamCreate(&s), hipSuccess);
    later.insert(s);
  }
  EXPECT_EQ(later.size(), 100u);
  EXPECT_FALSE(later.contains(gone));
  refused_everywhere(gone, event);
  for (const hipStream_t s : later) EXPECT_EQ(hipStreamDestroy(s), hipSuccess);
  is(hipErrorInvalidHandle, [] { return hipStreamDestroy(nullptr); });
  EXPECT_EQ(hipEventDestroy(event), hipSuccess);
}

TEST(host_misuse, events) {
  hipEvent_t live = nullptr, gone = nullptr;
  hipStream_t stream = nullptr;
  ASSERT_EQ(hipStreamCreate(&stream), hipSuccess);
  ASSERT_EQ(hipEventCreate(&live), hipSuccess);
  ASSERT_EQ(hipEventCreate(&gone), hipSuccess);
  ASSERT_EQ(hipEventRecord(live), hipSuccess);
  ASSERT_EQ(hipEventRecord(gone), hipSuccess);
  ASSERT_EQ(hipEventDestroy(gone), hipSuccess);
  float ms = 0;
  for (const hipEvent_t e :
       {gone, hipEvent_t{}, reinterpret_cast<hipEvent_t>(0x99), reinterpret_cast<hipEvent_t>(stream)}) {
    is(hipErrorInvalidHandle, [&] { return hipEventRecord(e); });
    is(hipErrorInvalidHandle, [&] { return hipEventSynchronize(e); });
    is(hipErrorInvalidHandle, [&] { return hipEventQuery(e); });
    is(hipErrorInvalidHandle, [&] { return hipStreamWaitEvent(stream, e); });
    is(hipErrorInvalidHandle, [&] { return hipEventElapsedTime(&ms, e, live); });
    is(hipErrorInvalidHandle, [&] { return hipEventElapsedTime(&ms, live, e); });
    is(hipErrorInvalidHandle, [&] { return hipEventDestroy(e); });
  }
  EXPECT_PAIRS((hipEventSynchronize(live), hipSuccess), (hipEventDestroy(live), hipSuccess),
               (hipStreamDestroy(stream), hipSuccess));
}

// Work that was given to a stream still runs to its end after the stream is destroyed.
TEST(host_misuse, a_destroyed_stream_ends_its_work) {
  int* n = nullptr;
  ASSERT_EQ(hipHostMalloc(&n, sizeof *n), hipSuccess);
  *n = 0;
  hipStream_t s = nullptr;
  ASSERT_EQ(hipStreamCreate(&s), hipSuccess);
  for (int i = 0; i < 50; ++i) hipLaunchKernelGGL(count, dim3(2), dim3(64), 0, s, n);
  ASSERT_EQ(hipStreamDestroy(s), hipSuccess);
  ASSERT_EQ(hipDeviceSynchronize(), hipSuccess);
  EXPECT_EQ(*n, 50 * 128);
  EXPECT_EQ(hipHostFree(n), hipSuccess);
}

__global__ void call_host(hipError_t* got) {
  void* p = nullptr;
  got[0] = hipDeviceSynchronize(), got[1] = hipStreamSynchronize(nullptr), got[2] = hipMalloc(&p, 8),
  got[3] = hipFree(got);
}
// Calls of the host by a kernel, which is what they would wait for.
TEST(host_misuse, kernels_make_no_calls_of_the_host) {
  static hipError_t got[4];
  testing::internal::CaptureStderr();
  hipLaunchKernelGGL(call_host, dim3(1), dim3(2), 0, nullptr, got);
  EXPECT_EQ(hipDeviceSynchronize(), hipSuccess);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("a kernel made a call of HIP that is the host's"),
            std::string::npos);
  for (const hipError_t one : got) EXPECT_EQ(one, hipErrorInvalidValue);
}

// --- Calls of a group that not all of it makes ---

// A call of XIO's, as all are defined.
XIO_DEFINE_GROUP_FORMS(xio_status_t, trial, (const int* data, int n), (data, n),
                       (g.sync(), n < 0 ? XIO_ERR_ARG : XIO_OK))

enum class use {
  // clang-format off
  right, right_wave, one, parts, branches, beside_syncthreads, first_lanes, wave_parts, ended, ends_late, wave_ended
  // clang-format on
};

__global__ void call_as(use how, const int* data) {
  const int t = static_cast<int>(threadIdx.x);
  switch (how) {
    case use::right: trial_wg(data, 8), trial_wg(data + 1, 8); break;
    case use::right_wave: trial_wave(data + t / warpSize, t / warpSize), __syncthreads(); break;
    case use::one:
      if (t == 0) trial_wg(data, 8);
      break;
    case use::parts: trial_wg(data + t, 8); break;
    case use::branches: t < 64 ? trial_wg(data, 8) : trial_wg(data + 64, 8); break;
    case use::beside_syncthreads:
      if (t < 7)
        trial_wg(data, 8);
      else
        __syncthreads();
      break;
    case use::first_lanes:
      if (t % warpSize == 0) trial_wave(data, 8);
      break;
    case use::wave_parts: trial_wave(data + t, 8); break;
    case use::ended:
      if (t >= 100) return;
      trial_wg(data, 8);
      break;
    case use::ends_late:
      if (t < 7) return;
      trial_wg(data, 8);
      break;
    case use::wave_ended:
      if (t % warpSize >= 3) return;
      trial_wave(data, 8);
      break;
  }
  __syncthreads();
}

TEST(host_misuse, a_call_of_a_group_is_made_by_all_of_it) {
  const struct {
    use how;
    const char* words;  // "": the kernel ends well
  } cases[] = {
      {use::right, ""},
      {use::right_wave, ""},
      {use::one, "some threads of a workgroup are in trial_wg, and others in no call of a group"},
      {use::parts, "threads of one workgroup gave trial_wg different arguments"},
      {use::branches, "threads of one workgroup gave trial_wg different arguments"},
      {use::beside_syncthreads, "some threads of a workgroup are in trial_wg"},
      {use::first_lanes, "some threads of a wave are in trial_wave"},
      {use::wave_parts, "threads of one wave gave trial_wave different arguments"},
      {use::ended, "some threads of a workgroup are in trial_wg, and others have ended"},
      {use::ends_late, "some threads of a workgroup are in trial_wg, and others have ended"},
      {use::wave_ended, "some threads of a wave are in trial_wave, and others have ended"},
  };
  static int data[256];
  for (const auto& c : cases) {
    testing::internal::CaptureStderr();
    hipLaunchKernelGGL(call_as, dim3(2), dim3(128), 0, nullptr, c.how, data);
    const hipError_t ended = hipDeviceSynchronize();
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(ended, *c.words == '\0' ? hipSuccess : hipErrorLaunchFailure) << c.words;
    EXPECT_NE(said.find(c.words), std::string::npos) << c.words << ", not: " << said;
  }
}

}  // namespace
