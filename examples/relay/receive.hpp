// SPDX-License-Identifier: MIT
// PE 1 of relay: from the network through the copy engine to the drive.
#pragma once
#include "send.hpp"

static __global__ void receive_file(job j) {
  const uint64_t slots = blockDim.x, slot = threadIdx.x;
  const uint64_t chunks = (j.bytes + j.chunk - 1) / j.chunk;
  unsigned char* in = j.inbox + slot * j.chunk;
  unsigned char* out = j.stage + slot * j.chunk;
  enum { waiting, copying, writing } step = waiting;
  xio_deadline_t idle = xio_deadline(j.rdma);
  xio_req_t request = 0;
  for (uint64_t i = slot; i < chunks;) {
    if (step == waiting) {
      if (xio_signal_fetch(j.rdma, &j.mail->arrived[slot]) > i / slots) {
        request = xio_put_nbi(j.sdma, out, in, chunk_bytes(j, i), 1);
        step = copying;
        idle = xio_deadline(j.rdma);
      }
    } else if (const xio_status_t s = xio_test(step == copying ? j.sdma : j.rdma, request); s == XIO_OK) {
      if (step == copying) {
        request = xio_write_nbi(j.rdma, out, j.file, i * j.chunk, chunk_bytes(j, i));
        step = writing;
      } else {
        xio_signal_op(j.rdma, &j.mail->drained[slot], i / slots + 1, XIO_SIGNAL_SET, 0);
        step = waiting;
        i += slots;
      }
      idle = xio_deadline(j.rdma);
    } else if (s != XIO_PENDING) {
      return give_up(j, s, 0);
    }
    if (xio_signal_fetch(j.rdma, &j.mail->failed) != 0) return give_up(j, XIO_ERR_PEER, 0);
    if (!xio_pause_until(idle)) return give_up(j, XIO_ERR_TIMEOUT, 0);
  }
  if (const xio_status_t s = xio_quiet(j.rdma); s != XIO_OK) give_up(j, s, 0);
}

// After every lane is done: the copy reaches the medium, and both PEs learn how the other fared.
static __global__ void finish(job j, int other) {
  if (xio_my_pe(j.rdma) == 1 && j.bytes != 0 && *j.status == XIO_OK) {
    if (const xio_status_t s = xio_storage_sync(j.rdma, j.file); s != XIO_OK) give_up(j, s, other);
  }
  const xio_status_t s = xio_barrier_all(j.rdma);
  if (*j.status == XIO_OK && s != XIO_OK) *j.status = s;
  if (*j.status == XIO_OK && xio_signal_fetch(j.rdma, &j.mail->failed) != 0) *j.status = XIO_ERR_PEER;
}
