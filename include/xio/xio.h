/* SPDX-License-Identifier: MIT */
/* XIO host API, plain C: worlds, symmetric memory, contexts, storage. The functions for kernels are in xio_device.hpp.
 *
 * Conventions of every call here:
 *   Status.     It returns xio_status_t. After anything but XIO_OK xio_last_error() gives one sentence with what
 *               failed, on what, why, and what to do. Outputs are written on success, unless the call says so.
 *   Collective. A call so marked is made by every PE of the world, in the same order, with matching arguments. It waits
 *               for the other PEs, at most for the world's timeout: then XIO_ERR_TIMEOUT, or XIO_ERR_PEER if one died.
 *   Local.      A call so marked waits for no other PE.
 *   Threads.    Calls on one world come from one thread at a time. xio_last_error, xio_version and xio_status_name may
 *               be called by any thread at any time. Different worlds may be used by different threads.
 *   Parameters. `world` is what xio_init made; ctx, storage and team are handles of that world. `pe` is the number of a
 *               PE in the world. `attr` says how a thing is made; null, where allowed, is the _INIT macro's. The last
 *               pointers (`out`, `info`, `table`, or named after what is made) are where the result is stored.
 *   Units.      Sizes and offsets are bytes, times milliseconds; PEs are counted from 0. Bytes of memory are size_t;
 *               offsets and sizes of drives, and counts that only grow, are uint64_t on every machine.
 *   Order.      Host calls say nothing about ops of kernels unless they say so; docs/ordering.md has the contract.
 *
 * Any call may also return XIO_ERR_ARG (a null world or output, a handle that this world did not create),
 * XIO_ERR_CONFIG (a struct whose `size` is not set), XIO_ERR_STATE (a handle that was destroyed or closed, a world
 * after xio_finalize, or any call in a child of fork), XIO_ERR_NO_MEMORY and XIO_ERR_INTERNAL.
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
#include "xio/version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A group of PEs (processing elements: one process each, with one GPU) that talk to each other: a bootstrap, a
 * symmetric heap and contexts. Several worlds may live in one process at once. */
typedef struct xio_world xio_world_t;

/* How many mapped peers a xio_ctx_t names itself: the length of `mapped`. */
#define XIO_CTX_MAPPED 8

/* A context: what a kernel gets, by value, and every device call takes. `view` points to memory of the device; `id`
 * names the context on the host. The other members repeat what every op needs first, so that a kernel finds it among
 * its arguments. They are not for programs, which leave them as xio_ctx_create filled them; they change between
 * versions. */
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
  uint32_t mapped_mask;         /* bit i: the arena of PE mapped_first + i is there */
  void* mapped[XIO_CTX_MAPPED]; /* arenas of PEs mapped_first .. mapped_first + 7, PE p at p modulo 8, if loads and
                                 * stores are the way there for all that is not bulk, else null */
  uint32_t mapped_first;        /* PEs of the own node begin here, or those around this one where they are more */
  uint32_t layout;              /* of these words and what they point to; the host refuses kernels of another one */
} xio_ctx_t;

/* An opened drive or file, or several as one. It is passed to kernels by value; its members are not for programs. */
typedef struct xio_storage {
  void* view;
  uint64_t id;
} xio_storage_t;

/* Names one op that a kernel has posted (its ring and its ticket), for xio_wait, xio_test and xio_wait_source. 0 says
 * that the op is complete already. A program may drop it: it holds nothing. */
typedef uint64_t xio_req_t;

/* How a signal changes its word: it stores the value, or adds it. */
typedef enum xio_signal_change XIO_ENUM_OF_INT { XIO_SIGNAL_SET = 0, XIO_SIGNAL_ADD = 1 } xio_signal_op_t;
/* How a wait compares the word (left) with the value (right): ==, !=, >, >=, <, <=. */
typedef enum xio_cmp XIO_ENUM_OF_INT {
  XIO_CMP_EQ = 0,
  XIO_CMP_NE,
  XIO_CMP_GT,
  XIO_CMP_GE,
  XIO_CMP_LT,
  XIO_CMP_LE
} xio_cmp_t;

/* The way of an op to another PE: loads and stores of the GPU (direct), a NIC (rdma), a copy engine (sdma). AUTO leaves
 * the choice to the library, per PE and size. */
