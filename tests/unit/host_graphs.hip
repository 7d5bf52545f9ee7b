// SPDX-License-Identifier: MIT
// Captures and graphs on the host platform: work that is done at each launch and not before, forks and joins, and the
// calls that HIP and CUDA refuse beside a capture.
#include "../gtest.hpp"
#include "xio/hip.h"

namespace {

__global__ void add_to(int* word, int value) { *word += value; }

struct host_graphs : ::testing::Test {
  void SetUp() override {
    for (auto& s : streams_) ASSERT_EQ(hipStreamCreateWithFlags(&s, hipStreamNonBlocking), hipSuccess);
    ASSERT_EQ(hipStreamCreate(&blocking_), hipSuccess);
    ASSERT_EQ(hipEventCreate(&fork_), hipSuccess);
    ASSERT_EQ(hipEventCreate(&join_), hipSuccess);
  }
  void TearDown() override {
    for (auto& s : streams_) EXPECT_EQ(hipStreamDestroy(s), hipSuccess);
    EXPECT_PAIRS((hipStreamDestroy(blocking_), hipSuccess), (hipEventDestroy(fork_), hipSuccess),
                 (hipEventDestroy(join_), hipSuccess));
    (void)hipGetLastError();
  }
  void begin(hipStream_t s, hipStreamCaptureMode mode = hipStreamCaptureModeGlobal) {
    ASSERT_EQ(hipStreamBeginCapture(s, mode), hipSuccess);
  }
  hipError_t end(hipStream_t s) {
    hipGraph_t graph = nullptr;
    const hipError_t e = hipStreamEndCapture(s, &graph);
    EXPECT_EQ(graph != nullptr, e == hipSuccess);
    if (e != hipSuccess) return e;
    EXPECT_EQ(hipGraphInstantiateWithFlags(&exec_, graph, 0), hipSuccess);
    EXPECT_EQ(hipGraphDestroy(graph), hipSuccess);
    return e;
  }
  void add(hipStream_t s, int value) { hipLaunchKernelGGL(add_to, dim3(1), dim3(1), 0, s, &word_, value); }
  void launch(hipStream_t s) { EXPECT_EQ(hipGraphLaunch(exec_, s), hipSuccess); }
  void sync(hipStream_t s) { EXPECT_EQ(hipStreamSynchronize(s), hipSuccess); }

