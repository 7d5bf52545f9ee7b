// SPDX-License-Identifier: MIT
// Plain ways, for hip.hpp and host.hpp where nothing better is there. platform.hpp gives each name its meaning.
// Part of platform.hpp.
#if (defined(XIO_ON_HIP) || defined(XIO_ON_HOST)) && !defined(XIO_DEVICE_PLAIN_HPP)
#define XIO_DEVICE_PLAIN_HPP

namespace xio::dev {

#if !defined(XIO_HOST_AS_CUDA)
constexpr bool k_barrier_votes = false, k_has_predicates = false, k_has_pairs = false, k_stores_follow_loads = false;
// A few scalar instructions: a second copy of what posts is dearer.
constexpr bool k_lone_lanes_apart = false;
template <class T>
using held = const T&;
#endif

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

}  // namespace xio::dev

#endif
