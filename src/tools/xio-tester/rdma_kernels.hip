// SPDX-License-Identifier: MIT
#include "tools/xio-tester/batches_device.hpp"
#include "tools/xio-tester/device.hpp"
#include "tools/xio-tester/rdma_kernels.hpp"

namespace xio::tester {
namespace {

using xio::dev::wall_clock;

constexpr u32 k_block_bytes = 512;

__device__ u64 blocks_of(u64 bytes) { return (bytes + k_block_bytes - 1) / k_block_bytes; }

// Of the data that op `number` carries: no two ops carry the same.
__device__ u64 first_block(u64 number, u64 bytes) { return number * blocks_of(bytes); }

struct rdma_work : rdma_job {
  __device__ u64 place(u64 slot) const { return (blockIdx.x * batch + slot) * stride; }
  __device__ void prepare(u64 slot, u64 number) const {
    if (verify == 0) return;
    pattern::of(seed, k_block_bytes).fill(src + place(slot), bytes, first_block(number, bytes));
    poison(dst + place(slot), bytes);
  }
  __device__ xio_req_t post(u64 slot, u64) const {
    return xio_put_nbi(ctx, dst + place(slot), src + place(slot), bytes, pe);
  }
  // Other PEs can see the data put only after this.
  __device__ xio_status_t complete() const { return xio_quiet(ctx); }
  __device__ void judge(lane_record& mine, u64 slot, u64 number) const {
    mine.judge(pattern::of(seed, k_block_bytes), dst + place(slot), bytes, first_block(number, bytes), ~u64{0});
  }
};

__global__ void loopback(rdma_job job) { run_batches(rdma_work{job}); }

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
