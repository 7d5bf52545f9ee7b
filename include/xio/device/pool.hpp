// SPDX-License-Identifier: MIT
// Contexts of one workgroup, taken from a ctx's pool: queues that no other workgroup posts to.
#pragma once
#include "xio/device/ctx.hpp"
#include "xio/device/impl/pool.hpp"

// Takes a ctx for the calling workgroup out of the pool of `ctx` (xio_ctx_attr_t::pool): it has queues that no other
// workgroup posts to. All threads of the workgroup call; `*own` is per thread. xio_wg_ctx_destroy (sync.hpp) gives it
// back. XIO_ERR_STATE (null ctx), XIO_ERR_NO_MEMORY when all are in use or the ctx has no pool.
XIO_DEVICE xio_status_t xio_wg_ctx_create(const xio_ctx_t& ctx, xio_ctx_t* own) {
  return xio::dev::take_ctx(xio::dev::workgroup_group::here(), ctx, own);
}
