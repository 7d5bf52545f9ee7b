/* SPDX-License-Identifier: MIT */
/* XIO's calls on a stream of HIP or CUDA (docs/stream.md): the host says what the GPU does behind the work that is in
 * the stream already. Plain C; no kernel of the program's own is needed.
 *
 *   Parameters. ctx, team, pe, dst, src, bytes, sig, value, op, cmp and root are those of the call of that name in
 *               kernels (device/rma.hpp, signal.hpp, sync.hpp, team.hpp, collective.hpp). `stream` is one of the
 *               world's GPU; null: the default stream. `attr` may be null.
 *   Return.     At once. XIO_OK: the call is in the stream. Else nothing is, and xio_last_error() has the reason:
 *               XIO_ERR_ARG, XIO_ERR_PE, XIO_ERR_NOT_SYMMETRIC, XIO_ERR_NOT_REGISTERED or XIO_ERR_STATE for wrong
 *               arguments, XIO_ERR_CONFIG for attributes, XIO_ERR_IO where the runtime refuses the launch.
 *   Threads.    Any thread calls, also beside other calls of the world; but for those that make or end the ctx, the
 *               team or the registration that is named.
 *   Order.      Calls of one stream are made one after the other, to all PEs; between streams events order them. When
 *               the stream has passed a put its source may be reused; it is complete at the PE after
 *               xio_quiet_on_stream or xio_barrier_all_on_stream. A team's channel is used by one stream at a time.
 *   Capture.    A stream that is being captured takes every call; in each replay the call is made with the same
 *               arguments. Nothing is allocated, waited for or loaded.
 *   Failure.    The status of a call that has failed goes to attr.status and to the ctx, which keeps the first:
 *               xio_ctx_failed, and xio_ctx_error with the sentence. From then on every call of that ctx in a stream
 *               ends at once with that first status, until xio_ctx_clear or xio_ctx_recover. So a graph of 100 calls
 *               with a PE that is dead takes one deadline. The GPU's context is as before.
 *
 * Calls of "every PE" or "every member" are made by all of these, each in a stream of its own, in the same order. Where
 * the host of one PE refuses its own arguments, the other PEs wait in vain, until their deadline. */
#ifndef XIO_STREAM_H
#define XIO_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "xio/team.h"
#include "xio/xio.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A hipStream_t or cudaStream_t; null: the default stream. */
typedef void* xio_stream_t;

/* The attributes of one call. Set `size` to sizeof the struct, or use the _INIT macro. */
typedef struct xio_stream_attr {
  size_t size;
  xio_status_t* status; /* null, or a word that the GPU and its reader reach (of hipHostMalloc, or a GPU's memory): gets
                           the call's status, XIO_OK too, when it ends. In a graph the same word in every replay */
  uint32_t timeout_ms;  /* how long the call waits for other PEs; 0: the world's timeout; UINT32_MAX: for ever. Queues
                           of NICs and copy engines keep the world's */
  uint32_t workgroups;  /* of a copy by loads and stores: how many share it, at most 1024; 0: by its size */
  uint32_t flags;       /* 0 */
} xio_stream_attr_t;
#define XIO_STREAM_ATTR_INIT \
  { sizeof(xio_stream_attr_t), NULL, 0, 0, 0 }

/* How a reduce combines: see device/reduction.hpp. AND, OR and XOR are for integers. */
typedef enum xio_reduce_op XIO_ENUM_OF_INT {
  XIO_REDUCE_SUM = 0,
  XIO_REDUCE_PROD,
  XIO_REDUCE_MIN,
  XIO_REDUCE_MAX,
  XIO_REDUCE_AND,
  XIO_REDUCE_OR,
  XIO_REDUCE_XOR
} xio_reduction_t;
/* The type of its elements. HALF is IEEE binary16. */
typedef enum xio_type XIO_ENUM_OF_INT {
  XIO_INT8 = 0,
  XIO_UINT8,
  XIO_INT16,
  XIO_UINT16,
  XIO_INT32,
  XIO_UINT32,
  XIO_INT64,
  XIO_UINT64,
  XIO_HALF,
  XIO_BFLOAT16,
  XIO_FLOAT,
  XIO_DOUBLE
} xio_type_t;

/* Copies `bytes` from `src` here to `dst` at PE `pe`. */
XIO_EXPORT xio_status_t xio_put_on_stream(xio_world_t* world, xio_ctx_t ctx, void* dst, const void* src, size_t bytes,
                                          int pe, xio_stream_t stream, const xio_stream_attr_t* attr);
