// SPDX-License-Identifier: MIT
// The host: kernels run on CPU threads, by src/gpu/host. platform.hpp, which programs include, gives the meanings.
// Part of platform.hpp.
#if defined(XIO_ON_HOST) && !defined(XIO_DEVICE_HOST_HPP)
#define XIO_DEVICE_HOST_HPP
#include <sched.h>
#include <time.h>

#include <cstring>

#include "xio/device/platform/host_exec.hpp"
#include "xio/device/platform/words.hpp"

// --- What suits the machine --------------------------------------------------------------------------

// XIO_HOST_AS_CUDA is for tests: it takes NVIDIA's choices, so that the code which they choose runs where there is no
// GPU. All device code of a program is compiled with it or without; libxio is compiled without, and goes with either.
#if defined(XIO_HOST_AS_CUDA)
#include "xio/device/platform/cuda_choices.hpp"
#else
namespace xio::dev {

// Orders are free here, and ThreadSanitizer knows nothing of fences: each access has its own.
constexpr order k_acquire_by_fence = order::acquire;
constexpr order k_release_by_fence = order::release;
// As on AMD, so that its tests are tests of that.
constexpr bool k_has_hdp = true;
// Lanes share threads.
constexpr bool k_pauses_at_once = true;
constexpr bool k_wave_ops_sync = true;
constexpr bool k_lanes_fence_as_one = false;
// A workgroup shares one CPU: splitting a copy would only cost switches.
constexpr bool k_splits_copies = false;
constexpr u32 k_in_flight = 8, k_odd_in_flight = 8, k_alone_in_flight = 8, k_past_caches_together = 8;
constexpr u32 k_looks_together = 8;
#if defined(XIO_WATCHES_BY_FENCE)
constexpr bool k_watches_by_fence = true;
#else
constexpr bool k_watches_by_fence = false;
#endif
constexpr bool k_indexes_arguments = false;
constexpr bool k_reads_bytes_by_words = false;
constexpr u32 k_looks_under_way = 1;
constexpr u32 k_polls_in_line = 0;

}  // namespace xio::dev
#endif

// ThreadSanitizer does not see the accesses of assembly.
#if defined(__SANITIZE_THREAD__)
#define XIO_HOST_SANITIZES_THREADS 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define XIO_HOST_SANITIZES_THREADS 1
#endif
#endif

namespace xio::dev {

template <order O>
constexpr int k_order = O == order::relaxed   ? __ATOMIC_RELAXED
                        : O == order::acquire ? __ATOMIC_ACQUIRE
                        : O == order::release ? __ATOMIC_RELEASE
                        : O == order::acq_rel ? __ATOMIC_ACQ_REL
                                              : __ATOMIC_SEQ_CST;
template <order O>
constexpr int k_failure = O == order::relaxed || O == order::release ? __ATOMIC_RELAXED
                          : O == order::seq_cst                      ? __ATOMIC_SEQ_CST
                                                                     : __ATOMIC_ACQUIRE;

template <scope S, order O, class T>
XIO_DEVICE T load(const T* p) {
  T value;
  __atomic_load(const_cast<T*>(p), &value, k_order<O>);
  return value;
}

template <scope S, order O, class T>
XIO_DEVICE void store(T* p, T value) {
  __atomic_store(p, &value, k_order<O>);
}

template <scope S, order O, class T>
XIO_DEVICE T exchange(T* p, T value) {
  T old;
  __atomic_exchange(p, &value, &old, k_order<O>);
  return old;
}

template <scope S, order O, class T>
XIO_DEVICE bool compare_exchange(T* p, T& expected, T desired) {
  return __atomic_compare_exchange(p, &expected, &desired, false, k_order<O>, k_failure<O>);
}

#define XIO_RMW(name)                             \
  template <scope S, order O, class T>            \
  XIO_DEVICE T name(T* p, T value) {              \
    return __atomic_##name(p, value, k_order<O>); \
  }
XIO_RMW(fetch_add)
XIO_RMW(fetch_and)
XIO_RMW(fetch_or)
XIO_RMW(fetch_xor)
#undef XIO_RMW

template <scope S, order O>
XIO_DEVICE void fence() {
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wtsan"
#endif
  __atomic_thread_fence(k_order<O>);
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
}

// A device of software that sleeps has a thread of this process (base/sleeper.hpp says why a plain load is enough).
XIO_DEVICE void wake_devices() {
  if (__atomic_load_n(&host_exec::sleepers, __ATOMIC_RELAXED) != 0) [[unlikely]]
    host_exec::wake();
}

// A page of registers may be mapped so that a core combines its writes: they leave at an SFENCE, which stands right
// behind the store, where simulated doorbell pages look for it (sim/uverbs/device/doorbells.hpp).
template <class T>
XIO_DEVICE void ring_doorbell(T* at, T value) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
#if defined(__x86_64__) && !defined(XIO_HOST_SANITIZES_THREADS)
  asm volatile("mov %1, %0\n\tsfence" : "=m"(*at) : "r"(value) : "memory");
#else
  store<scope::system, order::release>(at, value);
#if defined(__aarch64__)
  asm volatile("dsb st" ::: "memory");
#endif
#endif
  wake_devices();
}

