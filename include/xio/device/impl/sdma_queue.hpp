// SPDX-License-Identifier: MIT
// Queues of copy engines without a world.
#pragma once
#include "xio/device/impl/sdma.hpp"
#include "xio/sdma.h"

namespace xio::dev::sdma {

XIO_DEVICE const sdma_queue_view* queue_of(xio_sdma_queue_t q) { return static_cast<const sdma_queue_view*>(q.view); }

XIO_DEVICE bool is_word(const void* p) { return p != nullptr && (reinterpret_cast<u64>(p) & 7) == 0; }

XIO_DEVICE xio_req_t post_chain(xio_sdma_queue_t q, const chain& op, bool words_are_right) {
  const sdma_queue_view* queue = queue_of(q);
  if (queue == nullptr) return failed_request(XIO_ERR_STATE);
  if (!words_are_right || (op.bytes != 0 && (op.dst == 0 || op.src == 0))) return failed_request(XIO_ERR_ARG);
  xio_req_t request = 0;
  const xio_status_t status = post(*queue->world, queue->ring, op, &request);
  return status == XIO_OK ? request : failed_request(status);
}

XIO_DEVICE chain chain_of(void* dst, const void* src, u64 bytes) {
  return chain{reinterpret_cast<u64>(dst), reinterpret_cast<u64>(src), bytes, 0, 0, 0, XIO_SIGNAL_ADD};
}

// Puts a signal behind the chain's copy.
XIO_DEVICE void set_signal(chain& c, const u64* word, u64 value, int op) {
  c.signal = reinterpret_cast<u64>(word);
  c.value = value;
  c.op = op;
}
XIO_DEVICE bool is_signal(const u64* word, int op) {
  return is_word(word) && (op == XIO_SIGNAL_SET || op == XIO_SIGNAL_ADD);
}

// Waits until done(word) or the queue fails. The clock costs more than a look.
XIO_DEVICE xio_status_t wait_word(xio_sdma_queue_t q, const u64* word, u64 at_least) {
  const sdma_queue_view* queue = queue_of(q);
  if (queue == nullptr) return XIO_ERR_STATE;
  if (!is_word(word)) return XIO_ERR_ARG;
  const deadline end = deadline::in(*queue->world);
  xio_status_t status = XIO_OK;
  while (load<scope::system, order::acquire>(word) < at_least) {
    ring_reap<sdma_codec>(queue->ring);
    if (status = ring_failure(queue->ring); status != XIO_OK) break;
    if (!end.wait_more()) {
      status = XIO_ERR_TIMEOUT;
      break;
    }
  }
  fence<scope::system, order::acquire>();
  return status;
}

}  // namespace xio::dev::sdma

// --- The calls ---------------------------------------------------------------------------------------

XIO_DEVICE xio_req_t xio_sdma_put(xio_sdma_queue_t queue, void* dst, const void* src, size_t bytes) {
  return xio::dev::sdma::post_chain(queue, xio::dev::sdma::chain_of(dst, src, bytes), true);
}
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

XIO_DEVICE xio_req_t xio_sdma_signal(xio_sdma_queue_t queue, uint64_t* word, uint64_t value, xio_signal_op_t op) {
  xio::dev::sdma::chain c = xio::dev::sdma::chain_of(nullptr, nullptr, 0);
  xio::dev::sdma::set_signal(c, word, value, op);
  return xio::dev::sdma::post_chain(queue, c, xio::dev::sdma::is_signal(word, op));
}
XIO_DEVICE xio_req_t xio_sdma_put_signal(xio_sdma_queue_t queue, void* dst, const void* src, size_t bytes,
                                         uint64_t* word, uint64_t value, xio_signal_op_t op) {
  xio::dev::sdma::chain c = xio::dev::sdma::chain_of(dst, src, bytes);
  xio::dev::sdma::set_signal(c, word, value, op);
  return xio::dev::sdma::post_chain(queue, c, xio::dev::sdma::is_signal(word, op));
}
XIO_DEVICE xio_req_t xio_sdma_put_counter(xio_sdma_queue_t queue, void* dst, const void* src, size_t bytes,
                                          uint64_t* counter) {
  xio::dev::sdma::chain c = xio::dev::sdma::chain_of(dst, src, bytes);
  c.counter = reinterpret_cast<uint64_t>(counter);
  return xio::dev::sdma::post_chain(queue, c, xio::dev::sdma::is_word(counter));
}
XIO_DEVICE xio_req_t xio_sdma_put_signal_counter(xio_sdma_queue_t queue, void* dst, const void* src, size_t bytes,
                                                 uint64_t* word, uint64_t value, xio_signal_op_t op,
                                                 uint64_t* counter) {
  xio::dev::sdma::chain c = xio::dev::sdma::chain_of(dst, src, bytes);
  xio::dev::sdma::set_signal(c, word, value, op);
  c.counter = reinterpret_cast<uint64_t>(counter);
  return xio::dev::sdma::post_chain(queue, c, xio::dev::sdma::is_signal(word, op) && xio::dev::sdma::is_word(counter));
}
XIO_DEVICE xio_status_t xio_sdma_wait_signal(xio_sdma_queue_t queue, const uint64_t* word, uint64_t value) {
  return xio::dev::sdma::wait_word(queue, word, value);
}
XIO_DEVICE xio_status_t xio_sdma_wait_counter(xio_sdma_queue_t queue, const uint64_t* counter, uint64_t value) {
  return xio::dev::sdma::wait_word(queue, counter, value);
}

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
  if (status == XIO_PENDING) give_way();
  return status;
}
XIO_DEVICE xio_status_t xio_sdma_quiet(xio_sdma_queue_t queue) {
  using namespace xio::dev;
  const sdma_queue_view* q = sdma::queue_of(queue);
  return q == nullptr ? XIO_ERR_STATE : ring_quiet<sdma_codec>(q->ring, *q->world);
}
