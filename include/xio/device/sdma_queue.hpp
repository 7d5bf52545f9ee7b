// SPDX-License-Identifier: MIT
// Copy engine queues of xio/sdma.h in a kernel: copies, tiles, signals and counts between any addresses that the engine
// reaches. Thread scope; any lanes of any waves of a grid may call on one queue in any divergence, unless it was
// created for one thread at a time.
//
// Ops are posted and not waited for: they return a request for xio_sdma_flush and xio_sdma_test, which need not be
// used, and is a failed one for wrong arguments. Copies of one queue may overlap in time; a signal or count is visible
// after all that was posted to its queue before it. Errors: XIO_ERR_STATE (null queue), XIO_ERR_ARG (null, overlapping
// areas, a misaligned word, rows wider than their pitch), XIO_ERR_TIMEOUT, and XIO_ERR_TRANSPORT when the engine
// stopped: from then on the queue refuses work.
#pragma once
#include "xio/device/impl/sdma_queue.hpp"
#include "xio/sdma.h"

// --- Copies ------------------------------------------------------------------------------------------

// Posts a copy of `bytes` from `src` to `dst`, which must not overlap.
XIO_DEVICE xio_req_t xio_sdma_put(xio_sdma_queue_t queue, void* dst, const void* src, size_t bytes) {
  return xio::dev::sdma::post_chain(queue, xio::dev::sdma::chain_of(dst, src, bytes), true);
}

// Copies a tile of `height` rows of `width` bytes; rows start `dst_pitch` and `src_pitch` bytes apart, which are at
// least `width`, else the request is one of XIO_ERR_ARG.
XIO_DEVICE xio_req_t xio_sdma_put_2d(xio_sdma_queue_t queue, void* dst, size_t dst_pitch, const void* src,
                                     size_t src_pitch, size_t width, size_t height) {
  using namespace xio::dev;
  const sdma_queue_view* q = sdma::queue_of(queue);
  if (q == nullptr) return failed_request(XIO_ERR_STATE);
  if (width == 0 || height == 0) return 0;
  const bool fits = dst_pitch >= width && src_pitch >= width;
  const u64 pitch = dst_pitch > src_pitch ? dst_pitch : src_pitch;
  if (dst == nullptr || src == nullptr || !fits || height > ~u64{0} / pitch) return failed_request(XIO_ERR_ARG);
  xio_req_t request = 0;
  const sdma::area a{reinterpret_cast<u64>(dst), dst_pitch, reinterpret_cast<u64>(src), src_pitch, width, height};
  const xio_status_t status = sdma::post_area(*q->world, q->ring, a, &request);
  return status == XIO_OK ? request : failed_request(status);
}

// --- Signals and counters ----------------------------------------------------------------------------

// Sets or adds to a 64-bit word, 8-byte aligned, after everything that was posted to the queue before.
XIO_DEVICE xio_req_t xio_sdma_signal(xio_sdma_queue_t queue, uint64_t* word, uint64_t value, int op) {
  xio::dev::sdma::chain c = xio::dev::sdma::chain_of(nullptr, nullptr, 0);
  c.signal = reinterpret_cast<xio::dev::u64>(word);
  c.value = value;
  c.op = op;
  return xio::dev::sdma::post_chain(queue, c,
                                    xio::dev::sdma::is_word(word) && (op == XIO_SIGNAL_SET || op == XIO_SIGNAL_ADD));
}

// Copies, then sets the word or adds to it (`op`: XIO_SIGNAL_SET, XIO_SIGNAL_ADD), as one chain.
XIO_DEVICE xio_req_t xio_sdma_put_signal(xio_sdma_queue_t queue, void* dst, const void* src, size_t bytes,
                                         uint64_t* word, uint64_t value, int op) {
  xio::dev::sdma::chain c = xio::dev::sdma::chain_of(dst, src, bytes);
  c.signal = reinterpret_cast<xio::dev::u64>(word);
  c.value = value;
  c.op = op;
  return xio::dev::sdma::post_chain(queue, c,
                                    xio::dev::sdma::is_word(word) && (op == XIO_SIGNAL_SET || op == XIO_SIGNAL_ADD));
}

