// SPDX-License-Identifier: MIT
// Remote memory access: put, get, scalars, strided and tiled copies.
//
// Parameters.
//   ctx         the ctx that carries the op
//   dst         where data goes: for a put a symmetric address, which is this PE's own address of the object of which
//               the copy at PE `pe` is meant; for a get any memory of the device
//   src         where data comes from: for a get a symmetric address, for a put any memory of the device
//   bytes       size of the copy in bytes; 0 is allowed and does nothing
//   value       what is stored
//   dst_stride  from one element of dst to the next, in elements, at least 1
//   src_stride  likewise of src
//   count       elements that are copied
//   dst_pitch   from one row of dst to the next, in bytes, at least `width`
//   src_pitch   likewise of src
//   width       size of a row in bytes
//   height      rows
//   pe          the other PE's number in the world, from 0 on
//
// A NIC or copy engine needs the local side in the heap or registered (xio_mem_register). Source and destination must
// not overlap.
//
// Forms. A plain name is for one thread. `_wave` and `_wg` are called by all threads of the wave or workgroup, none of
// which may have left the kernel, with the same arguments; they start when all of them have come, do the op once, and
// return the same to all of them. `_nbi` only posts the op and returns a request for xio_wait, xio_test and
// xio_wait_source, which a program may drop.
//
// Order. A blocking put returns when the source may be reused: that says nothing about the target. A blocking get
// returns when the data is in `dst` and visible to the callers. Ops are otherwise unordered until xio_fence or
// xio_quiet (sync.hpp).
//
// Errors. XIO_ERR_STATE (null ctx), XIO_ERR_PE (no such PE), XIO_ERR_ARG (null or misaligned address, a stride or pitch
// that is too small), XIO_ERR_NOT_SYMMETRIC (outside the heap, or leaves it), XIO_ERR_NOT_REGISTERED, XIO_ERR_NO_ROUTE:
// nothing is moved. XIO_ERR_TIMEOUT, XIO_ERR_TRANSPORT: an engine failed; part of the data may have been moved. The
// status is returned at once, by the request of an `_nbi` form when it is waited for, and once more by the next quiet;
// xio_ctx_error explains it on the host.
#pragma once
#include <cstddef>

#include "xio/device/impl/forms.hpp"

// --- put, get ----------------------------------------------------------------------------------------

// Copies `bytes` from `src` here to `dst` at PE `pe`. Returns when `src` may be reused; xio_quiet completes it. After
// `_nbi` `src` must stay as it is until the request is waited for, or until xio_quiet.
XIO_OP(xio_put, xio_put_wave, xio_put_wg, xio_put_nbi, xio_put_nbi_wave, xio_put_nbi_wg,
       (const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes, int pe));

// Copies `bytes` from `src` at PE `pe` to `dst` here. Returns when the data is in `dst` and visible to the callers;
// after `_nbi` it is when the request has been waited for, or after xio_quiet.
XIO_OP(xio_get, xio_get_wave, xio_get_wg, xio_get_nbi, xio_get_nbi_wave, xio_get_nbi_wg,
       (const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes, int pe));

// --- One value ---------------------------------------------------------------------------------------

// Stores one value of 1, 2, 4 or 8 bytes to `dst` at PE `pe`, naturally aligned, in one piece: after xio_fence it may
// serve as a flag. Thread scope. Posted like a put: xio_quiet completes it.
template <class T>
XIO_DEVICE xio_status_t xio_p(const xio_ctx_t& ctx, T* dst, std::type_identity_t<T> value, int pe);

// Fetches one value of 1, 2, 4 or 8 bytes from `src` at PE `pe`, naturally aligned, in one piece. Thread scope; waits.
// On an error it returns T{}, and the next quiet returns the status.
template <class T>
XIO_DEVICE T xio_g(const xio_ctx_t& ctx, const T* src, int pe);

// --- Strided and tiled -------------------------------------------------------------------------------

// Copies `count` elements: every `src_stride`-th of `src` here to every `dst_stride`-th of `dst` at PE `pe`. Thread
// scope. Returns when `src` may be reused.
template <class T>
XIO_DEVICE xio_status_t xio_iput(const xio_ctx_t& ctx, T* dst, const T* src, std::ptrdiff_t dst_stride,
                                 std::ptrdiff_t src_stride, size_t count, int pe);

// The same from PE `pe` to here. Returns when the data is in `dst`.
template <class T>
XIO_DEVICE xio_status_t xio_iget(const xio_ctx_t& ctx, T* dst, const T* src, std::ptrdiff_t dst_stride,
                                 std::ptrdiff_t src_stride, size_t count, int pe);

// Copies a tile of `height` rows of `width` bytes from here to PE `pe`. Returns when `src` may be reused. A copy engine
// takes a tile as one op.
XIO_FORMS(xio_status_t, xio_put_2d, xio_put_2d_wave, xio_put_2d_wg,
          (const xio_ctx_t& ctx, void* dst, size_t dst_pitch, const void* src, size_t src_pitch, size_t width,
           size_t height, int pe));

// The same from PE `pe` to here. Returns when the data is in `dst` and visible to the callers.
XIO_FORMS(xio_status_t, xio_get_2d, xio_get_2d_wave, xio_get_2d_wg,
          (const xio_ctx_t& ctx, void* dst, size_t dst_pitch, const void* src, size_t src_pitch, size_t width,
           size_t height, int pe));

#include "xio/device/impl/rma.hpp"
