// SPDX-License-Identifier: MIT
// Atomics on symmetric words of 4 and 8 bytes: int, long, long long, their unsigned forms, size_t, ptrdiff_t, int32/64,
// uint32/64; fetch, set, swap, add and fetch_add also float and double. Words are naturally aligned. Thread scope.
//
// `dst` is this PE's own address of the word, of which the copy at PE `pe` is changed. An atomic is atomic against
// every other XIO atomic on the word by the same route (docs/atomics.md), and unordered among other ops until xio_fence
// or xio_quiet.
//
// A float or double is added in one step on NVIDIA GPUs, by the direct route (there a float's subnormal values may
// count as 0), and elsewhere by compare-and-swap in a loop: then the form that fetches nothing waits, too. Sums of
// several PEs depend on their order, as floating-point sums do.
//
// Fetching forms wait, and return the word as it was before; on an error they return T{}, and the next quiet returns
// the status. The others return a status at once and are complete after xio_quiet. Errors are those of rma.hpp; a PE
// that no engine can reach with atomics is XIO_ERR_NO_ROUTE or XIO_ERR_UNSUPPORTED.
#pragma once
#include <type_traits>

#include "xio/device/impl/atomic.hpp"
#include "xio/device/rma.hpp"

// --- Any type ----------------------------------------------------------------------------------------

// Reads the word at PE `pe` in one piece. Waits.
template <class T>
XIO_DEVICE T xio_atomic_fetch(const xio_ctx_t& ctx, const T* src, int pe) {
  return xio::dev::fetch_change<xio::dev::amo::fetch, T>(ctx, const_cast<T*>(src), T{}, T{}, pe);
}

// Stores `value` in the word at PE `pe`, in one piece. Does not wait.
template <class T>
XIO_DEVICE xio_status_t xio_atomic_set(const xio_ctx_t& ctx, T* dst, std::type_identity_t<T> value, int pe) {
  return xio::dev::just_change<xio::dev::amo::set, T>(ctx, dst, value, pe);
}

// Stores `value` in the word at PE `pe`. Waits, and returns the word as it was.
template <class T>
XIO_DEVICE T xio_atomic_swap(const xio_ctx_t& ctx, T* dst, std::type_identity_t<T> value, int pe) {
  return xio::dev::fetch_change<xio::dev::amo::set, T>(ctx, dst, value, T{}, pe);
}

// --- Integers ----------------------------------------------------------------------------------------

// Stores `value` if the word equals `expected`. Waits, and returns the word as it was.
template <class T>
XIO_DEVICE T xio_atomic_compare_swap(const xio_ctx_t& ctx, T* dst, std::type_identity_t<T> expected,
                                     std::type_identity_t<T> value, int pe) {
  return xio::dev::fetch_change<xio::dev::amo::compare_swap, T>(ctx, dst, value, expected, pe);
}

// Adds `value` to the word at PE `pe`; sums of integers wrap. Does not wait, but for a float or double that a loop
// adds.
template <class T>
XIO_DEVICE xio_status_t xio_atomic_add(const xio_ctx_t& ctx, T* dst, std::type_identity_t<T> value, int pe) {
  return xio::dev::just_change<xio::dev::amo::add, T>(ctx, dst, value, pe);
}

// Adds 1; sums wrap. Does not wait.
template <class T>
XIO_DEVICE xio_status_t xio_atomic_inc(const xio_ctx_t& ctx, T* dst, int pe) {
  static_assert(xio::dev::k_is_atomic_integer<T>, "this atomic has no such type");
  return xio::dev::just_change<xio::dev::amo::add, T>(ctx, dst, T{1}, pe);
}

// Stores word & value.
template <class T>
XIO_DEVICE xio_status_t xio_atomic_and(const xio_ctx_t& ctx, T* dst, std::type_identity_t<T> value, int pe) {
  return xio::dev::just_change<xio::dev::amo::bit_and, T>(ctx, dst, value, pe);
}

// Stores word | value.
template <class T>
XIO_DEVICE xio_status_t xio_atomic_or(const xio_ctx_t& ctx, T* dst, std::type_identity_t<T> value, int pe) {
  return xio::dev::just_change<xio::dev::amo::bit_or, T>(ctx, dst, value, pe);
}

// Stores word ^ value.
template <class T>
XIO_DEVICE xio_status_t xio_atomic_xor(const xio_ctx_t& ctx, T* dst, std::type_identity_t<T> value, int pe) {
  return xio::dev::just_change<xio::dev::amo::bit_xor, T>(ctx, dst, value, pe);
}

// Adds `value`; sums of integers wrap. Waits, and returns the word as it was.
template <class T>
XIO_DEVICE T xio_atomic_fetch_add(const xio_ctx_t& ctx, T* dst, std::type_identity_t<T> value, int pe) {
  return xio::dev::fetch_change<xio::dev::amo::add, T>(ctx, dst, value, T{}, pe);
}

// Adds 1; sums wrap. Waits, and returns the word as it was.
template <class T>
XIO_DEVICE T xio_atomic_fetch_inc(const xio_ctx_t& ctx, T* dst, int pe) {
  static_assert(xio::dev::k_is_atomic_integer<T>, "this atomic has no such type");
  return xio::dev::fetch_change<xio::dev::amo::add, T>(ctx, dst, T{1}, T{}, pe);
}

// Stores word & value. Waits, and returns the word as it was.
template <class T>
XIO_DEVICE T xio_atomic_fetch_and(const xio_ctx_t& ctx, T* dst, std::type_identity_t<T> value, int pe) {
  return xio::dev::fetch_change<xio::dev::amo::bit_and, T>(ctx, dst, value, T{}, pe);
}

// Stores word | value. Waits, and returns the word as it was.
template <class T>
XIO_DEVICE T xio_atomic_fetch_or(const xio_ctx_t& ctx, T* dst, std::type_identity_t<T> value, int pe) {
  return xio::dev::fetch_change<xio::dev::amo::bit_or, T>(ctx, dst, value, T{}, pe);
}

// Stores word ^ value. Waits, and returns the word as it was.
template <class T>
XIO_DEVICE T xio_atomic_fetch_xor(const xio_ctx_t& ctx, T* dst, std::type_identity_t<T> value, int pe) {
  return xio::dev::fetch_change<xio::dev::amo::bit_xor, T>(ctx, dst, value, T{}, pe);
}
