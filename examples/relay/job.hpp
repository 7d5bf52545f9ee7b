// SPDX-License-Identifier: MIT
// What relay's kernels work on.
#pragma once
#include <cstdint>

#include "../check.hpp"

constexpr unsigned k_max_slots = 64;

// Symmetric: the same layout on both PEs.
struct mailbox {
  uint64_t file_bytes;            // PE 0 tells PE 1
  uint64_t failed;                // a PE tells the other to stop
  uint64_t arrived[k_max_slots];  // PE 0 -> 1: chunks of this slot that have arrived
  uint64_t drained[k_max_slots];  // PE 1 -> 0: chunks of this slot that are written
};

struct job {
  xio_ctx_t rdma, sdma;
  xio_storage_t file;
  mailbox* mail;
  unsigned char* outbox;  // PE 0: read here, put from here
  unsigned char* inbox;   // PE 1: puts arrive here
  unsigned char* stage;   // PE 1: copied here, written from here
  uint64_t bytes, chunk;
  int* status;  // host-readable result of the kernel
};

__device__ inline uint64_t chunk_bytes(const job& j, uint64_t i) {
  const uint64_t left = j.bytes - i * j.chunk;
  return left < j.chunk ? left : j.chunk;
}

// Leaves the first error in *status and tells the other PE.
__device__ inline void give_up(const job& j, int status, int other) {
  atomicCAS(j.status, static_cast<int>(XIO_OK), status);
  xio_signal_op(j.rdma, &j.mail->failed, 1, XIO_SIGNAL_SET, other);
}
