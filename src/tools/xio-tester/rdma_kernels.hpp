// SPDX-License-Identifier: MIT
// rdma-ep: puts to the PE itself, or ping-pong between two PEs, by the device API.
#pragma once
#include "tools/xio-tester/batches.hpp"

namespace xio::tester {

struct rdma_job : batch_job {
  // Symmetric; a place for each op of a batch, of each queue.
  u8* dst;
  u8* src;
  u64 stride;  // from place to place
  u64 bytes;
  int pe;
};

// A workgroup for each queue.
const char* launch_rdma_loopback(const rdma_job& job, unsigned queues, unsigned threads);

// Both PEs of a ping-pong must have these options alike.
struct pingpong_terms {
  u64 bytes, rounds, seed, verify;
};
// Gets a PE's terms into `mine`, which is symmetric too; the kernel's result goes to *status.
const char* launch_rdma_terms(xio_ctx_t ctx, pingpong_terms* mine, const pingpong_terms* theirs, int pe, int* status);

struct pingpong_job {
  xio_ctx_t ctx;
  recorder tally;
  u8* ball;  // symmetric: where it arrives
  u8* mine;  // where it is thrown from
  u64* signal;
  pingpong_terms terms;
};

// By PEs 0 and 1, one thread each.
const char* launch_rdma_pingpong(const pingpong_job& job);

}  // namespace xio::tester
