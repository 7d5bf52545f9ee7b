// SPDX-License-Identifier: MIT
// Lanes of one wave that act together: which lanes they are, and how they exchange values.
#pragma once
#include "xio/device/platform/platform.hpp"

namespace xio::dev {

// Some lanes of one wave that act together. All member functions are collective over the group.
struct lanes {
  u64 mask;

  XIO_DEVICE u32 count() const { return popcount(mask); }
  // Place of the caller among them, 0 first.
  XIO_DEVICE u32 rank() const { return popcount(mask & ((u64{1} << lane_id()) - 1)); }
  XIO_DEVICE bool leader() const { return lane_id() == lowest_bit(mask); }
  XIO_DEVICE bool alone() const { return (mask & (mask - 1)) == 0; }
  XIO_DEVICE bool has_caller() const { return (mask >> lane_id() & 1) != 0; }
#if defined(XIO_ON_CUDA)
  // NVIDIA GPUs look up who is in a mask at every use, unless it is a constant (docs/performance.md).
  XIO_DEVICE bool whole() const { return static_cast<u32>(mask) == 0xffffffffu; }
#endif

  XIO_DEVICE void sync() const {
#if defined(XIO_ON_CUDA)
    if (whole()) return __syncwarp();
    if (!alone()) __syncwarp(static_cast<u32>(mask));
#elif defined(XIO_ON_HIP)
    // Lanes of a wave run in lockstep; this only stops the compiler from moving memory operations.
    __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
    __builtin_amdgcn_wave_barrier();
#else
    if (!alone()) host_exec::sync_lanes(mask);
#endif
  }

  XIO_DEVICE u64 ballot(bool predicate) const {
#if defined(XIO_ON_CUDA)
    if (whole()) return __ballot_sync(0xffffffffu, predicate);
    return __ballot_sync(static_cast<u32>(mask), predicate);
#elif defined(XIO_ON_HIP)
    return __ballot(predicate) & mask;
#else
    if (alone()) return predicate ? mask : 0;
    return host_exec::ballot(mask, predicate);
#endif
  }

  // The value that lane `from` (a lane id in the mask) holds.
  XIO_DEVICE u64 shuffle(u64 value, u32 from) const {
#if defined(XIO_ON_CUDA)
    const auto bits = static_cast<unsigned long long>(value);
    if (whole()) return __shfl_sync(0xffffffffu, bits, static_cast<int>(from));
    return __shfl_sync(static_cast<u32>(mask), bits, static_cast<int>(from));
#elif defined(XIO_ON_HIP)
    const int at = static_cast<int>(from) << 2;
    const u32 low = static_cast<u32>(__builtin_amdgcn_ds_bpermute(at, static_cast<int>(value)));
    const u32 high = static_cast<u32>(__builtin_amdgcn_ds_bpermute(at, static_cast<int>(value >> 32)));
    return (u64{high} << 32) | low;
#else
    if (alone()) return value;
    return host_exec::shuffle(mask, value, from);
#endif
  }

