// SPDX-License-Identifier: MIT
// stream_allreduce: steps of a training loop as one graph: gradients of all PEs are added up in a stream, without a
// kernel of XIO in the program.
//
//   mpirun -np 2 examples/stream_allreduce [COUNT [STEPS]]    (or: xiorun -n 2 ...)
//
// The lesson: calls of xio/stream.h are work of a stream like any kernel. They are captured once; a replay needs no
// host work but its launch. xio_ctx_failed reports failures on the GPU: a program asks it before it trusts the results.
#include <xio/stream.h>

#include "arguments.hpp"
#include "session.hpp"

namespace {

// A stand-in for what a program computes: each PE's gradient moves with the weights.
__global__ void backward(float* gradient, const float* weights, uint64_t count, int pe) {
  const uint64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) gradient[i] = static_cast<float>(pe + 1) + weights[i];
}
__global__ void update(float* weights, const float* sum, uint64_t count) {
  const uint64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) weights[i] = static_cast<float>(static_cast<int>(sum[i]) % 17);
}

// The same by one PE alone, in whole numbers.
float expected(int n, uint64_t steps) {
  int weight = 0;
  for (uint64_t s = 0; s < steps; ++s) weight = (n * (n + 1) / 2 + n * weight) % 17;
  return static_cast<float>(weight);
}

struct step {
  float *gradient, *sum, *weights;
  uint64_t count;
};

hipGraphExec_t capture(const session& s, xio_team_t team, const step& one, hipStream_t stream) {
  hipGraph_t graph = nullptr;
  hipGraphExec_t exec = nullptr;
  const dim3 blocks(static_cast<unsigned>((one.count + 255) / 256)), threads(256);
  check(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal), "hipStreamBeginCapture");
  hipLaunchKernelGGL(backward, blocks, threads, 0, stream, one.gradient, one.weights, one.count, s.me);
  check(xio_reduce_on_stream(s.world, s.ctx, team, XIO_REDUCE_SUM, XIO_FLOAT, one.sum, one.gradient, one.count, stream,
                             nullptr),
        "xio_reduce_on_stream");
  hipLaunchKernelGGL(update, blocks, threads, 0, stream, one.weights, one.sum, one.count);
  check(hipStreamEndCapture(stream, &graph), "hipStreamEndCapture");
  check(hipGraphInstantiateWithFlags(&exec, graph, 0), "hipGraphInstantiateWithFlags");
  check(hipGraphDestroy(graph), "hipGraphDestroy");
  return exec;
}

}  // namespace

int main(int argc, char** argv) {
  arguments given(argc, argv, "stream_allreduce [COUNT [STEPS]]");
  const uint64_t count = given.number("COUNT", 1000, 1, 1 << 22), steps = given.number("STEPS", 50, 1, 1000000);
  given.end();
  session s;
  xio_team_t team{};
  check(xio_team_world(s.world, &team), "xio_team_world");
  const step one{s.symmetric<float>(count), s.symmetric<float>(count), s.symmetric<float>(count), count};
  hipStream_t stream = nullptr;
  check(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking), "hipStreamCreateWithFlags");
  const hipGraphExec_t exec = capture(s, team, one, stream);
  s.barrier();

  for (uint64_t i = 0; i < steps; ++i) check(hipGraphLaunch(exec, stream), "hipGraphLaunch");
  check(hipStreamSynchronize(stream), "hipStreamSynchronize");
  xio_status_t first = XIO_OK;
  check(xio_ctx_failed(s.world, s.ctx, &first), "xio_ctx_failed");
  check(first, "a call on the stream");

  uint64_t wrong = 0;
  for (const float w : session::read(one.weights, count)) wrong += w != expected(s.n, steps) ? 1 : 0;
  std::printf("PE %d: %llu steps of %llu floats, %llu values wrong\n", s.me, static_cast<unsigned long long>(steps),
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(wrong));
  check(hipGraphExecDestroy(exec), "hipGraphExecDestroy");
  check(hipStreamDestroy(stream), "hipStreamDestroy");
  check(xio_team_destroy(s.world, team), "xio_team_destroy");
  return s.end(wrong);
}
