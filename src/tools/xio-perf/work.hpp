// SPDX-License-Identifier: MIT
// What the host hands to the measuring kernels and gets back from them. Plain data; the kernels are in the .hip files.
#pragma once
#include <cstddef>

#include "tools/xio-perf/catalogue.hpp"
#include "xio/device/reduction.hpp"
#include "xio/hip.h"
#include "xio/team.h"
#include "xio/xio.h"

namespace xio::perf {

enum class scope { thread, wave, block };

enum class atomic_op {
  inc,
  add,
  set,
  bit_and,
  bit_or,
  bit_xor,
  fetch,
  swap,
  compare_swap,
  fetch_inc,
  fetch_add,
  fetch_and,
  fetch_or,
  fetch_xor
};

// When a workgroup's measured part began and ended: by the device's wall clock and by the clock of the samples.
struct span {
  std::uint64_t begin, end, first, last;
};

// Words in the symmetric heap that kernels of two PEs tell each other something by; on cache lines of their own.
//
// How long a flag takes to and fro depends on where it lies: between two H200s from 1.2 to 1.7 us, line by line
// (docs/performance.md). So every turn goes to another place than the one before, and a median is one of many places.
struct place {
  alignas(128) std::uint64_t flag;
  alignas(128) std::uint64_t packet[16];
  unsigned char apart[4096 - 128];
};
constexpr std::uint64_t k_places = 64;
struct words {
  alignas(128) std::uint64_t mark;
  place places[k_places];

  constexpr place& of(std::uint64_t turn) { return places[turn % k_places]; }
};

struct work {
  xio_ctx_t ctx;
  xio_storage_t storage;
  int me, peer;
  std::uint32_t warm_up, iterations;
  std::size_t bytes;
  char* dst;
  const char* src;
  words* shared;        // symmetric
  std::uint64_t base;   // what flags have been counted up to by earlier runs
  std::uint64_t first;  // atomics: how many ops of earlier runs each word has seen
  atomic_op atomic;
  std::uint32_t element;   // bytes of one value: 2, 4 or 8
  std::uint32_t lockstep;  // 1: workgroups wait for each other after every iteration
  std::uint64_t stored;    // storage: bytes that ops are spread over, from offset 0 on
  std::uint64_t stride;    // storage: pieces from one op's place to the next one's; shares no factor with their number
  // Results, in device memory.
  std::uint64_t* samples;  // ticks of each iteration; of storage [group][iteration]
  span* spans;             // one for each workgroup
  int* status;             // the first thing that failed
  std::uint64_t* bad;      // fetched values that were not what they had to be
  std::uint64_t* gate;     // how many workgroups have come to the end of an iteration
};

// The host hands these to collectives as well. Counts of reduces are of 4-byte words.
struct team_work : work {
  xio_team_t team;
  std::uint32_t batch;  // calls of a sample
  xio_reduction reduction;
  const std::size_t *offsets, *lengths;  // of alltoallv: its blocks, one for each member
};

// Returns the value of a word that begins as `base` after k ops of that kind, all of one thread. The host expects this
// in the end and kernels of each fetching op before it.
template <class T>
#if defined(__CUDACC__) || defined(__HIPCC__)
__host__ __device__
#endif
    inline T
    value_after(atomic_op op, T base, std::uint64_t k) {
  constexpr T bits = static_cast<T>(0x5a5a5a5a5a5a5a5aULL);
  switch (op) {
    case atomic_op::add:
    case atomic_op::fetch_add: return static_cast<T>(base + T{3} * static_cast<T>(k));
    case atomic_op::bit_and:
    case atomic_op::fetch_and: return k == 0 ? base : static_cast<T>(base & bits);
    case atomic_op::bit_or:
    case atomic_op::fetch_or: return k == 0 ? base : static_cast<T>(base | bits);
    case atomic_op::bit_xor:
    case atomic_op::fetch_xor: return (k & 1) == 0 ? base : static_cast<T>(base ^ bits);
    case atomic_op::fetch: return base;
    // Increments, and the others that store the number of the op.
    default: return static_cast<T>(base + static_cast<T>(k));
  }
}

constexpr std::uint64_t k_word_base = 0x0123456789abcdefULL;  // every word of atomics begins as this, or its low half

// Each starts one kernel on the default stream; hipGetLastError() tells what came of it.
void launch_put_latency(scope s, unsigned threads, const work& w);
void launch_get_latency(scope s, unsigned threads, const work& w);
// By one thread, through shared memory.
void launch_staged_latency(bool put, const work& w);
void launch_scalar_latency(bool fetching, unsigned threads, const work& w);
void launch_atomic_latency(const work& w);
void launch_put_bandwidth(scope s, dim3 grid, dim3 block, const work& w);
void launch_get_bandwidth(scope s, dim3 grid, dim3 block, const work& w);
void launch_put_scalar_bandwidth(dim3 grid, dim3 block, const work& w);
void launch_get_scalar_bandwidth(dim3 grid, dim3 block, const work& w);
void launch_atomic_bandwidth(dim3 grid, dim3 block, const work& w);
void launch_flag_pingpong(bool signal, const work& w);
void launch_packet_pingpong(const work& w);
void launch_put_pingpong(scope s, unsigned threads, const work& w);
void launch_put_signal_pingpong(scope s, unsigned threads, const work& w);
void launch_collective(test_id id, scope s, unsigned threads, const team_work& w);
void launch_storage(scope s, bool write, dim3 grid, dim3 block, const work& w);
// Fetches w.bytes, a multiple of 8, from w.src of w.peer into w.dst.
void launch_fetch(const work& w);

}  // namespace xio::perf
