/* SPDX-License-Identifier: MIT */
/* Worlds over communicators of MPI. Header only: libxio is linked with no MPI, so the program says here which mpi.h it
 * was compiled with. Include the program's mpi.h before this header, or let this header do so. */
#ifndef XIO_MPI_H
#define XIO_MPI_H

#include <mpi.h>
#include <string.h>

#include "xio/xio.h"

#if defined(OPEN_MPI)
#define XIO_MPI_KIND XIO_MPI_OPEN_MPI
#elif defined(MPICH) || defined(MPICH_VERSION) || defined(MPICH_NAME) || defined(I_MPI_VERSION) || \
    defined(MVAPICH2_VERSION)
#define XIO_MPI_KIND XIO_MPI_MPICH
#else
#define XIO_MPI_KIND XIO_MPI_NONE /* xio_init refuses it in a sentence */
#endif

/* Makes a world of the ranks of comm, which keep their numbers. Collective over comm; MPI_Init was called. The program
 * may free comm afterwards. attr may be null, and its mpi_* members do not count. The statuses are those of xio_init.
 */
static inline xio_status_t xio_init_mpi(const xio_init_attr_t* attr, MPI_Comm comm, xio_world_t** world) {
  xio_init_attr_t with_comm = XIO_INIT_ATTR_INIT;
  /* A size that cannot be is for xio_init to refuse. */
  if (attr != NULL && (attr->size < sizeof attr->size || attr->size > sizeof with_comm)) return xio_init(attr, world);
  if (attr != NULL) memcpy(&with_comm, attr, attr->size);
  with_comm.size = sizeof with_comm;
  with_comm.mpi_comm = &comm;
  with_comm.mpi_comm_bytes = (uint32_t)sizeof comm;
  with_comm.mpi_kind = XIO_MPI_KIND;
  return xio_init(&with_comm, world);
}

#endif
