// SPDX-License-Identifier: MIT
// What relay's kernels work on, and PE 0's: from the drive to the network.
#pragma once
#include <cstdint>

#include "../check.hpp"

constexpr unsigned k_max_slots = 64;

// Symmetric: the same layout on both PEs.
struct mailbox {
  uint64_t file_bytes;            // PE 1 gets it of PE 0
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

static __global__ void send_file(job j) {
  const uint64_t slots = blockDim.x, slot = threadIdx.x;
  const uint64_t chunks = (j.bytes + j.chunk - 1) / j.chunk;
  unsigned char* buffer = j.outbox + slot * j.chunk;
  xio_deadline_t idle = xio_deadline(j.rdma);
  xio_req_t reading = 0;
  bool have_read = false;
  for (uint64_t i = slot; i < chunks;) {
    if (!have_read) {
      // The slot is free on both sides once PE 1 has written the chunk that was in it.
      if (xio_signal_fetch(j.rdma, &j.mail->drained[slot]) >= i / slots) {
        reading = xio_read_nbi(j.rdma, buffer, j.file, i * j.chunk, chunk_bytes(j, i));
        have_read = true;
        idle = xio_deadline(j.rdma);
      }
    } else if (const xio_status_t s = xio_test(j.rdma, reading); s == XIO_OK) {
      xio_put_signal_nbi(j.rdma, j.inbox + slot * j.chunk, buffer, chunk_bytes(j, i), &j.mail->arrived[slot],
                         i / slots + 1, XIO_SIGNAL_SET, 1);
      have_read = false;
      i += slots;
      idle = xio_deadline(j.rdma);
    } else if (s != XIO_PENDING) {
      return give_up(j, s, 1);
    }
    if (xio_signal_fetch(j.rdma, &j.mail->failed) != 0) return give_up(j, XIO_ERR_PEER, 1);
    if (!xio_pause_until(idle)) return give_up(j, XIO_ERR_TIMEOUT, 1);
  }
  if (const xio_status_t s = xio_quiet(j.rdma); s != XIO_OK) give_up(j, s, 1);
}
