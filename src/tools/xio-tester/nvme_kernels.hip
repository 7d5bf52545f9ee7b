// SPDX-License-Identifier: MIT
#include "tools/xio-tester/batches_device.hpp"
#include "tools/xio-tester/device.hpp"
#include "tools/xio-tester/nvme_kernels.hpp"

namespace xio::tester {
namespace {

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

struct nvme_work : nvme_job {
  __device__ u64 bytes() const { return u64{lbas_per_io} * block_bytes; }
  __device__ u8* data(u64 slot) const {
    return buffer + blockIdx.x * buffer_bytes + slot % (buffer_bytes / bytes()) * bytes();
  }
  __device__ void prepare(u64 slot, u64 number) const {
    if (write != 0)
      pattern::of(seed, block_bytes).fill(data(slot), bytes(), lba_of(*this, number));
    else if (verify != 0)
      poison(data(slot), bytes());
  }
  __device__ xio_req_t post(u64 slot, u64 number) const {
    const u64 offset = lba_of(*this, number) * block_bytes;
    if (write != 0) return xio_write_nbi(ctx, data(slot), storage, offset, bytes());
    return xio_read_nbi(ctx, data(slot), storage, offset, bytes());
  }
  __device__ xio_status_t complete() const { return XIO_OK; }
  __device__ void judge(lane_record& mine, u64 slot, u64 number) const {
    const u64 end = base_lba + places * lbas_per_io;
    mine.judge(pattern::of(seed, block_bytes), data(slot), bytes(), lba_of(*this, number), end);
  }
};

__global__ void nvme(nvme_job job) { run_batches(nvme_work{job}); }

}  // namespace

const char* launch_nvme(const nvme_job& job, unsigned queues, unsigned threads) {
  hipLaunchKernelGGL(nvme, dim3(queues), dim3(threads), 0, nullptr, job);
  return launched();
}

}  // namespace xio::tester
