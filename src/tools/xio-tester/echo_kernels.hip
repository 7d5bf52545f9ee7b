// SPDX-License-Identifier: MIT
#include "tools/xio-tester/device.hpp"
#include "tools/xio-tester/echo_kernels.hpp"
#include "xio/device/impl/deadline.hpp"
#include "xio/hip.h"

namespace xio::tester {
namespace {

using namespace xio::dev;

__device__ void post(const echo_job& job, const echo_queue& q, u64 number) {
  echo_request* slot = &q.requests[(number - 1) & (q.entries - 1)];
  const pattern p = pattern::of(job.seed, sizeof(slot->words));
  p.words(number, sizeof(slot->words), [&](u64 at, u64 x, u64) {
    store<scope::system, order::relaxed>(&slot->words[at / 8], x);
    return true;
  });
  store<scope::system, order::release>(&slot->number, number);
  if (q.doorbell != nullptr) store<scope::system, order::release>(q.doorbell, number);
}

// Waits for the reply to one request; returns XIO_ERR_TIMEOUT, or XIO_PENDING if the user stopped it first.
__device__ xio_status_t wait(const echo_job& job, const echo_queue& q, u64 number, u64* check) {
  const echo_reply* slot = &q.replies[(number - 1) & (q.entries - 1)];
  const deadline end = deadline::after(job.timeout_ticks);
  for (u64 turn = 1; load<scope::system, order::acquire>(&slot->number) != number; ++turn) {
    const bool late = !end.wait_more();
    if (job.tally.stopped(turn)) return XIO_PENDING;
    if (late) return XIO_ERR_TIMEOUT;
  }
  *check = load<scope::system, order::relaxed>(&slot->check);
  return XIO_OK;
}

__device__ u64 expected_check(const echo_job& job, u64 number) {
  u64 sum = 0;
  pattern::of(job.seed, sizeof(echo_request::words)).words(number, sizeof(echo_request::words), [&](u64, u64 x, u64) {
    sum += x;
    return true;
  });
  return sum;
}

// With a doorbell up to `entries` requests are on their way; without one, each waits for its reply.
__global__ void echo(echo_job job) {
  const u64 me = blockIdx.x * u64{blockDim.x} + threadIdx.x;
  const echo_queue q = job.queues[me];
  lane_record mine = {};
  const u64 window = q.doorbell != nullptr ? q.entries : 1;
  mine.begin(wall_clock());
  for (u64 at = 0; at < job.rounds && mine.status == XIO_OK && !job.tally.stopped(at / window); at += window) {
    const u64 n = job.rounds - at < window ? job.rounds - at : window;
    const u64 start = wall_clock();
    for (u64 i = 1; i <= n; ++i) post(job, q, at + i);
    const u64 posted = wall_clock();
    mine.post += posted - start;
    u64 replied = 0;
    for (u64 i = 1; i <= n; ++i) {
      u64 check = 0;
      const xio_status_t status = wait(job, q, at + i, &check);
      if (status == XIO_PENDING) break;
      mine.fail(status, at + i - 1);
      if (status != XIO_OK) break;
      job.tally.keep(mine, me * job.rounds + at + i - 1, wall_clock() - start);
      ++replied;
      if (job.verify == 0) continue;
      mine.note(check == expected_check(job, at + i) ? verdict::good : verdict::corrupt, at + i, at + i);
    }
    mine.wait += wall_clock() - posted;
    job.tally.count(me, mine, replied);
  }
  job.tally.end(me, mine);
}

}  // namespace

const char* launch_echo(const echo_job& job, unsigned lanes) {
  hipLaunchKernelGGL(echo, dim3(lanes), dim3(1), 0, nullptr, job);
  return launched();
}

}  // namespace xio::tester
