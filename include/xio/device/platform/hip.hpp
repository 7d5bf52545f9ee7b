// SPDX-License-Identifier: MIT
// AMD GPUs. platform.hpp, which programs include, gives each name its meaning. Releases and wide loads are in
// amdgcn.hpp.
// Part of platform.hpp.
#if defined(XIO_ON_HIP) && !defined(XIO_DEVICE_HIP_HPP)
#define XIO_DEVICE_HIP_HPP
#include "xio/device/platform/amdgcn.hpp"

namespace xio::dev {

template <scope S, order O, class T>
XIO_DEVICE T load(const T* p) {
  return __hip_atomic_load(amdgcn::in_scope<S>(const_cast<T*>(p)), amdgcn::k_llvm_order<O>, amdgcn::k_llvm_scope<S>);
}

template <scope S, order O, class T>
XIO_DEVICE void store(T* p, T value) {
  amdgcn::release_before<S, O>();
  __hip_atomic_store(amdgcn::in_scope<S>(p), value, amdgcn::k_store_order<S, O>, amdgcn::k_llvm_scope<S>);
}

template <scope S, order O, class T>
XIO_DEVICE T exchange(T* p, T value) {
  amdgcn::release_before<S, O>();
  return __hip_atomic_exchange(amdgcn::in_scope<S>(p), value, amdgcn::k_change_order<S, O>, amdgcn::k_llvm_scope<S>);
}

template <scope S, order O, class T>
XIO_DEVICE bool compare_exchange(T* p, T& expected, T desired) {
  amdgcn::release_before<S, O>();
  return __hip_atomic_compare_exchange_strong(amdgcn::in_scope<S>(p), &expected, desired, amdgcn::k_change_order<S, O>,
                                              amdgcn::k_failed_order<O>, amdgcn::k_llvm_scope<S>);
}

#define XIO_RMW(name)                                                                                                 \
  template <scope S, order O, class T>                                                                                \
  XIO_DEVICE T name(T* p, T value) {                                                                                  \
    amdgcn::release_before<S, O>();                                                                                   \
    return __hip_atomic_##name(amdgcn::in_scope<S>(p), value, amdgcn::k_change_order<S, O>, amdgcn::k_llvm_scope<S>); \
  }
XIO_RMW(fetch_add)
XIO_RMW(fetch_and)
XIO_RMW(fetch_or)
XIO_RMW(fetch_xor)
#undef XIO_RMW

template <scope S, order O>
XIO_DEVICE void fence() {
  amdgcn::fence<S, O>();
}

// One lane after the other. A release waits until the wave's stores are done (MI200 ISA 4.4, VM_CNT; RDNA3 ISA,
// VS_CNT), so the store of a lane is none that the next lane's could be merged with.
template <class T>
XIO_CONVERGENT void ring_doorbell(T* at, T value) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  const u64 here = amdgcn::lanes_here();
  const u32 count = popcount(here), mine = lanes_before(here);
  u32 turn = 0;
  do {
    if (turn == mine) {
      amdgcn::wait_for_stores();
      store<scope::system, order::release>(at, value);
    }
  } while (++turn != count);
}

template <class T>
XIO_DEVICE T* in_device_memory(T* p) {
  return (T*)amdgcn::in_global(p);
}

template <class T>
XIO_DEVICE T* lone_word(T* p) {
  u32 zero = 0;
  asm("" : "+v"(zero));  // for the compiler each lane has its own
  return reinterpret_cast<T*>(reinterpret_cast<unsigned char*>(p) + zero);
}

// Used at the end, the address stays where the caller has put it, in s[30:31]. clang 22 by itself prefers others to
// these, as long as a leaf is not crowded; then it would move the address away in seldom branches, and back, which
// counts as a change.
template <bool Crowded>
class return_kept {
 public:
  XIO_DEVICE return_kept() : to_(reinterpret_cast<u64>(__builtin_return_address(0))) {}
  XIO_DEVICE ~return_kept() {
    if constexpr (Crowded || __clang_major__ < 22) asm volatile("" ::"s"(to_));
  }
  return_kept(const return_kept&) = delete;
  return_kept& operator=(const return_kept&) = delete;

 private:
  u64 to_;
};

// A function that calls others keeps its registers in scratch memory, and all lanes of a ring's group know its view
// (docs/decisions/0131-leaves.md).
#define XIO_INLINE_LAMBDA __attribute__((always_inline))

template <class T>
XIO_DEVICE T view_field(const T& at) {
  return *(const XIO_CONSTANT T*)(&at);
}
template <class T>
XIO_DEVICE const T& uniform(const T& at) {
  return *reinterpret_cast<const T*>(amdgcn::first_lane(reinterpret_cast<u64>(&at)));
}

XIO_DEVICE u32 uniform_value(u32 value) { return amdgcn::first_lane(value); }

template <class T>
XIO_DEVICE const T& again(const T& at) {
  u64 address = amdgcn::first_lane(reinterpret_cast<u64>(&at));
  asm volatile("" : "+s"(address));
  return *reinterpret_cast<const T*>(address);
}

template <class T>
XIO_DEVICE bool is_first_lanes(const T& at) {
  // Neither of the two is a value that is used elsewhere: LLVM would put the lane's own in the place of the other, or
  // the first of the lanes that were in front of a branch in the place of the first in it (amdgcn.hpp).
  u64 own = reinterpret_cast<u64>(&at);
  asm volatile("" : "+v"(own));
  u64 first = amdgcn::first_lane(own);
  asm("" : "+s"(first));
  return own == first;
}

