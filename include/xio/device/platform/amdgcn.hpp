// SPDX-License-Identifier: MIT
// The words of AMD GPUs that a builtin says wrongly or not at all: releases, and wide loads past the caches. Every
// release of XIO's device code for AMD goes through fence() and release_before() here.
// Part of platform.hpp, which is what to include.
#if defined(XIO_ON_HIP) && !defined(XIO_DEVICE_AMDGCN_HPP)
#define XIO_DEVICE_AMDGCN_HPP
#include <cstdint>

namespace xio::dev::amdgcn {

template <order O>
constexpr int k_llvm_order = O == order::relaxed   ? __ATOMIC_RELAXED
                             : O == order::acquire ? __ATOMIC_ACQUIRE
                             : O == order::release ? __ATOMIC_RELEASE
                             : O == order::acq_rel ? __ATOMIC_ACQ_REL
                                                   : __ATOMIC_SEQ_CST;
template <scope S>
constexpr int k_llvm_scope = S == scope::workgroup ? __HIP_MEMORY_SCOPE_WORKGROUP
                             : S == scope::agent   ? __HIP_MEMORY_SCOPE_AGENT
                                                   : __HIP_MEMORY_SCOPE_SYSTEM;

// --- Where memory is ---------------------------------------------------------------------------------

#define XIO_GLOBAL __attribute__((address_space(1)))
#define XIO_CONSTANT __attribute__((address_space(4)))

// The same pointer, as one to memory of the device. An access that may be to a workgroup's or thread's own memory, too,
// is a flat one, which waits for two counters.
template <class T>
XIO_DEVICE XIO_GLOBAL T* in_global(T* p) {
  return (XIO_GLOBAL T*)p;
}
// Memory of workgroup scope may be the workgroup's own.
template <scope S, class T>
XIO_DEVICE auto in_scope(T* p) {
  if constexpr (S == scope::workgroup) {
    return p;
  } else {
    return in_global(p);
  }
}

// --- Which lanes are here ----------------------------------------------------------------------------
// For LLVM before 19 what depends on EXEC is a value like any other: what both arms of a branch begin or end with is
// done once, for the lanes of both, and what was found in front of a branch is taken for what would be found in it. The
// lane that leads is then one that did not come along. It merges no calls of functions that are declared so, and
// leaves volatile assembly in a branch as long as nothing like it begins or ends the other arm.

#if __clang_major__ < 19
#define XIO_NEVER_MERGED __device__ __attribute__((nomerge))
XIO_NEVER_MERGED int read_first(int value) __asm("llvm.amdgcn.readfirstlane");
XIO_NEVER_MERGED int read_lane(int value, int lane) __asm("llvm.amdgcn.readlane");
XIO_NEVER_MERGED u64 vote_of_64(bool mine) __asm("llvm.amdgcn.ballot.i64");
XIO_NEVER_MERGED u32 vote_of_32(bool mine) __asm("llvm.amdgcn.ballot.i32");
XIO_NEVER_MERGED void stand() __asm("llvm.amdgcn.wave.barrier");  // no instruction
XIO_DEVICE u64 vote(bool mine) {
  if (static_cast<u32>(warpSize) == 64) return vote_of_64(mine);
  return vote_of_32(mine);
}
#else
XIO_DEVICE int read_first(int value) { return __builtin_amdgcn_readfirstlane(value); }
XIO_DEVICE int read_lane(int value, int lane) { return __builtin_amdgcn_readlane(value, lane); }
XIO_DEVICE void stand() {}
XIO_DEVICE u64 vote(bool mine) { return static_cast<u64>(__ballot(mine)); }
#endif

XIO_CONVERGENT u64 lanes_here() {
  u64 mask = 0;
  stand();
  if (static_cast<u32>(warpSize) == 64) {
    asm volatile("s_mov_b64 %0, exec" : "=s"(mask));
  } else {
    u32 narrow;
    asm volatile("s_mov_b32 %0, exec_lo" : "=s"(narrow));
    mask = narrow;
  }
  stand();
  return mask;
}

// The value of the first lane that is here, which the compiler then knows to be the same for all. Inside of a branch
// that only lanes with this value have taken: outside of it LLVM would put each lane's own back.
XIO_DEVICE u32 first_lane(u32 v) { return static_cast<u32>(read_first(static_cast<int>(v))); }
XIO_DEVICE u64 first_lane(u64 v) {
  return (u64{first_lane(static_cast<u32>(v >> 32))} << 32) | first_lane(static_cast<u32>(v));
}

// --- Releases ----------------------------------------------------------------------------------------
// On these GPUs a release writes the L2 cache back (buffer_wbl2) and must then wait, or the store behind it is seen
// before the data. LLVM 21 and 22, also as HIP 6.4 and 7 have them, drop that wait where nothing else is under way
// (llvm-project pull request 178316, ROCm's 1534). Whether a compiler has the correction its version number does not
// say, so XIO waits by itself under every compiler: a wait for nothing takes one issue slot.

#if defined(__gfx900__) || defined(__gfx902__) || defined(__gfx904__) || defined(__gfx906__) || defined(__gfx908__) || \
    defined(__gfx909__) || defined(__gfx90c__) || defined(__gfx9_generic__)
// These have no such instruction.
#elif defined(__gfx90a__)
#define XIO_SYSTEM_WRITES_BACK 1
#elif defined(__GFX9__)
#define XIO_SYSTEM_WRITES_BACK 1
#define XIO_AGENT_WRITES_BACK 1  // each die (XCC) of a GPU has an L2 of its own
#endif

template <scope S>
XIO_DEVICE constexpr bool writes_back() {
#if defined(XIO_AGENT_WRITES_BACK)
  if (S == scope::agent) return true;
#endif
#if defined(XIO_SYSTEM_WRITES_BACK)
  if (S == scope::system) return true;
#endif
  return false;
}

template <order O>
constexpr bool k_releases = O == order::release || O == order::acq_rel || O == order::seq_cst;

template <scope S, order O>
XIO_DEVICE void fence_as_it_is() {
  if constexpr (S == scope::system)
    __builtin_amdgcn_fence(k_llvm_order<O>, "");
  else if constexpr (S == scope::agent)
    __builtin_amdgcn_fence(k_llvm_order<O>, "agent");
  else
    __builtin_amdgcn_fence(k_llvm_order<O>, "workgroup");
}

// clang 15 writes the L2 back in front of each fence that acquires, too, on gfx90a. The model (User Guide for AMDGPU
// Backend, memory model gfx90a, fence acquire of system scope) asks for these three alone.
#if defined(__gfx90a__)
#define XIO_ACQUIRE_BY_WORDS 1
#endif
template <scope S>
XIO_DEVICE void acquire_fence() {
#if defined(XIO_ACQUIRE_BY_WORDS)
  if constexpr (S == scope::system) {
    asm volatile("s_waitcnt vmcnt(0) lgkmcnt(0)\n\tbuffer_invl2\n\tbuffer_wbinvl1_vol" ::: "memory");
    return;
  }
#endif
  fence_as_it_is<S, order::acquire>();
}

// Where the L2 is written back, what also acquires does so behind the wait. LLVM makes of a sequentially consistent
// fence what it makes of one that acquires and releases.
template <scope S, order O>
XIO_DEVICE void fence() {
  if constexpr (k_releases<O> && writes_back<S>()) {
    fence_as_it_is<S, order::release>();
#if defined(XIO_SYSTEM_WRITES_BACK)
    asm volatile("s_waitcnt vmcnt(0)" ::: "memory");
#endif
    if constexpr (O != order::release) acquire_fence<S>();
  } else if constexpr (O == order::acquire) {
    acquire_fence<S>();
  } else {
    fence_as_it_is<S, O>();
  }
}

// Until the wave's stores are done, behind a loop's edge too: clang 22 drops the wait of a release in a loop, on GPUs
// that write nothing back, where only the turn before has stored.
XIO_DEVICE void wait_for_stores() {
#if defined(XIO_SYSTEM_WRITES_BACK)
  // fence() waits.
#elif defined(__GFX12__)
  asm volatile("s_wait_storecnt 0x0" ::: "memory");
#elif defined(__GFX10__) || defined(__GFX11__)
  asm volatile("s_waitcnt_vscnt null, 0x0" ::: "memory");
#elif defined(__AMDGCN__)
  asm volatile("s_waitcnt vmcnt(0)" ::: "memory");
#endif
}

// In front of an access that releases; the access itself then has the order that is left.
template <scope S, order O>
XIO_DEVICE void release_before() {
  if constexpr (k_releases<O> && writes_back<S>()) fence<S, order::release>();
}
template <scope S, order O>
constexpr int k_store_order = k_releases<O>&& writes_back<S>() ? __ATOMIC_RELAXED : k_llvm_order<O>;
template <scope S, order O>
constexpr int k_change_order = !k_releases<O> || !writes_back<S>() ? k_llvm_order<O>
                               : O == order::release               ? __ATOMIC_RELAXED
                                                                   : __ATOMIC_ACQUIRE;
// Of a compare-exchange that found something else: it has stored nothing.
template <order O>
constexpr int k_failed_order = O == order::relaxed || O == order::release ? __ATOMIC_RELAXED : __ATOMIC_ACQUIRE;

// --- Loads past the caches ---------------------------------------------------------------------------
// With the bits that LLVM gives to a relaxed atomic load of system scope (User Guide for AMDGPU Backend, memory model
// of each GPU). "Non-temporal" is something else: on most of these GPUs it looks into the caches and only leaves
// nothing behind.

// A Word has 1, 2, 4 or 8 bytes. The compiler must not assume that a Word and a float never overlap.
template <class Word>
XIO_DEVICE Word load_past_caches(const unsigned char* p) {
  typedef Word any __attribute__((may_alias));
  return __hip_atomic_load((const XIO_GLOBAL any*)(p), __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}

// Words of 16 bytes have no atomic load. All of a batch and the wait for it are one piece of assembly: the compiler
// does not know that the loads of one are under way, and would use or move their registers before the values are there.
//
// Four at once need 24 registers. With eight, which need 48, kernels that are bounded to 8 waves of a SIMD do not
// compile for gfx90a and gfx908.
typedef u32 vec16 __attribute__((ext_vector_type(4)));
constexpr u32 k_loads_together = 4;

#if defined(__GFX12__)
#define XIO_LOAD_16(to, at) "global_load_b128 %" #to ", %" #at ", off scope:SCOPE_SYS\n\t"
#define XIO_LOADS_ARE_HERE "s_wait_loadcnt 0x0"
#elif defined(__GFX11__)
#define XIO_LOAD_16(to, at) "global_load_b128 %" #to ", %" #at ", off glc dlc\n\t"
#elif defined(__GFX10__)
#define XIO_LOAD_16(to, at) "global_load_dwordx4 %" #to ", %" #at ", off glc dlc\n\t"
#elif defined(XIO_AGENT_WRITES_BACK)
#define XIO_LOAD_16(to, at) "global_load_dwordx4 %" #to ", %" #at ", off sc0 sc1\n\t"
#else
#define XIO_LOAD_16(to, at) "global_load_dwordx4 %" #to ", %" #at ", off glc\n\t"
#endif
#if !defined(XIO_LOADS_ARE_HERE)
#define XIO_LOADS_ARE_HERE "s_waitcnt vmcnt(0)"
#endif

// N words, `stride` bytes apart.
template <u32 N>
XIO_DEVICE void load_past_caches(vec16 (&v)[N], const unsigned char* p, u64 stride) {
#if defined(__AMDGCN__)
  const auto at = [&](u32 i) { return p + i * stride; };
  if constexpr (N == 1) {
    asm volatile(XIO_LOAD_16(0, 1) XIO_LOADS_ARE_HERE : "=&v"(v[0]) : "v"(at(0)) : "memory");
  } else if constexpr (N == 2) {
    asm volatile(XIO_LOAD_16(0, 2) XIO_LOAD_16(1, 3) XIO_LOADS_ARE_HERE
                 : "=&v"(v[0]), "=&v"(v[1])
                 : "v"(at(0)), "v"(at(1))
                 : "memory");
  } else {
    static_assert(N % k_loads_together == 0 && k_loads_together == 4);
#pragma unroll
    for (u32 i = 0; i < N; i += 4) {
      asm volatile(XIO_LOAD_16(0, 4) XIO_LOAD_16(1, 5) XIO_LOAD_16(2, 6) XIO_LOAD_16(3, 7) XIO_LOADS_ARE_HERE
                   : "=&v"(v[i]), "=&v"(v[i + 1]), "=&v"(v[i + 2]), "=&v"(v[i + 3])
                   : "v"(at(i)), "v"(at(i + 1)), "v"(at(i + 2)), "v"(at(i + 3))
                   : "memory");
    }
  }
#else
  for (u32 i = 0; i < N; ++i) v[i] = vec16{};  // the host's half of a compilation: never called
  (void)p, (void)stride;
#endif
}

#undef XIO_LOAD_16
#undef XIO_LOADS_ARE_HERE

}  // namespace xio::dev::amdgcn

#endif
