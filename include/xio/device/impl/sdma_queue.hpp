// SPDX-License-Identifier: MIT
// Queues of copy engines without a world; the calls are in device/sdma_queue.hpp.
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
