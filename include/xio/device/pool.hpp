// SPDX-License-Identifier: MIT
// Contexts of one workgroup, taken from a ctx's pool: queues that no other workgroup posts to.
#pragma once
#include "xio/device/impl/pool.hpp"
#include "xio/device/sync.hpp"

// Takes a ctx for the calling workgroup out of the pool of `ctx` (xio_ctx_attr_t::pool): it has queues that no other
// workgroup posts to. All threads of the workgroup call; `*own` is per thread. xio_wg_ctx_destroy gives it back.
// Returns XIO_ERR_STATE for a null ctx, XIO_ERR_NO_MEMORY when all are in use or the ctx has no pool.
XIO_DEVICE xio_status_t xio_wg_ctx_create(const xio_ctx_t& ctx, xio_ctx_t* own) {
  return xio::dev::take_ctx(xio::dev::workgroup_group::here(), ctx, own);
}

// Completes what the workgroup did on `*own` and gives it back to the pool of `ctx`. All threads of the
// workgroup call. Returns what xio_quiet does; XIO_ERR_ARG if `*own` is not of that pool.
XIO_DEVICE xio_status_t xio_wg_ctx_destroy(const xio_ctx_t& ctx, xio_ctx_t* own) {
  const xio_status_t status = xio_quiet_wg(*own);
  const xio_status_t back = xio::dev::give_back(xio::dev::workgroup_group::here(), ctx, *own);
  *own = xio_ctx_t{};
  return status != XIO_OK ? status : back;
}
