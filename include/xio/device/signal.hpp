// SPDX-License-Identifier: MIT
// Signals: 64-bit words that say that data has come. Counters: local 64-bit words that say that a source is free.
//
// `sig` is a symmetric, 8-byte aligned word; `op` is XIO_SIGNAL_SET or XIO_SIGNAL_ADD. The target sees the signal only
// after all the data of the same call, on every route: data and signal are one chain on one queue. Forms, sizes and
// errors are those of rma.hpp; a wrong `op` is XIO_ERR_ARG.
//
// XIO_SIGNAL_ADD is an atomic of the route that carries it: a NIC's, a copy engine's and a GPU's additions to one word
// are not atomic against each other. Senders that reach a target by different routes, or by sizes on either side of
// bulk_bytes, need a word each.
#pragma once
#include "xio/device/impl/signal.hpp"
#include "xio/device/rma.hpp"
#include "xio/device/wait.hpp"

// --- put, then signal --------------------------------------------------------------------------------

// Copies `bytes` from `src` here to `dst` at PE `pe`, then changes `sig` there by `value` and `op`. Returns when `src`
// may be reused. With 0 bytes the signal travels alone.
XIO_DEVICE xio_status_t xio_put_signal(const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes, uint64_t* sig,
                                       uint64_t value, xio_signal_op_t op, int pe) {
  const xio::dev::signal_word s{sig, value, op};
  return xio::dev::put_signal(xio::dev::thread_group::here(), ctx, {dst, src, bytes}, s, pe, true).status;
}
XIO_DEVICE xio_status_t xio_put_signal_wave(const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes,
                                            uint64_t* sig, uint64_t value, xio_signal_op_t op, int pe) {
  const xio::dev::signal_word s{sig, value, op};
  return xio::dev::put_signal(xio::dev::wave_group::here(), ctx, {dst, src, bytes}, s, pe, true).status;
}
XIO_DEVICE xio_status_t xio_put_signal_wg(const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes, uint64_t* sig,
                                          uint64_t value, xio_signal_op_t op, int pe) {
  const xio::dev::signal_word s{sig, value, op};
  return xio::dev::put_signal(xio::dev::workgroup_group::here(), ctx, {dst, src, bytes}, s, pe, true).status;
}

// The same without waiting: `src` must stay as it is until the request is waited for, or until xio_quiet.
XIO_DEVICE xio_req_t xio_put_signal_nbi(const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes, uint64_t* sig,
                                        uint64_t value, xio_signal_op_t op, int pe) {
  const xio::dev::signal_word s{sig, value, op};
  return xio::dev::put_signal(xio::dev::thread_group::here(), ctx, {dst, src, bytes}, s, pe, false).request;
}
XIO_DEVICE xio_req_t xio_put_signal_nbi_wave(const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes,
                                             uint64_t* sig, uint64_t value, xio_signal_op_t op, int pe) {
  const xio::dev::signal_word s{sig, value, op};
  return xio::dev::put_signal(xio::dev::wave_group::here(), ctx, {dst, src, bytes}, s, pe, false).request;
}
XIO_DEVICE xio_req_t xio_put_signal_nbi_wg(const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes,
                                           uint64_t* sig, uint64_t value, xio_signal_op_t op, int pe) {
  const xio::dev::signal_word s{sig, value, op};
  return xio::dev::put_signal(xio::dev::workgroup_group::here(), ctx, {dst, src, bytes}, s, pe, false).request;
}

// --- Signals alone -----------------------------------------------------------------------------------

// Changes the signal word `sig` of PE `pe` by `value` and `op`. Thread scope. Like an atomic it is unordered among
// other ops: xio_fence comes before it if it must follow them.
XIO_DEVICE xio_status_t xio_signal_op(const xio_ctx_t& ctx, uint64_t* sig, uint64_t value, xio_signal_op_t op, int pe) {
  return xio::dev::signal_alone(ctx, {sig, value, op}, pe);
}

// Reads an own signal word; what came with that value is visible afterwards. Thread scope. Returns 0 if `sig` is null
// or misaligned, and the next quiet returns XIO_ERR_ARG.
XIO_DEVICE uint64_t xio_signal_fetch(const xio_ctx_t& ctx, const uint64_t* sig) {
  uint64_t found = 0;
  xio::dev::until<xio::dev::newest, uint64_t>(ctx, sig, XIO_CMP_GE, 0, &found, xio::dev::call_kind::signal_fetch);
  return found;
}

// Waits until `*sig cmp value` holds (XIO_CMP_*); then the data of the put_signal is visible to the caller. Thread
// scope. `seen`, if not null, gets the value. Errors are those of wait.hpp.
XIO_DEVICE xio_status_t xio_signal_wait_until(const xio_ctx_t& ctx, const uint64_t* sig, xio_cmp_t cmp, uint64_t value,
                                              uint64_t* seen = nullptr) {
  return xio::dev::until<xio::dev::stay, uint64_t>(ctx, sig, cmp, value, seen, xio::dev::call_kind::signal_wait_until);
}

// --- Counters ----------------------------------------------------------------------------------------

// Puts `bytes` from `src` here to `dst` at PE `pe`, and adds 1 to the local word `*counter` when `src` may be reused.
// The counter is 8-byte aligned, in any memory of the device but a workgroup's own. Thread scope. The call posts like
// xio_put_nbi where a copy engine does the copy and reaches the counter (heap or registered memory); elsewhere it
// returns when it has counted. A put that fails does not count.
XIO_DEVICE xio_status_t xio_put_counter(const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes,
                                        uint64_t* counter, int pe) {
  return xio::dev::put_counter(ctx, {dst, src, bytes}, counter, pe);
}

// xio_put_signal and xio_put_counter in one.
XIO_DEVICE xio_status_t xio_put_signal_counter(const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes,
                                               uint64_t* sig, uint64_t value, xio_signal_op_t op, uint64_t* counter,
                                               int pe) {
  const xio::dev::signal_word s{sig, value, op};
  return xio::dev::put_signal_counter(ctx, {dst, src, bytes}, s, counter, pe);
}

// Waits until the counter is at least `value`. Thread scope. Errors are those of wait.hpp.
XIO_DEVICE xio_status_t xio_wait_counter(const xio_ctx_t& ctx, const uint64_t* counter, uint64_t value) {
  return xio::dev::until<xio::dev::stay, uint64_t>(ctx, counter, XIO_CMP_GE, value, nullptr,
                                                   xio::dev::call_kind::wait_counter);
}
