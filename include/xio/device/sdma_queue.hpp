// SPDX-License-Identifier: MIT
// Copy engine queues of xio/sdma.h in a kernel: copies, tiles, signals and counts between any addresses that the engine
// reaches. Thread scope; any lanes of any waves of a grid may call on one queue in any divergence, unless it was
// created for one thread at a time.
//
// Ops are posted and not waited for: they return a request for xio_sdma_wait and xio_sdma_test, which a program may
// drop. A call with wrong arguments posts nothing, and its request returns the error. Copies of one queue may overlap
// in time; a signal or count is visible after all that was posted to its queue before it. Errors: XIO_ERR_STATE (null
// queue), XIO_ERR_ARG (null, overlapping areas, a misaligned word, rows wider than their pitch), XIO_ERR_TIMEOUT, and
// XIO_ERR_TRANSPORT when the engine stopped: from then on the queue refuses work.
#pragma once
#include "xio/device/impl/sdma_queue.hpp"
#include "xio/sdma.h"

// --- Copies ------------------------------------------------------------------------------------------

// Posts a copy of `bytes` from `src` to `dst`, which must not overlap.
XIO_DEVICE xio_req_t xio_sdma_put(xio_sdma_queue_t queue, void* dst, const void* src, size_t bytes) {
  return xio::dev::sdma::post_chain(queue, xio::dev::sdma::chain_of(dst, src, bytes), true);
}

// Posts a copy of a tile of `height` rows of `width` bytes; rows start `dst_pitch` and `src_pitch` bytes apart, which
// are at least `width`, else XIO_ERR_ARG.
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

// Posts a change of the 64-bit word `*word`, 8-byte aligned: it is set to `value` (`op` XIO_SIGNAL_SET), or `value` is
// added to it (XIO_SIGNAL_ADD), after everything that was posted to the queue before.
XIO_DEVICE xio_req_t xio_sdma_signal(xio_sdma_queue_t queue, uint64_t* word, uint64_t value, xio_signal_op_t op) {
  xio::dev::sdma::chain c = xio::dev::sdma::chain_of(nullptr, nullptr, 0);
  c.signal = reinterpret_cast<xio::dev::u64>(word);
  c.value = value;
  c.op = op;
  return xio::dev::sdma::post_chain(queue, c,
                                    xio::dev::sdma::is_word(word) && (op == XIO_SIGNAL_SET || op == XIO_SIGNAL_ADD));
}

// xio_sdma_put and xio_sdma_signal as one chain: a reader that sees the word changed sees the data.
XIO_DEVICE xio_req_t xio_sdma_put_signal(xio_sdma_queue_t queue, void* dst, const void* src, size_t bytes,
                                         uint64_t* word, uint64_t value, xio_signal_op_t op) {
  xio::dev::sdma::chain c = xio::dev::sdma::chain_of(dst, src, bytes);
  c.signal = reinterpret_cast<xio::dev::u64>(word);
  c.value = value;
  c.op = op;
  return xio::dev::sdma::post_chain(queue, c,
                                    xio::dev::sdma::is_word(word) && (op == XIO_SIGNAL_SET || op == XIO_SIGNAL_ADD));
}

// Posts a copy, and behind it an addition of 1 to the word `*counter`, 8-byte aligned: the source may be reused then,
// and the data is in place.
XIO_DEVICE xio_req_t xio_sdma_put_counter(xio_sdma_queue_t queue, void* dst, const void* src, size_t bytes,
                                          uint64_t* counter) {
  xio::dev::sdma::chain c = xio::dev::sdma::chain_of(dst, src, bytes);
  c.counter = reinterpret_cast<xio::dev::u64>(counter);
  return xio::dev::sdma::post_chain(queue, c, xio::dev::sdma::is_word(counter));
}

// xio_sdma_put_signal and xio_sdma_put_counter in one: data, signal, counter, in this order.
XIO_DEVICE xio_req_t xio_sdma_put_signal_counter(xio_sdma_queue_t queue, void* dst, const void* src, size_t bytes,
                                                 uint64_t* word, uint64_t value, xio_signal_op_t op,
                                                 uint64_t* counter) {
  xio::dev::sdma::chain c = xio::dev::sdma::chain_of(dst, src, bytes);
  c.signal = reinterpret_cast<xio::dev::u64>(word);
  c.value = value;
  c.op = op;
  c.counter = reinterpret_cast<xio::dev::u64>(counter);
  return xio::dev::sdma::post_chain(queue, c,
                                    xio::dev::sdma::is_word(word) && xio::dev::sdma::is_word(counter) &&
                                        (op == XIO_SIGNAL_SET || op == XIO_SIGNAL_ADD));
}

// Waits until the word, which this or another queue signals, is at least `value`; the data before that signal is
// visible to the caller then.
XIO_DEVICE xio_status_t xio_sdma_wait_signal(xio_sdma_queue_t queue, const uint64_t* word, uint64_t value) {
  return xio::dev::sdma::wait_word(queue, word, value);
}

// Waits until a counter of this queue is at least `value`.
XIO_DEVICE xio_status_t xio_sdma_wait_counter(xio_sdma_queue_t queue, const uint64_t* counter, uint64_t value) {
  return xio::dev::sdma::wait_word(queue, counter, value);
}

// --- Completion --------------------------------------------------------------------------------------

// Waits until an op is complete: its source may be reused, and its data is in place. XIO_OK for the request 0.
XIO_DEVICE xio_status_t xio_sdma_wait(xio_sdma_queue_t queue, xio_req_t request) {
  using namespace xio::dev;
  const sdma_queue_view* q = sdma::queue_of(queue);
  if (q == nullptr) return XIO_ERR_STATE;
  if (request == 0) return XIO_OK;
  if (is_failed_request(request)) return failed_request_status(request);
  u64 ticket;
  if (!find_ticket(q->ring, request, &ticket)) return XIO_ERR_ARG;
  return ring_wait_below<sdma_codec>(q->ring, ticket + 1, *q->world);
}

// Returns XIO_OK if an op is complete, XIO_PENDING if it is not yet, or its failure. Waits for nothing.
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

// Waits until everything that was posted to the queue is complete. Returns the queue's failure, if it has one.
XIO_DEVICE xio_status_t xio_sdma_quiet(xio_sdma_queue_t queue) {
  using namespace xio::dev;
  const sdma_queue_view* q = sdma::queue_of(queue);
  return q == nullptr ? XIO_ERR_STATE : ring_quiet<sdma_codec>(q->ring, *q->world);
}