// Copies, then adds 1 to the word `*counter`: the source is free and the data in place.
XIO_DEVICE xio_req_t xio_sdma_put_counter(xio_sdma_queue_t queue, void* dst, const void* src, size_t bytes,
                                          uint64_t* counter) {
  xio::dev::sdma::chain c = xio::dev::sdma::chain_of(dst, src, bytes);
  c.counter = reinterpret_cast<xio::dev::u64>(counter);
  return xio::dev::sdma::post_chain(queue, c, xio::dev::sdma::is_word(counter));
}

// xio_sdma_put_signal and xio_sdma_put_counter in one: data, signal, counter, in this order.
XIO_DEVICE xio_req_t xio_sdma_put_signal_counter(xio_sdma_queue_t queue, void* dst, const void* src, size_t bytes,
                                                 uint64_t* word, uint64_t value, int op, uint64_t* counter) {
  xio::dev::sdma::chain c = xio::dev::sdma::chain_of(dst, src, bytes);
  c.signal = reinterpret_cast<xio::dev::u64>(word);
  c.value = value;
  c.op = op;
  c.counter = reinterpret_cast<xio::dev::u64>(counter);
  return xio::dev::sdma::post_chain(queue, c,
                                    xio::dev::sdma::is_word(word) && xio::dev::sdma::is_word(counter) &&
                                        (op == XIO_SIGNAL_SET || op == XIO_SIGNAL_ADD));
}

// Waits until the word that a peer's or an own queue signals is at least `value`; then the data before it is visible.
XIO_DEVICE xio_status_t xio_sdma_wait_signal(xio_sdma_queue_t queue, const uint64_t* word, uint64_t value) {
  return xio::dev::sdma::wait_word(queue, word, value);
}

// The same for a counter of this queue.
XIO_DEVICE xio_status_t xio_sdma_wait_counter(xio_sdma_queue_t queue, const uint64_t* counter, uint64_t value) {
  return xio::dev::sdma::wait_word(queue, counter, value);
}

// --- Completion --------------------------------------------------------------------------------------

// Waits until the source of an op may be reused, which is when it is done. XIO_OK for the request 0.
XIO_DEVICE xio_status_t xio_sdma_flush(xio_sdma_queue_t queue, xio_req_t request) {
  using namespace xio::dev;
  const sdma_queue_view* q = sdma::queue_of(queue);
  if (q == nullptr) return XIO_ERR_STATE;
  if (request == 0) return XIO_OK;
  if (is_failed_request(request)) return failed_request_status(request);
  u64 ticket;
  if (!find_ticket(q->ring, request, &ticket)) return XIO_ERR_ARG;
  return ring_wait_below<sdma_codec>(q->ring, ticket + 1, *q->world);
}

// XIO_OK, XIO_PENDING or the op's failure.
XIO_DEVICE xio_status_t xio_sdma_test(xio_sdma_queue_t queue, xio_req_t request) {
  using namespace xio::dev;
  const sdma_queue_view* q = sdma::queue_of(queue);
  if (q == nullptr) return XIO_ERR_STATE;
  if (request == 0) return XIO_OK;
  if (is_failed_request(request)) return failed_request_status(request);
  u64 ticket;
  if (!find_ticket(q->ring, request, &ticket)) return XIO_ERR_ARG;
  ring_reap<sdma_codec>(q->ring);
  const xio_status_t status = ring_test(q->ring, ticket);
  if (status == XIO_OK) fence<scope::system, order::acquire>();
  return status;
}

// Completes everything that was posted to the queue.
XIO_DEVICE xio_status_t xio_sdma_quiet(xio_sdma_queue_t queue) {
  using namespace xio::dev;
  const sdma_queue_view* q = sdma::queue_of(queue);
  return q == nullptr ? XIO_ERR_STATE : ring_quiet<sdma_codec>(q->ring, *q->world);
}