typedef enum xio_route XIO_ENUM_OF_INT {
  XIO_ROUTE_AUTO = 0,
  XIO_ROUTE_DIRECT,
  XIO_ROUTE_RDMA,
  XIO_ROUTE_SDMA
} xio_route_t;

/* A variable of docs/environment.md, for one world: name as "XIO_RDMA_QUEUES", value as in the environment. An empty
 * value stands for the variable's default. */
typedef struct xio_option {
  const char* name;
  const char* value;
} xio_option_t;

/* Names a world before it is made: xio_get_unique_id. A program passes these bytes to every PE in any way it has. They
 * hold the key that the PEs prove to each other: a process that can read them can join. */
typedef struct xio_unique_id {
  unsigned char bytes[128];
} xio_unique_id_t;

/* Binary interfaces of MPI: what an MPI_Comm is. MPICH's is that of Intel MPI, MVAPICH and others, too. */
typedef enum xio_mpi_kind { XIO_MPI_NONE = 0, XIO_MPI_OPEN_MPI = 1, XIO_MPI_MPICH = 2 } xio_mpi_kind_t;

/* How a world is made. Set `size` to sizeof the struct (or use the _INIT macro): it tells the library which members
 * your program knows. 0 or null in any other member: the environment's value, else the default (docs/environment.md).
 */
typedef struct xio_init_attr {
  size_t size;
  const char* bootstrap; /* how PEs find each other: "mpi", "tcp", "ucx" or "local" (a world of one) */
  size_t heap_bytes;     /* of the symmetric heap of each PE; must be equal on every PE */
  uint32_t timeout_ms;   /* of every wait, of the host and of kernels; UINT32_MAX: none */
  uint32_t reserved;     /* 0 */
  const char* tcp_root;  /* with "tcp": host:port where PE 0 listens */
  int tcp_rank;          /* with "tcp" and tcp_size > 0: this PE's number, */
  int tcp_size;          /* and how many there are */
  /* Variables for this world. They go before the environment, and the members above before them; of one name the last
   * counts. null: none. xio_init copies them. XIO_ERR_CONFIG for a name that is no variable, for a value that the
   * variable refuses, and for XIO_HOST_*, which are of the process. XIO_LOG_LEVEL is of the process too, and changes
   * here what it logs from now on. Where a variable has to be alike on every PE, so has the option. */
  const xio_option_t* options;
  size_t option_count;
  /* A world by unique id, with or without a launcher. bootstrap is null or "tcp" then; tcp_* and XIO_TCP_* do not
   * count. */
  const xio_unique_id_t* unique_id; /* the same bytes on every PE */
  int unique_rank;                  /* this PE's number, */
  int unique_size;                  /* and how many there are */
  /* A world of the ranks of a communicator: xio_init_mpi of xio/mpi.h sets these. MPI is started already, and bootstrap
   * is null or "mpi". */
  const void* mpi_comm;    /* where the MPI_Comm is; xio_init reads it, and duplicates the communicator */
  uint32_t mpi_comm_bytes; /* sizeof(MPI_Comm) */
  uint32_t mpi_kind;       /* xio_mpi_kind_t of the mpi.h that the program was compiled with */
} xio_init_attr_t;
#define XIO_INIT_ATTR_INIT \
  { sizeof(xio_init_attr_t), NULL, 0, 0, 0, NULL, 0, 0, NULL, 0, NULL, 0, 0, NULL, 0, 0 }

/* How a context is made. `size` and 0 as in xio_init_attr_t; the same values on every PE. */
typedef struct xio_ctx_attr {
  size_t size;
  xio_route_t route;   /* forces the way of every op; AUTO: that of XIO_ROUTE, else chosen per op */
  uint32_t ring_depth; /* entries of each RDMA and SDMA ring, a power of two; 0 = XIO_RING_DEPTH */
  uint32_t pool;       /* contexts for xio_ctx_create_wg; 0 = XIO_CTX_POOL */
  uint32_t immediates; /* of each PE that the ctx holds for xio_imm_test, a power of two 2 .. 65536; 0 = no immediates.
                          Takes (256 + 8 * immediates) bytes of the symmetric heap for each PE */
  size_t bulk_bytes;   /* with AUTO: non-blocking copies from here on may take a copy engine */
} xio_ctx_attr_t;
#define XIO_CTX_ATTR_INIT \
  { sizeof(xio_ctx_attr_t), XIO_ROUTE_AUTO, 0, 0, 0, 0 }

