// SPDX-License-Identifier: MIT
// Waiting for words of one's own memory that peers change: by put, xio_p, an atomic or a signal. Thread scope.
//
// Parameters.
//   ctx      the ctx whose world's timeout counts, and whose failures end a wait
//   ivar     a word: an integer of 1, 2, 4 or 8 bytes, float or double, in memory of the device, usually symmetric, not
//            a workgroup's own, naturally aligned
//   ivars    an array of such words
//   count    how many words there are
//   status   null, or one int for each word: words with a value other than 0 are left out
//   cmp      XIO_CMP_*, the word on the left; a NaN passes XIO_CMP_NE alone
//   value    what words are compared with
//   values   for each word its own, in memory that the caller can read and that does not change meanwhile
//   index    gets the number of a word for which it holds
//   indices  gets the numbers of all words for which it holds; room for `count`
//   found    gets how many these are
//   d        what xio_deadline returned
//
// Where all words are left out the call returns XIO_OK at once, with the index SIZE_MAX or the count 0.
//
// Order. After XIO_OK the caller also sees everything that the peer ordered before the change (xio_fence, put_signal).
//
// Errors. XIO_ERR_STATE (null ctx), XIO_ERR_ARG (null, misaligned, no such comparison). Tests return XIO_PENDING where
// a wait would wait. A wait returns XIO_ERR_TIMEOUT after the world's timeout. Where a queue of the caller's own ctx
// has failed, a wait returns that failure (XIO_ERR_TRANSPORT and so on) within 10 ms of it, unless the word has changed
// as asked: the peer may be waiting for the very op that failed.
#pragma once
#include "xio/device/atomic.hpp"
#include "xio/device/impl/deadline.hpp"
#include "xio/device/impl/forms.hpp"

// --- One word ----------------------------------------------------------------------------------------

// Waits until `*ivar cmp value` holds.
template <class T>
XIO_DEVICE xio_status_t xio_wait_until(const xio_ctx_t& ctx, const T* ivar, xio_cmp_t cmp,
                                       std::type_identity_t<T> value);

// Returns XIO_OK if `*ivar cmp value` holds now, else XIO_PENDING.
template <class T>
XIO_DEVICE xio_status_t xio_test_until(const xio_ctx_t& ctx, const T* ivar, xio_cmp_t cmp,
                                       std::type_identity_t<T> value);

// --- Several words -----------------------------------------------------------------------------------

// Waits until `ivars[i] cmp value` holds for every element i < count that `status` does not leave out.
template <class T>
XIO_DEVICE xio_status_t xio_wait_until_all(const xio_ctx_t& ctx, const T* ivars, size_t count, const int* status,
                                           xio_cmp_t cmp, std::type_identity_t<T> value);

// Returns XIO_OK if it holds for all of them now, else XIO_PENDING.
template <class T>
XIO_DEVICE xio_status_t xio_test_all(const xio_ctx_t& ctx, const T* ivars, size_t count, const int* status,
                                     xio_cmp_t cmp, std::type_identity_t<T> value);

// Waits until it holds for at least one of them; `*index` is one of those.
template <class T>
XIO_DEVICE xio_status_t xio_wait_until_any(const xio_ctx_t& ctx, const T* ivars, size_t count, const int* status,
                                           xio_cmp_t cmp, std::type_identity_t<T> value, size_t* index);

// Returns XIO_OK if it holds for one of them now, which `*index` names; else XIO_PENDING, and `*index` is SIZE_MAX.
template <class T>
XIO_DEVICE xio_status_t xio_test_any(const xio_ctx_t& ctx, const T* ivars, size_t count, const int* status,
                                     xio_cmp_t cmp, std::type_identity_t<T> value, size_t* index);

// Waits until it holds for at least one; `indices` gets all for which it does, `*found` how many.
template <class T>
XIO_DEVICE xio_status_t xio_wait_until_some(const xio_ctx_t& ctx, const T* ivars, size_t count, size_t* indices,
                                            const int* status, xio_cmp_t cmp, std::type_identity_t<T> value,
                                            size_t* found);

