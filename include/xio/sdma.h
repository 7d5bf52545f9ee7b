/* SPDX-License-Identifier: MIT */
/* Queues of copy engines for a program's own kernels, without a world: connect two places, create queues, pass one to
 * a kernel by value (device calls: xio/device/sdma_queue.hpp), destroy it. The host can ask an engine for copies, too.
 * Every call is local. Status, errors and units are as in xio.h.
 * Addresses are any that the engine reaches: memory of the source device, of a peer device, pinned host memory.
 *
 * Environment as for worlds: XIO_BACKEND, XIO_MODEL_GPU, XIO_MODEL_ENGINES, XIO_SDMA_ENGINES, XIO_MEMORY_MODE ... All
 * links and worlds of a process use the same source device. Calls may come from several threads, but for one link
 * create, destroy and disconnect only from one at a time. */
#ifndef XIO_SDMA_H
#define XIO_SDMA_H

#include "xio/xio.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A pair of places between which engines copy. */
typedef struct xio_sdma_link xio_sdma_link_t;

/* A kernel gets this by value. `view` points to memory of the device; `id` names the queue on the host. */
typedef struct xio_sdma_queue {
  void* view;
  uint64_t id;
} xio_sdma_queue_t;

/* Instead of a destination device. */
enum { XIO_SDMA_SAME_DEVICE = -1, XIO_SDMA_HOST = -2 };

/* How a link is made. Set `size` to sizeof the struct (or use the _INIT macro); 0 in a member: the default. */
typedef struct xio_sdma_link_attr {
  size_t size;
  int src_device;      /* its engines copy, and its kernels post */
  int dst_device;      /* a device, XIO_SDMA_SAME_DEVICE or XIO_SDMA_HOST */
  uint32_t timeout_ms; /* of every wait; 0 = XIO_TIMEOUT_MS, UINT32_MAX = for ever */
  uint32_t reserved;
  const char* engines; /* as XIO_SDMA_ENGINES; null = that */
} xio_sdma_link_attr_t;
#define XIO_SDMA_LINK_ATTR_INIT \
  { sizeof(xio_sdma_link_attr_t), 0, XIO_SDMA_SAME_DEVICE, 0, 0, NULL }

/* How a queue is made. `size` and 0 as above. */
typedef struct xio_sdma_queue_attr {
  size_t size;
  uint32_t ring_bytes;    /* a power of two, 256 .. 2 MiB; an op takes 64 to 192. 0 = 16 KiB */
  uint32_t single_thread; /* 1: one thread at a time posts and waits, which costs less; for more than one it is wrong */
} xio_sdma_queue_attr_t;
#define XIO_SDMA_QUEUE_ATTR_INIT \
  { sizeof(xio_sdma_queue_attr_t), 0, 0 }

/* Makes a link. attr may be null.
 *
 * Returns XIO_ERR_ARG for a device that is not there, XIO_ERR_UNSUPPORTED when neither hardware nor a software engine
 * can do it, XIO_ERR_STATE when the process is on another source device already. */
XIO_EXPORT xio_status_t xio_sdma_connect(const xio_sdma_link_attr_t* attr, xio_sdma_link_t** link);
/* Ends a link: destroys the queues that it still has, and ends the host's copies, as xio_sdma_queue_destroy does. The
 * link must not be used afterwards. */
XIO_EXPORT xio_status_t xio_sdma_disconnect(xio_sdma_link_t* link);

/* Lets copies read and write [base, base + bytes). On hardware the engine reaches all that its device reaches, and this
 * only checks; the software engine refuses memory that was not mapped. */
XIO_EXPORT xio_status_t xio_sdma_map(xio_sdma_link_t* link, void* base, size_t bytes);
/* Ends what xio_sdma_map began with `base`. No copy on that memory may be under way. XIO_ERR_ARG if nothing was mapped
 * there. */
XIO_EXPORT xio_status_t xio_sdma_unmap(xio_sdma_link_t* link, void* base);

/* Makes a queue of the link's engine and fills in *queue. attr may be null.
 *
 * Returns XIO_ERR_CONFIG for a wrong attribute, XIO_ERR_NO_MEMORY when the engine has no more queues. */
XIO_EXPORT xio_status_t xio_sdma_queue_create(xio_sdma_link_t* link, const xio_sdma_queue_attr_t* attr,
                                              xio_sdma_queue_t* queue);
/* Gives the queue back to the engine. No kernel may be using it. Its copies end, carried out or not: none of them reads
 * or writes memory any more when this returns. */
XIO_EXPORT xio_status_t xio_sdma_queue_destroy(xio_sdma_link_t* link, xio_sdma_queue_t queue);
/* Counts the ops posted to the queue since it was made. Kernels may be running. */
XIO_EXPORT xio_status_t xio_sdma_queue_stats(const xio_sdma_link_t* link, xio_sdma_queue_t queue,
                                             xio_engine_stats_t* out);
/* Fills in the first failure of the queue; info->status is XIO_OK when nothing has failed. */
XIO_EXPORT xio_status_t xio_sdma_queue_error(const xio_sdma_link_t* link, xio_sdma_queue_t queue,
                                             xio_error_info_t* info);

/* Copies `bytes` from src to dst by the link's engine, at any length and alignment, and waits for it. The areas must
 * not overlap. Kernels' queues are not ordered with it.
 *
 * Returns XIO_ERR_ARG for null, overlapping areas or sizes that the engine does not take (XIO_SDMA_GRANULE), and the
 * errors of xio_sdma_copy_wait. */
XIO_EXPORT xio_status_t xio_sdma_copy(xio_sdma_link_t* link, void* dst, const void* src, size_t bytes);
/* Starts such a copy without waiting for it; *request is for xio_sdma_copy_wait. Copies of one link end in the order in
 * which they were started. */
XIO_EXPORT xio_status_t xio_sdma_copy_start(xio_sdma_link_t* link, void* dst, const void* src, size_t bytes,
                                            xio_req_t* request);
/* Waits for a copy that was started. Returns XIO_ERR_ARG for a request of no copy, XIO_ERR_TIMEOUT after the link's
 * timeout, XIO_ERR_TRANSPORT when the engine stopped. After a timeout the engine may still copy, until
 * xio_sdma_disconnect has returned. */
XIO_EXPORT xio_status_t xio_sdma_copy_wait(xio_sdma_link_t* link, xio_req_t request);

#ifdef __cplusplus
}
#endif
#endif