/* Bits of xio_storage_attr_t::flags. */
enum {
  XIO_STORAGE_READ_ONLY = 1, /* writes are refused */
  XIO_STORAGE_CREATE = 2,    /* file: create it if it is not there. block: what it holds may go */
  XIO_STORAGE_TRUNCATE = 4,  /* file: start empty; with bytes = 0 it stays empty */
  XIO_STORAGE_DIRECT = 8     /* file, block: whole pages (4096 bytes) go past the page cache, where that can be */
};
/* How a storage is opened. `size` and 0 as in xio_init_attr_t. */
typedef struct xio_storage_attr {
  size_t size;
  uint32_t flags;        /* XIO_STORAGE_READ_ONLY ... */
  uint32_t queues;       /* I/O queue pairs of each controller, 0 = 1 */
  uint32_t depth;        /* entries of each, a power of two; 0 = XIO_NVME_DEPTH */
  uint32_t block_bytes;  /* file: 512 .. 65536, a power of two; 0 = 512. Drive: 0, or what it has */
  uint64_t bytes;        /* file: size wanted, exactly; a shorter file grows to it. 0 = as it is */
  uint64_t stripe_bytes; /* several controllers: bytes of a stripe, a power of two from a block up; 0 = 64 KiB */
} xio_storage_attr_t;
/* xio_storage_code returns this for an op whose code is no longer known; no drive has it. */
#define XIO_STORAGE_CODE_UNKNOWN 0xffffu
#define XIO_STORAGE_ATTR_INIT \
  { sizeof(xio_storage_attr_t), 0, 0, 0, 0, 0, 0 }

/* Counts of one engine of a ctx, queue or storage since it was made. Set `size` as in xio_init_attr_t: the library
 * fills in the members that both know. */
typedef struct xio_engine_stats {
  size_t size;
  uint64_t ops;       /* ops of the user posted */
  uint64_t doorbells; /* doorbells rung */
  uint64_t bytes;     /* payload bytes */
} xio_engine_stats_t;
#define XIO_ENGINE_STATS_INIT \
  { sizeof(xio_engine_stats_t), 0, 0, 0 }

/* A failure in full: what xio_ctx_error and xio_sdma_queue_error fill in. `size` as in xio_engine_stats_t. */
typedef struct xio_error_info {
  size_t size;
  xio_status_t status;
  const char* engine; /* "rdma", "sdma", "nvme", "device" (a call that no engine was given) or "" */
  uint32_t queue;     /* QPN, SDMA queue or NVMe queue id */
  uint32_t vendor;    /* the device's own code (CQE syndrome, SCT<<8|SC) */
  uint64_t ticket;    /* the op, counted from the ring's first */
  char sentence[256]; /* all that, why, and what to do about it; "" when nothing failed */
} xio_error_info_t;
#define XIO_ERROR_INFO_INIT \
  { sizeof(xio_error_info_t), XIO_OK, "", 0, 0, 0, "" }

/* Local, any thread. Returns the sentence of this thread's last failed call: never null, "" if none has failed. It is
 * valid until this thread's next failed call. Exit handlers may call it, too. */
XIO_EXPORT const char* xio_last_error(void);
/* Local, any thread. The version of the library that is loaded. Each pointer may be null. */
XIO_EXPORT void xio_version(int* major, int* minor, int* patch);

/* Local, any thread. The XIO_ABI_VERSION of the library that is loaded: a program in another language, which has
 * declared XIO's calls by itself, goes on where it is the one that it was written for. Structs with a member `size` may
 * have grown, and xio_ctx_t may have other members: ask xio_size_of. */
XIO_EXPORT uint32_t xio_abi_version(void);
/* Local, any thread. The bytes of a struct of these headers in the library that is loaded, by its name, such as
 * "xio_ctx_t"; 0: it knows none of that name. */
XIO_EXPORT size_t xio_size_of(const char* type);

/* Makes the id of one world. Local; one PE of that world calls it, of any rank, and every PE gives the id to xio_init.
 * From now on this process listens on every interface for the others, until its own xio_init with the id returns. It
 * keeps the last 16 ids that no world has taken, or as many as XIO_TCP_PORTS has ports; a further one releases the
 * oldest. XIO_TCP_INTERFACE chooses the addresses that the id holds.
 * Counts as a use of XIO: a child forked afterwards cannot use it.
 *
 * XIO_ERR_ARG: id is null. XIO_ERR_CONFIG: an environment variable is wrong, or XIO_TCP_INTERFACE leaves no interface.
 * XIO_ERR_IO: no port or file descriptor is left. */
