// SPDX-License-Identifier: MIT
#include "nic_wave_kernels.hpp"

#include <xio/hip.h>

#include "xio/device/impl/rdma.hpp"

namespace xio::test {
namespace {

using namespace xio::dev;

__device__ xio_status_t wait_for(const ctx_view& c, u32 pe, xio_req_t request) {
  if (request == 0) return XIO_OK;
  const ring_view& r = *c.peers[pe].rdma;
  return wait_ring(r, request_ticket(r, request) + 1, *c.world);
}

__device__ xio_status_t quiet(const ctx_view& c, u32 pe) {
  const ring_view& r = *c.peers[pe].rdma;
  return wait_ring(r, load<scope::agent, order::relaxed>(&r.state->issued), *c.world);
}

__device__ void note(u32* bad, xio_status_t status) {
  if (status != XIO_OK) fetch_add<scope::system, order::relaxed>(bad, 1u);
}

// Every lane puts its own bytes in a place of its own, each round another size.
__global__ void put_kernel(const ctx_view* c, unsigned char* source, u32* bad) {
  const u32 me = blockIdx.x * blockDim.x + threadIdx.x;
  for (u32 round = 0; round < k_wave_rounds; ++round) {
    const u64 at = k_wave_base + (u64{me} * k_wave_rounds + round) * 64;
    xio_req_t request = 0;
    note(bad, rdma::put(*c, me % 2, at, source + at, (me + round * 5) % 65, &request));
    if (round % 4 == me % 4) note(bad, wait_for(*c, me % 2, request));
  }
  note(bad, quiet(*c, me % 2));
}

__global__ void add_kernel(const ctx_view* c, u64* seen, u32* bad) {
  const u32 me = blockIdx.x * blockDim.x + threadIdx.x;
  for (u32 round = 0; round < k_wave_rounds; ++round) {
    u64 old = ~u64{0};
    note(bad, rdma::atomic(*c, 1, {k_wave_base, me % 3 == 0 ? 4u : 8u, amo::add, 1, 0}, true, &old));
    seen[me * k_wave_rounds + round] = old;
  }
}

// Each lane signals its own flag behind its data; odd lanes go through the two-slot atomic as well.
__global__ void signal_kernel(const ctx_view* c, unsigned char* source, u32* bad) {
  const u32 me = blockIdx.x * blockDim.x + threadIdx.x;
  const u64 flag = k_wave_base + u64{me} * 8;
  const u64 data = k_wave_base + 16384 + u64{me} * 128;
  for (u32 round = 1; round <= k_wave_rounds; ++round) {
    xio_req_t request = 0;
    note(bad, rdma::put_signal(*c, 1, {data, source + data, 1 + (me + round) % 100}, {flag, round, XIO_SIGNAL_SET},
                               &request));
    if (me % 2 == 1) note(bad, rdma::atomic(*c, 1, {flag, 8, amo::bit_or, u64{1} << 40, 0}, false, nullptr));
  }
  note(bad, quiet(*c, 1));
}

bool ended() { return hipDeviceSynchronize() == hipSuccess; }

}  // namespace

bool run_puts(const ctx_view* c, unsigned char* source, std::uint32_t* bad) {
  hipLaunchKernelGGL(put_kernel, dim3(k_wave_blocks), dim3(k_wave_threads), 0, nullptr, c, source, bad);
  return ended();
}

bool run_adds(const ctx_view* c, std::uint64_t* seen, std::uint32_t* bad) {
  hipLaunchKernelGGL(add_kernel, dim3(k_wave_blocks), dim3(k_wave_threads), 0, nullptr, c, seen, bad);
  return ended();
}

bool run_signals(const ctx_view* c, unsigned char* source, std::uint32_t* bad) {
  hipLaunchKernelGGL(signal_kernel, dim3(k_wave_blocks), dim3(k_wave_threads), 0, nullptr, c, source, bad);
  return ended();
}

}  // namespace xio::test
