// SPDX-License-Identifier: MIT
// Kernels that send data between PEs by the engine that the ctx takes, and count wrong words.
#pragma once
#include <cstdint>

#include "xio/xio.h"

namespace xio::verify {

enum class caller { thread, wave, workgroup };

// A kernel's result. Of several failures the first one's status stays.
struct engine_result {
  int status;
  std::uint32_t wrong;  // words that were not as they must be
};

// A symmetric block, zero at the start.
struct engine_words {
  std::uint64_t flag, turn, x, y, total, sum;
};

// Words of a message in tests of order: above what engines send within an entry.
constexpr std::uint32_t k_message_words = 512;
constexpr std::uint32_t k_groups = 4, k_threads = 64;

struct engine_work {
  xio_ctx_t ctx;
  unsigned char *src, *dst;  // symmetric
  engine_words* words;
  std::uint64_t* misses;  // of store buffering: a word for each turn, of each of a pair; symmetric
  engine_result* result;  // of this PE
  int me, n;
  std::uint64_t bytes;
  std::uint32_t turns;
};

// Each launches and waits; returns null, or what the GPU's runtime said.
// Copies src of this PE to dst of the next one, or src of the next one to dst of this one.
const char* run_copy(const engine_work& w, bool get, bool blocking, caller who);
// Turn by turn: data to the next PE and a flag behind it, which the next one waits for before it reads.
enum class flag_by { put_signal, fence_and_value, fence_and_atomic };
const char* run_messages(const engine_work& w, flag_by how);
// Pairs of PEs put to each other, quiet, and read: they cannot both miss.
const char* run_buffering(const engine_work& w);
// Every thread of every PE adds to words of PE 0.
const char* run_adds(const engine_work& w);

}  // namespace xio::verify