/* Copies `bytes` from `src` at PE `pe` to `dst` here: it is there when the stream has passed the call. */
XIO_EXPORT xio_status_t xio_get_on_stream(xio_world_t* world, xio_ctx_t ctx, void* dst, const void* src, size_t bytes,
                                          int pe, xio_stream_t stream, const xio_stream_attr_t* attr);
/* xio_put_on_stream, and then changes `sig` of that PE, which sees the change after the data. */
XIO_EXPORT xio_status_t xio_put_signal_on_stream(xio_world_t* world, xio_ctx_t ctx, void* dst, const void* src,
                                                 size_t bytes, uint64_t* sig, uint64_t value, xio_signal_op_t op,
                                                 int pe, xio_stream_t stream, const xio_stream_attr_t* attr);
/* Changes `sig` of PE `pe`, behind the puts to it that are earlier in the stream. */
XIO_EXPORT xio_status_t xio_signal_op_on_stream(xio_world_t* world, xio_ctx_t ctx, uint64_t* sig, uint64_t value,
                                                xio_signal_op_t op, int pe, xio_stream_t stream,
                                                const xio_stream_attr_t* attr);
/* Waits until `*sig cmp value` holds for the own word `sig`. In a graph the word still holds what an earlier replay has
 * left there: see xio_signal_take_on_stream. */
XIO_EXPORT xio_status_t xio_signal_wait_on_stream(xio_world_t* world, xio_ctx_t ctx, const uint64_t* sig, xio_cmp_t cmp,
                                                  uint64_t value, xio_stream_t stream, const xio_stream_attr_t* attr);
/* Waits until `*sig >= value`, then takes `value` away: what is signalled by XIO_SIGNAL_ADD of `value` is taken once in
 * every replay of a graph. The subtraction is an atomic by this PE's way to itself; a NIC or copy engine that adds to
 * the word at that moment needs the same way (XIO_ROUTE, device/signal.hpp). */
XIO_EXPORT xio_status_t xio_signal_take_on_stream(xio_world_t* world, xio_ctx_t ctx, uint64_t* sig, uint64_t value,
                                                  xio_stream_t stream, const xio_stream_attr_t* attr);

/* Completes all ops of the ctx that come before it in the stream, or in kernels that have ended. */
XIO_EXPORT xio_status_t xio_quiet_on_stream(xio_world_t* world, xio_ctx_t ctx, xio_stream_t stream,
                                            const xio_stream_attr_t* attr);
/* xio_quiet_on_stream, and waits until every PE has come. */
XIO_EXPORT xio_status_t xio_barrier_all_on_stream(xio_world_t* world, xio_ctx_t ctx, xio_stream_t stream,
                                                  const xio_stream_attr_t* attr);
/* Waits until every PE has come. It completes no puts. */
XIO_EXPORT xio_status_t xio_sync_all_on_stream(xio_world_t* world, xio_ctx_t ctx, xio_stream_t stream,
                                               const xio_stream_attr_t* attr);
/* The same for every member of a team: a quiet, and all have come. */
XIO_EXPORT xio_status_t xio_team_barrier_on_stream(xio_world_t* world, xio_ctx_t ctx, xio_team_t team,
                                                   xio_stream_t stream, const xio_stream_attr_t* attr);
/* Waits until every member has come. It completes no puts. */
XIO_EXPORT xio_status_t xio_team_sync_on_stream(xio_world_t* world, xio_ctx_t ctx, xio_team_t team, xio_stream_t stream,
                                                const xio_stream_attr_t* attr);

/* Collectives, by every member; `dst` is complete when the stream has passed the call, and `src` may be changed. Here
 * block p of `src` goes to member p. */
XIO_EXPORT xio_status_t xio_alltoall_on_stream(xio_world_t* world, xio_ctx_t ctx, xio_team_t team, void* dst,
                                               const void* src, size_t bytes, xio_stream_t stream,
                                               const xio_stream_attr_t* attr);
/* The block of each member, to all. */
XIO_EXPORT xio_status_t xio_fcollect_on_stream(xio_world_t* world, xio_ctx_t ctx, xio_team_t team, void* dst,
                                               const void* src, size_t bytes, xio_stream_t stream,
                                               const xio_stream_attr_t* attr);
/* The block of member `root`, to all others. */
XIO_EXPORT xio_status_t xio_broadcast_on_stream(xio_world_t* world, xio_ctx_t ctx, xio_team_t team, void* dst,
                                                const void* src, size_t bytes, int root, xio_stream_t stream,
                                                const xio_stream_attr_t* attr);
