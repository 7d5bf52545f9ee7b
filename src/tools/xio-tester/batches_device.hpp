// SPDX-License-Identifier: MIT
// How a kernel goes through the batches of a job. Work is a batch_job that knows its ops: prepare(slot, number) makes
// the data of one or poisons its place, post(slot, number) returns its request, complete() comes behind its wait, and
// judge(mine, slot, number) checks what came. slot: of the batch; number: of all ops, no two have the same.
#pragma once
#include "tools/xio-tester/batches.hpp"
#include "xio/hip.h"
#include "xio/xio_device.hpp"

namespace xio::tester {

struct batch {
  u64 first, count;  // ops

  __device__ u64 number_of(u64 slot) const { return (first + slot) * gridDim.x + blockIdx.x; }
};

// This thread's share: data, posts.
template <class Work>
__device__ void post_batch(const Work& work, const batch& b, lane_record& mine) {
  for (u64 slot = threadIdx.x; slot < b.count; slot += blockDim.x) {
    const u64 at = blockIdx.x * work.batch + slot, number = b.number_of(slot);
    const u64 start = dev::wall_clock();
    work.prepare(slot, number);
    const u64 filled = dev::wall_clock();
    work.posted[at] = work.post(slot, number);
    work.begun[at] = filled;
    mine.fill += filled - start;
    mine.post += dev::wall_clock() - filled;
  }
}

// Waits for every op of the share, also after one that failed: its buffer is the engine's until then.
template <class Work>
__device__ void finish_batch(const Work& work, const batch& b, u64 lane, lane_record& mine) {
  for (u64 slot = threadIdx.x; slot < b.count; slot += blockDim.x) {
    const u64 at = blockIdx.x * work.batch + slot, number = b.number_of(slot);
    const u64 start = dev::wall_clock();
    xio_status_t status = xio_wait(work.ctx, work.posted[at]);
    const u64 now = dev::wall_clock();
    mine.wait += now - start;
    if (status == XIO_OK && work.verify != 0) status = work.complete();
    mine.fail(status, number);
    if (status != XIO_OK) continue;
    work.tally.keep(mine, number, now - work.begun[at]);
    if (work.verify != 0) {
      work.judge(mine, slot, number);
      mine.check += dev::wall_clock() - now;
    }
    work.tally.count(lane, mine, 1);
  }
}

template <class Work>
__device__ void run_batches(const Work& work) {
  const u64 lane = blockIdx.x * u64{blockDim.x} + threadIdx.x;
  lane_record mine = {};
  XIO_SHARED(u32, failed);
  XIO_SHARED(u32, ended);
  mine.begin(dev::wall_clock());
  if (threadIdx.x == 0) failed = ended = 0;
  for (u64 at = 0; work.ops == 0 || at < work.ops; at += work.batch) {
    __syncthreads();
    // One looks for all, and only here, so that all leave together.
    if (threadIdx.x == 0) ended = failed | (work.tally.stopped(at / work.batch) ? 1 : 0);
    __syncthreads();
    if (ended != 0) break;
    const batch b{at, work.ops != 0 && work.ops - at < work.batch ? work.ops - at : work.batch};
    post_batch(work, b, mine);
    // An op that goes astray may spoil what another lane has found good: a lane that checks has waited until all are
    // posted.
    if (work.verify != 0) __syncthreads();
    finish_batch(work, b, lane, mine);
    if (mine.status != XIO_OK) dev::store<dev::scope::workgroup, dev::order::relaxed>(&failed, 1u);
  }
  work.tally.end(lane, mine);
}

}  // namespace xio::tester
