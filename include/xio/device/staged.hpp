// SPDX-License-Identifier: MIT
// Copies by one thread through shared memory: where the GPU has a bulk copy unit of its own (NVIDIA sm_90:
// cp.async.bulk) a thread that lends it shared memory moves data as fast as a workgroup does. Elsewhere, for other
// routes and for what the unit cannot take, these are xio_put and xio_get, and the memory is not touched.
//
// `stage` is shared memory of the caller's workgroup, 128-byte aligned, `stage_bytes` of it; the call's own until it
// returns. From 4 KiB on it is used; what lies in it is on the link together, so 64 KiB and more are the fastest.
// Sizes, errors and completion are those of rma.hpp.
#pragma once
#include "xio/device/impl/staged.hpp"
#include "xio/device/rma.hpp"

// xio_put with `stage_bytes` of shared memory at `stage` to copy through. Returns when `src` and `stage` may be reused.
XIO_DEVICE xio_status_t xio_put_staged(const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes, void* stage,
                                       size_t stage_bytes, int pe) {
  return xio::dev::put_staged(ctx, {dst, src, bytes}, pe, {stage, stage_bytes});
}

// xio_get with `stage_bytes` of shared memory at `stage` to copy through. Returns when the data is in `dst`.
XIO_DEVICE xio_status_t xio_get_staged(const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes, void* stage,
                                       size_t stage_bytes, int pe) {
  return xio::dev::get_staged(ctx, {dst, src, bytes}, pe, {stage, stage_bytes});
}
