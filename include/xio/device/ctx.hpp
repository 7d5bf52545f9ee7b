// SPDX-License-Identifier: MIT
// The ctx in a kernel: this PE's number, how many PEs there are, and where a peer's memory is mapped here. None of
// these calls waits or records an error. xio_ctx_create of xio/xio.h makes a ctx, and a kernel gets it by value.
//
// Parameters.
//   ctx        the ctx; it may be null
//   symmetric  this PE's own address of symmetric memory
//   pe         the other PE's number in the world, from 0 on
#pragma once
#include "xio/device/impl/forms.hpp"
#include "xio/peers.h"

// This PE's number, 0 .. n_pes - 1; -1 for a null ctx. Any thread; loads nothing.
XIO_DEVICE int xio_my_pe(const xio_ctx_t& ctx);

// How many PEs the world has; -1 for a null ctx. Any thread; loads nothing.
XIO_DEVICE int xio_n_pes(const xio_ctx_t& ctx);

// Where PE `pe`'s copy of a symmetric address can be loaded and stored from here; null if it cannot be, or if the
// address is not symmetric. Any thread. Accesses through it are ordinary ones: xio_fence and xio_quiet order the
// caller's own.
XIO_DEVICE void* xio_ptr(const xio_ctx_t& ctx, const void* symmetric, int pe);

// The state of PE `pe` as this PE's host knows it: as it was at the last xio_pe_state (of that PE) or xio_exclude of
// the host. XIO_PE_UNKNOWN for a null ctx, and where there is no such PE. Any thread; a load from host memory, so no
// call for inner loops.
XIO_DEVICE xio_pe_life_t xio_pe_state(const xio_ctx_t& ctx, int pe);

#include "xio/device/impl/ctx.hpp"
