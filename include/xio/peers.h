/* SPDX-License-Identifier: MIT */
/* PEs that die or fall silent, and how the others go on without them (docs/failures.md).
 *
 * A PE is alive, silent, dead or excluded. Dead is what is proven: its process has ended. Silence proves nothing: a
 * process that is stopped, a cable, a switch and a slow machine look alike from here. Excluded is what this PE's
 * program has decided. All calls here are local: they ask no other PE, and change nothing there; PEs keep their
 * numbers. */
#ifndef XIO_PEERS_H
#define XIO_PEERS_H

#include <stddef.h>
#include <stdint.h>

#include "xio/xio.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The state of a PE. */
typedef enum xio_pe_life XIO_ENUM_OF_INT {
  XIO_PE_UNKNOWN = -1, /* in kernels: the ctx is null, or there is no such PE */
  XIO_PE_ALIVE = 0,    /* nothing speaks against it */
  XIO_PE_SILENT = 1,   /* its process is stopped, or ops to it were not replied to or timed out; it may come back */
  XIO_PE_DEAD = 2,     /* proven: its process has ended. For good */
  XIO_PE_EXCLUDED = 3  /* by xio_exclude of this PE. For good */
} xio_pe_life_t;

/* Filled in by xio_pe_state. Set `size` as in xio_engine_stats_t. */
typedef struct xio_pe_info {
  size_t size;
  xio_pe_life_t life;
  uint32_t is_dead;  /* 1: proven to be dead, whether it is excluded or not */
  uint64_t since_ms; /* how long ago this PE's host first saw it in that state; 0 for one that is alive */
  char why[160];     /* the evidence, in words; "" for one that is alive */
} xio_pe_info_t;
#define XIO_PE_INFO_INIT \
  { sizeof(xio_pe_info_t), XIO_PE_ALIVE, 0, 0, "" }

/* Looks at the state of PE `pe`. Local, and takes microseconds.
 *
 * Death is proven by the exit of the process, where it runs on this machine and in this PID namespace; by the word of
 * xiorun, which waits for the processes of its machine; or by the caller's (XIO_EXCLUDE_VOUCHED). Of a machine that
 * has lost its power no proof comes: its PEs stay silent. Silent is a PE whose process is stopped (SIGSTOP, a
 * debugger), and one to which a queue of this world's contexts has timed out or has not been replied to, until
 * xio_ctx_recover makes its queues anew.
 *
 * The state goes to kernels, too, for xio_pe_state of xio_device.hpp.
 *
 * Returns XIO_ERR_PE (no such PE), XIO_ERR_ARG (info is null). */
XIO_EXPORT xio_status_t xio_pe_state(xio_world_t* world, int pe, xio_pe_info_t* info);

/* Bits of xio_exclude's flags. */
enum {
  XIO_EXCLUDE_KILL = 1,   /* those that live on this machine end first, by SIGKILL, for up to a second */
  XIO_EXCLUDE_VOUCHED = 2 /* the caller knows that all of them are off: that is proof of death */
};

/* Takes the PEs `pes`, `count` of them, out of what this PE does. Local: no other PE is asked or told, each of those
 * that go on makes this call by itself. Takes less than 10 ms, with XIO_EXCLUDE_KILL up to a second more. Kernels may
 * be running. A PE that is excluded already may be named again, as to kill it.
 *
 * From then on:
 *   Queues to them are taken from their engines, so what the excluded still send by them is refused. The heap's key,
 *   which all peers share, stays. Waits for requests on them end with XIO_ERR_PEER. Where ops were not complete, the
 *   next xio_quiet on that ctx returns XIO_ERR_PEER, once; later fences and quiets have nothing to do with them.
 *   Ops of kernels that are given a ctx of xio_ctx_refresh, or that go by an engine, are XIO_ERR_PEER at once, and
 *   counted as refused calls: quiet returns the first once more. Copies of the xio_ctx_t from before go on storing to
 *   excluded PEs by loads and stores, which reaches nobody and returns XIO_OK: refresh them.
 *   A barrier of all PEs by a refreshed ctx is XIO_ERR_PEER. Teams without excluded members go on.
 *   Collective calls of the host, xio_ctx_recover and xio_finalize among them, return XIO_ERR_PEER at once;
 *   xio_finalize releases what is local all the same.
 *   Nothing is unmapped or freed: kernels may be at it.
 *
 * Nothing takes back memory that a process on this machine has mapped. So those of `pes` that are not proven to be dead
 * and have this PE's heap mapped can still store to all of it: their numbers go to `could_still_write`, room for
 * `count`, and how many they are to *n_could. Both may be null. Kill them, or move what matters to PEs elsewhere.
 *
 * Returns, and nothing has changed: XIO_ERR_ARG (a null list, no PE or too many, this PE itself, a PE twice, flags that
 * do not exist, could_still_write without n_could), XIO_ERR_PE (no such PE). */