XIO_DEVICE void not_before(u32& loaded) { asm volatile("" : "+v"(loaded)::"memory"); }

// A workgroup barrier does not wait until the stores of other waves have left the CU, so a system-scope release by one
// wave would not cover them (LLVM, AMDGPU usage, memory model gfx90a). At agent scope they have.
XIO_DEVICE void before_shared_release() { fence<scope::agent, order::release>(); }

// --- Waves -------------------------------------------------------------------------------------------

XIO_DEVICE u32 lane_id() { return static_cast<u32>(__lane_id()); }

// --- Time --------------------------------------------------------------------------------------------

XIO_DEVICE u64 wall_clock() {
#if defined(__GFX11__) || defined(__GFX12__)
  return __builtin_amdgcn_s_sendmsg_rtnl(0x83);  // GET_REALTIME: these have no s_memrealtime
#else
  return __builtin_amdgcn_s_memrealtime();
#endif
}

constexpr bool k_has_hdp = true;

XIO_DEVICE void pause() { __builtin_amdgcn_s_sleep(1); }

// --- Wide moves --------------------------------------------------------------------------------------

using amdgcn::vec16;

template <class Word>
XIO_DEVICE Word load_past_caches(const unsigned char* p) {
  return amdgcn::load_past_caches<Word>(p);
}
template <u32 N, class Word>
XIO_DEVICE void load_words_past_caches(Word (&v)[N], const unsigned char* p, u64 stride) {
  if constexpr (sizeof(Word) == 16) {
    amdgcn::load_past_caches<N>(v, p, stride);
  } else {
#pragma unroll
    for (u32 k = 0; k < N; ++k) v[k] = load_past_caches<Word>(p + k * stride);
  }
}
constexpr u32 k_past_caches_together = amdgcn::k_loads_together;

// --- Numbers of two bytes ----------------------------------------------------------------------------

XIO_DEVICE float float_of_half(u16 bits) { return static_cast<float>(__builtin_bit_cast(_Float16, bits)); }
XIO_DEVICE u16 half_of_float(float value) { return __builtin_bit_cast(u16, static_cast<_Float16>(value)); }

// --- Lanes together ----------------------------------------------------------------------------------

// Lanes of a wave run in lockstep; this only stops the compiler from moving memory operations.
XIO_DEVICE void sync_lanes(u64) {
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
  __builtin_amdgcn_wave_barrier();
}

XIO_DEVICE u64 ballot_of(u64 mask, bool predicate) { return __ballot(predicate) & mask; }

XIO_DEVICE u64 shuffle_in(u64, u64 value, u32 from) {
  const int at = static_cast<int>(from) << 2;
  const u32 low = static_cast<u32>(__builtin_amdgcn_ds_bpermute(at, static_cast<int>(value)));
  const u32 high = static_cast<u32>(__builtin_amdgcn_ds_bpermute(at, static_cast<int>(value >> 32)));
  return (u64{high} << 32) | low;
}

XIO_CONVERGENT u64 converged_mask() { return amdgcn::lanes_here(); }
// Those that left are not missed.
XIO_DEVICE u64 wave_mask() { return amdgcn::lanes_here(); }

constexpr bool k_keys_take_turns = true;
XIO_DEVICE u64 value_of_lane(u64 value, u32 from) {
  const int lane = static_cast<int>(from);
  const u32 low = static_cast<u32>(amdgcn::read_lane(static_cast<int>(value), lane));
  const u32 high = static_cast<u32>(amdgcn::read_lane(static_cast<int>(value >> 32), lane));
  return (u64{high} << 32) | low;
}
// The compiler knows then that all lanes have the same.
XIO_DEVICE u64 first_in(u64 mask, u64 value) { return value_of_lane(value, lowest_bit(mask)); }
XIO_DEVICE u32 lanes_before(u64 mask) {
  return __builtin_amdgcn_mbcnt_hi(static_cast<u32>(mask >> 32), __builtin_amdgcn_mbcnt_lo(static_cast<u32>(mask), 0));
}
XIO_CONVERGENT u64 same_key_mask(u64 key) {
  asm volatile("" : "+v"(key));  // as in is_first_lanes
  return amdgcn::vote(key == amdgcn::first_lane(key));
}
XIO_CONVERGENT bool group_mask(u64 key, u32 kind, u64* mask) {
  // As in is_first_lanes.
  asm volatile("" : "+v"(key), "+v"(kind));
  u64 keys = amdgcn::first_lane(key);
  u32 kinds = amdgcn::first_lane(kind);
  asm("" : "+s"(keys), "+s"(kinds));
  const bool mine = static_cast<int>(key == keys) & static_cast<int>(kind == kinds);
  *mask = amdgcn::vote(mine);
  return mine;
}

// --- What suits the machine --------------------------------------------------------------------------

constexpr u32 k_in_flight = 8;
// Fewer: all registers that a function has are those of every kernel that calls it.
constexpr u32 k_odd_in_flight = 2;
constexpr u32 k_alone_in_flight = 6;  // likewise: 40 registers are all that clang 22 gives before it leaves gaps
constexpr u32 k_looks_together = 4;   // likewise
constexpr bool k_watches_by_fence = true;
constexpr bool k_indexes_arguments = false;
constexpr bool k_reads_bytes_by_words = true;
constexpr u32 k_looks_under_way = 1;
constexpr u32 k_polls_in_line = 0;

}  // namespace xio::dev

#endif