template <class T>
XIO_DEVICE T* in_device_memory(T* p) {
  return p;
}

#define XIO_INLINE_LAMBDA __attribute__((always_inline))

XIO_DEVICE void not_before(u32& loaded) { (void)loaded; }

// --- Where am I --------------------------------------------------------------------------------------

XIO_DEVICE u32 thread_in_workgroup() {
  const auto* me = host_exec::current;
  if (me == nullptr) return 0;
  return (me->thread_index.z * me->block_size.y + me->thread_index.y) * me->block_size.x + me->thread_index.x;
}

XIO_DEVICE u32 workgroup_size() {
  const auto* me = host_exec::current;
  return me == nullptr ? 1 : me->block_size.x * me->block_size.y * me->block_size.z;
}

XIO_DEVICE u32 workgroup_index() {
  const auto* me = host_exec::current;
  if (me == nullptr) return 0;
  return (me->block_index.z * me->grid_size.y + me->block_index.y) * me->grid_size.x + me->block_index.x;
}

XIO_DEVICE void sync_workgroup() {
  if (workgroup_size() != 1) host_exec::sync_workgroup();
}

inline void* workgroup_memory(const void* tag, std::size_t bytes, std::size_t alignment) {
  if (host_exec::current != nullptr) return host_exec::static_shared(tag, bytes, alignment);
  // A host thread outside any kernel is a workgroup of its own; no XIO_SHARED of XIO is larger than this.
  alignas(64) static thread_local char alone[256];
  return bytes <= sizeof alone ? alone : nullptr;
}

// --- Waves -------------------------------------------------------------------------------------------

XIO_DEVICE u32 popcount(u64 bits) { return static_cast<u32>(__builtin_popcountll(bits)); }

XIO_DEVICE u32 lane_id() { return host_exec::current == nullptr ? 0 : host_exec::current->lane_id; }

XIO_DEVICE u32 wave_size() { return host_exec::current == nullptr ? 1 : host_exec::current->wave_size; }

// --- Time --------------------------------------------------------------------------------------------

XIO_DEVICE u64 wall_clock() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<u64>(now.tv_sec) * 1000000000u + static_cast<u64>(now.tv_nsec);
}

XIO_DEVICE u64 deadline_clock() { return host_exec::deadline_clock(); }

XIO_DEVICE void pause() {
  if (host_exec::current != nullptr) {
    host_exec::pause();
  } else {
    sched_yield();
  }
}

XIO_DEVICE void give_way() { pause(); }

// --- Wide moves --------------------------------------------------------------------------------------

struct alignas(16) vec16 {
  u32 x, y, z, w;
};

XIO_DEVICE void store_entry(void* slot, const entry64& e) {
  auto* out = static_cast<vec16*>(in_device_memory(slot));
  std::memcpy(out, &e, sizeof e);
}

template <class Word>
XIO_DEVICE Word load_past_caches(const unsigned char* p) {
  Word v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// --- Lanes together ----------------------------------------------------------------------------------

XIO_DEVICE bool is_alone(u64 mask) { return (mask & (mask - 1)) == 0; }

XIO_DEVICE void sync_lanes(u64 mask) {
  if (!is_alone(mask)) host_exec::sync_lanes(mask);
}

XIO_DEVICE u64 ballot_of(u64 mask, bool predicate) {
  if (is_alone(mask)) return predicate ? mask : 0;
  return host_exec::ballot(mask, predicate);
}

XIO_DEVICE u64 shuffle_in(u64 mask, u64 value, u32 from) {
  if (is_alone(mask)) return value;
  return host_exec::shuffle(mask, value, from);
}

XIO_CONVERGENT u64 converged_mask() {
  const auto* me = host_exec::current;
  if (me == nullptr || me->wave_live == 1) return u64{1} << lane_id();
  return host_exec::converged_lanes();
}
XIO_DEVICE u64 wave_mask() {
  const auto* me = host_exec::current;
  if (me == nullptr || me->wave_live == 1) return u64{1} << lane_id();
  return host_exec::whole_wave();
}

XIO_CONVERGENT u64 same_key_mask(u64 key) {
  const u64 here = converged_mask();
  return is_alone(here) ? here : host_exec::match(here, key);
}
XIO_CONVERGENT bool group_mask(u64 key, u32 kind, u64* mask) {
  const u64 here = same_key_mask(key);
  *mask = is_alone(here) ? here : host_exec::match(here, kind);
  return true;
}

}  // namespace xio::dev

#include "xio/device/platform/half_by_bits.hpp"

#endif
