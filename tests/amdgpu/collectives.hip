// SPDX-License-Identifier: MIT
// A few of tests/mpi/collectives and tests/mpi/teams, small enough for a GPU whose instructions are interpreted: one of
// each family, by a wave or a workgroup, in packets and larger.
#include <xio/team.h>

#include "../mpi/rig.hpp"

namespace {

constexpr size_t k_most = 9000;  // bytes of a block

__host__ __device__ unsigned char byte_of(int from, int to, size_t i) {
  return static_cast<unsigned char>(from * 31 + to * 7 + static_cast<int>(i) * 3 + 1);
}

// Everybody has a block for everybody, and a first one for all.
__device__ bool differs(const unsigned char* block, int from, int to, size_t bytes) {
  bool other = false;
  for (size_t i = threadIdx.x; i < bytes; i += blockDim.x) other |= block[i] != byte_of(from, to, i);
  return other;
}

struct buffers {
  unsigned char *to, *from;
  size_t bytes;
};

__global__ void moves(xio_ctx_t ctx, xio_team_t t, buffers b, int* bad) {
  const int me = xio_team_my_pe(t), n = xio_team_n_pes(t);
  for (int to = 0; to < n; ++to)
    for (size_t i = threadIdx.x; i < b.bytes; i += blockDim.x)
      b.from[static_cast<size_t>(to) * b.bytes + i] = byte_of(me, to, i);
  __syncthreads();
  if (xio_alltoall_wg(ctx, t, b.to, b.from, b.bytes) != XIO_OK) *bad = 1;
  for (int from = 0; from < n; ++from)
    if (differs(b.to + static_cast<size_t>(from) * b.bytes, from, me, b.bytes)) *bad = 2;
  if (xio_team_barrier_wg(ctx, t) != XIO_OK) *bad = 3;
  if (threadIdx.x < warpSize && xio_fcollect_wave(ctx, t, b.to, b.from, b.bytes) != XIO_OK) *bad = 4;
  __syncthreads();
  for (int from = 0; from < n; ++from)
    if (differs(b.to + static_cast<size_t>(from) * b.bytes, from, 0, b.bytes)) *bad = 5;
  __syncthreads();
  if (threadIdx.x == 0 && xio_team_sync(ctx, t) != XIO_OK) *bad = 6;
  __syncthreads();
  if (xio_broadcast_wg(ctx, t, b.to, b.from, b.bytes, n - 1) != XIO_OK) *bad = 7;
  if (differs(b.to, me == n - 1 ? 0 : n - 1, 0, b.bytes)) *bad = 8;
}

__global__ void sums(xio_ctx_t ctx, xio_team_t t, int* to, int* from, size_t count, bool by_wave, int* bad) {
  const int me = xio_team_my_pe(t), n = xio_team_n_pes(t);
  for (size_t i = threadIdx.x; i < count; i += blockDim.x) from[i] = me + 1 + static_cast<int>(i % 5);
  __syncthreads();
  xio_status_t status = XIO_OK;
  if (by_wave && threadIdx.x < warpSize) status = xio_reduce_wave<xio_reduction::sum>(ctx, t, to, from, count);
  if (!by_wave) status = xio_reduce_wg<xio_reduction::sum>(ctx, t, to, from, count);
  if (status != XIO_OK) *bad = 12;
  __syncthreads();
  for (size_t i = threadIdx.x; i < count; i += blockDim.x)
    if (to[i] != n * (n + 1) / 2 + n * static_cast<int>(i % 5)) *bad = 13;
}

// 1.0 as binary16 is 3c00h, 2.0 is 4000h. Then blocks of any sizes: member m gives m + 1 + me bytes. Then PE 1 alone
// calls a sync, which is an error for all, and at last all do. A call that is written once is in the kernel once.
__global__ void others(xio_ctx_t ctx, xio_team_t t, uint16_t* words, size_t* numbers, int* bad) {
  auto* half = reinterpret_cast<xio_half_t*>(words);
  auto* bytes = reinterpret_cast<unsigned char*>(words);
  const int me = xio_team_my_pe(t), n = xio_team_n_pes(t);
  if (threadIdx.x == 0) words[0] = 0x3c00;
  for (int m = static_cast<int>(threadIdx.x); m < n; m += static_cast<int>(blockDim.x))
    numbers[m] = static_cast<size_t>(16 * m), numbers[n + m] = static_cast<size_t>(1 + m + me);
  if (threadIdx.x < 64) bytes[64 + threadIdx.x] = static_cast<unsigned char>(100 * me + threadIdx.x);
  __syncthreads();
  if (xio_reduce_wg<xio_reduction::sum>(ctx, t, half + 1, half, 1) != XIO_OK) *bad = 21;
  if (n == 2 && words[1] != 0x4000) *bad = 22;
#pragma unroll 1
  for (int step = 0; step < 3; ++step) {
    const bool syncs = step == 2 || (step == 1 && me == 1);
    xio_status_t s = XIO_OK;
    if (syncs) s = xio_team_sync_wg(ctx, t);
    if (!syncs) s = xio_alltoallv_wg(ctx, t, bytes + 256, numbers, numbers + n, bytes + 64, numbers, numbers + n);
    if (s != (step == 1 && n > 1 ? XIO_ERR_ARG : XIO_OK)) *bad = 23 + step;
    for (int from = 0; from < n && step == 0; ++from)
      for (int i = 0; i < 1 + from + me; ++i)
        if (bytes[256 + 16 * from + i] != static_cast<unsigned char>(100 * from + 16 * me + i)) *bad = 26;
    __syncthreads();
  }
}

}  // namespace

int main() {
  // Small, so that every way of a reduce is taken.
  setenv("XIO_TEAM_AREA", "8k", 0);
  const rig::team t;
  xio_team_t team{};
  MUST(xio_team_world(t.world(), &team));
  auto* to = t.symmetric<unsigned char>(static_cast<size_t>(t.n) * k_most);
  auto* from = t.symmetric<unsigned char>(static_cast<size_t>(t.n) * k_most);
  for (const size_t bytes : {size_t{5}, k_most}) {
    const int bad = rig::result_of(moves, 1, 128, t.ctx, team, buffers{to, from, bytes});
    rig::expect(bad == 0, "blocks of %zu bytes: step %d", bytes, bad);
    t.barrier();
  }
  // Packets, parts of an area, and what is larger.
  for (const size_t count : {size_t{3}, size_t{1500}, k_most / sizeof(int)}) {
    const int bad = rig::result_of(sums, 1, 128, t.ctx, team, reinterpret_cast<int*>(to), reinterpret_cast<int*>(from),
                                   count, count == 1500);
    t.barrier();
    rig::expect(bad == 0, "sums of %zu: step %d", count, bad);
    t.barrier();
  }
  const int bad =
      rig::result_of(others, 1, 64, t.ctx, team, reinterpret_cast<uint16_t*>(to), reinterpret_cast<size_t*>(from));
  rig::expect(bad == 0, "other calls: step %d", bad);
  MUST(xio_team_destroy(t.world(), team));
  return rig::verdict("amdgpu/collectives", t);
}
