// SPDX-License-Identifier: MIT
// The contexts of a ctx's pool, each with queues of its own: taken by a workgroup for itself, or chosen by a number.
//
// Parameters.
//   ctx    the ctx that has the pool (xio_ctx_attr_t::pool)
//   own    the taken context, a variable of each thread
//   index  a number of the pool's contexts, from 0 on
#pragma once
#include "xio/device/impl/forms.hpp"
#include "xio/device/sync.hpp"

// Takes a ctx for the calling workgroup out of the pool of `ctx`: it has queues that no other workgroup posts to. All
// threads of the workgroup call. xio_ctx_destroy_wg gives it back. Returns XIO_ERR_STATE for a null ctx,
// XIO_ERR_NO_MEMORY when all are in use or the ctx has no pool.
XIO_DEVICE xio_status_t xio_ctx_create_wg(const xio_ctx_t& ctx, xio_ctx_t* own);

// Completes what the workgroup did on `*own` and gives it back to the pool of `ctx`. All threads of the
// workgroup call. Returns what xio_quiet does; XIO_ERR_ARG if `*own` is not of that pool.
XIO_DEVICE xio_status_t xio_ctx_destroy_wg(const xio_ctx_t& ctx, xio_ctx_t* own);

// Context `index` of the pool of `ctx`, for kernels that spread their ops over a fixed array of contexts: by expert, by
// channel, by workgroup modulo the pool's size. It is not taken, and any number of workgroups may use it at once; its
// ops are ordered and completed by fences and quiets of that context alone. A null ctx, all of whose calls return
// XIO_ERR_STATE, if the pool has no such context. Any thread, local.
XIO_DEVICE xio_ctx_t xio_pool_ctx(const xio_ctx_t& ctx, uint32_t index);

#include "xio/device/impl/pool.hpp"
