// SPDX-License-Identifier: MIT
// How many doorbells of an NVIDIA GPU reach the bus: kernels that ring one register of host memory k_rings times, by
// lanes of a warp, warps of a block and blocks, and lanes that each post to a queue pair of their own. The kernels
// stores_* do it by plain releases, of which most are merged. doorbells.sh lets ncu count the writes.
#include <cuda_runtime.h>
#include <xio/xio.h>

#include <cstdio>
#include <cstring>
#include <vector>
#include <xio/xio_device.hpp>

#include "xio/device/impl/rdma_post.hpp"

// As libxio has it: this program makes no ctx.
extern "C" void xio_internal_program_layout(uint32_t) {}

using namespace xio::dev;

constexpr unsigned k_posters = 32, k_each = 100, k_rings = k_posters * k_each;

struct by_ring {
  static __device__ void write(u64* at, u64 value) { ring_doorbell(at, value); }
};
struct by_store {
  static __device__ void write(u64* at, u64 value) { store<scope::system, order::release>(at, value); }
};

template <class By>
__device__ void ring(u64* at, unsigned who) {
  for (unsigned i = 0; i < k_each; ++i) By::write(at, u64{i} << 8 | who);
}

__global__ void rings_lanes(u64* at) { ring<by_ring>(at, threadIdx.x); }
__global__ void rings_warps(u64* at) {
  if (lane_id() == 0) ring<by_ring>(at, threadIdx.x / 32);
}
__global__ void rings_blocks(u64* at) {
  if (lane_id() == 0) ring<by_ring>(at, blockIdx.x);
}
__global__ void stores_lanes(u64* at) { ring<by_store>(at, threadIdx.x); }
__global__ void stores_warps(u64* at) {
  if (lane_id() == 0) ring<by_store>(at, threadIdx.x / 32);
}

// Each lane to a queue pair of its own; all of them have one register.
__global__ void rings_posts(const world_view* world, const ring_view* queues, unsigned* bad) {
  for (unsigned i = 0; i < k_each; ++i) {
    rdma::work w{};
    w.what = rdma::verb::write;
    w.from = rdma::payload::memory;
    w.bytes = 64;
    w.remote = w.local = 4096;
    if (rdma::post_work(w, *world, queues[threadIdx.x], nullptr).status != XIO_OK) atomicAdd(bad, 1u);
  }
}

template <class T>
T* on_gpu(const std::vector<T>& v) {
  void* at = nullptr;
  if (cudaMalloc(&at, v.size() * sizeof(T)) != cudaSuccess) return nullptr;
  cudaMemcpy(at, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice);
  return static_cast<T*>(at);
}

// True: each post was taken and rang.
bool post_all(u64* doorbell) {
  constexpr std::uint32_t depth = 4096, depth_log2 = 12;
  std::vector<world_view> world(1);
  std::vector<ring_state> states(k_posters);
  std::vector<ring_view> queues(k_posters);
  std::memset(static_cast<void*>(world.data()), 0, sizeof(world_view));
  std::memset(static_cast<void*>(states.data()), 0, k_posters * sizeof(ring_state));
  std::memset(static_cast<void*>(queues.data()), 0, k_posters * sizeof(ring_view));
  world[0].ticks_per_ms = 1000000;
  for (auto& s : states) s.credits = depth;
  auto* states_there = on_gpu(states);
  auto* marks = on_gpu(std::vector<std::uint64_t>(k_posters * depth));
  auto* slots = on_gpu(std::vector<unsigned char>(std::size_t{k_posters} * depth * 64));
  auto* records = on_gpu(std::vector<std::uint32_t>(k_posters * 32));
  auto* completions = on_gpu(std::vector<unsigned char>(k_posters * 64, 0xff));
  for (unsigned i = 0; i < k_posters; ++i) {
    ring_view& r = queues[i];
    r.state = states_there + i;
    r.marks = marks + std::size_t{i} * depth;
    r.slots = slots + std::size_t{i} * depth * 64;
    r.depth = depth;
    r.kind = ring_kind::mlx5;
    r.id = 100 + i;
    r.index = i;
    r.chunk = 1u << 30;
    r.rdma.doorbell = doorbell;
    r.rdma.completions = completions + 64 * i;
    r.rdma.depth_log2 = depth_log2;
    r.rdma.mlx5.doorbell_record = records + 32 * i;
  }
  unsigned* bad = on_gpu(std::vector<unsigned>(1, 0u));
  rings_posts<<<1, k_posters>>>(on_gpu(world), on_gpu(queues), bad);
  if (cudaDeviceSynchronize() != cudaSuccess) return false;
  unsigned refused = 0;
  cudaMemcpy(&refused, bad, sizeof refused, cudaMemcpyDeviceToHost);
  cudaMemcpy(states.data(), states_there, k_posters * sizeof(ring_state), cudaMemcpyDeviceToHost);
  std::uint64_t rung = 0;
  for (const auto& s : states) rung += s.doorbells;
  if (refused == 0 && rung == k_rings) return true;
  std::printf("%u posts refused, %llu doorbells of %u\n", refused, static_cast<unsigned long long>(rung), k_rings);
  return false;
}

int main() {
  void *host = nullptr, *page = nullptr;
  if (cudaHostAlloc(&host, 4096, cudaHostAllocMapped) != cudaSuccess) return 1;
  if (cudaHostGetDevicePointer(&page, host, 0) != cudaSuccess) return 1;
  auto* at = static_cast<u64*>(page);
  rings_lanes<<<1, k_posters>>>(at);
  rings_warps<<<1, 32 * k_posters>>>(at);
  rings_blocks<<<k_posters, 32>>>(at);
  stores_lanes<<<1, k_posters>>>(at);
  stores_warps<<<1, 32 * k_posters>>>(at);
  if (cudaDeviceSynchronize() != cudaSuccess || !post_all(at)) return 1;
  std::printf("each kernel has rung %u times\n", k_rings);
  return 0;
}
