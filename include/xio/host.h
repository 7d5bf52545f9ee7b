/* SPDX-License-Identifier: MIT */
/* Calls of the host on symmetric memory, which are done when they return: each is the call on a stream or in a kernel
 * of that name, in a stream of the library's own (docs/stream.md). Plain C; for programs that have no stream at hand,
 * and for small things: a call costs a launch and a wait for it.
 *
 * Parameters: as in xio/stream.h. dst, src, sig and word are this PE's own addresses of symmetric memory, of which the
 * copy at PE `pe` is meant; the other side is memory that kernels, or the engine to that PE, reach.
 *
 * Return: when it is done, with XIO_OK, with a status as xio/stream.h has it, where the call is refused, or with that
 * of the call in a kernel. xio_last_error() has the sentence.
 *
 * Threads: any thread calls, also beside other calls of the world; calls of several threads run beside each other.
 *
 * Deadline: the world's timeout, as in kernels. XIO_ERR_TIMEOUT also where the GPU has not run it after twice that
 * time, since other work keeps it: then it may still come, so its memory stays as it is.
 *
 * Order: among calls of one thread as among those of one stream. Work in streams of the program is not waited for.
 *
 * Failure: it is this call's own. The next call is made anew, xio_ctx_failed says nothing of it, and a failure of calls
 * on streams ends no calls of the host. A queue that has failed stays so (xio_ctx_recover). */
#ifndef XIO_HOST_H
#define XIO_HOST_H

#include "xio/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Copies `bytes` from `src` here to `dst` at PE `pe`. `src` may be reused; complete there after xio_host_quiet. */
XIO_EXPORT xio_status_t xio_host_put(xio_world_t* world, xio_ctx_t ctx, void* dst, const void* src, size_t bytes,
                                     int pe);
/* Copies `bytes` from `src` at PE `pe` to `dst` here: it is there on return. */
XIO_EXPORT xio_status_t xio_host_get(xio_world_t* world, xio_ctx_t ctx, void* dst, const void* src, size_t bytes,
                                     int pe);
/* xio_host_put, and then changes `sig` of that PE, which sees the change after the data. */
XIO_EXPORT xio_status_t xio_host_put_signal(xio_world_t* world, xio_ctx_t ctx, void* dst, const void* src, size_t bytes,
                                            uint64_t* sig, uint64_t value, xio_signal_op_t op, int pe);
/* Changes `sig` of PE `pe`, behind this ctx's earlier puts to it. */
XIO_EXPORT xio_status_t xio_host_signal_op(xio_world_t* world, xio_ctx_t ctx, uint64_t* sig, uint64_t value,
                                           xio_signal_op_t op, int pe);
/* Waits until `*sig cmp value` holds for the own word `sig`, for timeout_ms at most; 0: the world's timeout. */
XIO_EXPORT xio_status_t xio_host_signal_wait(xio_world_t* world, xio_ctx_t ctx, const uint64_t* sig, xio_cmp_t cmp,
                                             uint64_t value, uint32_t timeout_ms);
/* Completes all ops of the ctx: of the host, and of calls on streams and kernels that have ended. With
 * xio_host_barrier behind it all PEs have each other's. */
XIO_EXPORT xio_status_t xio_host_quiet(xio_world_t* world, xio_ctx_t ctx);

/* Atomics on a word of 8 bytes at PE `pe`, complete on return; *old is the word as it was, and may be null but for the
 * first. Each is atomic against what docs/atomics.md says of the call in kernels. Here the word is read. */
XIO_EXPORT xio_status_t xio_host_atomic_fetch(xio_world_t* world, xio_ctx_t ctx, const uint64_t* word, int pe,
                                              uint64_t* old);
/* Stores `value`. */
XIO_EXPORT xio_status_t xio_host_atomic_set(xio_world_t* world, xio_ctx_t ctx, uint64_t* word, uint64_t value, int pe);
/* Adds `value`. */
XIO_EXPORT xio_status_t xio_host_atomic_fetch_add(xio_world_t* world, xio_ctx_t ctx, uint64_t* word, uint64_t value,
                                                  int pe, uint64_t* old);
/* Stores `value`, and gives what was there. */
XIO_EXPORT xio_status_t xio_host_atomic_swap(xio_world_t* world, xio_ctx_t ctx, uint64_t* word, uint64_t value, int pe,
                                             uint64_t* old);
/* Stores `value` where the word is `expected`. */
XIO_EXPORT xio_status_t xio_host_atomic_compare_swap(xio_world_t* world, xio_ctx_t ctx, uint64_t* word,
                                                     uint64_t expected, uint64_t value, int pe, uint64_t* old);

#ifdef __cplusplus
}
#endif
#endif
