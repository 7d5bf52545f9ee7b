// SPDX-License-Identifier: MIT
#include "tools/xio-tester/device.hpp"
#include "tools/xio-tester/sdma_kernels.hpp"
#include "xio/hip.h"
#include "xio/xio_device.hpp"

namespace xio::tester {
namespace {

using xio::dev::wall_clock;

// Waits until the source of what was posted may be reused. `number` counts from 1.
__device__ xio_status_t complete(const sdma_job& job, xio_req_t request, u64 number) {
  if (job.how == local_completion::flush) return xio_sdma_wait(job.queue, request);
  const xio_status_t status = xio_sdma_test(job.queue, request);
  if (status != XIO_OK && status != XIO_PENDING) return status;
  if (job.how == local_completion::quiet) return xio_sdma_quiet(job.queue);
  return xio_sdma_wait_counter(job.queue, job.words + k_counter_word, number);
}

__device__ xio_status_t copy_once(const sdma_job& job, u8* dst, const u8* src, u64 number) {
  const xio_req_t request = job.how == local_completion::counter
                                ? xio_sdma_put_counter(job.queue, dst, src, job.bytes, job.words + k_counter_word)
                                : xio_sdma_put(job.queue, dst, src, job.bytes);
  return complete(job, request, number);
}

__global__ void copies(sdma_job job, bool reuse) {
  lane_record mine = job.tally.lanes[0];
  const pattern p = pattern::of(job.seed, k_sdma_block);
  mine.begin(wall_clock());
  for (u64 op = job.first; op < job.ops && mine.status == XIO_OK && !job.tally.stopped(op); ++op) {
    const u64 start = wall_clock();
    if (reuse) p.fill(job.src, job.bytes, sdma_block_of(op, job.bytes));
    const u64 filled = wall_clock();
    const xio_status_t status =
        copy_once(job, job.dst + op % job.slots * job.bytes, job.src + op % job.sources * job.bytes, op + 1);
    const u64 now = wall_clock();
    mine.fail(status, op);
    if (status != XIO_OK) break;
    job.tally.keep(mine, op, now - filled);
    mine.fill += filled - start;
    mine.wait += now - filled;
    job.tally.count(0, mine, 1);
  }
  mine.fail(xio_sdma_quiet(job.queue), job.ops);
  job.tally.end(0, mine);
}

__device__ xio_status_t throw_ball(const sdma_job& job, u64 number) {
  u64* there = job.words + k_there_word;
  const xio_req_t request =
      job.how == local_completion::counter
          ? xio_sdma_put_signal_counter(job.queue, job.dst, job.src, job.bytes, there, number, XIO_SIGNAL_SET,
                                        job.words + k_counter_word)
          : xio_sdma_put_signal(job.queue, job.dst, job.src, job.bytes, there, number, XIO_SIGNAL_SET);
  return complete(job, request, number);
}

__device__ void ping(const sdma_job& job) {
  lane_record mine = {};
  const pattern p = pattern::of(job.seed, k_sdma_block);
  mine.begin(wall_clock());
  for (u64 op = 0; op < job.ops && mine.status == XIO_OK && !job.tally.stopped(op); ++op) {
    p.fill(job.src, job.bytes, sdma_block_of(op, job.bytes));
    const u64 start = wall_clock();
    xio_status_t status = throw_ball(job, op + 1);
    const u64 thrown = wall_clock();
    if (status == XIO_OK) status = xio_sdma_wait_signal(job.queue, job.words + k_back_word, op + 1);
    const u64 caught = wall_clock();
    mine.fail(status, op);
    if (status != XIO_OK) break;
    job.tally.keep(mine, op, caught - start);
    mine.judge(p, job.src + job.bytes, job.bytes, sdma_block_of(op, job.bytes), ~u64{0});
    mine.post += thrown - start;
    mine.wait += caught - thrown;
    mine.check += wall_clock() - caught;
    job.tally.count(0, mine, 1);
  }
  // The other one must not wait for a ball that never comes.
  xio_sdma_signal(job.queue, job.words + k_there_word, ~u64{0}, XIO_SIGNAL_SET);
  mine.fail(xio_sdma_quiet(job.queue), job.ops);
  job.tally.end(0, mine);
}

__device__ void pong(const sdma_job& job) {
  lane_record& mine = job.tally.lanes[1];  // only what failed, if anything
  u64* there = job.words + k_there_word;
  for (u64 op = 0; op < job.ops; ++op) {
    xio_status_t status = xio_sdma_wait_signal(job.other_queue, there, op + 1);
    if (status == XIO_OK && xio::dev::load<xio::dev::scope::system, xio::dev::order::acquire>(there) == ~u64{0}) break;
    if (status == XIO_OK)
      status =
          xio_sdma_test(job.other_queue, xio_sdma_put_signal(job.other_queue, job.src + job.bytes, job.dst, job.bytes,
                                                             job.words + k_back_word, op + 1, XIO_SIGNAL_SET));
    if (status == XIO_OK || status == XIO_PENDING) continue;
    mine.fail(status, op);
    break;
  }
  mine.fail(xio_sdma_quiet(job.other_queue), job.ops);
}

__global__ void pingpong(sdma_job job) {
  if (blockIdx.x == 0)
    ping(job);
  else
    pong(job);
}

}  // namespace

const char* launch_sdma_copies(const sdma_job& job, bool reuse) {
  hipLaunchKernelGGL(copies, dim3(1), dim3(1), 0, nullptr, job, reuse);
  return launched();
}

const char* launch_sdma_pingpong(const sdma_job& job) {
  hipLaunchKernelGGL(pingpong, dim3(2), dim3(1), 0, nullptr, job);
  return launched();
}

}  // namespace xio::tester
