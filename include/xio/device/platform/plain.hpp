// SPDX-License-Identifier: MIT
// What more than one platform says in the same words. platform.hpp gives each name its meaning.
// Part of platform.hpp.
#if (defined(XIO_ON_HIP) || defined(XIO_ON_CUDA) || defined(XIO_ON_HOST)) && !defined(XIO_DEVICE_PLAIN_HPP)
#define XIO_DEVICE_PLAIN_HPP

namespace xio::dev {

// --- What suits the machine, where several platforms choose alike -------------------------------------
#if !defined(XIO_ON_HOST) || defined(XIO_HOST_AS_CUDA)
constexpr order k_acquire_by_fence = order::relaxed;
constexpr order k_release_by_fence = order::relaxed;
constexpr bool k_pauses_at_once = false;
constexpr bool k_wave_ops_sync = false;
constexpr bool k_lanes_fence_as_one = true;
constexpr bool k_splits_copies = true;
#endif
#if defined(XIO_ON_HIP)
constexpr u32 k_beat_log2 = 22, k_noted_log2 = 12;  // of 10 ns
#elif defined(XIO_ON_CUDA)
constexpr u32 k_beat_log2 = 25, k_noted_log2 = 17;  // of 1 ns
#else
constexpr u32 k_beat_log2 = 25, k_noted_log2 = 24;  // turns are as long as the fibers of others want
#endif
#if defined(XIO_ON_HIP) || (defined(XIO_ON_HOST) && !defined(XIO_HOST_AS_CUDA))
constexpr bool k_pauses_grow = false;
constexpr bool k_barrier_votes = false;
constexpr bool k_engines_apart = false;
constexpr bool k_has_predicates = false;
constexpr bool k_stores_follow_loads = false;
// A few scalar instructions: a second copy of what posts is dearer.
constexpr bool k_lone_lanes_apart = false;
constexpr bool k_has_pairs = false;
constexpr bool k_connects_late = true;
template <class T>
using held = const T&;
#endif

// --- GPUs --------------------------------------------------------------------------------------------
#if !defined(XIO_ON_HOST)

XIO_DEVICE u32 thread_in_workgroup() { return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x; }

XIO_DEVICE u32 workgroup_size() { return blockDim.x * blockDim.y * blockDim.z; }

XIO_DEVICE u32 workgroup_index() { return (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x; }

XIO_DEVICE void sync_workgroup() { __syncthreads(); }

XIO_DEVICE void give_way() {}

XIO_DEVICE void wake_devices() {}

XIO_DEVICE u32 popcount(u64 bits) { return static_cast<u32>(__popcll(bits)); }

XIO_DEVICE u32 wave_size() { return static_cast<u32>(warpSize); }

XIO_DEVICE u64 deadline_clock() { return wall_clock(); }

XIO_DEVICE void store_entry(void* slot, const entry64& e) {
  auto* out = static_cast<vec16*>(in_device_memory(slot));
  XIO_UNROLL for (int i = 0; i < 4; ++i) out[i] = vec16{e.dw[4 * i], e.dw[4 * i + 1], e.dw[4 * i + 2], e.dw[4 * i + 3]};
}

#endif

// --- All ---------------------------------------------------------------------------------------------

template <scope S>
XIO_DEVICE void fence_after_loads() {
  if constexpr (k_acquire_by_fence == order::relaxed) fence<S, order::acquire>();
}
template <scope S>
XIO_DEVICE void fence_before_stores() {
  if constexpr (k_release_by_fence == order::relaxed) fence<S, order::release>();
}

// --- Where lanes go by themselves, and compilers need no word on what they share ----------------------
#if !defined(XIO_ON_HIP)

template <class T>
XIO_DEVICE T* lone_word(T* p) {
  return p;
}

template <class T>
XIO_DEVICE T view_field(const T& at) {
  return at;
}
template <class T>
XIO_DEVICE const T& uniform(const T& at) {
  return at;
}

XIO_DEVICE u32 uniform_value(u32 value) { return value; }
template <bool Crowded>
class return_kept {
 public:
  XIO_DEVICE return_kept() {}
};

template <class T>
XIO_DEVICE const T& again(const T& at) {
  return at;
}
template <class T>
XIO_DEVICE bool is_first_lanes(const T&) {
  return true;
}

XIO_DEVICE void before_shared_release() {}

XIO_DEVICE u64 first_in(u64 mask, u64 value) { return shuffle_in(mask, value, lowest_bit(mask)); }
XIO_DEVICE u32 lanes_before(u64 mask) { return popcount(mask & ((u64{1} << lane_id()) - 1)); }
constexpr bool k_keys_take_turns = false;
XIO_DEVICE u64 value_of_lane(u64 value, u32 from) { return shuffle_in(converged_mask(), value, from); }

template <u32 N, class Word>
XIO_DEVICE void load_words_past_caches(Word (&v)[N], const unsigned char* p, u64 stride) {
  XIO_UNROLL for (u32 k = 0; k < N; ++k) v[k] = load_past_caches<Word>(p + k * stride);
}

#endif

// --- Where the machine has nothing better ------------------------------------------------------------
#if !defined(XIO_ON_CUDA)
XIO_DEVICE bool lies_in_device_memory(const void*) { return false; }

template <scope S, order O, class T>
XIO_DEVICE void add(T* p, T value) {
  (void)fetch_add<S, O>(p, value);
}

XIO_DEVICE bool bit_of(u32 mask, u32 i) { return i < 32 && (mask >> i & 1) != 0; }

XIO_DEVICE void not_after(u64& value) { (void)value; }

XIO_DEVICE u32 lowest_bit(u64 bits) { return static_cast<u32>(__builtin_ctzll(bits)); }

XIO_DEVICE void pause_after(u64, u64) { pause(); }

XIO_DEVICE bool sync_workgroup_any(bool mine) {
  XIO_SHARED(u32, votes);
  if (thread_in_workgroup() == 0) votes = 0;
  sync_workgroup();
  if (mine) (void)fetch_or<scope::workgroup, order::relaxed>(&votes, u32{1});
  sync_workgroup();
  const bool found = load<scope::workgroup, order::relaxed>(&votes) != 0;
  sync_workgroup();
  return found;
}

XIO_DEVICE void store_word_if(bool good, u64* at, u64 value) {
  if (good) store<scope::system, k_release_by_fence>(at, value);
}
template <class T>
XIO_DEVICE T load_word_if(bool good, const T* at) {
  return good ? load<scope::system, k_acquire_by_fence>(at) : T{};
}
XIO_DEVICE u64 load_any_if(bool good, const void* at) { return good ? *static_cast<const u64*>(at) : 0; }

template <class Word>
XIO_DEVICE Word load_as(const unsigned char* p) {
  Word v;
  __builtin_memcpy(&v, __builtin_assume_aligned(p, sizeof(Word)), sizeof(Word));
  return v;
}
template <class Word>
XIO_DEVICE void store_as(unsigned char* p, Word v) {
  __builtin_memcpy(__builtin_assume_aligned(p, sizeof(Word)), &v, sizeof(Word));
}

XIO_DEVICE void store_pair(u64* at, u64 a, u64 b) {
  store<scope::system, k_release_by_fence>(at, a);
  store<scope::system, k_release_by_fence>(at + 1, b);
}
XIO_DEVICE void store_pair_if(bool good, u64* at, u64 a, u64 b) {
  if (good) store_pair(at, a, b);
}
XIO_DEVICE void load_pair(const u64* at, u64& a, u64& b) {
  a = load<scope::system, k_acquire_by_fence>(at);
  b = load<scope::system, k_acquire_by_fence>(at + 1);
}

constexpr bool k_adds_floats = false;

#endif

}  // namespace xio::dev

#endif
