// SPDX-License-Identifier: MIT
// Atomics on symmetric words of 4 and 8 bytes: int, long, long long, their unsigned forms, size_t, ptrdiff_t, int32/64,
// uint32/64; fetch, set, swap, add and fetch_add also float and double. Words are naturally aligned. Thread scope.
//
// Parameters.
//   ctx       the ctx that carries the op
//   dst       this PE's own address of the word, of which the copy at PE `pe` is changed
//   src       likewise of a word that is only read
//   value     the operand
//   expected  what the word must hold for `value` to be stored
//   pe        the other PE's number in the world, from 0 on
//
// An atomic is atomic against every other XIO atomic on the word by the same route (docs/atomics.md), and unordered
// among other ops until xio_fence or xio_quiet. Sums of integers wrap.
//
// A float or double is added in one step on NVIDIA GPUs, by the direct route (there a float's subnormal values may
// count as 0), and elsewhere by compare-and-swap in a loop: then the form that fetches nothing waits, too. Sums of
// several PEs depend on their order, as floating-point sums do.
//
// Calls that return the word wait, and return it as it was before; on an error they return T{}, and the next quiet
// returns the status. The others return a status at once and are complete after xio_quiet. Errors are those of rma.hpp;
// a PE that no engine can reach with atomics is XIO_ERR_NO_ROUTE or XIO_ERR_UNSUPPORTED.
#pragma once
#include "xio/device/impl/forms.hpp"
#include "xio/device/rma.hpp"

// --- Any type ----------------------------------------------------------------------------------------

// Reads the word at PE `pe` in one piece. Waits.
template <class T>
XIO_DEVICE T xio_atomic_fetch(const xio_ctx_t& ctx, const T* src, int pe);

// Stores `value` in the word at PE `pe`, in one piece. Does not wait.
template <class T>
XIO_DEVICE xio_status_t xio_atomic_set(const xio_ctx_t& ctx, T* dst, std::type_identity_t<T> value, int pe);

// Stores `value` in the word at PE `pe`. Waits, and returns the word as it was.
template <class T>
XIO_DEVICE T xio_atomic_swap(const xio_ctx_t& ctx, T* dst, std::type_identity_t<T> value, int pe);

// Adds `value` to the word at PE `pe`. Does not wait, but for a float or double that a loop adds.
template <class T>
XIO_DEVICE xio_status_t xio_atomic_add(const xio_ctx_t& ctx, T* dst, std::type_identity_t<T> value, int pe);

// Adds `value`. Waits, and returns the word as it was.
template <class T>
XIO_DEVICE T xio_atomic_fetch_add(const xio_ctx_t& ctx, T* dst, std::type_identity_t<T> value, int pe);

// --- Integers ----------------------------------------------------------------------------------------

// Stores `value` if the word equals `expected`. Waits, and returns the word as it was.
template <class T>
XIO_DEVICE T xio_atomic_compare_swap(const xio_ctx_t& ctx, T* dst, std::type_identity_t<T> expected,
                                     std::type_identity_t<T> value, int pe);

// Adds 1. Does not wait.
template <class T>
XIO_DEVICE xio_status_t xio_atomic_inc(const xio_ctx_t& ctx, T* dst, int pe);

// Stores word & value. Does not wait.
template <class T>
XIO_DEVICE xio_status_t xio_atomic_and(const xio_ctx_t& ctx, T* dst, std::type_identity_t<T> value, int pe);

// Stores word | value. Does not wait.
template <class T>
XIO_DEVICE xio_status_t xio_atomic_or(const xio_ctx_t& ctx, T* dst, std::type_identity_t<T> value, int pe);

// Stores word ^ value. Does not wait.
template <class T>
XIO_DEVICE xio_status_t xio_atomic_xor(const xio_ctx_t& ctx, T* dst, std::type_identity_t<T> value, int pe);

// Adds 1. Waits, and returns the word as it was.
template <class T>
XIO_DEVICE T xio_atomic_fetch_inc(const xio_ctx_t& ctx, T* dst, int pe);

// Stores word & value. Waits, and returns the word as it was.
template <class T>
XIO_DEVICE T xio_atomic_fetch_and(const xio_ctx_t& ctx, T* dst, std::type_identity_t<T> value, int pe);

// Stores word | value. Waits, and returns the word as it was.
template <class T>
XIO_DEVICE T xio_atomic_fetch_or(const xio_ctx_t& ctx, T* dst, std::type_identity_t<T> value, int pe);

// Stores word ^ value. Waits, and returns the word as it was.
template <class T>
XIO_DEVICE T xio_atomic_fetch_xor(const xio_ctx_t& ctx, T* dst, std::type_identity_t<T> value, int pe);

#include "xio/device/impl/atomic.hpp"
