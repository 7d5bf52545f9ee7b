// SPDX-License-Identifier: MIT
// Copies that go together: one source to several places, which is loaded once, and two copies at a time, so that what
// takes the loads of one hides behind what takes the stores of the other.
#pragma once
#include "xio/device/impl/direct.hpp"

namespace xio::dev::direct {

// Stores N words of `from` to every place.
template <u32 N, class Place>
XIO_DEVICE void fan_out_batch(const unsigned char* from, u64 at, u64 stride, u32 places, Place&& place) {
  vec16 v[N];
  load_words<source::own>(v, from + at, stride);
  XIO_ROLLED for (u32 p = 0; p < places; ++p) {
    unsigned char* to = place(p) + at;
    XIO_UNROLL for (u32 k = 0; k < N; ++k) store_word<vec16>(to + k * stride, v[k]);
  }
}

template <u32 N>
XIO_DEVICE void copy_two_batch(unsigned char* to, const unsigned char* from, unsigned char* to2,
                               const unsigned char* from2, u64 stride) {
  vec16 a[N], b[N];
  load_words<source::own>(a, from, stride);
  load_words<source::own>(b, from2, stride);
  XIO_UNROLL for (u32 k = 0; k < N; ++k) store_word<vec16>(to + k * stride, a[k]);
  XIO_UNROLL for (u32 k = 0; k < N; ++k) store_word<vec16>(to2 + k * stride, b[k]);
}

// Copies `bytes` to place(0) .. place(places - 1). Collective over g, without the syncs before and after; nothing
// overlaps. False, and nothing is done: they gain nothing together.
template <class Group, class Place>
XIO_DEVICE bool fan_out(const Group& g, const unsigned char* from, u64 bytes, u32 places, Place&& place) {
  u64 all = reinterpret_cast<u64>(from) | bytes;
  if constexpr (k_splits_copies)
    for (u32 p = 0; p < places; ++p) all |= reinterpret_cast<u64>(place(p));
  if (!k_splits_copies || (all & 15) != 0 || places < 2) return false;
  constexpr u32 n = k_in_flight / 2;
  const u64 words = bytes / 16, count = g.count(), stride = count * 16;
  in_batches<n>(words, g.rank(), count,
                [&](auto b, u64 i) { fan_out_batch<decltype(b)::k_words>(from, i * 16, stride, places, place); });
  return true;
}

// Two copies of `bytes` each, likewise.
template <class Group>
XIO_DEVICE bool copy_two(const Group& g, unsigned char* to, const unsigned char* from, unsigned char* to2,
                         const unsigned char* from2, u64 bytes) {
  const u64 all = reinterpret_cast<u64>(to) | reinterpret_cast<u64>(from) | reinterpret_cast<u64>(to2) |
                  reinterpret_cast<u64>(from2) | bytes;
  if (!k_splits_copies || (all & 15) != 0) return false;
  constexpr u32 n = k_in_flight / 2;
  const u64 words = bytes / 16, count = g.count(), stride = count * 16;
  in_batches<n>(words, g.rank(), count, [&](auto b, u64 i) {
    copy_two_batch<decltype(b)::k_words>(to + i * 16, from + i * 16, to2 + i * 16, from2 + i * 16, stride);
  });
  return true;
}

}  // namespace xio::dev::direct
