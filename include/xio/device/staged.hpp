// SPDX-License-Identifier: MIT
// Copies by one thread through shared memory: where the GPU has a bulk copy unit of its own (NVIDIA sm_90:
// cp.async.bulk) a thread that lends it shared memory moves data as fast as a workgroup does. Elsewhere, for other
// routes and for what the unit cannot take, these are xio_put and xio_get, and the memory is not touched.
//
// Parameters.
//   ctx          the ctx that carries the op
//   dst          where data goes, as in rma.hpp
//   src          where it comes from, as in rma.hpp
//   bytes        size of the copy in bytes; 0 does nothing
//   stage        shared memory of the caller's workgroup, 128-byte aligned; the call's own until it returns
//   stage_bytes  size of it. From 4 KiB on it is used; what lies in it is on the link together, so 64 KiB and more are
//                the fastest
//   pe           the other PE's number in the world, from 0 on
//
// Errors and completion are those of rma.hpp. Thread scope.
#pragma once
#include "xio/device/impl/forms.hpp"
#include "xio/device/rma.hpp"

// xio_put with `stage_bytes` of shared memory at `stage` to copy through. Returns when `src` and `stage` may be reused.
XIO_DEVICE xio_status_t xio_put_staged(const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes, void* stage,
                                       size_t stage_bytes, int pe);

// xio_get with `stage_bytes` of shared memory at `stage` to copy through. Returns when the data is in `dst`.
XIO_DEVICE xio_status_t xio_get_staged(const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes, void* stage,
                                       size_t stage_bytes, int pe);

#include "xio/device/impl/staged.hpp"