/* As xio_fcollect, but every member may give another size. */
XIO_EXPORT xio_status_t xio_collect_on_stream(xio_world_t* world, xio_ctx_t ctx, xio_team_t team, void* dst,
                                              const void* src, size_t bytes, xio_stream_t stream,
                                              const xio_stream_attr_t* attr);
/* Blocks of any sizes. The four tables lie in memory that the GPU reads, and are read when the call is made there, so
 * that work before it in the stream may fill them in. */
XIO_EXPORT xio_status_t xio_alltoallv_on_stream(xio_world_t* world, xio_ctx_t ctx, xio_team_t team, void* dst,
                                                const size_t* dst_offsets, const size_t* dst_bytes, const void* src,
                                                const size_t* src_offsets, const size_t* src_bytes, xio_stream_t stream,
                                                const xio_stream_attr_t* attr);
/* Of `count` elements of `type`; dst may be src. */
XIO_EXPORT xio_status_t xio_reduce_on_stream(xio_world_t* world, xio_ctx_t ctx, xio_team_t team, xio_reduction_t op,
                                             xio_type_t type, void* dst, const void* src, size_t count,
                                             xio_stream_t stream, const xio_stream_attr_t* attr);

/* The same, of which each member gets its part: `src` has `count` elements for each member. */
XIO_EXPORT xio_status_t xio_reduce_scatter_on_stream(xio_world_t* world, xio_ctx_t ctx, xio_team_t team,
                                                     xio_reduction_t op, xio_type_t type, void* dst, const void* src,
                                                     size_t count, xio_stream_t stream, const xio_stream_attr_t* attr);

/* Storage. Reads `bytes` from `offset` on into `buf`, as xio_read of device/storage.hpp. */
XIO_EXPORT xio_status_t xio_read_on_stream(xio_world_t* world, xio_ctx_t ctx, void* buf, xio_storage_t storage,
                                           uint64_t offset, size_t bytes, xio_stream_t stream,
                                           const xio_stream_attr_t* attr);
/* Writes them, as xio_write. */
XIO_EXPORT xio_status_t xio_write_on_stream(xio_world_t* world, xio_ctx_t ctx, const void* buf, xio_storage_t storage,
                                            uint64_t offset, size_t bytes, xio_stream_t stream,
                                            const xio_stream_attr_t* attr);
/* All that was written before is durable, as by xio_storage_sync. */
XIO_EXPORT xio_status_t xio_storage_sync_on_stream(xio_world_t* world, xio_ctx_t ctx, xio_storage_t storage,
                                                   xio_stream_t stream, const xio_stream_attr_t* attr);

/* Local, any thread, also while a stream is captured: one load of the host's memory. *first is the status of the first
 * call on a stream that has failed on this ctx since it was made, cleared or recovered; XIO_OK: none has. */
XIO_EXPORT xio_status_t xio_ctx_failed(const xio_world_t* world, xio_ctx_t ctx, xio_status_t* first);
/* Local. Forgets the failures of the ctx's calls, those of kernels too: calls on streams are made again. No kernel may
 * be using the ctx. A queue that has failed and a team that is broken stay so (xio_ctx_recover, xio_team_create). */
XIO_EXPORT xio_status_t xio_ctx_clear(xio_world_t* world, xio_ctx_t ctx);
/* Local. Where the ctx lies in the GPU's memory, for kernels that get it as one word (those of Triton, numba and JAX)
 * and copy it from there. It is as xio_ctx_create returned it, until it is destroyed; xio_ctx_refresh does not change
 * it. */
XIO_EXPORT xio_status_t xio_ctx_device(const xio_world_t* world, xio_ctx_t ctx, const xio_ctx_t** out);
/* Local. The same of a team with channel 0, as xio_team_create returned it. */
XIO_EXPORT xio_status_t xio_team_device(const xio_world_t* world, xio_team_t team, const xio_team_t** out);
/* Local. The same team by another of its channels (0 .. xio_team_n_channels(team) - 1), as xio_team_channel of
 * device/team.hpp: for calls in another stream. */
XIO_EXPORT xio_status_t xio_team_with_channel(const xio_world_t* world, xio_team_t team, uint32_t channel,
                                              xio_team_t* out);
/* Local. Loads what calls on streams launch, which takes long the first time and may not be done in a capture: call it
 * before the first one. A program that captures nothing need not; its first call loads. */
XIO_EXPORT xio_status_t xio_stream_prepare(xio_world_t* world, xio_ctx_t ctx);

#ifdef __cplusplus
}
#endif
#endif
