// SPDX-License-Identifier: MIT
// What kernel and host of sdma-ep agree on.
#pragma once
#include "tools/xio-tester/pattern.hpp"

namespace xio::tester {

// Words of sdma_job::words, a cache line each.
constexpr u64 k_counter_word = 0;
constexpr u64 k_there_word = 16;
constexpr u64 k_back_word = 32;
constexpr u64 k_sdma_words = 48;

constexpr u32 k_sdma_block = 512;

// The first block of what op `op` carries: no two ops carry the same.
XIO_HOST_DEVICE u64 sdma_block_of(u64 op, u64 bytes) { return op * ((bytes + k_sdma_block - 1) / k_sdma_block); }

}  // namespace xio::tester
