// SPDX-License-Identifier: MIT
// Order and completion: fence, quiet, requests, barrier and sync. docs/ordering.md states the contract with litmus
// tests.
//
// Parameters.
//   ctx      the ctx whose ops are meant
//   request  what an `_nbi` form returned
//   pe       the other PE's number in the world, from 0 on
//
// Plain names are for one thread; `_wave` and `_wg` are called by the whole group and cover what all of it has done.
//
// Errors. XIO_ERR_STATE for a null ctx, XIO_ERR_PE for a pe that is none. The failure of an engine is permanent: every
// later quiet returns it, until xio_ctx_recover. A wrong argument that the ctx has kept is returned once, by one quiet.
// Every wait ends with XIO_ERR_TIMEOUT after the world's timeout.
#pragma once
#include "xio/device/ctx.hpp"
#include "xio/device/impl/forms.hpp"
#include "xio/device/signal.hpp"

// --- Order -------------------------------------------------------------------------------------------

// Orders this ctx's puts, atomics and signals to each PE that come before it in front of those that come after it,
// on every route. Waits only where several engines serve one PE. It completes nothing: see xio_quiet.
XIO_DEVICE xio_status_t xio_fence(const xio_ctx_t& ctx);

// The same for the ops to one PE.
XIO_DEVICE xio_status_t xio_fence_pe(const xio_ctx_t& ctx, int pe);

// --- Completion --------------------------------------------------------------------------------------

// Completes every outstanding op of the ctx, on every engine, storage included, and makes its effects visible. Returns
// the first error that the ctx has kept since the last quiet, and forgets it; else the failure of an engine.
XIO_FORMS(xio_status_t, xio_quiet, xio_quiet_wave, xio_quiet_wg, (const xio_ctx_t& ctx));

// The same for the ops to one PE. Storage is not included. Thread scope.
XIO_DEVICE xio_status_t xio_quiet_pe(const xio_ctx_t& ctx, int pe);

// Waits for one op: its effects are visible then, as after xio_quiet. XIO_ERR_ARG for a request that no op of this ctx
// can have returned; a request of another ctx may be taken for one of this. The request 0 stands for an op that loads
// and stores have done: XIO_OK, and the caller's stores come before what it sends from now on. Thread scope.
XIO_DEVICE xio_status_t xio_wait(const xio_ctx_t& ctx, xio_req_t request);

// The same without waiting: returns XIO_OK if the op is complete, XIO_PENDING if it is not yet, or its failure.
XIO_DEVICE xio_status_t xio_test(const xio_ctx_t& ctx, xio_req_t request);

// Waits until the source of a put or write may be reused: not at all where loads and stores have read it, else until
// the op is complete, because engines report no earlier moment. Thread scope.
XIO_DEVICE xio_status_t xio_wait_source(const xio_ctx_t& ctx, xio_req_t request);

// --- Everybody ---------------------------------------------------------------------------------------

// xio_quiet, then xio_sync_all: when it returns, all ops of all PEs by their ctx are complete and visible. Every PE
// calls it, by one thread, wave or workgroup, with a ctx of the same world. XIO_ERR_TIMEOUT if a PE does not come.
XIO_FORMS(xio_status_t, xio_barrier_all, xio_barrier_all_wave, xio_barrier_all_wg, (const xio_ctx_t& ctx));

// Waits until every PE has called it: their ordinary stores from before are visible then. It says nothing about puts.
// Every PE calls it, by one thread, wave or workgroup, with a ctx of the same world.
XIO_FORMS(xio_status_t, xio_sync_all, xio_sync_all_wave, xio_sync_all_wg, (const xio_ctx_t& ctx));

#include "xio/device/impl/sync.hpp"
