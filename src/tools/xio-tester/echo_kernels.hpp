// SPDX-License-Identifier: MIT
// test-ep: requests of 64 bytes from the GPU, replies of 16 bytes from a thread of the host, through memory alone.
#pragma once
#include "tools/xio-tester/recorder.hpp"

namespace xio::tester {

struct alignas(64) echo_request {
  u64 words[7];  // a pattern of the request's number, with --verify
  u64 number;    // from 1; written last, so that it says that the rest is there
};
static_assert(sizeof(echo_request) == 64);

struct alignas(16) echo_reply {
  u64 check;   // the sum of the request's words
  u64 number;  // of the request; written last
};
static_assert(sizeof(echo_reply) == 16);

// One GPU thread shares this with one thread of the host.
struct echo_queue {
  echo_request* requests;  // `entries` of them, a power of two
  echo_reply* replies;
  u64* doorbell;  // requests so far; null: the host looks at the requests themselves
  u64 entries;
};

struct echo_job {
  recorder tally;
  echo_queue* queues;  // one for each lane
  u64 rounds;          // of each lane
  u64 seed;
  u64 timeout_ticks;  // of each reply; 0: none
  u32 verify;
};

// One GPU thread for each queue.
const char* launch_echo(const echo_job& job, unsigned lanes);

}  // namespace xio::tester