XIO_EXPORT xio_status_t xio_get_unique_id(xio_unique_id_t* id);

/* Makes a world. Collective: every PE of the job calls it. attr may be null.
 *
 * The PEs come from the launcher (mpirun, srun, xiorun), or from the members of attr. Where a launcher started several
 * tasks and nothing connects them, a world of this task alone is refused with XIO_ERR_CONFIG; XIO_BOOTSTRAP=local asks
 * for it.
 *
 * Unique id: a rank that is there twice, another size and a rank that is too large are XIO_ERR_CONFIG on every PE that
 * has come. A PE that comes when a world of this id was made or given up, or when the maker's process has ended, gets
 * XIO_ERR_PEER at once. Where the maker does not call xio_init all wait for the world's timeout.
 *
 * Communicator: one of another MPI than the process has started is XIO_ERR_CONFIG, MPI_COMM_NULL and one between two
 * groups XIO_ERR_ARG, MPI that is not started XIO_ERR_STATE.
 *
 * MPI: started by mpirun, or with the bootstrap "mpi", xio_init starts MPI if nobody has, and ends it at exit. MPI_Init
 * may then not be called any more: Open MPI ends the job, since MPI is started once in a process. A program that uses
 * MPI itself calls MPI_Init before xio_init (or asks MPI_Initialized first), and xio_finalize before MPI_Finalize. With
 * the bootstraps "tcp", "local" and, under xiorun, "ucx" XIO has nothing to do with MPI.
 *
 * GPU: the calling thread's device is kept where it is not 0, for a thread that chose none has 0; else the PEs of a
 * machine take its devices in turn, and the calling thread's device is XIO's afterwards. XIO_GPU_DEVICE=current keeps 0
 * as well.
 *
 * Returns XIO_ERR_CONFIG (an attribute, a variable or the launcher's values are not understood or differ between PEs),
 * XIO_ERR_UNSUPPORTED (this build or machine lacks what was asked for), XIO_ERR_NO_ROUTE (a PE cannot be reached),
 * XIO_ERR_AUTH (a PE does not have the job's key), XIO_ERR_PEER, XIO_ERR_TIMEOUT, XIO_ERR_NO_MEMORY (heap, threads,
 * files), XIO_ERR_STATE (the program's kernels were compiled without an engine that the world needs), XIO_ERR_IO.
 * *world is null then. */
XIO_EXPORT xio_status_t xio_init(const xio_init_attr_t* attr, xio_world_t** world);
/* Ends a world. Collective. Closes what is still open: storages, contexts, registrations, the heap.
 *
 * No kernel may be using the world. Where one of this process still runs, it is waited for, for the world's timeout;
 * then XIO_ERR_STATE, and nothing is freed here. (On a GPU kernels of non-blocking streams are waited for without an
 * end.) The world must not be used afterwards, also when an error is returned because a PE died: what is local was
 * freed all the same. XIO_ERR_ARG: world is null. */
XIO_EXPORT xio_status_t xio_finalize(xio_world_t* world);
/* Ends the program of every PE at once: prints one line with `text` (may be null) on standard error, writes out open
 * files, and does not return. No handler of atexit runs, and kernels are not waited for. Not collective; any thread.
 *
 * `code` is the exit status of this process and, below mpirun and xiorun, that of the launcher: 1 to 255; any other
 * number becomes 1, because launchers take 0 for a PE that is done, and let the others run. Below MPI this is
 * MPI_Abort; else this process ends, and xiorun or torchrun, which see it, end the others. Slurm does so with srun
 * --kill-on-bad-exit. Without any of them the others return XIO_ERR_PEER from their next collective call.
 *
 * Returns only XIO_ERR_ARG (world is null) or XIO_ERR_STATE (it was finalized). */
XIO_EXPORT xio_status_t xio_abort(xio_world_t* world, int code, const char* text);
/* Local. This PE's number, 0 .. n_pes - 1; -1 if world is null. */
XIO_EXPORT int xio_my_pe(const xio_world_t* world);
/* Local. How many PEs the world has; -1 if world is null. */
XIO_EXPORT int xio_n_pes(const xio_world_t* world);