  hipStream_t streams_[2] = {};
  hipStream_t blocking_ = nullptr;
  hipEvent_t fork_ = nullptr, join_ = nullptr;
  hipGraphExec_t exec_ = nullptr;
  int word_ = 0;
};

TEST_F(host_graphs, work_is_done_at_each_launch_and_not_before) {
  int copied = -1;
  begin(streams_[0]);
  add(streams_[0], 3);
  EXPECT_EQ(hipMemcpyAsync(&copied, &word_, sizeof word_, hipMemcpyDefault, streams_[0]), hipSuccess);
  ASSERT_EQ(end(streams_[0]), hipSuccess);
  sync(streams_[0]);
  EXPECT_EQ(word_, 0);
  for (int i = 0; i < 100; ++i) launch(streams_[i % 2]);
  sync(streams_[0]), sync(streams_[1]);
  EXPECT_PAIRS((word_, 300), (copied, 300), (hipGraphExecDestroy(exec_), hipSuccess),
               (hipGraphLaunch(exec_, streams_[0]), hipErrorInvalidValue));
}

TEST_F(host_graphs, a_stream_that_waits_for_an_event_of_a_capture_joins_it) {
  begin(streams_[0]);
  add(streams_[0], 1);
  EXPECT_EQ(hipEventRecord(fork_, streams_[0]), hipSuccess);
  EXPECT_EQ(hipStreamWaitEvent(streams_[1], fork_), hipSuccess);
  add(streams_[1], 10);
  EXPECT_EQ(hipEventRecord(join_, streams_[1]), hipSuccess);
  EXPECT_EQ(hipStreamWaitEvent(streams_[0], join_), hipSuccess);
  ASSERT_EQ(end(streams_[0]), hipSuccess);
  // Both run again.
  add(streams_[1], 100);
  sync(streams_[1]);
  EXPECT_EQ(word_, 100);
  launch(streams_[1]);
  sync(streams_[1]);
  EXPECT_EQ(word_, 111);
  EXPECT_EQ(hipGraphExecDestroy(exec_), hipSuccess);
}

TEST_F(host_graphs, a_graph_may_be_launched_into_a_capture) {
  begin(streams_[0]);
  add(streams_[0], 1);
  ASSERT_EQ(end(streams_[0]), hipSuccess);
  const hipGraphExec_t inner = exec_;
  begin(streams_[0]);
  launch(streams_[0]), launch(streams_[0]);
  ASSERT_EQ(end(streams_[0]), hipSuccess);
  launch(streams_[0]);
  sync(streams_[0]);
  EXPECT_PAIRS((word_, 2), (hipGraphExecDestroy(inner), hipSuccess), (hipGraphExecDestroy(exec_), hipSuccess));
}

TEST_F(host_graphs, calls_that_allocate_or_wait_are_refused_and_end_the_capture) {
  void* p = nullptr;
  char bytes[8] = {};
  const std::function<hipError_t()> calls[] = {
      [&] { return hipMalloc(&p, 8); },
      [&] { return hipHostMalloc(&p, 8); },
      [&] { return hipFree(bytes); },
      [&] { return hipMemcpy(bytes, bytes, 1, hipMemcpyDefault); },
      [&] { return hipMemset(bytes, 0, 1); },
      [&] { return hipDeviceSynchronize(); },
      [&] { return hipStreamSynchronize(streams_[1]); },
      [&] { return hipStreamQuery(streams_[0]); },
      [&] { return hipEventSynchronize(join_); },
  };
  int which = 0;
  for (const auto& call : calls) {
    SCOPED_TRACE(which++);
    begin(streams_[0]);
    EXPECT_PAIRS((call(), hipErrorStreamCaptureUnsupported), (hipGetLastError(), hipErrorStreamCaptureUnsupported));
    hipStreamCaptureStatus status;
    EXPECT_PAIRS((hipStreamIsCapturing(streams_[0], &status), hipSuccess), (status, hipStreamCaptureStatusInvalidated),
                 (hipMemsetAsync(bytes, 0, 1, streams_[0]), hipErrorStreamCaptureInvalidated),
                 (end(streams_[0]), hipErrorStreamCaptureInvalidated));
  }
}

TEST_F(host_graphs, whose_calls_are_refused_depends_on_the_mode) {
  const auto in_thread = [](hipStreamCaptureMode own) {
    hipError_t e = hipSuccess;
    std::thread([&] {
      hipThreadExchangeStreamCaptureMode(&own);
      e = hipDeviceSynchronize();
    }).join();
    return e;
  };
  begin(streams_[0], hipStreamCaptureModeGlobal);
  EXPECT_EQ(in_thread(hipStreamCaptureModeRelaxed), hipSuccess);
  EXPECT_EQ(in_thread(hipStreamCaptureModeThreadLocal), hipSuccess);
  EXPECT_EQ(in_thread(hipStreamCaptureModeGlobal), hipErrorStreamCaptureUnsupported);
  EXPECT_EQ(end(streams_[0]), hipErrorStreamCaptureInvalidated);
  begin(streams_[0], hipStreamCaptureModeThreadLocal);
  EXPECT_EQ(in_thread(hipStreamCaptureModeGlobal), hipSuccess);
  EXPECT_EQ(hipDeviceSynchronize(), hipErrorStreamCaptureUnsupported);
  EXPECT_EQ(end(streams_[0]), hipErrorStreamCaptureInvalidated);
  begin(streams_[0], hipStreamCaptureModeRelaxed);
  EXPECT_EQ(hipDeviceSynchronize(), hipSuccess);
  ASSERT_EQ(end(streams_[0]), hipSuccess);
  EXPECT_EQ(hipGraphExecDestroy(exec_), hipSuccess);
}

TEST_F(host_graphs, the_default_stream_is_not_captured_and_not_used_beside_blocking_ones) {
  EXPECT_EQ(hipStreamBeginCapture(nullptr, hipStreamCaptureModeGlobal), hipErrorStreamCaptureUnsupported);
  begin(blocking_);
  char bytes[8] = {};
  EXPECT_EQ(hipMemsetAsync(bytes, 0, 1, nullptr), hipErrorStreamCaptureImplicit);
  EXPECT_EQ(end(blocking_), hipErrorStreamCaptureInvalidated);
  begin(streams_[0]);
  EXPECT_EQ(hipMemsetAsync(bytes, 0, 1, nullptr), hipSuccess);
  ASSERT_EQ(end(streams_[0]), hipSuccess);
  EXPECT_EQ(hipGraphExecDestroy(exec_), hipSuccess);
}

TEST_F(host_graphs, wrong_ends_and_events_are_refused) {
  EXPECT_EQ(end(streams_[0]), hipErrorIllegalState);
  begin(streams_[0]);
  EXPECT_EQ(hipStreamBeginCapture(streams_[0], hipStreamCaptureModeGlobal), hipErrorIllegalState);
  hipError_t e = hipSuccess;
  std::thread([&] { e = end(streams_[0]); }).join();
  EXPECT_PAIRS((e, hipErrorStreamCaptureWrongThread), (hipEventRecord(fork_, streams_[0]), hipSuccess),
               (hipStreamWaitEvent(streams_[1], fork_), hipSuccess),
               (end(streams_[1]), hipErrorStreamCaptureUnmatched));
  add(streams_[1], 1);
  EXPECT_EQ(end(streams_[0]), hipErrorStreamCaptureUnjoined);

  begin(streams_[0]);
  EXPECT_PAIRS((hipEventRecord(fork_, streams_[0]), hipSuccess), (hipEventQuery(fork_), hipErrorCapturedEvent),
               (end(streams_[0]), hipErrorStreamCaptureInvalidated));

  EXPECT_EQ(hipEventRecord(join_, streams_[1]), hipSuccess);
  begin(streams_[0]);
  EXPECT_EQ(hipStreamWaitEvent(streams_[0], join_), hipErrorStreamCaptureIsolation);
  EXPECT_EQ(end(streams_[0]), hipErrorStreamCaptureInvalidated);

  begin(streams_[0]), begin(streams_[1]);
  EXPECT_EQ(hipEventRecord(fork_, streams_[0]), hipSuccess);
  EXPECT_EQ(hipStreamWaitEvent(streams_[1], fork_), hipErrorStreamCaptureMerge);
  EXPECT_EQ(end(streams_[0]), hipErrorStreamCaptureInvalidated);
  EXPECT_EQ(end(streams_[1]), hipErrorStreamCaptureInvalidated);
}

}  // namespace
