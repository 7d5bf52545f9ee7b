/* SPDX-License-Identifier: MIT */
/* What libxio calls of MPI, and the one name that a module shows. A module is compiled with the mpi.h of one MPI, whose
 * handles and constants are a binary interface of their own. It is linked with no MPI: libxio finds the one that the
 * process has, or loads one, and the module resolves its functions there. So no second MPI comes into a process.
 *
 * Functions return MPI's codes, 0 for success. */
#ifndef XIO_BOOTSTRAP_MPI_MODULE_H
#define XIO_BOOTSTRAP_MPI_MODULE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of this file: another number, another interface. */
#define XIO_MPI_MODULE_VERSION 3u

/* Room for an MPI_Comm or an MPI_Request, in which MPI keeps it: it may not be moved while MPI may write to it. */
typedef struct xio_mpi_handle {
  uint64_t room;
} xio_mpi_handle_t;

typedef struct xio_mpi_calls {
  int (*initialized)(void); /* true or false */
  int (*finalized)(void);
  int (*start)(void); /* with support for threads */
  int (*finalize)(void);
  int (*may_be_called)(void); /* from this thread: MPI supports threads, or this one has started it */
  void (*world)(xio_mpi_handle_t* comm);
  int (*is_null)(const xio_mpi_handle_t* comm);
  int (*joins_groups)(const xio_mpi_handle_t* comm); /* an inter-communicator */
  int (*rank)(const xio_mpi_handle_t* comm);
  int (*size)(const xio_mpi_handle_t* comm);
  int (*begin_duplicate)(const xio_mpi_handle_t* of, xio_mpi_handle_t* comm, xio_mpi_handle_t* request);
  int (*return_errors)(xio_mpi_handle_t* comm);
  int (*free)(xio_mpi_handle_t* comm);
  int (*abort)(const xio_mpi_handle_t* comm, int code);
  void (*clear)(xio_mpi_handle_t* request); /* makes it one that is complete */
  int (*is_complete)(const xio_mpi_handle_t* request);
  int (*receive)(void* to, int bytes, int rank, int tag, const xio_mpi_handle_t* comm, xio_mpi_handle_t* request);
  int (*send)(const void* from, int bytes, int rank, int tag, const xio_mpi_handle_t* comm, xio_mpi_handle_t* request);
  int (*test)(xio_mpi_handle_t* request, int* done, int* bytes); /* bytes: null, or those that a receive got */
  int (*is_truncation)(int code);                                /* the message was longer than its receive */
  void (*text)(int code, char* out, size_t bytes);
} xio_mpi_calls_t;

typedef struct xio_mpi_module {
  uint32_t version;         /* XIO_MPI_MODULE_VERSION */
  uint32_t calls_bytes;     /* sizeof(xio_mpi_calls_t) */
  const char* libraries[3]; /* what to open where the process has no MPI, the first that is there; then null */
  /* All functions, out of an opened library or RTLD_DEFAULT; null, and the name, if one is not there. */
  const xio_mpi_calls_t* (*resolve)(void* library, const char** missing);
} xio_mpi_module_t;

/* The symbol that dlsym finds in a module. */
#define XIO_MPI_MODULE_NAME "xio_mpi_module"

#ifdef __cplusplus
}
#endif
#endif
