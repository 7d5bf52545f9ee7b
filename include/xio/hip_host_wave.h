// SPDX-License-Identifier: MIT
// Operations of a wave on the host platform; include <xio/hip.h>. They take all lanes of the wave that have not
// returned from the kernel, so all of these must call: a part of a wave that goes another way uses the _sync forms with
// its mask.
#pragma once
#include <cstdint>

#include "xio/device/platform/host_exec.hpp"

inline unsigned long long __ballot_sync(unsigned long long mask, int predicate) {
  return ::xio::host_exec::ballot(mask, predicate != 0);
}
inline unsigned long long __ballot(int predicate) { return __ballot_sync(::xio::host_exec::whole_wave(), predicate); }
inline unsigned long long __activemask() { return ::xio::host_exec::whole_wave(); }
inline int __any_sync(unsigned long long mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned long long mask, int predicate) { return __ballot_sync(mask, predicate) == mask; }
inline int __any(int predicate) { return __any_sync(::xio::host_exec::whole_wave(), predicate); }
inline int __all(int predicate) { return __all_sync(::xio::host_exec::whole_wave(), predicate); }
inline void __syncwarp(unsigned long long mask) { ::xio::host_exec::sync_lanes(mask); }
inline void __syncwarp() { ::xio::host_exec::sync_lanes(::xio::host_exec::whole_wave()); }

// The value of lane `from`; the caller's own where no such lane takes part, for which HIP promises nothing.
template <class T>
T xio_host_shuffle(unsigned long long mask, T value, int from) {
  static_assert(sizeof(T) <= 8, "a lane gives up to eight bytes");
  std::uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  const bool there = from >= 0 && from < 64 && (mask >> from & 1) != 0;
  const unsigned lane = there ? static_cast<unsigned>(from) : ::xio::host_exec::current->lane_id;
  bits = ::xio::host_exec::shuffle(mask, bits, lane);
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

// `width`, a power of two, divides the wave into parts that do not see each other; 0 is the whole wave.
struct xio_host_part {
  int lane, first, end;
  explicit xio_host_part(int width) : lane(static_cast<int>(::xio::host_exec::current->lane_id)) {
    const int all = static_cast<int>(::xio::host_exec::current->wave_size);
    if (width <= 0 || width > all) width = all;
    first = lane & ~(width - 1);
    end = first + width;
  }
  int or_own(int from) const { return from >= first && from < end ? from : lane; }
};
template <class T>
T __shfl_sync(unsigned long long mask, T value, int from, int width = 0) {
  const xio_host_part part(width);
  return xio_host_shuffle(mask, value, part.first + (from & (part.end - part.first - 1)));
}
template <class T>
T __shfl_up_sync(unsigned long long mask, T value, unsigned delta, int width = 0) {
  const xio_host_part part(width);
  return xio_host_shuffle(mask, value, part.or_own(part.lane - static_cast<int>(delta)));
}
template <class T>
T __shfl_down_sync(unsigned long long mask, T value, unsigned delta, int width = 0) {
  const xio_host_part part(width);
  return xio_host_shuffle(mask, value, part.or_own(part.lane + static_cast<int>(delta)));
}
template <class T>
T __shfl_xor_sync(unsigned long long mask, T value, int bits, int width = 0) {
  const xio_host_part part(width);
  const int from = part.lane ^ bits;
  return xio_host_shuffle(mask, value, from < part.end ? from : part.lane);
}
template <class T>
T __shfl(T value, int from, int width = 0) {
  return __shfl_sync(::xio::host_exec::whole_wave(), value, from, width);
}
template <class T>
T __shfl_up(T value, unsigned delta, int width = 0) {
  return __shfl_up_sync(::xio::host_exec::whole_wave(), value, delta, width);
}
template <class T>
T __shfl_down(T value, unsigned delta, int width = 0) {
  return __shfl_down_sync(::xio::host_exec::whole_wave(), value, delta, width);
}
template <class T>
T __shfl_xor(T value, int bits, int width = 0) {
  return __shfl_xor_sync(::xio::host_exec::whole_wave(), value, bits, width);
}
