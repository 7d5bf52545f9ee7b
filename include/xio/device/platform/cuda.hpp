// SPDX-License-Identifier: MIT
// NVIDIA GPUs. platform.hpp, which programs include, gives each name its meaning. Atomics and fences in PTX are in
// ptx.hpp.
// Part of platform.hpp.
#if defined(XIO_ON_CUDA) && !defined(XIO_DEVICE_CUDA_HPP)
#define XIO_DEVICE_CUDA_HPP
#include "xio/device/platform/cuda_choices.hpp"
#include "xio/device/platform/ptx.hpp"

namespace xio::dev {

template <class T>
XIO_DEVICE T* in_device_memory(T* p) {
  return static_cast<T*>(const_cast<void*>(__cvta_global_to_generic(reinterpret_cast<std::size_t>(p))));
}

XIO_DEVICE bool lies_in_device_memory(const void* p) { return __isGlobal(p) != 0; }

#define XIO_INLINE_LAMBDA

XIO_DEVICE bool bit_of(u32 mask, u32 i) {
  // PTX' shl: 1 << i, and 0 from 32 on. Not mask >> i: that would wait for the mask, which comes last, by one
  // instruction more. Nor __funnelshift_lc: its asm is volatile, so that a loop works the bit out at every turn.
  u32 bit;
  asm("shl.b32 %0, 1, %1;" : "=r"(bit) : "r"(i));
  return (mask & bit) != 0;
}

XIO_DEVICE void not_before(u32& loaded) { asm volatile("" : "+r"(loaded)::"memory"); }
// nvcc moves arithmetic behind fences, where a lone thread waits for it.
XIO_DEVICE void not_after(u64& value) { asm volatile("" : "+l"(value)); }

XIO_DEVICE bool sync_workgroup_any(bool mine) { return __syncthreads_or(mine ? 1 : 0) != 0; }

// --- Waves -------------------------------------------------------------------------------------------

XIO_DEVICE u32 lowest_bit(u64 bits) { return static_cast<u32>(__ffsll(static_cast<long long>(bits)) - 1); }

XIO_DEVICE u32 lane_id() {
  u32 id;
  asm("mov.u32 %0, %%laneid;" : "=r"(id));
  return id;
}

// --- Time --------------------------------------------------------------------------------------------

XIO_DEVICE u64 wall_clock() {
  u64 ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

XIO_DEVICE void pause() { asm volatile("nanosleep.u32 20;"); }

// Lanes of a wave that have parted take turns, but paths that wait can hand the turn to each other while another, for
// which they wait, gets none: seen under compute-sanitizer, by one wave alone (docs/verified.md). Once all of them
// sleep for longer than their turns take together, it goes on. So after 100 us a pause is a 64th of the wait, up to 20
// us, which is enough for two paths: no more, because where processes take turns on a GPU a path that sleeps does not
// use its process's turn. A wave of 30 paths needs more: after 10 ms a path sleeps, besides, through one millisecond in
// every 67, chosen by the clock, so that it is the same one for all paths.
XIO_DEVICE void pause_after(u64 waited, u64 now) {
  constexpr u64 us = 1000, ms = 1000 * us, night = u64{1} << 20, day = u64{1} << 26;  // ns; a sleep is 1 ms at most
  u64 pause = 20;
  if (waited > 100 * us) pause = waited < 64 * 20 * us ? waited / 64 : 20 * us;
  if (waited > 10 * ms && (now & (day - 1)) < night) pause = night - (now & (night - 1));
  asm volatile("nanosleep.u32 %0;" ::"r"(static_cast<u32>(pause)));
}

// --- Wide moves --------------------------------------------------------------------------------------

using vec16 = uint4;

template <class Word>
XIO_DEVICE Word load_as(const unsigned char* p) {
  return *reinterpret_cast<const Word*>(p);
}
template <class Word>
XIO_DEVICE void store_as(unsigned char* p, Word v) {
  *reinterpret_cast<Word*>(p) = v;
}
template <class Word>
XIO_DEVICE Word load_past_caches(const unsigned char* p) {
  if constexpr (sizeof(Word) == 8) {
    return __ldcv(reinterpret_cast<const unsigned long long*>(p));
  } else {
    return __ldcv(reinterpret_cast<const Word*>(p));
  }
}

// --- Lanes together ----------------------------------------------------------------------------------

// The lanes of a mask are looked up at every use, unless it is a constant (docs/performance.md).
XIO_DEVICE bool is_whole(u64 mask) { return static_cast<u32>(mask) == 0xffffffffu; }

XIO_DEVICE void sync_lanes(u64 mask) {
  if (is_whole(mask)) return __syncwarp();
  if ((mask & (mask - 1)) != 0) __syncwarp(static_cast<u32>(mask));
}

XIO_DEVICE u64 ballot_of(u64 mask, bool predicate) {
  if (is_whole(mask)) return __ballot_sync(0xffffffffu, predicate);
  return __ballot_sync(static_cast<u32>(mask), predicate);
}

XIO_DEVICE u64 shuffle_in(u64 mask, u64 value, u32 from) {
  const auto bits = static_cast<unsigned long long>(value);
  if (is_whole(mask)) return __shfl_sync(0xffffffffu, bits, static_cast<int>(from));
  return __shfl_sync(static_cast<u32>(mask), bits, static_cast<int>(from));
}

// nvcc 13 assumes that such a mask is the same in all lanes that ever run side by side. Where two groups come together,
// one of them without some of its lanes, it then uses a single mask: lanes of the other group pass a sync that one of
// them has not reached, and that one hangs at it (tests/unit/lane_groups.cpp). The compiler does treat a value that a
// lane computes from its own number as private to the lane, so this function computes the mask that way.
XIO_DEVICE u64 same_key_mask(u64 key) {
  u32 up_to_me, above_me;
  asm("mov.u32 %0, %%lanemask_le;" : "=r"(up_to_me));
  asm("mov.u32 %0, %%lanemask_gt;" : "=r"(above_me));
  const u32 here = __activemask();
  u32 same = here;
  if ((here & (here - 1)) != 0) same = __match_any_sync(here, static_cast<unsigned long long>(key));
  return same & (up_to_me | above_me);
}

XIO_CONVERGENT u64 converged_mask() { return same_key_mask(0); }
// The compiler knows who is there without asking only if nobody leaves. Lanes beyond the workgroup's end do not exist:
// the last wave may be short.
XIO_DEVICE u64 wave_mask() {
  const u32 first = thread_in_workgroup() & ~31u;
  const u32 left = workgroup_size() - first;
  return left >= 32 ? 0xffffffffull : (u64{1} << left) - 1;
}

XIO_CONVERGENT bool group_mask(u64 key, u32 kind, u64* mask) {
  *mask = same_key_mask(key + kind);
  return true;
}

}  // namespace xio::dev

#include "xio/device/platform/bulk.hpp"

#endif
