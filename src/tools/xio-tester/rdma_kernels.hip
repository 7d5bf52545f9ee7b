// SPDX-License-Identifier: MIT
#include "tools/xio-tester/rdma_kernels.hpp"
#include "xio/hip.h"
#include "xio/xio_device.hpp"

namespace xio::tester {
namespace {

using xio::dev::wall_clock;

constexpr u32 k_block_bytes = 512;

__device__ u64 blocks_of(u64 bytes) { return (bytes + k_block_bytes - 1) / k_block_bytes; }

// Of the data that op `number` carries: no two ops carry the same.
__device__ u64 first_block(u64 number, u64 bytes) { return number * blocks_of(bytes); }

__device__ u64 number_of(u64 op) { return op * gridDim.x + blockIdx.x; }

__device__ void post_round(const rdma_job& job, u64 first, u64 count, lane_record& mine) {
  const pattern p = pattern::of(job.seed, k_block_bytes);
  for (u64 slot = threadIdx.x; slot < count; slot += blockDim.x) {
    const u64 at = blockIdx.x * job.batch + slot;
    const u64 start = wall_clock();
    if (job.verify != 0) {
      p.fill(job.src + at * job.stride, job.bytes, first_block(number_of(first + slot), job.bytes));
      poison(job.dst + at * job.stride, job.bytes);
    }
    const u64 filled = wall_clock();
    job.posted[at] = xio_put_nbi(job.ctx, job.dst + at * job.stride, job.src + at * job.stride, job.bytes, job.pe);
    job.begun[at] = filled;
    mine.fill += filled - start;
    mine.post += wall_clock() - filled;
  }
}

__device__ void finish_round(const rdma_job& job, u64 first, u64 count, u64 lane, lane_record& mine) {
  const pattern p = pattern::of(job.seed, k_block_bytes);
  for (u64 slot = threadIdx.x; slot < count; slot += blockDim.x) {
    const u64 at = blockIdx.x * job.batch + slot, number = number_of(first + slot);
    const u64 start = wall_clock();
    xio_status_t status = xio_wait(job.ctx, job.posted[at]);
    const u64 now = wall_clock();
    mine.wait += now - start;
    // Other PEs can see the data put only after this.
    if (status == XIO_OK && job.verify != 0) status = xio_quiet(job.ctx);
    mine.fail(status, number);
    if (status != XIO_OK) continue;
    job.tally.keep(mine, number, now - job.begun[at]);
    if (job.verify != 0) {
      mine.judge(p, job.dst + at * job.stride, job.bytes, first_block(number, job.bytes), ~u64{0});
      mine.check += wall_clock() - now;
    }
    job.tally.count(lane, mine, 1);
  }
}

__global__ void loopback(rdma_job job) {
  const u64 lane = blockIdx.x * u64{blockDim.x} + threadIdx.x;
  lane_record mine = {};
  XIO_SHARED(u32, failed);
  XIO_SHARED(u32, ended);
  mine.begin(wall_clock());
  if (threadIdx.x == 0) failed = ended = 0;
  for (u64 at = 0; job.ops == 0 || at < job.ops; at += job.batch) {
    __syncthreads();
    // One looks for all, and only here, so that all leave together.
    if (threadIdx.x == 0) ended = failed | (job.tally.stopped(at / job.batch) ? 1 : 0);
    __syncthreads();
    if (ended != 0) break;
    const u64 count = job.ops != 0 && job.ops - at < job.batch ? job.ops - at : job.batch;
    post_round(job, at, count, mine);
    // A put that goes astray may spoil what another lane has found good: a lane that checks has waited for the puts of
    // all.
    if (job.verify != 0) __syncthreads();
    finish_round(job, at, count, lane, mine);
    if (mine.status != XIO_OK) xio::dev::store<xio::dev::scope::workgroup, xio::dev::order::relaxed>(&failed, 1u);
  }
  job.tally.end(lane, mine);
}

// PE 0 throws first. A ball says its round, so that an old one is seen to be old.
__global__ void pingpong(pingpong_job job) {
  lane_record mine = {};
  const pattern p = pattern::of(job.terms.seed, k_block_bytes);
  const int me = xio_my_pe(job.ctx), other = 1 - me;
  mine.begin(wall_clock());
  for (u64 round = 0; round < job.terms.rounds && mine.status == XIO_OK && !job.tally.stopped(round); ++round) {
    const u64 block = first_block(round, job.terms.bytes);
    if (job.terms.verify != 0 && me == 0) p.fill(job.mine, job.terms.bytes, block);
    const u64 start = wall_clock();
    xio_status_t status = XIO_OK;
    if (me == 0)
      status =
          xio_put_signal(job.ctx, job.ball, job.mine, job.terms.bytes, job.signal, round + 1, XIO_SIGNAL_SET, other);
    const u64 thrown = wall_clock();
    if (status == XIO_OK) status = xio_signal_wait_until(job.ctx, job.signal, XIO_CMP_GE, round + 1);
    const u64 caught = wall_clock();
    if (status == XIO_OK && job.terms.verify != 0) mine.judge(p, job.ball, job.terms.bytes, block, ~u64{0});
    if (status == XIO_OK && me == 1) {
      // The bytes that came go back, not those that should have come.
      if (job.terms.verify != 0) memcpy(job.mine, job.ball, job.terms.bytes);
      status =
          xio_put_signal(job.ctx, job.ball, job.mine, job.terms.bytes, job.signal, round + 1, XIO_SIGNAL_SET, other);
    }
    mine.fail(status, round);
    if (status != XIO_OK) break;
    job.tally.keep(mine, round, caught - start);
    mine.post += thrown - start;
    mine.wait += caught - thrown;
    mine.check += wall_clock() - caught;
    job.tally.count(0, mine, 1);
  }
  mine.fail(xio_quiet(job.ctx), job.terms.rounds);
  job.tally.end(0, mine);
}

__global__ void fetch_terms(xio_ctx_t ctx, pingpong_terms* mine, const pingpong_terms* theirs, int pe, int* status) {
  *status = xio_get(ctx, mine, theirs, sizeof *mine, pe);
}

const char* launched() {
  const hipError_t e = hipGetLastError();
  return e == hipSuccess ? nullptr : hipGetErrorString(e);
}

}  // namespace

const char* launch_rdma_loopback(const rdma_job& job, unsigned queues, unsigned threads) {
  hipLaunchKernelGGL(loopback, dim3(queues), dim3(threads), 0, nullptr, job);
  return launched();
}

const char* launch_rdma_terms(xio_ctx_t ctx, pingpong_terms* mine, const pingpong_terms* theirs, int pe, int* status) {
  hipLaunchKernelGGL(fetch_terms, dim3(1), dim3(1), 0, nullptr, ctx, mine, theirs, pe, status);
  return launched();
}

const char* launch_rdma_pingpong(const pingpong_job& job) {
  hipLaunchKernelGGL(pingpong, dim3(1), dim3(1), 0, nullptr, job);
  return launched();
}

}  // namespace xio::tester
