// SPDX-License-Identifier: MIT
// Remote memory access: put, get, scalars, strided and tiled copies.
//
// `dst` of a put and `src` of a get are symmetric addresses: this PE's own address of the object, of which the copy at
// PE `pe` is meant. The local side may be any memory of the device; a NIC or copy engine needs it in the heap or
// registered (xio_mem_register). Sizes are bytes; 0 is allowed and does nothing. Source and destination must not
// overlap.
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
// Errors. XIO_ERR_STATE (null ctx), XIO_ERR_PE (no such PE), XIO_ERR_ARG (null or misaligned address),
// XIO_ERR_NOT_SYMMETRIC (outside the heap, or leaves it), XIO_ERR_NOT_REGISTERED, XIO_ERR_NO_ROUTE: nothing is moved.
// XIO_ERR_TIMEOUT, XIO_ERR_TRANSPORT: an engine failed; part of the data may have been moved. The status is returned at
// once, by the request of an `_nbi` form when it is waited for, and once more by the next quiet; xio_ctx_error explains
// it on the host.
#pragma once
#include <type_traits>

#include "xio/device/impl/rma.hpp"

// --- put, get ----------------------------------------------------------------------------------------

// Copies `bytes` from `src` here to `dst` at PE `pe`. Returns when `src` may be reused; xio_quiet completes it.
XIO_DEVICE xio_status_t xio_put(const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes, int pe) {
  return xio::dev::put(xio::dev::thread_group::here(), ctx, {dst, src, bytes}, pe, true).status;
}
XIO_DEVICE xio_status_t xio_put_wave(const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes, int pe) {
  return xio::dev::put(xio::dev::wave_group::here(), ctx, {dst, src, bytes}, pe, true).status;
}
XIO_DEVICE xio_status_t xio_put_wg(const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes, int pe) {
  return xio::dev::put(xio::dev::workgroup_group::here(), ctx, {dst, src, bytes}, pe, true).status;
}

// The same without waiting: `src` must stay as it is until the request is waited for, or until xio_quiet.
XIO_DEVICE xio_req_t xio_put_nbi(const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes, int pe) {
  return xio::dev::put(xio::dev::thread_group::here(), ctx, {dst, src, bytes}, pe, false).request;
}
XIO_DEVICE xio_req_t xio_put_nbi_wave(const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes, int pe) {
  return xio::dev::put(xio::dev::wave_group::here(), ctx, {dst, src, bytes}, pe, false).request;
}
XIO_DEVICE xio_req_t xio_put_nbi_wg(const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes, int pe) {
  return xio::dev::put(xio::dev::workgroup_group::here(), ctx, {dst, src, bytes}, pe, false).request;
}

// Copies `bytes` from `src` at PE `pe` to `dst` here. Returns when the data is in `dst` and visible to the callers.
XIO_DEVICE xio_status_t xio_get(const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes, int pe) {
  return xio::dev::get(xio::dev::thread_group::here(), ctx, {dst, src, bytes}, pe, true).status;
}
XIO_DEVICE xio_status_t xio_get_wave(const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes, int pe) {
  return xio::dev::get(xio::dev::wave_group::here(), ctx, {dst, src, bytes}, pe, true).status;
}
XIO_DEVICE xio_status_t xio_get_wg(const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes, int pe) {
  return xio::dev::get(xio::dev::workgroup_group::here(), ctx, {dst, src, bytes}, pe, true).status;
}

// The same without waiting: `dst` holds the data after xio_wait of the request, or after xio_quiet.
XIO_DEVICE xio_req_t xio_get_nbi(const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes, int pe) {
  return xio::dev::get(xio::dev::thread_group::here(), ctx, {dst, src, bytes}, pe, false).request;
}
XIO_DEVICE xio_req_t xio_get_nbi_wave(const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes, int pe) {
  return xio::dev::get(xio::dev::wave_group::here(), ctx, {dst, src, bytes}, pe, false).request;
}
XIO_DEVICE xio_req_t xio_get_nbi_wg(const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes, int pe) {
  return xio::dev::get(xio::dev::workgroup_group::here(), ctx, {dst, src, bytes}, pe, false).request;
}

// --- One value ---------------------------------------------------------------------------------------

// Stores one value of 1, 2, 4 or 8 bytes to `dst` at PE `pe`, naturally aligned, in one piece: after xio_fence it may
// serve as a flag. Thread scope. Posted like a put: xio_quiet completes it.
template <class T>
XIO_DEVICE xio_status_t xio_p(const xio_ctx_t& ctx, T* dst, std::type_identity_t<T> value, int pe) {
  return xio::dev::put_scalar<T>(ctx, dst, value, pe);
}

