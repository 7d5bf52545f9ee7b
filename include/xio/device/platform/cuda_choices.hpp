// SPDX-License-Identifier: MIT
// What suits NVIDIA GPUs. platform.hpp, which programs include, gives each name its meaning. The host platform takes
// these in the place of its own under XIO_HOST_AS_CUDA (host.hpp).
// Part of platform.hpp.
#if (defined(XIO_ON_CUDA) || (defined(XIO_ON_HOST) && defined(XIO_HOST_AS_CUDA))) && \
    !defined(XIO_DEVICE_CUDA_CHOICES_HPP)
#define XIO_DEVICE_CUDA_CHOICES_HPP
#include "xio/device/platform/words.hpp"

// fence.acquire and fence.release: PTX ISA 8.6 (CUDA 12.7), sm_90 and newer.
#if defined(XIO_ON_CUDA) && __CUDA_ARCH__ >= 900 && \
    (__CUDACC_VER_MAJOR__ > 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ >= 7))
#define XIO_PTX_ONE_WAY_FENCES 1
#endif

namespace xio::dev {

// A copy, whose fields are registers: the compiler would read a view again after every acquire.
template <class T>
using held = const T;

// No NVIDIA GPU has one, and the calls alone, in loops that wait for flags, cost 0.04 us and more of a round trip:
// around them the compiler saves the registers that lanes come together by.
constexpr bool k_has_hdp = false;
constexpr bool k_barrier_votes = true;
// Behind a call that returns nvcc keeps nothing in uniform registers: 0.15 us of a collective among mapped PEs.
constexpr bool k_engines_apart = true;
constexpr bool k_pauses_grow = true;

// A release takes a quarter of a microsecond.
constexpr bool k_stores_follow_loads = true;
// Code of its own saves a lone lane 0.4 us: what lanes do together asks for masks at every use.
constexpr bool k_lone_lanes_apart = true;
constexpr u32 k_in_flight = 16, k_odd_in_flight = 16, k_alone_in_flight = 16, k_past_caches_together = 16;
constexpr u32 k_looks_together = 8;
#if defined(XIO_PTX_ONE_WAY_FENCES) || defined(XIO_HOST_AS_CUDA)
constexpr bool k_watches_by_fence = true;
#else
constexpr bool k_watches_by_fence = false;
#endif
constexpr bool k_indexes_arguments = true;
constexpr bool k_reads_bytes_by_words = false;
// A flag is seen sooner by half of the time that a load takes.
constexpr u32 k_looks_under_way = 2;
constexpr u32 k_polls_in_line = 12;
constexpr bool k_has_predicates = true;
constexpr bool k_has_pairs = true;
constexpr bool k_connects_late = false;

}  // namespace xio::dev

#endif
