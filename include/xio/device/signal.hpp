// SPDX-License-Identifier: MIT
// Signals: 64-bit words that say that data has come. Counters: local 64-bit words that say that a source is free.
//
// Parameters.
//   ctx      the ctx that carries the op
//   dst      symmetric address of where the data goes at PE `pe`
//   src      where it comes from, any memory of the device
//   bytes    size of the copy in bytes; with 0 the signal travels alone
//   sig      a symmetric, 8-byte aligned word: of PE `pe` where it is changed, else this PE's own
//   value    what the word is set to, what is added to it, or with what it is compared
//   op       XIO_SIGNAL_SET or XIO_SIGNAL_ADD; another is XIO_ERR_ARG
//   cmp      XIO_CMP_*, the word on the left
//   seen     gets the word's value, if not null
//   counter  a local word, 8-byte aligned, in any memory of the device but a workgroup's own
//   pe       the target's number in the world, from 0 on
//
// The target sees the signal only after all the data of the same call, on every route: data and signal are one chain on
// one queue. Forms and errors are those of rma.hpp, of what waits those of wait.hpp.
//
// XIO_SIGNAL_ADD is an atomic of the route that carries it: a NIC's, a copy engine's and a GPU's additions to one word
// are not atomic against each other. Senders that reach a target by different routes, or by sizes on either side of
// bulk_bytes, need a word each.
#pragma once
#include "xio/device/impl/forms.hpp"
#include "xio/device/rma.hpp"
#include "xio/device/wait.hpp"

// --- put, then signal --------------------------------------------------------------------------------

// Copies `bytes` from `src` here to `dst` at PE `pe`, then changes `sig` there by `value` and `op`. Returns when `src`
// may be reused. After `_nbi` it must stay as it is until the request is waited for, or until xio_quiet.
XIO_OP(xio_put_signal, xio_put_signal_wave, xio_put_signal_wg, xio_put_signal_nbi, xio_put_signal_nbi_wave,
       xio_put_signal_nbi_wg,
       (const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes, uint64_t* sig, uint64_t value,
        xio_signal_op_t op, int pe));

// --- Signals alone -----------------------------------------------------------------------------------

// Changes the signal word `sig` of PE `pe` by `value` and `op`. Thread scope. Like an atomic it is unordered among
// other ops: xio_fence comes before it if it must follow them.
XIO_DEVICE xio_status_t xio_signal_op(const xio_ctx_t& ctx, uint64_t* sig, uint64_t value, xio_signal_op_t op, int pe);

// Reads an own signal word; what came with that value is visible afterwards. Thread scope. Returns 0 if `sig` is null
// or misaligned, and the next quiet returns XIO_ERR_ARG.
XIO_DEVICE uint64_t xio_signal_fetch(const xio_ctx_t& ctx, const uint64_t* sig);

// Waits until `*sig cmp value` holds; then the data of the put_signal is visible to the caller. Thread scope.
XIO_DEVICE xio_status_t xio_signal_wait_until(const xio_ctx_t& ctx, const uint64_t* sig, xio_cmp_t cmp, uint64_t value,
                                              uint64_t* seen = nullptr);

// --- Counters ----------------------------------------------------------------------------------------

// Puts `bytes` from `src` here to `dst` at PE `pe`, and adds 1 to the local word `*counter` when `src` may be reused.
// Thread scope. The call posts like xio_put_nbi where a copy engine does the copy and reaches the counter (heap or
// registered memory); elsewhere it returns when it has counted. A put that fails does not count.
XIO_DEVICE xio_status_t xio_put_counter(const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes,
                                        uint64_t* counter, int pe);

// xio_put_signal and xio_put_counter in one.
XIO_DEVICE xio_status_t xio_put_signal_counter(const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes,
                                               uint64_t* sig, uint64_t value, xio_signal_op_t op, uint64_t* counter,
                                               int pe);

// Waits until the counter is at least `value`. Thread scope.
XIO_DEVICE xio_status_t xio_wait_counter(const xio_ctx_t& ctx, const uint64_t* counter, uint64_t value);

#include "xio/device/impl/signal.hpp"
