// SPDX-License-Identifier: MIT
// The test pattern: every block of every place has bytes of its own, and its first word says which block it is. So a
// block in the wrong place differs from one that never came.
//
// With 64-bit arithmetic that wraps, for block b of a pattern with a seed:
//   key      = mix(seed + 0x9e3779b97f4a7c15)
//   word 0   = mix(b + key)                       mix is invertible, so b can be had back
//   word i+1 = x after x = word i (or key | 1 if that is 0), x ^= x << 13, x ^= x >> 7, x ^= x << 17
// Words are little-endian. The steps from word to word are a linear feedback shift register of 64 bits (Marsaglia,
// "Xorshift RNGs", Journal of Statistical Software 8, 2003); mix is the finalizer of SplitMix64.
#pragma once
#include <cstring>

#include "xio/device/platform/platform.hpp"

namespace xio::tester {

using dev::u32;
using dev::u64;
using dev::u8;

// A buffer holds this before data comes: no block of a pattern does, but by a chance of 2^-64.
constexpr u64 k_poison = 0x5a5a5a5a5a5a5a5aull;

enum class verdict : u32 {
  good = 0,
  astray,   // whole and sound, and of another place
  missing,  // nothing came: still poison, or zeroes
  corrupt   // anything else
};

XIO_HOST_DEVICE u64 mix(u64 x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}
// The constants are the inverses modulo 2^64 of those of mix().
XIO_HOST_DEVICE u64 unmix(u64 x) {
  x = (x ^ (x >> 31) ^ (x >> 62)) * 0x319642b2d24d8ec3ull;
  x = (x ^ (x >> 27) ^ (x >> 54)) * 0x96de1b173f119089ull;
  return x ^ (x >> 30) ^ (x >> 60);
}

struct pattern {
  u64 key;
  u32 block_bytes;

  XIO_HOST_DEVICE static pattern of(u64 seed, u32 block_bytes) {
    return pattern{mix(seed + 0x9e3779b97f4a7c15ull), block_bytes};
  }
  XIO_HOST_DEVICE u64 first(u64 block) const { return mix(block + key); }
  XIO_HOST_DEVICE u64 block_of(u64 word) const { return unmix(word) - key; }
  XIO_HOST_DEVICE u64 next(u64 x) const {
    if (x == 0) x = key | 1;
    x ^= x << 13;
    x ^= x >> 7;
    return x ^ (x << 17);
  }

  // Calls each(place, word, bytes) for the words of the first `bytes` bytes of a block; stops when it returns false.
  template <class Each>
  XIO_HOST_DEVICE bool words(u64 block, u64 bytes, Each&& each) const {
    u64 x = first(block);
    for (u64 at = 0; at < bytes; at += 8, x = next(x))
      if (!each(at, x, bytes - at < 8 ? bytes - at : 8)) return false;
    return true;
  }

  XIO_HOST_DEVICE void fill_block(u8* to, u64 bytes, u64 block) const {
    words(block, bytes, [&](u64 at, u64 x, u64 n) {
      memcpy(to + at, &x, n);
      return true;
    });
  }

  // Blocks one after another; the last may be cut short.
  XIO_HOST_DEVICE void fill(u8* to, u64 bytes, u64 block) const {
    for (u64 at = 0; at < bytes; at += block_bytes, ++block)
      fill_block(to + at, bytes - at < block_bytes ? bytes - at : block_bytes, block);
  }

  XIO_HOST_DEVICE bool holds(const u8* data, u64 bytes, u64 block) const {
    return words(block, bytes, [&](u64 at, u64 x, u64 n) {
      u64 found = 0;
      memcpy(&found, data + at, n);
      return found == (n == 8 ? x : x & ((u64{1} << 8 * n) - 1));
    });
  }

  XIO_HOST_DEVICE static bool is_all(const u8* data, u64 bytes, u8 value) {
    for (u64 i = 0; i < bytes; ++i)
      if (data[i] != value) return false;
    return true;
  }

  // Of one block that should be `block`. *found: what it is, if astray. A block number of `end` and more is none.
  XIO_HOST_DEVICE verdict judge(const u8* data, u64 bytes, u64 block, u64 end, u64* found) const {
    *found = block;
    if (holds(data, bytes, block)) return verdict::good;
    if (is_all(data, bytes, static_cast<u8>(k_poison)) || is_all(data, bytes, 0)) return verdict::missing;
    if (bytes < 8) return verdict::corrupt;
    u64 word = 0;
    memcpy(&word, data, 8);
    const u64 other = block_of(word);
    if (other == block || other >= end || !holds(data, bytes, other)) return verdict::corrupt;
    *found = other;
    return verdict::astray;
  }
};

XIO_HOST_DEVICE void poison(u8* to, u64 bytes) { memset(to, static_cast<int>(k_poison & 0xff), bytes); }

}  // namespace xio::tester
