// SPDX-License-Identifier: MIT
// Declarations that the test of the ring and its kernel share. The kernel's compiler does not see GoogleTest, so they
// are in two files.
#pragma once
#include "xio/device/impl/view.hpp"

#if defined(__HIPCC__) || defined(__CUDACC__)
#define XIO_BOTH __host__ __device__ inline
#else
#define XIO_BOTH inline
#endif

namespace xio::test {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

// Lines that codec, device and test share; what rdma_ring::completions points to. Kernels count in memory of the GPU,
// for host memory may know no atomics of theirs.
struct shared_words {
  alignas(128) u64 doorbell;        // tickets below are rung
  alignas(128) u32 fence;           // low word of: tickets below are complete
  alignas(128) u32* bad_doorbells;  // announcements that did not continue the one before
};

XIO_BOTH u32 mix(u32 x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

// dw 0,1 ticket; 2 the op; 3 flags; the others follow from the ticket.
constexpr u32 k_ends_batch = 1;
XIO_BOTH u32 filler(u64 ticket, u32 i) { return static_cast<u32>(ticket) * 16 + i; }

constexpr u32 k_rings = 2;

struct job {
  dev::ring_view rings[k_rings];
  const dev::world_view* world;
  u32* failures;  // as bad_doorbells
  u32 ops;        // per lane
  u32 rings_used, most_slots;
};

// How many entries op `op` takes; the host asks the same.
XIO_BOTH u32 slots_of(u32 op, u32 most) { return 1 + mix(op) % most; }
XIO_BOTH u32 ring_of(u32 op, u32 rings) { return mix(op ^ 0x5bd1e995u) % rings; }

// Runs the kernel to its end. False if it failed.
bool post_from_kernel(const job* j, u32 groups, u32 lanes_each);

}  // namespace xio::test
