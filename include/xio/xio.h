/* SPDX-License-Identifier: MIT */
/* XIO host API, plain C. Every call answers an xio_status_t; xio_last_error() gives the sentence that says
 * what failed, on what, why, and what to do. Collective calls are made by every PE of the world, in the same
 * order. Calls on one world are not thread safe unless they say so. Device API: xio_device.hpp.
 *
 * A world belongs to the process that made it. In a child of fork() that has not called exec, every call of XIO returns
 * XIO_ERR_STATE (xio_my_pe and xio_n_pes -1, xio_ptr null), sends nothing and releases nothing, and so does what the
 * child's exit() runs; the parent's world goes on. A child may use XIO if its parent has not used it before the fork.
 */
#ifndef XIO_H
#define XIO_H

#include <stddef.h>
#include <stdint.h>

#include "xio/export.h"
#include "xio/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* PEs that talk to each other: a bootstrap, a symmetric heap and its contexts. Several may live at once. */
typedef struct xio_world xio_world_t;

/* What a kernel gets, by value. `view` points to memory of the device; `id` names it on the host. The rest repeats what
 * every op looks at, so that a kernel has it among its arguments and loads nothing: it is not for programs, which leave
 * it as xio_ctx_create filled it. */
#define XIO_CTX_NEAR 8
typedef struct xio_ctx {
  void* view;
  uint64_t id;
  void* world; /* its view on the device */
  void* arena; /* what xio_malloc hands out, and its size */
  uint64_t arena_bytes;
  uint64_t bulk_bytes;
  uint32_t my_pe;
  uint32_t n_pes;
  uint32_t flags;
  uint32_t near_mask;       /* bit i: near[i] is not null */
  void* near[XIO_CTX_NEAR]; /* arena of PE i if loads and stores are its way for all that is not bulk, else null */
} xio_ctx_t;

/* An opened drive or file, passed to kernels by value. */
typedef struct xio_storage {
  void* view;
  uint64_t id;
} xio_storage_t;

/* One op in flight: ring and ticket. 0 = complete. Need never be consumed. */
typedef uint64_t xio_req_t;

enum { XIO_SIGNAL_SET = 0, XIO_SIGNAL_ADD = 1 };
enum { XIO_CMP_EQ = 0, XIO_CMP_NE, XIO_CMP_GT, XIO_CMP_GE, XIO_CMP_LT, XIO_CMP_LE };

typedef enum xio_route { XIO_ROUTE_AUTO = 0, XIO_ROUTE_DIRECT, XIO_ROUTE_RDMA, XIO_ROUTE_SDMA } xio_route_t;

/* Set `size` to sizeof the struct (or use the _INIT macro): it tells the library which fields you know. 0 in
 * any other field means: take the environment, then the default. */
typedef struct xio_init_attr {
  size_t size;
  const char* bootstrap; /* "mpi", "tcp", "ucx", "local" or null */
  size_t heap_bytes;     /* symmetric heap per PE; must be equal on every PE */
  uint32_t timeout_ms;   /* UINT32_MAX = wait for ever */
  uint32_t reserved;
  const char* tcp_root; /* with "tcp": host:port, */
  int tcp_rank;         /* and rank and size if tcp_size > 0 */
  int tcp_size;
} xio_init_attr_t;
#define XIO_INIT_ATTR_INIT \
  { sizeof(xio_init_attr_t), NULL, 0, 0, 0, NULL, 0, 0 }

typedef struct xio_ctx_attr {
  size_t size;
  xio_route_t route;   /* forces the way of every op; AUTO: XIO_ROUTE, then per op */
  uint32_t ring_depth; /* entries of each RDMA and SDMA ring, a power of two; 0 = XIO_RING_DEPTH */
  uint32_t pool;       /* contexts for xio_wg_ctx_create; 0 = XIO_CTX_POOL */
  uint32_t immediates; /* of each PE that the ctx holds for xio_imm_test, a power of two 2 .. 65536; 0 = no immediates.
                          Takes (256 + 8 * immediates) bytes of the symmetric heap for each PE */
  size_t bulk_bytes;   /* with AUTO: non-blocking copies from here on may take a copy engine */
} xio_ctx_attr_t;
#define XIO_CTX_ATTR_INIT \
  { sizeof(xio_ctx_attr_t), XIO_ROUTE_AUTO, 0, 0, 0, 0 }

enum {
  XIO_STORAGE_READ_ONLY = 1, /* writes are refused */
  XIO_STORAGE_CREATE = 2,    /* file: create it if it is not there */
  XIO_STORAGE_TRUNCATE = 4   /* file: start empty; with bytes = 0 it stays empty */
};
typedef struct xio_storage_attr {
  size_t size;
  uint32_t flags;
  uint32_t queues;       /* I/O queues, 0 = 1 */
  uint32_t depth;        /* entries of each, a power of two; 0 = XIO_NVME_DEPTH */
  uint32_t block_bytes;  /* file: 512 .. 65536, a power of two; 0 = 512. Drive: 0, or what it has */
  uint64_t bytes;        /* file: capacity wanted; the file grows to it. 0 = as it is. A file whose size is no
                            multiple of the block is padded with zeroes in the last block when read; a block device
                            has its whole blocks */
  uint64_t stripe_bytes; /* several controllers: bytes of a stripe, a power of two from a block up; 0 = 64 KiB */
} xio_storage_attr_t;
/* What xio_storage_code returns for an op whose code is no longer known; no drive has it. */
#define XIO_STORAGE_CODE_UNKNOWN 0xffffu
#define XIO_STORAGE_ATTR_INIT \
  { sizeof(xio_storage_attr_t), 0, 0, 0, 0, 0, 0 }