  // The leader's value.
  XIO_DEVICE u64 first(u64 value) const { return shuffle(value, lowest_bit(mask)); }
};

#if defined(XIO_ON_CUDA)
// The lanes that are here with the caller and gave the same key.
//
// nvcc 13 assumes that such a mask is the same in all lanes that ever run side by side. Where two groups come together,
// one of them without some of its lanes, it then uses a single mask: lanes of the other group pass a sync that one of
// them has not reached, and that one hangs at it (tests/unit/lane_groups.cpp). The compiler does treat a value that a
// lane computes from its own number as private to the lane, so this function computes the mask that way.
XIO_DEVICE u32 same_here(u64 key) {
  u32 up_to_me, above_me;
  asm("mov.u32 %0, %%lanemask_le;" : "=r"(up_to_me));
  asm("mov.u32 %0, %%lanemask_gt;" : "=r"(above_me));
  const u32 here = __activemask();
  u32 same = here;
  if ((here & (here - 1)) != 0) same = __match_any_sync(here, static_cast<unsigned long long>(key));
  return same & (up_to_me | above_me);
}
#endif

// The lanes that are here with the caller (its execution mask). Which lanes those are is the compiler's and
// the scheduler's choice; correct code works for any result that contains the caller.
XIO_CONVERGENT lanes converged_lanes() {
#if defined(XIO_ON_HIP)
  return lanes{static_cast<u64>(__ballot(1))};
#elif defined(XIO_ON_CUDA)
  return lanes{static_cast<u64>(same_here(0))};
#else
  const auto* me = host_exec::current;
  if (me == nullptr || me->wave_live == 1) return lanes{u64{1} << lane_id()};
  return lanes{host_exec::converged_lanes()};
#endif
}

// All lanes of the wave; every lane must call, and none may have left the kernel. On AMD and the host those that left
// are not missed; NVIDIA's compiler knows who is there without asking only if nobody leaves.
XIO_DEVICE lanes whole_wave() {
#if defined(XIO_ON_HIP)
  return lanes{static_cast<u64>(__ballot(1))};
#elif defined(XIO_ON_CUDA)
  // Lanes beyond the workgroup's end do not exist: the last wave may be short.
  const u32 first = thread_in_workgroup() & ~31u;
  const u32 left = workgroup_size() - first;
  return lanes{left >= 32 ? 0xffffffffull : (u64{1} << left) - 1};
#else
  const auto* me = host_exec::current;
  if (me == nullptr || me->wave_live == 1) return lanes{u64{1} << lane_id()};
  return lanes{host_exec::whole_wave()};
#endif
}

// Runs body(group) once for every lane, with the group of converged lanes that gave the same key. On AMD the
// groups run one after another: a lane that holds part of one ring never waits for another ring's lanes.
//
// There every lane stays until the last group has run. Where a lane leaves a loop when its turn is over, what it does
// last is behind the loop for LLVM: all lanes would come together there and run the body at once, as one group of many
// keys.
template <class Body>
XIO_CONVERGENT void for_each_key(u64 key, Body&& body) {
#if defined(XIO_ON_CUDA)
  body(lanes{same_here(key)});
#elif defined(XIO_ON_HIP)
  for (u64 left = __ballot(1); left != 0;) {
    const int from = static_cast<int>(lowest_bit(left));
    const u32 low = static_cast<u32>(__builtin_amdgcn_readlane(static_cast<int>(key), from));
    const u32 high = static_cast<u32>(__builtin_amdgcn_readlane(static_cast<int>(key >> 32), from));
    const bool turn = key == ((u64{high} << 32) | low);
    const lanes group{static_cast<u64>(__ballot(turn))};
    if (turn) body(group);
    left &= ~group.mask;
  }
#else
  const lanes here = converged_lanes();
  body(here.alone() ? here : lanes{host_exec::match(here.mask, key)});
#endif
}

// A group of converged lanes with the same key: on AMD that of the first lane, which the caller need not be in; on
// others the caller's. For code that must be there without a loop around it: what does not change in a loop is kept in
// registers for all of it.
XIO_CONVERGENT lanes group_to_go(u64 key, u32 kind) {
#if defined(XIO_ON_HIP)
  const u64 keys = amdgcn::first_lane(key);
  const u32 kinds = amdgcn::first_lane(kind);
  return lanes{static_cast<u64>(__ballot(key == keys && kind == kinds))};
#elif defined(XIO_ON_CUDA)
  return lanes{same_here(key + kind)};
#else
  const lanes here = converged_lanes();
  return here.alone() ? here : lanes{host_exec::match(here.mask, key ^ u64{kind} << 48)};
#endif
}

// Runs body() for lanes that may have come with several addresses: on AMD once for each, so that what lies there is the
// wave's and not a lane's (platform.hpp, uniform). Elsewhere lanes go by themselves.
template <class T, class Body>
XIO_CONVERGENT void for_each_address(const T* at, Body&& body) {
#if defined(XIO_ON_HIP)
  for_each_key(reinterpret_cast<u64>(at), [&](const lanes&) { body(); });
#else
  (void)at;
  body();
#endif
}

}  // namespace xio::dev