// Fetches one value of 1, 2, 4 or 8 bytes from `src` at PE `pe`, naturally aligned, in one piece. Thread scope; waits.
// On an error it returns T{}, and the next quiet returns the status.
template <class T>
XIO_DEVICE T xio_g(const xio_ctx_t& ctx, const T* src, int pe) {
  return xio::dev::get_scalar<T>(ctx, src, pe);
}

// --- Strided and tiled -------------------------------------------------------------------------------

// Copies `count` elements: every `src_stride`-th of `src` here to every `dst_stride`-th of `dst` at PE `pe`. Strides
// are in elements and at least 1, else XIO_ERR_ARG. Thread scope. Returns when `src` may be reused.
template <class T>
XIO_DEVICE xio_status_t xio_iput(const xio_ctx_t& ctx, T* dst, const T* src, std::ptrdiff_t dst_stride,
                                 std::ptrdiff_t src_stride, size_t count, int pe) {
  return xio::dev::put_strided<T>(ctx, {dst, src, dst_stride, src_stride, count}, pe);
}

// The same from PE `pe` to here. Returns when the data is in `dst`.
template <class T>
XIO_DEVICE xio_status_t xio_iget(const xio_ctx_t& ctx, T* dst, const T* src, std::ptrdiff_t dst_stride,
                                 std::ptrdiff_t src_stride, size_t count, int pe) {
  return xio::dev::get_strided<T>(ctx, {dst, src, dst_stride, src_stride, count}, pe);
}

// Copies a tile of `height` rows of `width` bytes from here to PE `pe`. Rows start `src_pitch` and `dst_pitch` bytes
// apart, which are at least `width`, else XIO_ERR_ARG. Returns when `src` may be reused. A copy engine takes a tile as
// one op.
XIO_DEVICE xio_status_t xio_put_2d(const xio_ctx_t& ctx, void* dst, size_t dst_pitch, const void* src, size_t src_pitch,
                                   size_t width, size_t height, int pe) {
  const xio::dev::rows r{dst, dst_pitch, src, src_pitch, width, height};
  return xio::dev::put_rows(xio::dev::thread_group::here(), ctx, r, pe, xio::dev::call_kind::put_tile).status;
}
XIO_DEVICE xio_status_t xio_put_2d_wave(const xio_ctx_t& ctx, void* dst, size_t dst_pitch, const void* src,
                                        size_t src_pitch, size_t width, size_t height, int pe) {
  const xio::dev::rows r{dst, dst_pitch, src, src_pitch, width, height};
  return xio::dev::put_rows(xio::dev::wave_group::here(), ctx, r, pe, xio::dev::call_kind::put_tile).status;
}
XIO_DEVICE xio_status_t xio_put_2d_wg(const xio_ctx_t& ctx, void* dst, size_t dst_pitch, const void* src,
                                      size_t src_pitch, size_t width, size_t height, int pe) {
  const xio::dev::rows r{dst, dst_pitch, src, src_pitch, width, height};
  return xio::dev::put_rows(xio::dev::workgroup_group::here(), ctx, r, pe, xio::dev::call_kind::put_tile).status;
}

// The same from PE `pe` to here. Returns when the data is in `dst` and visible to the callers.
XIO_DEVICE xio_status_t xio_get_2d(const xio_ctx_t& ctx, void* dst, size_t dst_pitch, const void* src, size_t src_pitch,
                                   size_t width, size_t height, int pe) {
  const xio::dev::rows r{dst, dst_pitch, src, src_pitch, width, height};
  return xio::dev::get_rows(xio::dev::thread_group::here(), ctx, r, pe, xio::dev::call_kind::get_tile).status;
}
XIO_DEVICE xio_status_t xio_get_2d_wave(const xio_ctx_t& ctx, void* dst, size_t dst_pitch, const void* src,
                                        size_t src_pitch, size_t width, size_t height, int pe) {
  const xio::dev::rows r{dst, dst_pitch, src, src_pitch, width, height};
  return xio::dev::get_rows(xio::dev::wave_group::here(), ctx, r, pe, xio::dev::call_kind::get_tile).status;
}
XIO_DEVICE xio_status_t xio_get_2d_wg(const xio_ctx_t& ctx, void* dst, size_t dst_pitch, const void* src,
                                      size_t src_pitch, size_t width, size_t height, int pe) {
  const xio::dev::rows r{dst, dst_pitch, src, src_pitch, width, height};
  return xio::dev::get_rows(xio::dev::workgroup_group::here(), ctx, r, pe, xio::dev::call_kind::get_tile).status;
}