/* Allocates `bytes` of symmetric memory: a block at the same place of the heap of every PE, which every PE may name in
 * puts, gets, atomics and signals. Collective, with the same size on every PE. The block is at least 128-byte aligned;
 * its contents are not defined. 0 bytes give null.
 *
 * Returns XIO_ERR_NO_MEMORY on every PE when one of them has no room, XIO_ERR_NOT_SYMMETRIC on every PE when sizes or
 * alignments differ; nothing is allocated then. */
XIO_EXPORT xio_status_t xio_malloc(xio_world_t* world, size_t bytes, void** out);
/* Allocates count * bytes as xio_malloc does; they read as zeroes on every PE when the call returns. Collective.
 *
 * Also XIO_ERR_ARG on every PE when the product is no size_t. */
XIO_EXPORT xio_status_t xio_calloc(xio_world_t* world, size_t count, size_t bytes, void** out);
/* Allocates as xio_malloc does, with an alignment: a power of two, at most that of the heap itself (2 MiB on the host
 * platform), else XIO_ERR_ARG. Collective. */
XIO_EXPORT xio_status_t xio_align(xio_world_t* world, size_t alignment, size_t bytes, void** out);
/* Frees a block of xio_malloc, xio_calloc or xio_align. Collective, the same block on every PE. Null is allowed. No
 * kernel may be using it, on any PE.
 *
 * Returns XIO_ERR_NOT_SYMMETRIC on every PE if the blocks differ, and if it is not in the heap at all; XIO_ERR_STATE if
 * it was freed already; XIO_ERR_ARG if it is not a block's start. Nothing changes then. */
XIO_EXPORT xio_status_t xio_free(xio_world_t* world, void* block);
/* Frees of `*count` blocks those that every PE names, in any order. Collective, for programs in which a garbage
 * collector drops blocks on each PE in its own time. The others stay allocated and in the list, for a later call:
 * *count of them. No kernel may be using what is freed, on any PE.
 *
 * Returns XIO_ERR_NOT_SYMMETRIC, XIO_ERR_STATE and XIO_ERR_ARG as xio_free does, on every PE; nothing is freed then. */
XIO_EXPORT xio_status_t xio_free_dropped(xio_world_t* world, void** blocks, size_t* count);
/* Local. Where PE pe's copy of a symmetric address can be loaded and stored from here; null if it cannot be (another
 * machine, no mapping), or if the address is not symmetric. Valid until xio_free or xio_finalize. */
XIO_EXPORT void* xio_ptr(const xio_world_t* world, const void* symmetric, int pe);
/* Local. Fills in what xio_ptr returns for every PE, as a table for kernels that load and store by themselves (Triton's
 * and others that take addresses as integers). `table` is host memory of n_pes words; table[pe] is the address, or 0
 * where xio_ptr returns null.
 *
 * Returns XIO_ERR_ARG (a null pointer) or XIO_ERR_NOT_SYMMETRIC; the table is as before then. */
XIO_EXPORT xio_status_t xio_ptr_table(const xio_world_t* world, const void* symmetric, int64_t* table);

/* Lets engines read and write [base, base + bytes): memory of this process, of the host or of the GPU, that is not
 * symmetric and that ops of kernels name as their local side. At most 63 pieces at a time. All of it must stay mapped
 * until it is unregistered. Local.
 *
 * This makes no memory readable for kernels. Ops of the direct route are loads and stores of the kernel, which must
 * reach base itself: memory of xio_mem_alloc, or of the GPU's runtime; on AMD GPUs not memory of malloc.
 *
 * Returns XIO_ERR_ARG if nothing is mapped at part of it, or what may not be read and written; XIO_ERR_UNSUPPORTED if
 * an engine of this world cannot reach such memory; XIO_ERR_NO_MEMORY if there are 63 already or a limit on locked
 * memory is reached. */
XIO_EXPORT xio_status_t xio_mem_register(xio_world_t* world, void* base, size_t bytes);
/* Ends the registration of the piece that begins at `base`. Local. No op on it may be under way; later ops that name it
 * return XIO_ERR_NOT_REGISTERED.
 *
 * Returns XIO_ERR_ARG if base is not that of a registered piece. */
XIO_EXPORT xio_status_t xio_mem_unregister(xio_world_t* world, void* base);

