// SPDX-License-Identifier: MIT
// Loads, stores and fences of the parties of litmus tests. Kernels take those of XIO's device code, so that it is these
// that are tried; threads of the host take the compiler's.
#pragma once
#include <sched.h>
#include <time.h>

#include "tools/xio-verify/litmus.hpp"
#include "xio/xio_device.hpp"

// Whether this half of a compilation has the device's functions; on the host platform there is one half.
#if defined(__HIP_DEVICE_COMPILE__) || defined(__CUDA_ARCH__) || defined(XIO_ON_HOST)
#define XIO_LITMUS_BY_DEVICE_CODE 1
#endif

namespace xio::verify {

using dev::order;
using dev::scope;
using dev::u32;
using dev::u64;

// The compiler moves no access over it; the machine may.
XIO_HOST_DEVICE void keep_program_order() { asm volatile("" ::: "memory"); }

template <scope S = scope::system>
XIO_HOST_DEVICE u64 load_relaxed(const u64* p) {
#if defined(XIO_LITMUS_BY_DEVICE_CODE)
  return dev::load<S, order::relaxed>(p);
#else
  return __atomic_load_n(p, __ATOMIC_RELAXED);
#endif
}

template <scope S, order O>
XIO_HOST_DEVICE void store(u64* p, u64 value) {
#if defined(XIO_LITMUS_BY_DEVICE_CODE)
  dev::store<S, O>(p, value);
#else
  __atomic_store_n(p, value, O == order::release ? __ATOMIC_RELEASE : __ATOMIC_RELAXED);
#endif
}
XIO_HOST_DEVICE void store_relaxed(u64* p, u64 value) { store<scope::system, order::relaxed>(p, value); }

template <scope S, order O>
XIO_HOST_DEVICE void add(u64* p, u64 value) {
#if defined(XIO_LITMUS_BY_DEVICE_CODE)
  (void)dev::fetch_add<S, O>(p, value);
#else
  (void)__atomic_fetch_add(p, value, O == order::release ? __ATOMIC_RELEASE : __ATOMIC_RELAXED);
#endif
}

template <scope S, order O>
XIO_HOST_DEVICE void fence() {
#if defined(XIO_LITMUS_BY_DEVICE_CODE)
  dev::fence<S, O>();
#else
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

// --- An entry of 64 bytes ----------------------------------------------------------------------------
// Its words are base, base + 1, and so on. Kernels write and read it by 16 bytes, as they do rings and payload.

XIO_HOST_DEVICE void write_entry(u64* to, u64 base) {
#if defined(XIO_LITMUS_BY_DEVICE_CODE) && !defined(XIO_ON_HOST)
  for (u32 i = 0; i < k_entry_words; i += 2) {
    const u64 both[2] = {base + i, base + i + 1};
    dev::vec16 v;
    __builtin_memcpy(&v, both, sizeof v);
    dev::direct::store_word<dev::vec16>(reinterpret_cast<unsigned char*>(to + i), v);
  }
#else
  for (u32 i = 0; i < k_entry_words; ++i) to[i] = base + i;
#endif
  keep_program_order();
}

enum class loads { plain, past_caches };

template <loads How>
XIO_HOST_DEVICE void read_entry(u64 (&out)[k_entry_words], const u64* from) {
  keep_program_order();
#if defined(XIO_LITMUS_BY_DEVICE_CODE) && !defined(XIO_ON_HOST)
  constexpr auto source = How == loads::plain ? dev::direct::source::own : dev::direct::source::peer;
  dev::vec16 v[4];
  dev::direct::load_words<source>(v, reinterpret_cast<const unsigned char*>(from), sizeof v[0]);
  __builtin_memcpy(out, v, sizeof out);
#else
  for (u32 i = 0; i < k_entry_words; ++i) out[i] = How == loads::plain ? from[i] : load_relaxed(from + i);
#endif
  keep_program_order();
}

// How many of its words are not as they were written.
template <loads How>
XIO_HOST_DEVICE u32 count_old_words(const u64* from, u64 base) {
  u64 found[k_entry_words];
  read_entry<How>(found, from);
  u32 old = 0;
  for (u32 i = 0; i < k_entry_words; ++i) old += found[i] != base + i ? 1 : 0;
  return old;
}

// --- Waiting -----------------------------------------------------------------------------------------

XIO_HOST_DEVICE u64 now() {
#if defined(XIO_LITMUS_BY_DEVICE_CODE)
  return dev::wall_clock();
#else
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<u64>(t.tv_sec) * 1000000000u + static_cast<u64>(t.tv_nsec);
#endif
}

XIO_HOST_DEVICE u64 longest_wait(const litmus_work& w) {
#if defined(XIO_LITMUS_BY_DEVICE_CODE)
  return w.gpu_ticks;
#else
  return w.host_ns;
#endif
}

XIO_HOST_DEVICE void give_way() {
#if defined(XIO_LITMUS_BY_DEVICE_CODE)
  dev::pause();
#else
  sched_yield();
#endif
}

// A party that has waited too long lets the others end, too.
XIO_HOST_DEVICE u64* gave_up(const litmus_work& w) { return w.gate + k_parties_max * k_words_per_line; }

template <class Done>
XIO_HOST_DEVICE bool wait_for(const litmus_work& w, Done&& done) {
  u64 begin = 0;
  for (u32 turn = 1; !done(); ++turn) {
    if (dev::k_pauses_at_once || turn % 256 == 0) give_way();
    if (turn % 256 != 0) continue;
    if (begin == 0) begin = now();
    if (load_relaxed(gave_up(w)) != 0) return false;
    if (now() - begin <= longest_wait(w)) continue;
    store_relaxed(gave_up(w), 1);
    return false;
  }
  return true;
}

// All parties come here before any of them goes on.
XIO_HOST_DEVICE bool pass_gate(const litmus_work& w, u32 party, u32 parties, u64 turn) {
  store_relaxed(w.gate + party * k_words_per_line, turn);
  return wait_for(w, [&] {
    for (u32 other = 0; other < parties; ++other)
      if (load_relaxed(w.gate + other * k_words_per_line) < turn) return false;
    return true;
  });
}

// A little while, another one for each party and instance, so that they overlap in many ways.
XIO_HOST_DEVICE void stagger(u32 party, u32 instance) {
  u32 x = (instance * 3 + party) * 2654435761u;
  x ^= x >> 15;
  for (u32 turns = (x * 2246822519u) >> 25; turns != 0; --turns) keep_program_order();
}

}  // namespace xio::verify
