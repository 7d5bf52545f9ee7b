// SPDX-License-Identifier: MIT
// sdma-ep: copies by queues of copy engines, by the device API of xio/sdma.h.
#pragma once
#include "tools/xio-tester/recorder.hpp"
#include "xio/sdma.h"

namespace xio::tester {

// Words of sdma_job::words, a cache line each.
constexpr u64 k_counter_word = 0;
constexpr u64 k_there_word = 16;
constexpr u64 k_back_word = 32;
constexpr u64 k_sdma_words = 48;

constexpr u32 k_sdma_block = 512;

// The first block of what op `op` carries: no two ops carry the same.
XIO_HOST_DEVICE u64 sdma_block_of(u64 op, u64 bytes) { return op * ((bytes + k_sdma_block - 1) / k_sdma_block); }

enum class local_completion : u32 { quiet, counter, flush };

struct sdma_job {
  xio_sdma_queue_t queue;
  xio_sdma_queue_t other_queue;  // ping-pong: of the one who throws back
  recorder tally;
  u8* src;
  u8* dst;
  u64* words;  // counter, signals: one for each 128 bytes
  u64 bytes;
  u64 first, ops;  // from this one on to the end of those
  u64 slots;       // places at dst, `bytes` apart
  u64 sources;     // sources at src, likewise; the host has filled them
  u64 seed;
  local_completion how;
};

// One thread. p2p: copies one after another. buffer_reuse: the source is made anew after every local completion.
const char* launch_sdma_copies(const sdma_job& job, bool reuse);
// Two workgroups of one thread, each with a queue: src to dst and back.
const char* launch_sdma_pingpong(const sdma_job& job);

}  // namespace xio::tester