/* Makes a context: the queues by which kernels of this PE reach the others. Collective (queue pairs are exchanged),
 * with the same attributes on every PE. attr may be null. Kernels of any number may use one context at once.
 *
 * Where RDMA devices have failed for good and no ctx with RDMA is left, it opens them anew.
 *
 * Returns XIO_ERR_NO_ROUTE, with the PE that cannot be reached as asked; XIO_ERR_CONFIG when attributes are wrong or
 * differ; XIO_ERR_STATE when kernels were compiled for another layout of a ctx; XIO_ERR_NO_MEMORY,
 * XIO_ERR_UNSUPPORTED, XIO_ERR_PEER, XIO_ERR_TIMEOUT. */
XIO_EXPORT xio_status_t xio_ctx_create(xio_world_t* world, const xio_ctx_attr_t* attr, xio_ctx_t* ctx);
/* Ends a context. Collective. No kernel may be using it. Calls of a kernel that is given it or a copy of it afterwards
 * return XIO_ERR_STATE, where docs/ordering.md, "Contexts that are gone", says so; what loads and stores do then is not
 * defined. It waits for the other PEs, for the world's timeout at most, and then stops this PE's side, for which it
 * needs no other PE: queue pairs and copy queues are taken from their devices, and commands to storages that kernels
 * gave through this ctx end; a storage whose commands do not end within a second is stopped, and must be opened again.
 * So once this call has returned, with any status, no op of the ctx reads or writes this PE's buffers, XIO_ERR_TIMEOUT
 * or not, and its engines write to no peer; docs/ordering.md says what remains for peers that load and store. If the
 * others were silent, dead or in another call the ctx is stopped and stays in the list: xio_ctx_error explains it, ops
 * return XIO_ERR_STATE or the ring's first failure, and it can be recovered, or destroyed again. */
XIO_EXPORT xio_status_t xio_ctx_destroy(xio_world_t* world, xio_ctx_t ctx);
/* Makes a context usable again after a failure or timeout, which are permanent without it. Collective. No kernel of any
 * PE may be using it, or be in a barrier of the world. First it waits for the other PEs: if one is dead, silent,
 * excluded or in another call, this names it, and the ctx stays as it was. Then it stops this PE's side as
 * xio_ctx_destroy does, and all PEs make new queues: in the same place, so that every copy of the xio_ctx_t stays good.
 * Errors are forgotten, inboxes of immediates are empty, contexts of the pool are free, and the next barrier is the
 * same for all PEs. Requests of before return an error, never XIO_OK. The heap, registered memory and other ctxs stay
 * as they are.
 *
 * Where the RDMA device of a PE has failed for good, all PEs open theirs anew, with the same heap and registered
 * memory; ops of every other ctx that reaches a PE by RDMA return XIO_ERR_STATE from then on, until it is recovered,
 * too. While a device is still being reset this call fails, and may be made again.
 *
 * Returns XIO_ERR_PEER or XIO_ERR_TIMEOUT when other PEs are dead or silent, and the error of a PE that could not make
 * its queues: the ctx is stopped then, also where a PE dies in the middle of it. Once a collective call has failed for
 * lack of a PE, every later one fails, this one too: xio_exclude of xio/peers.h and xio_finalize are left.
 * XIO_ERR_STATE after very many recoveries (32768 divided by the number of rings): create another ctx. */
XIO_EXPORT xio_status_t xio_ctx_recover(xio_world_t* world, xio_ctx_t ctx);
/* Local. The way of a non-blocking copy of that size to that PE: "direct", "rdma" or "sdma". Null if ctx or pe is
 * wrong. */
XIO_EXPORT const char* xio_route_name(const xio_world_t* world, xio_ctx_t ctx, size_t bytes, int pe);
/* Local. Counts of the engine of that route (XIO_ROUTE_RDMA or XIO_ROUTE_SDMA, else XIO_ERR_ARG) since the context was
 * made; zeroes if the context has none. Kernels may be running: each number is one of a recent moment. An AMD GPU may
 * keep in its caches what a running kernel has counted, until the kernel fences, posts to an engine or ends. */
XIO_EXPORT xio_status_t xio_ctx_stats(const xio_world_t* world, xio_ctx_t ctx, xio_route_t route,
                                      xio_engine_stats_t* out);
