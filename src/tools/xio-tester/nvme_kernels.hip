// SPDX-License-Identifier: MIT
#include "tools/xio-tester/nvme_kernels.hpp"
#include "xio/hip.h"
#include "xio/xio_device.hpp"

namespace xio::tester {
namespace {

using xio::dev::wall_clock;

// A random order in which each place comes once before one comes again, so that every op has a place of its own. Each
// step is a bijection of numbers of so many bits; one that is no place is taken to the next.
__device__ u64 shuffled(u64 i, u64 places, u64 key) {
  u32 bits = 2;
  while (bits < 64 && (places - 1) >> bits != 0) ++bits;
  const u64 mask = ~u64{0} >> (64 - bits);
  do {
    for (int round = 0; round < 3; ++round) {
      i = (i * 0x9e3779b97f4a7c15ull + key) & mask;
      i ^= i >> bits / 2;
    }
  } while (i >= places);
  return i;
}

// Ops have numbers, so that the reads of a run use the places of its writes, however many of each there are.
__device__ u64 lba_of(const nvme_job& job, u64 op) {
  const u64 turn = op % job.places, place = job.random != 0 ? shuffled(turn, job.places, mix(job.seed)) : turn;
  return job.base_lba + place * job.lbas_per_io;
}

__device__ u64 number_of(u64 op) { return op * gridDim.x + blockIdx.x; }

__device__ u8* data_of(const nvme_job& job, u64 slot, u64 bytes) {
  return job.buffer + blockIdx.x * job.buffer_bytes + slot % (job.buffer_bytes / bytes) * bytes;
}

struct round {
  u64 first, count;  // ops
};

// This thread's share: data, posts.
__device__ void post_round(const nvme_job& job, const round& r, lane_record& mine) {
  const pattern p = pattern::of(job.seed, job.block_bytes);
  const u64 bytes = u64{job.lbas_per_io} * job.block_bytes;
  for (u64 slot = threadIdx.x; slot < r.count; slot += blockDim.x) {
    const u64 lba = lba_of(job, number_of(r.first + slot));
    u8* data = data_of(job, slot, bytes);
    const u64 start = wall_clock();
    if (job.write != 0)
      p.fill(data, bytes, lba);
    else if (job.verify != 0)
      poison(data, bytes);
    const u64 filled = wall_clock();
    const u64 offset = lba * job.block_bytes;
    const u64 at = blockIdx.x * job.batch + slot;
    xio_req_t request = 0;
    if (job.write != 0)
      request = xio_write_nbi(job.ctx, data, job.storage, offset, bytes);
    else
      request = xio_read_nbi(job.ctx, data, job.storage, offset, bytes);
    job.posted[at] = request;
    job.begun[at] = filled;
    mine.fill += filled - start;
    mine.post += wall_clock() - filled;
  }
}

// Waits for every op of the share, also after one that failed: its buffer is the drive's until then.
__device__ void finish_round(const nvme_job& job, const round& r, u64 lane, lane_record& mine) {
  const pattern p = pattern::of(job.seed, job.block_bytes);
  const u64 bytes = u64{job.lbas_per_io} * job.block_bytes;
  for (u64 slot = threadIdx.x; slot < r.count; slot += blockDim.x) {
    const u64 at = blockIdx.x * job.batch + slot;
    const u64 start = wall_clock();
    const xio_status_t status = xio_wait(job.ctx, job.posted[at]);
    const u64 now = wall_clock();
    mine.wait += now - start;
    mine.fail(status, number_of(r.first + slot));
    if (status != XIO_OK) continue;
    job.tally.keep(mine, number_of(r.first + slot), now - job.begun[at]);
    if (job.verify != 0) {
      const u64 end = job.base_lba + job.places * job.lbas_per_io;
      mine.judge(p, data_of(job, slot, bytes), bytes, lba_of(job, number_of(r.first + slot)), end);
      mine.check += wall_clock() - now;
    }
    job.tally.count(lane, mine, 1);
  }
}

__global__ void nvme(nvme_job job) {
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
    const round r{at, job.ops != 0 && job.ops - at < job.batch ? job.ops - at : job.batch};
    post_round(job, r, mine);
    finish_round(job, r, lane, mine);
    if (mine.status != XIO_OK) xio::dev::store<xio::dev::scope::workgroup, xio::dev::order::relaxed>(&failed, 1u);
  }
  job.tally.end(lane, mine);
}

}  // namespace

const char* launch_nvme(const nvme_job& job, unsigned queues, unsigned threads) {
  hipLaunchKernelGGL(nvme, dim3(queues), dim3(threads), 0, nullptr, job);
  const hipError_t e = hipGetLastError();
  return e == hipSuccess ? nullptr : hipGetErrorString(e);
}

}  // namespace xio::tester