/* Statistics of one engine of a ctx or storage. */
typedef struct xio_engine_stats {
  uint64_t ops;       /* user ops posted */
  uint64_t doorbells; /* doorbells rung */
  uint64_t bytes;     /* payload bytes */
} xio_engine_stats_t;

/* What failed first on a ctx. */
typedef struct xio_error_info {
  xio_status_t status;
  const char* engine; /* "rdma", "sdma", "nvme", "device" (a call that no engine was given) or "" */
  uint32_t queue;     /* QPN, SDMA queue or NVMe queue id */
  uint32_t vendor;    /* the device's own code (CQE syndrome, SCT<<8|SC) */
  uint64_t ticket;    /* the op, counted from the ring's first */
  char sentence[256]; /* all that, why, and what to do about it; "" when nothing failed */
} xio_error_info_t;

/* The sentence of this thread's last failed call; never null, "" if none. Exit handlers may ask, too. */
XIO_EXPORT const char* xio_last_error(void);
XIO_EXPORT void xio_version(int* major, int* minor, int* patch);

/* Collective. attr may be null. Where a launcher started several tasks and nothing connects them, a world of this one
 * alone is refused with XIO_ERR_CONFIG; XIO_BOOTSTRAP=local asks for it.
 *
 * MPI: started by mpirun, or with the bootstrap "mpi", xio_init starts MPI if nobody has, and ends it at exit. MPI_Init
 * may then not be called any more: Open MPI ends the job, since MPI is started once in a process. A program that uses
 * MPI itself calls MPI_Init before xio_init (or asks MPI_Initialized first), and xio_finalize before MPI_Finalize. With
 * the bootstraps "tcp", "local" and, under xiorun, "ucx" XIO has nothing to do with MPI.
 *
 * GPU: the calling thread's device is kept where it is not 0, for a thread that chose none has 0; else the PEs of a
 * machine take its devices in turn, and the calling thread's device is XIO's afterwards. XIO_GPU_DEVICE=current keeps 0
 * as well. */
XIO_EXPORT xio_status_t xio_init(const xio_init_attr_t* attr, xio_world_t** world);
/* Collective. No kernel may be using the world; where one of this process still runs it is waited for, for the world's
 * timeout, and then XIO_ERR_STATE, with nothing freed here. (On a GPU kernels of non-blocking streams are waited for
 * without an end.) Closes what is still open. The world must not be used afterwards, also when the answer is an error
 * (a PE died): what is local was freed all the same. Null is an error. */
XIO_EXPORT xio_status_t xio_finalize(xio_world_t* world);
XIO_EXPORT int xio_my_pe(const xio_world_t* world); /* -1 if world is null */
XIO_EXPORT int xio_n_pes(const xio_world_t* world);

/* Symmetric memory: collective, the same size on every PE, the same offset everywhere. At least 128-byte
 * aligned. A size of 0 gives null. When one PE has no room every PE gets XIO_ERR_NO_MEMORY; when sizes or alignments
 * differ every PE gets XIO_ERR_NOT_SYMMETRIC, and nothing is allocated. alignment: a power of two, at most that of the
 * heap itself (2 MiB on the host platform). */
XIO_EXPORT xio_status_t xio_malloc(xio_world_t* world, size_t bytes, void** out);
XIO_EXPORT xio_status_t xio_calloc(xio_world_t* world, size_t count, size_t bytes, void** out);
XIO_EXPORT xio_status_t xio_align(xio_world_t* world, size_t alignment, size_t bytes, void** out);
/* Collective, the same block on every PE (XIO_ERR_NOT_SYMMETRIC on every PE if not). Null is allowed. XIO_ERR_STATE
 * if it was freed already, XIO_ERR_ARG if it is not a block's start, XIO_ERR_NOT_SYMMETRIC if it is not in the heap at
 * all; all else stays as it was. No kernel may be using it. */
XIO_EXPORT xio_status_t xio_free(xio_world_t* world, void* block);
/* Where PE pe's copy of a symmetric address can be loaded and stored from here, or null. Local. */
XIO_EXPORT void* xio_ptr(const xio_world_t* world, const void* symmetric, int pe);

/* Local memory that engines may read and write (sources and destinations that are not symmetric), at most 63 pieces at
 * a time; all of it must be there until it is unregistered. XIO_ERR_ARG if nothing is mapped at part of it now, or what
 * may not be read and written. Local. */