// The same for those for which it holds now; XIO_PENDING and `*found` 0 if there is none.
template <class T>
XIO_DEVICE xio_status_t xio_test_some(const xio_ctx_t& ctx, const T* ivars, size_t count, size_t* indices,
                                      const int* status, xio_cmp_t cmp, std::type_identity_t<T> value, size_t* found);

// --- Several words, each with a value of its own -------------------------------------------------------

// Waits until `ivars[i] cmp values[i]` holds for all.
template <class T>
XIO_DEVICE xio_status_t xio_wait_until_all_vector(const xio_ctx_t& ctx, const T* ivars, size_t count, const int* status,
                                                  xio_cmp_t cmp, const T* values);

// Returns XIO_OK if `ivars[i] cmp values[i]` holds for all now, else XIO_PENDING.
template <class T>
XIO_DEVICE xio_status_t xio_test_all_vector(const xio_ctx_t& ctx, const T* ivars, size_t count, const int* status,
                                            xio_cmp_t cmp, const T* values);

// Waits until `ivars[i] cmp values[i]` holds for one; `*index` says which.
template <class T>
XIO_DEVICE xio_status_t xio_wait_until_any_vector(const xio_ctx_t& ctx, const T* ivars, size_t count, const int* status,
                                                  xio_cmp_t cmp, const T* values, size_t* index);

// Returns XIO_OK if `ivars[i] cmp values[i]` holds for one now, which `*index` names; else XIO_PENDING, and `*index` is
// SIZE_MAX.
template <class T>
XIO_DEVICE xio_status_t xio_test_any_vector(const xio_ctx_t& ctx, const T* ivars, size_t count, const int* status,
                                            xio_cmp_t cmp, const T* values, size_t* index);

// Waits until `ivars[i] cmp values[i]` holds for at least one; `indices` gets all for which it does, `*found` how many.
template <class T>
XIO_DEVICE xio_status_t xio_wait_until_some_vector(const xio_ctx_t& ctx, const T* ivars, size_t count, size_t* indices,
                                                   const int* status, xio_cmp_t cmp, const T* values, size_t* found);

// The same for those for which it holds now; XIO_PENDING and `*found` 0 if there is none.
template <class T>
XIO_DEVICE xio_status_t xio_test_some_vector(const xio_ctx_t& ctx, const T* ivars, size_t count, size_t* indices,
                                             const int* status, xio_cmp_t cmp, const T* values, size_t* found);

// --- Waiting loops of one's own ----------------------------------------------------------------------

// For loops that look after several things at once: when to give up, and one turn of waiting. Prefer xio_pause_until to
// xio_pause where lanes of one wave may wait for each other: its pauses grow with the wait.
using xio_deadline_t = xio::dev::deadline;

// Returns the moment at which the world's timeout, counted from now, will have gone by. It holds no resource.
XIO_DEVICE xio_deadline_t xio_deadline(const xio_ctx_t& ctx);

// Returns whether that moment has passed.
XIO_DEVICE bool xio_deadline_passed(const xio_deadline_t& d);

// Pauses for one turn of a loop, longer each time, and returns false once the deadline has passed.
XIO_DEVICE bool xio_pause_until(const xio_deadline_t& d);

// Makes what peers, NICs and drives wrote visible, where the GPU holds such writes back (docs/hdp.md); elsewhere it
// does nothing. A loop that polls memory by itself calls it after the flag and before the data, and now and then while
// the flag does not come. Waits, at most for the world's timeout. XIO_ERR_STATE for a null ctx, XIO_ERR_TIMEOUT.
XIO_DEVICE xio_status_t xio_hdp_flush(const xio_ctx_t& ctx);

// Leaves the memory system and other waves some time between two polls; on the host platform the other lanes run.
XIO_DEVICE void xio_pause();

#include "xio/device/impl/wait.hpp"
