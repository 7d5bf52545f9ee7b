// SPDX-License-Identifier: MIT
// PE 0 of relay: from the drive to the network.
#pragma once
#include "job.hpp"

static __global__ void send_size(xio_ctx_t ctx, mailbox* mail, uint64_t bytes, int* status) {
  if (xio_my_pe(ctx) == 0) xio_p(ctx, &mail->file_bytes, bytes, 1);
  *status = xio_barrier_all(ctx);
}

static __global__ void send_file(job j) {
  const uint64_t slots = blockDim.x;
  const uint64_t slot = threadIdx.x;
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
