// SPDX-License-Identifier: MIT
// Copy engine queues of xio/sdma.h in a kernel: copies, tiles, signals and counts between any addresses that the engine
// reaches. Thread scope; any lanes of any waves of a grid may call on one queue in any divergence, unless it was
// created for one thread at a time.
//
// Parameters.
//   queue      the queue, as xio_sdma_queue_create made it
//   dst        where data goes
//   src        where it comes from; the two must not overlap
//   bytes      size of the copy in bytes; with 0 nothing is copied, and a signal or count goes alone
//   dst_pitch  from one row of dst to the next, in bytes, at least `width`
//   src_pitch  likewise of src
//   width      size of a row in bytes
//   height     rows
//   word       a 64-bit word, 8-byte aligned
//   value      what the word is set to, what is added to it, or what it must at least be
//   op         XIO_SIGNAL_SET or XIO_SIGNAL_ADD
//   counter    a 64-bit word, 8-byte aligned, to which 1 is added
//   request    what a call of this queue returned
//
// Ops are posted and not waited for: they return a request for xio_sdma_wait and xio_sdma_test, which a program may
// drop. A call with wrong arguments posts nothing, and its request returns the error. Copies of one queue may overlap
// in time; a signal or count is visible after all that was posted to its queue before it. Errors: XIO_ERR_STATE (null
// queue), XIO_ERR_ARG (null, overlapping areas, a misaligned word, an op that is none, rows wider than their pitch),
// XIO_ERR_TIMEOUT, and XIO_ERR_TRANSPORT when the engine stopped: from then on the queue refuses work.
#pragma once
#include "xio/device/impl/forms.hpp"
#include "xio/sdma.h"

// --- Copies ------------------------------------------------------------------------------------------

// Posts a copy of `bytes` from `src` to `dst`.
XIO_DEVICE xio_req_t xio_sdma_put(xio_sdma_queue_t queue, void* dst, const void* src, size_t bytes);

// Posts a copy of a tile of `height` rows of `width` bytes.
XIO_DEVICE xio_req_t xio_sdma_put_2d(xio_sdma_queue_t queue, void* dst, size_t dst_pitch, const void* src,
                                     size_t src_pitch, size_t width, size_t height);

// --- Signals and counters ----------------------------------------------------------------------------

// Posts a change of `*word` by `value` and `op`, after everything that was posted to the queue before.
XIO_DEVICE xio_req_t xio_sdma_signal(xio_sdma_queue_t queue, uint64_t* word, uint64_t value, xio_signal_op_t op);

// xio_sdma_put and xio_sdma_signal as one chain: a reader that sees the word changed sees the data.
XIO_DEVICE xio_req_t xio_sdma_put_signal(xio_sdma_queue_t queue, void* dst, const void* src, size_t bytes,
                                         uint64_t* word, uint64_t value, xio_signal_op_t op);

// Posts a copy, and behind it an addition of 1 to `*counter`: the source may be reused then, and the data is in place.
XIO_DEVICE xio_req_t xio_sdma_put_counter(xio_sdma_queue_t queue, void* dst, const void* src, size_t bytes,
                                          uint64_t* counter);

// xio_sdma_put_signal and xio_sdma_put_counter in one: data, signal, counter, in this order.
XIO_DEVICE xio_req_t xio_sdma_put_signal_counter(xio_sdma_queue_t queue, void* dst, const void* src, size_t bytes,
                                                 uint64_t* word, uint64_t value, xio_signal_op_t op, uint64_t* counter);

// Waits until the word, which this or another queue signals, is at least `value`; the data before that signal is
// visible to the caller then.
XIO_DEVICE xio_status_t xio_sdma_wait_signal(xio_sdma_queue_t queue, const uint64_t* word, uint64_t value);

// Waits until a counter of this queue is at least `value`.
XIO_DEVICE xio_status_t xio_sdma_wait_counter(xio_sdma_queue_t queue, const uint64_t* counter, uint64_t value);

// --- Completion --------------------------------------------------------------------------------------

// Waits until an op is complete: its source may be reused, and its data is in place. XIO_OK for the request 0.
XIO_DEVICE xio_status_t xio_sdma_wait(xio_sdma_queue_t queue, xio_req_t request);

// Returns XIO_OK if an op is complete, XIO_PENDING if it is not yet, or its failure. Waits for nothing.
XIO_DEVICE xio_status_t xio_sdma_test(xio_sdma_queue_t queue, xio_req_t request);

// Waits until everything that was posted to the queue is complete. Returns the queue's failure, if it has one.
XIO_DEVICE xio_status_t xio_sdma_quiet(xio_sdma_queue_t queue);

#include "xio/device/impl/sdma_queue.hpp"
