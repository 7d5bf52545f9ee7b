// SPDX-License-Identifier: MIT
// What HIP, CUDA and the host say in different words: fences, scoped atomics, where a thread is, clock, pause, wide
// stores. Lanes of a wave together are in lanes.hpp. Everything above these two is written once, but for shorter ways
// that one of them has.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "xio/status.h"

#if defined(__HIPCC__) || defined(__HIP__)
#define XIO_ON_HIP 1
#include <hip/hip_runtime.h>
#elif defined(__CUDACC__)
#define XIO_ON_CUDA 1
#else
#define XIO_ON_HOST 1
#include <sched.h>
#include <time.h>

#include "xio/device/platform/host_exec.hpp"
#endif

#if defined(XIO_ON_HOST)
#define XIO_DEVICE inline
// Inlined in any case, as on a GPU: the executor tells calls of converged_lanes() apart by where they stand.
#define XIO_CONVERGENT inline __attribute__((always_inline))
#define XIO_HOST_DEVICE inline
#define XIO_OUT_OF_LINE inline
#define XIO_SLOW_PATH inline
// Memory of a workgroup: XIO_SHARED(int, total); then use total.
#define XIO_SHARED(type, name)                 \
  static const char xio_shared_tag_##name = 0; \
  type& name = *static_cast<type*>(::xio::dev::workgroup_memory(&xio_shared_tag_##name, sizeof(type), alignof(type)))
#else
#define XIO_DEVICE __device__ inline __attribute__((always_inline))
#define XIO_CONVERGENT XIO_DEVICE
#define XIO_HOST_DEVICE __host__ __device__ inline
// For what is long and called from many places, and waits for an engine anyway: one copy per program.
#define XIO_OUT_OF_LINE inline __device__ __attribute__((noinline))
// For what an op does when it cannot be done by loads and stores. On NVIDIA GPUs out of line, so that what is done
// often stays close together: instructions are fetched in lines (docs/performance.md). On AMD it may use memory of the
// workgroup, which is better known to compilers in kernels than in functions.
#if defined(XIO_ON_CUDA)
#define XIO_SLOW_PATH XIO_OUT_OF_LINE
#else
#define XIO_SLOW_PATH XIO_DEVICE
#endif
#define XIO_SHARED(type, name) __shared__ type name
#endif
// A function out of line that calls nothing: it has no frame.
#define XIO_LEAF XIO_OUT_OF_LINE

// Before a loop whose arrays must stay in registers, and before one whose copies would only take room.
#if defined(XIO_ON_HOST)
#define XIO_UNROLL
#define XIO_ROLLED
#else
#define XIO_UNROLL _Pragma("unroll")
#define XIO_ROLLED _Pragma("unroll 1")
#endif

namespace xio::dev {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;

enum class scope { workgroup, agent, system };  // agent = this GPU
enum class order { relaxed, acquire, release, acq_rel, seq_cst };

}  // namespace xio::dev

#if defined(XIO_ON_CUDA)
#include "xio/device/platform/ptx.hpp"
#elif defined(XIO_ON_HIP)
#include "xio/device/platform/amdgcn.hpp"
#endif

namespace xio::dev {

// --- Scoped atomics ----------------------------------------------------------------------------------
// Of agent and system scope on memory of the device; of workgroup scope on any.

#if defined(XIO_ON_HOST)
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
#endif

template <scope S, order O, class T>
XIO_DEVICE T load(const T* p) {
#if defined(XIO_ON_CUDA)
  return ptx::load<S, O>(p);
#elif defined(XIO_ON_HIP)
  return __hip_atomic_load(amdgcn::in_scope<S>(const_cast<T*>(p)), amdgcn::k_llvm_order<O>, amdgcn::k_llvm_scope<S>);
#else
  T value;
  __atomic_load(const_cast<T*>(p), &value, k_order<O>);
  return value;
#endif
}

template <scope S, order O, class T>
XIO_DEVICE void store(T* p, T value) {
#if defined(XIO_ON_CUDA)
  ptx::store<S, O>(p, value);
#elif defined(XIO_ON_HIP)
  amdgcn::release_before<S, O>();
  __hip_atomic_store(amdgcn::in_scope<S>(p), value, amdgcn::k_store_order<S, O>, amdgcn::k_llvm_scope<S>);
#else
  __atomic_store(p, &value, k_order<O>);
#endif
}

template <scope S, order O, class T>
XIO_DEVICE T exchange(T* p, T value) {
#if defined(XIO_ON_CUDA)
  return ptx::exchange<S, O>(p, value);
#elif defined(XIO_ON_HIP)
  amdgcn::release_before<S, O>();
  return __hip_atomic_exchange(amdgcn::in_scope<S>(p), value, amdgcn::k_change_order<S, O>, amdgcn::k_llvm_scope<S>);
#else
  T old;
  __atomic_exchange(p, &value, &old, k_order<O>);
  return old;
#endif
}

// Compares bit patterns. On failure `expected` becomes the value found.
template <scope S, order O, class T>
XIO_DEVICE bool compare_exchange(T* p, T& expected, T desired) {
#if defined(XIO_ON_CUDA)
  return ptx::compare_exchange<S, O>(p, expected, desired);
#elif defined(XIO_ON_HIP)
  amdgcn::release_before<S, O>();
  return __hip_atomic_compare_exchange_strong(amdgcn::in_scope<S>(p), &expected, desired, amdgcn::k_change_order<S, O>,
                                              amdgcn::k_failed_order<O>, amdgcn::k_llvm_scope<S>);
#else
  return __atomic_compare_exchange(p, &expected, &desired, false, k_order<O>, k_failure<O>);
#endif
}

#if defined(XIO_ON_CUDA)
#define XIO_RMW(name, hip_builtin, host_builtin) \
  template <scope S, order O, class T>           \
  XIO_DEVICE T name(T* p, T value) {             \
    return ptx::name<S, O>(p, value);            \
  }
#elif defined(XIO_ON_HIP)
#define XIO_RMW(name, hip_builtin, host_builtin)                                                              \
  template <scope S, order O, class T>                                                                        \
  XIO_DEVICE T name(T* p, T value) {                                                                          \
    amdgcn::release_before<S, O>();                                                                           \
    return hip_builtin(amdgcn::in_scope<S>(p), value, amdgcn::k_change_order<S, O>, amdgcn::k_llvm_scope<S>); \
  }
#else
#define XIO_RMW(name, hip_builtin, host_builtin) \
  template <scope S, order O, class T>           \
  XIO_DEVICE T name(T* p, T value) {             \
    return host_builtin(p, value, k_order<O>);   \
  }
#endif
XIO_RMW(fetch_add, __hip_atomic_fetch_add, __atomic_fetch_add)
XIO_RMW(fetch_and, __hip_atomic_fetch_and, __atomic_fetch_and)
XIO_RMW(fetch_or, __hip_atomic_fetch_or, __atomic_fetch_or)
XIO_RMW(fetch_xor, __hip_atomic_fetch_xor, __atomic_fetch_xor)
#undef XIO_RMW

// Adds, and nobody waits for what was there: a fetch_add where that makes no difference.
template <scope S, order O, class T>
XIO_DEVICE void add(T* p, T value) {
#if defined(XIO_ON_CUDA)
  if constexpr (O == order::relaxed) return ptx::add<S>(p, value);
#endif
  (void)fetch_add<S, O>(p, value);
}

template <scope S, order O>
XIO_DEVICE void fence() {
#if defined(XIO_ON_CUDA)
  ptx::fence<S, O>();
#elif defined(XIO_ON_HIP)
  amdgcn::fence<S, O>();
#else
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wtsan"
#endif
  __atomic_thread_fence(k_order<O>);
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#endif
}

// Several accesses that share one fence: loads, then fence_after_loads; fence_before_stores, then stores. On the host,
// where orders are free and ThreadSanitizer knows nothing of fences, each has its own order.
#if defined(XIO_ON_HOST)
constexpr order k_acquire_by_fence = order::acquire;
constexpr order k_release_by_fence = order::release;
#else
constexpr order k_acquire_by_fence = order::relaxed;
constexpr order k_release_by_fence = order::relaxed;
#endif
template <scope S>
XIO_DEVICE void fence_after_loads() {
  if constexpr (k_acquire_by_fence == order::relaxed) fence<S, order::acquire>();
}
template <scope S>
XIO_DEVICE void fence_before_stores() {
  if constexpr (k_release_by_fence == order::relaxed) fence<S, order::release>();
}

// The same pointer, and the compiler may know that it is neither to memory of a workgroup nor of a thread. Accesses
// that could be to any need more instructions, atomics above all.
template <class T>
XIO_DEVICE T* in_device_memory(T* p) {
#if defined(XIO_ON_CUDA)
  return static_cast<T*>(const_cast<void*>(__cvta_global_to_generic(reinterpret_cast<std::size_t>(p))));
#elif defined(XIO_ON_HIP)
  return (T*)amdgcn::in_global(p);
#else
  return p;
#endif
}

// Whether posting is a leaf: a function out of line that calls nothing, whose arguments are registers, and which does
// not wait. The kernel itself waits for room, and posts again. On AMD a function that calls others keeps its registers
// in scratch memory, and all lanes of a ring's group know its view (docs/decisions/0131-leaves.md). NVIDIA's compiler
// does better with one function that does it all; the host does as AMD does, so that its tests are tests of that.
#if defined(XIO_ON_CUDA)
constexpr bool k_posts_by_leaf = false;
#define XIO_ENGINE_CALL XIO_OUT_OF_LINE
#define XIO_INLINE_LAMBDA
#else
constexpr bool k_posts_by_leaf = true;
#define XIO_ENGINE_CALL XIO_DEVICE
#define XIO_INLINE_LAMBDA __attribute__((always_inline))
#endif

// A field of a view that the host wrote before the kernel began, and that all lanes that are here read at one address.
template <class T>
XIO_DEVICE T view_field(const T& at) {
#if defined(XIO_ON_HIP)
  return *(const XIO_CONSTANT T*)(&at);
#else
  return at;
#endif
}
// The same address for all lanes that are here, where they have the same; see amdgcn::first_lane.
template <class T>
XIO_DEVICE const T& uniform(const T& at) {
#if defined(XIO_ON_HIP)
  return *reinterpret_cast<const T*>(amdgcn::first_lane(reinterpret_cast<u64>(&at)));
#else
  return at;
#endif
}

XIO_DEVICE u32 uniform_value(u32 value) {
#if defined(XIO_ON_HIP)
  return amdgcn::first_lane(value);
#else
  return value;
#endif
}

// Bit i of a mask; of 32 and above none is set.
XIO_DEVICE bool bit_of(u32 mask, u32 i) {
#if defined(XIO_ON_CUDA)
  // PTX' shl: 1 << i, and 0 from 32 on. Not mask >> i: that would wait for the mask, which comes last, by one
  // instruction more. Nor __funnelshift_lc: its asm is volatile, so that a loop works the bit out at every turn.
  u32 bit;
  asm("shl.b32 %0, 1, %1;" : "=r"(bit) : "r"(i));
  return (mask & bit) != 0;
#else
  return i < 32 && (mask >> i & 1) != 0;
#endif
}

// Keeps the compiler from using the loaded value, and so from waiting for it, before this point of the program.
XIO_DEVICE void not_before(u32& loaded) {
#if defined(XIO_ON_CUDA)
  asm volatile("" : "+r"(loaded)::"memory");
#elif defined(XIO_ON_HIP)
  asm volatile("" : "+v"(loaded)::"memory");
#else
  (void)loaded;
#endif
}

// --- Where am I --------------------------------------------------------------------------------------

// Linear index of the calling thread in its workgroup, and the workgroup's size.
XIO_DEVICE u32 thread_in_workgroup() {
#if defined(XIO_ON_HOST)
  const auto* me = host_exec::current;
  if (me == nullptr) return 0;
  return (me->thread_index.z * me->block_size.y + me->thread_index.y) * me->block_size.x + me->thread_index.x;
#else
  return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
#endif
}

XIO_DEVICE u32 workgroup_size() {
#if defined(XIO_ON_HOST)
  const auto* me = host_exec::current;
  return me == nullptr ? 1 : me->block_size.x * me->block_size.y * me->block_size.z;
#else
  return blockDim.x * blockDim.y * blockDim.z;
#endif
}

XIO_DEVICE u32 workgroup_index() {
#if defined(XIO_ON_HOST)
  const auto* me = host_exec::current;
  if (me == nullptr) return 0;
  return (me->block_index.z * me->grid_size.y + me->block_index.y) * me->grid_size.x + me->block_index.x;
#else
  return (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
#endif
}

XIO_DEVICE void sync_workgroup() {
#if defined(XIO_ON_HOST)
  if (host_exec::current != nullptr) host_exec::sync_workgroup();
#else
  __syncthreads();
#endif
}

#if defined(XIO_ON_CUDA)
// The same, and whether any of its threads said true.
XIO_DEVICE bool sync_workgroup_any(bool mine) { return __syncthreads_or(mine ? 1 : 0) != 0; }
#endif

#if defined(XIO_ON_HOST)
inline void* workgroup_memory(const void* tag, std::size_t bytes, std::size_t alignment) {
  if (host_exec::current != nullptr) return host_exec::static_shared(tag, bytes, alignment);
  // A host thread outside any kernel is a workgroup of its own; no XIO_SHARED of XIO is larger than this.
  alignas(64) static thread_local char alone[256];
  return bytes <= sizeof alone ? alone : nullptr;
}
#endif

// --- Waves -------------------------------------------------------------------------------------------

XIO_DEVICE u32 popcount(u64 bits) {
#if defined(XIO_ON_HOST)
  return static_cast<u32>(__builtin_popcountll(bits));
#else
  return static_cast<u32>(__popcll(bits));
#endif
}

// Index of the lowest set bit; bits must not be 0.
XIO_DEVICE u32 lowest_bit(u64 bits) {
#if defined(XIO_ON_HOST)
  return static_cast<u32>(__builtin_ctzll(bits));
#else
  return static_cast<u32>(__ffsll(static_cast<long long>(bits)) - 1);
#endif
}

XIO_DEVICE u32 lane_id() {
#if defined(XIO_ON_HIP)
  return static_cast<u32>(__lane_id());
#elif defined(XIO_ON_CUDA)
  u32 id;
  asm("mov.u32 %0, %%laneid;" : "=r"(id));
  return id;
#else
  return host_exec::current == nullptr ? 0 : host_exec::current->lane_id;
#endif
}

XIO_DEVICE u32 wave_size() {
#if defined(XIO_ON_HOST)
  return host_exec::current == nullptr ? 1 : host_exec::current->wave_size;
#else
  return static_cast<u32>(warpSize);
#endif
}

// --- Time --------------------------------------------------------------------------------------------

// A clock that runs at the same rate everywhere on the device; its rate is in the ctx (ticks per ms).
XIO_DEVICE u64 wall_clock() {
#if defined(XIO_ON_HIP)
#if defined(__GFX11__) || defined(__GFX12__)
  return __builtin_amdgcn_s_sendmsg_rtnl(0x83);  // GET_REALTIME: these have no s_memrealtime
#else
  return __builtin_amdgcn_s_memrealtime();
#endif
#elif defined(XIO_ON_CUDA)
  u64 ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
#else
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<u64>(now.tv_sec) * 1000000000u + static_cast<u64>(now.tv_nsec);
#endif
}

// The same for deadlines: on the host platform it leaves out what wall_clock() counts while the process is stopped.
XIO_DEVICE u64 deadline_clock() {
#if defined(XIO_ON_HOST)
  return host_exec::deadline_clock();
#else
  return wall_clock();
#endif
}

// Whether kernels may have to flush the host data path. No NVIDIA GPU has one, and the calls alone, in loops that wait
// for flags, cost 0.04 us and more of a round trip: around them the compiler saves the registers that lanes come
// together by.
#if defined(XIO_ON_CUDA)
constexpr bool k_has_hdp = false;
#else
constexpr bool k_has_hdp = true;
#endif

// Whether even the first turns of a waiting loop must give way: on the host platform lanes share threads.
#if defined(XIO_ON_HOST)
constexpr bool k_pauses_at_once = true;
#else
constexpr bool k_pauses_at_once = false;
#endif

// One turn of a waiting loop: gives the memory system and the other waves some air.
XIO_DEVICE void pause() {
#if defined(XIO_ON_HIP)
  __builtin_amdgcn_s_sleep(1);
#elif defined(XIO_ON_CUDA)
  asm volatile("nanosleep.u32 20;");
#else
  if (host_exec::current != nullptr) {
    host_exec::pause();
  } else {
    sched_yield();
  }
#endif
}

// Whether pauses grow with the wait. On NVIDIA GPUs lanes of a wave that have parted take turns, but paths that wait
// can hand the turn to each other while another, for which they wait, gets none: seen under compute-sanitizer, by one
// wave alone (docs/verified.md). Once all of them sleep for longer than their turns take together, it goes on. So after
// 100 us a pause is a 64th of the wait, up to 20 us, which is enough for two paths: no more, because where processes
// take turns on a GPU who sleeps does not use its own. For a wave of 30 paths who has waited for 10 ms sleeps, besides,
// through a millisecond in every 67: the same one for all, by the clock.
#if defined(XIO_ON_CUDA)
constexpr bool k_pauses_grow = true;
XIO_DEVICE void pause_after(u64 waited, u64 now) {
  constexpr u64 us = 1000, ms = 1000 * us, night = u64{1} << 20, day = u64{1} << 26;  // ns; a sleep is 1 ms at most
  u64 pause = 20;
  if (waited > 100 * us) pause = waited < 64 * 20 * us ? waited / 64 : 20 * us;
  if (waited > 10 * ms && (now & (day - 1)) < night) pause = night - (now & (night - 1));
  asm volatile("nanosleep.u32 %0;" ::"r"(static_cast<u32>(pause)));
}
#else
constexpr bool k_pauses_grow = false;
XIO_DEVICE void pause_after(u64, u64) { pause(); }
#endif

// --- Wide moves --------------------------------------------------------------------------------------

#if defined(XIO_ON_HIP)
using amdgcn::vec16;
#elif defined(XIO_ON_CUDA)
using vec16 = uint4;
#else
struct alignas(16) vec16 {
  u32 x, y, z, w;
};
#endif

// A ring entry of 64 bytes, built in registers and stored as four 16-byte stores.
struct alignas(16) entry64 {
  u32 dw[16];
};

XIO_DEVICE void store_entry(void* slot, const entry64& e) {
  auto* out = static_cast<vec16*>(in_device_memory(slot));
#if defined(XIO_ON_HOST)
  std::memcpy(out, &e, sizeof e);
#elif defined(XIO_ON_CUDA)
  for (int i = 0; i < 4; ++i) out[i] = make_uint4(e.dw[4 * i], e.dw[4 * i + 1], e.dw[4 * i + 2], e.dw[4 * i + 3]);
#else
#pragma unroll
  for (int i = 0; i < 4; ++i) out[i] = vec16{e.dw[4 * i], e.dw[4 * i + 1], e.dw[4 * i + 2], e.dw[4 * i + 3]};
#endif
}

}  // namespace xio::dev