XIO_EXPORT xio_status_t xio_mem_register(xio_world_t* world, void* base, size_t bytes);
XIO_EXPORT xio_status_t xio_mem_unregister(xio_world_t* world, void* base);

/* Collective (queue pairs are exchanged), with the same attributes on every PE. XIO_ERR_NO_ROUTE names the PE that
 * cannot be reached as asked. */
XIO_EXPORT xio_status_t xio_ctx_create(xio_world_t* world, const xio_ctx_attr_t* attr, xio_ctx_t* ctx);
/* Collective. No kernel may be using it, nor be given it or a copy of it afterwards: what `view` points to is gone, and
 * kernels do not ask whether it is there.
 * It waits for the other PEs, for the world's timeout at most, and then stops this PE's side, which needs nobody's
 * help: queue pairs and copy queues are taken from their devices, and commands to storages that kernels gave through
 * this ctx end; a storage whose commands do not end within a second is stopped, and must be opened again. So once this
 * call has returned, whatever it returns, no op of the ctx reads or writes this PE's buffers, XIO_ERR_TIMEOUT or not,
 * and its engines write to no peer; docs/ordering.md says what remains for peers that load and store. If the others
 * were silent, dead or in another call the ctx is stopped and stays in the list: xio_ctx_error explains it, ops return
 * XIO_ERR_STATE or the ring's first failure, and it can be recovered, or destroyed again. */
XIO_EXPORT xio_status_t xio_ctx_destroy(xio_world_t* world, xio_ctx_t ctx);
/* Collective. Makes a ctx usable again after a failure or timeout, which are permanent without it. No kernel of any PE
 * may be using it, or be in a barrier of the world. As xio_ctx_destroy it stops this PE's side, with the
 * same promise whatever it returns. Then all PEs make new queues: in the same place, so that every copy of the
 * xio_ctx_t stays good. Errors are forgotten, inboxes of immediates are empty, contexts of the pool are free, and the
 * next barrier is the same for all PEs. Requests of before return an error, never XIO_OK. The heap, registered memory
 * and other ctxs stay as they are. An error (the others are dead or silent: within the world's timeout; or could not
 * make queues): the ctx is stopped. Where a collective call has failed for lack of a PE, every later one does, this one
 * too: then only xio_finalize is left. XIO_ERR_STATE after very many recoveries (32768 by the number of rings): create
 * another ctx. */
XIO_EXPORT xio_status_t xio_ctx_recover(xio_world_t* world, xio_ctx_t ctx);
/* Which way a non-blocking copy of that size to that PE goes: "direct", "rdma", "sdma". Null if ctx or pe is wrong. */
XIO_EXPORT const char* xio_route_name(xio_world_t* world, xio_ctx_t ctx, int pe, size_t bytes);
/* Counters since creation; route is XIO_ROUTE_RDMA or XIO_ROUTE_SDMA. */
XIO_EXPORT xio_status_t xio_ctx_stats(xio_world_t* world, xio_ctx_t ctx, xio_route_t route, xio_engine_stats_t* out);
/* The last failure of kernels on this ctx: of a call (engine "device": a wrong argument, a wait that ended by the
 * deadline) or of an engine. It stays until the next failure; quiet, and calls that succeed, change nothing.
 * info->status = XIO_OK when nothing has failed. */
XIO_EXPORT xio_status_t xio_ctx_error(xio_world_t* world, xio_ctx_t ctx, xio_error_info_t* info);

/* Local; at most 16 are open at a time. name: "file:PATH" (software controller over a file;
 * "file:PATH?block=4096&size=1G" says block_bytes and bytes of that file in the name, which goes before attr; a path
 * with any letters stands in quotes, file:"PATH"),
 * "nvme:BDF/NSID" (a drive bound to vfio-pci), or up to 8 such names with commas between: one storage in stripes over
 * all of them (see stripe_bytes). "kmod:/dev/nvmeXnY" is kept for a queue of a drive that Linux goes on using, which no
 * kernel of today lends: XIO_ERR_UNSUPPORTED, and the sentence says what works for that drive. attr may be null. */
XIO_EXPORT xio_status_t xio_storage_open(xio_world_t* world, const char* name, const xio_storage_attr_t* attr,
                                         xio_storage_t* storage);
/* Local. No kernel may be using it any more. Ops that nobody waited for are ended, carried out or not, before this
 * returns, and their memory is free for other use. */
XIO_EXPORT xio_status_t xio_storage_close(xio_world_t* world, xio_storage_t storage);
/* In whole blocks: the last one of a file that ends inside of it counts, and holds zeroes from there on. */
XIO_EXPORT xio_status_t xio_storage_size(xio_world_t* world, xio_storage_t storage, uint64_t* bytes,
                                         uint32_t* block_bytes);
XIO_EXPORT xio_status_t xio_storage_stats(xio_world_t* world, xio_storage_t storage, xio_engine_stats_t* out);

/* Collective; waits for every PE's host thread. Says nothing about ops of kernels. */
XIO_EXPORT xio_status_t xio_barrier_all(xio_world_t* world);

#ifdef __cplusplus
}
#endif
#endif