XIO_EXPORT xio_status_t xio_exclude(xio_world_t* world, const int* pes, int count, uint32_t flags,
                                    int* could_still_write, int* n_could);

/* Makes *ctx, which names a ctx of this world, the value that kernels are to get from now on: without the PEs that are
 * excluded. Local. Also after xio_ctx_create: a ctx of a world without excluded PEs stays as it is.
 *
 * A kernel that has an older copy goes on with it. Contexts of xio_ctx_create_wg are copies, too: make them anew. */
XIO_EXPORT xio_status_t xio_ctx_refresh(xio_world_t* world, xio_ctx_t* ctx);

/* Filled in by xio_world_shrink: what it has found and done. Set `size` as in xio_engine_stats_t. */
typedef struct xio_shrink_report {
  size_t size;
  uint64_t view;      /* counts the times that the PEs of this world have agreed on those that go on */
  uint64_t heap_hash; /* of what is allocated: the same on every PE */
  void* block;  /* of an xio_malloc, xio_calloc or xio_align that failed here and was complete elsewhere: it is done
                   here, too, and this is the block; null where there is none */
  int n_living; /* PEs that go on, this one among them */
  int n_gone;   /* that have left the world by this call, */
  int n_dead;   /* and of those: that are proven to be dead. The others may still store to this PE's heap */
  uint32_t messages; /* of the agreement, that this PE has sent and received */
  int is_done;       /* 1: the call that failed here last was complete elsewhere, and is done here, too: it is not to be
                        made again. 0: it is to be made again, by all */
} xio_shrink_report_t;
#define XIO_SHRINK_REPORT_INIT \
  { sizeof(xio_shrink_report_t), 0, 0, NULL, 0, 0, 0, 0, 0 }

/* Agrees with all other PEs that live on those that go on, after some have died, were excluded, or are out of reach.
 * Collective among the PEs that go on, in a world with XIO_SURVIVE=1: after a collective call has failed with
 * XIO_ERR_PEER or XIO_ERR_TIMEOUT each of them calls it, and PEs that die meanwhile are left out, too. It may be called
 * again. No kernel may be using a ctx's collective calls. report may be null.
 *
 * The PEs go on if all that are not proven to be dead agree; or more than half of the last view; or half of it, with
 * its lowest PE. So all but one may die, and of two halves that do not reach each other one goes on.
 *
 * From then on:
 *   The PEs that have left are excluded, as by xio_exclude. Numbers stay. xio_ctx_refresh gives contexts without them;
 *   barriers of all, xio_malloc and all other collective calls are among those that live, and xio_team_world is a team
 *   of these. PE 0 may be among the dead.
 *   The same blocks are allocated on every PE: a call that some had completed, and others had not, is done on all if
 *   it allocates, frees or destroys (is_done, and the block), and undone on all if it makes a ctx or a team: its
 *   handle is XIO_ERR_STATE then.
 *   Teams of before with a PE that has left are over: XIO_ERR_STATE, in kernels XIO_ERR_PEER. Where that PE is not
 *   proven to be dead, the memory of teams that are destroyed later stays taken.
 *
 * Returns XIO_ERR_STATE: the world has no XIO_SURVIVE; this PE may not go on, because the others are more and not
 * proven to be dead; or they have left it out. XIO_ERR_TIMEOUT: PEs that live do not call it; the sentence names them,
 * and nothing has changed. XIO_ERR_PEER: the PE that led the agreement gave it up. */
XIO_EXPORT xio_status_t xio_world_shrink(xio_world_t* world, xio_shrink_report_t* report);

#ifdef __cplusplus
}
#endif
#endif
