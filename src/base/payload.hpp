// SPDX-License-Identifier: MIT
// How host threads that play an engine touch payload, which may live in GPU memory. Made by src/gpu, used by
// src/model. Rings and completions are host memory, accessed directly, but for a NIC's: see model/nic/ring_memory.hpp.
#pragma once
#include "base/option_words.hpp"

namespace xio {

enum class atomic_op { fetch, swap, add, compare_swap, bit_and, bit_or, bit_xor };

struct payload_agent {
  // Finished on return; not blocked by running kernels.
  void (*copy)(void* to, const void* from, std::size_t bytes);
  // Returns the old value. width is 4 or 8 and the address is aligned to it. Sequentially consistent.
  std::uint64_t (*atomic)(void* address, unsigned width, atomic_op op, std::uint64_t operand, std::uint64_t compare);
  // Makes earlier copies visible before later ones (a release fence at system scope).
  void (*fence)();
  // The payload is host memory: pointers to it may be handed to the operating system.
  bool direct = false;
  // Where copies travel by themselves: one that may be under way when the call returns, and what waits for all that the
  // calling thread has begun so. Null where nothing is won by it.
  void (*copy_later)(void* to, const void* from, std::size_t bytes) = nullptr;
  void (*finish)() = nullptr;
  // Where such copies of a thread arrive in the order in which they were begun: a number for all begun so far, and
  // whether these have arrived. Few numbers are out at a time (k_marks), and they are asked for in order. Null where
  // only finish() says so.
  std::uint64_t (*mark)() = nullptr;
  bool (*reached)(std::uint64_t mark) = nullptr;

  static constexpr std::uint64_t k_marks = 32;

  // The vendor's library that moves files' data to this memory by itself; automatic: there is none.
  option::storage_files_by files_by = option::storage_files_by::automatic;
  // For a thread that calls it: makes the PE's GPU the thread's. Null where there is none.
  void (*use_device)() = nullptr;
};

}  // namespace xio