/* Local. The last failure of kernels on this ctx: of a call (engine "device": a wrong argument, a wait that ended by
 * the deadline) or of an engine. It stays until the next failure; quiet, and calls that succeed, change nothing.
 * info->status = XIO_OK when nothing has failed. Of a kernel that still runs a failure may be seen late: an AMD GPU may
 * keep it in its caches until the kernel fences, posts to an engine or ends. */
XIO_EXPORT xio_status_t xio_ctx_error(const xio_world_t* world, xio_ctx_t ctx, xio_error_info_t* info);

/* Opens a drive or file for kernels of this PE. Local; at most 16 are open in a world at a time. attr may be null. The
 * name is one of:
 *
 *   "file:PATH"       a file, by a software controller. "file:PATH?block=4096&size=1G" says block_bytes and bytes of
 *                     that file in the name, which goes before attr. A path with any letters stands in quotes:
 *                     file:"PATH"
 *   "block:PATH"      a whole block device, by the same controller; "file:PATH" of one is the same. It is refused
 *                     while anybody holds it (a mount, swap, md, LVM), and for writing while its first or last MiB is
 *                     not zeroes, unless attr has XIO_STORAGE_CREATE: then what it holds may go
 *   "nvme:BDF/NSID"   a namespace of a drive that is bound to vfio-pci
 *   several of these  up to 8, with commas between: one storage in stripes over all of them (see stripe_bytes)
 *   "kmod:BDF/NSID"   a namespace of a drive that is bound to the kernel module xio, by queues of its own: other
 *                     processes may have others of the same drive. Memory must be the symmetric heap's, of the kind
 *                     DEVICE_VMEM, or a GPU's whose driver exports it
 *
 * Returns XIO_ERR_ARG or XIO_ERR_CONFIG (a name or attribute is wrong), XIO_ERR_IO (the system refuses the file or
 * device), XIO_ERR_STATE (the drive is in use), XIO_ERR_STORAGE (the drive failed), XIO_ERR_NO_MEMORY,
 * XIO_ERR_UNSUPPORTED. */
XIO_EXPORT xio_status_t xio_storage_open(xio_world_t* world, const char* name, const xio_storage_attr_t* attr,
                                         xio_storage_t* storage);
/* Closes a storage. Local. No kernel may be using it any more. Ops that no kernel waited for are ended, carried out or
 * not, before this returns, and their memory is free for other use. Data that was written and not made durable
 * (xio_storage_sync) may be lost with the drive's power. */
XIO_EXPORT xio_status_t xio_storage_close(xio_world_t* world, xio_storage_t storage);
/* Local. The size of the storage in bytes, and that of a block. A file has its own size, of a drive and of stripes it
 * is a multiple of the block. Offsets and lengths of ops on files may be any; those of drives are multiples of the
 * block. Each pointer may be null. */
XIO_EXPORT xio_status_t xio_storage_size(const xio_world_t* world, xio_storage_t storage, uint64_t* bytes,
                                         uint32_t* block_bytes);
/* Local. Makes the file `bytes` long at least; the new part reads as zeroes. It never makes a file shorter. The storage
 * then has the size that the file has: where another PE or program has made it longer than `bytes`, that size; 0 asks
 * for nothing more. So each PE that has the file open calls it: one with the new size, the others after a barrier, with
 * the same or with 0. Kernels may run, and post to the storage; those that start after the call see its size, others
 * may still see the one before. Stripes grow by whole stripes, and a refusal may leave some of their files longer.
 *
 * Returns XIO_ERR_ARG (a storage opened with READ_ONLY, a block device), XIO_ERR_UNSUPPORTED (a drive), XIO_ERR_STATE
 * (the file was made shorter while it was open), XIO_ERR_IO (no room, a quota, a limit of size): the size is as it
 * was. */
XIO_EXPORT xio_status_t xio_storage_grow(xio_world_t* world, xio_storage_t storage, uint64_t bytes);
/* Local. Counts of the storage's queues since it was opened. Kernels may be running: each number is one of a recent
 * moment. */
XIO_EXPORT xio_status_t xio_storage_stats(const xio_world_t* world, xio_storage_t storage, xio_engine_stats_t* out);

/* Waits until the host of every PE has called it. Collective. It completes no op of kernels: that is xio_quiet's, or
 * the device's xio_barrier_all. */
XIO_EXPORT xio_status_t xio_host_barrier(xio_world_t* world);

#ifdef __cplusplus
}
#endif
#endif
