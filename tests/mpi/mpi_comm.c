/* SPDX-License-Identifier: MIT */
/* mpi_comm: worlds over communicators of the program's own, by the xio_init_mpi of xio/mpi.h, and communicators that
 * are refused. mpi_modules.sh compiles it for each MPI and starts it by mpirun. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <xio/mpi.h>

static int failures = 0;
static void expect(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "mpi_comm: not so: %s: %s\n", what, xio_last_error());
  ++failures;
}

static void refused(const xio_init_attr_t* attr, xio_status_t wanted, const char* sentence) {
  xio_world_t* world = NULL;
  const xio_status_t got = xio_init(attr, &world);
  expect(got == wanted && world == NULL && strstr(xio_last_error(), sentence) != NULL, sentence);
}

/* The PEs are the ranks of comm, and every PE's word arrives at its place of the next one's heap. */
static void try_world(MPI_Comm comm, const char* name) {
  int rank = -1, size = -1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  xio_init_attr_t attr = XIO_INIT_ATTR_INIT;
  attr.heap_bytes = 1 << 20;
  xio_world_t *world = NULL, *other = NULL;
  expect(xio_init_mpi(&attr, comm, &world) == XIO_OK, name);
  expect(xio_init_mpi(NULL, comm, &other) == XIO_OK, "two worlds of one communicator");
  expect(xio_my_pe(world) == rank && xio_n_pes(world) == size, "ranks are PEs");
  int* words = NULL;
  expect(xio_calloc(world, (size_t)size, sizeof *words, (void**)&words) == XIO_OK, "symmetric memory");
  int* there = (int*)xio_ptr(world, words, (rank + 1) % size);
  expect(there != NULL, "the next PE's heap is mapped");
  if (there != NULL) there[rank] = rank + 1;
  expect(xio_host_barrier(world) == XIO_OK, "a barrier");
  const int before = (rank + size - 1) % size;
  expect(words != NULL && words[before] == before + 1, "the word of the PE before");
  expect(xio_finalize(other) == XIO_OK && xio_finalize(world) == XIO_OK, "their end");
}

int main(void) {
  int rank = -1, size = -1, sum = -1;
  xio_world_t* world = NULL;
  expect(xio_init_mpi(NULL, MPI_COMM_WORLD, &world) == XIO_ERR_STATE, "before MPI_Init");
  expect(strstr(xio_last_error(), "call MPI_Init before xio_init") != NULL, "and says so");
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);

  MPI_Comm halves, reversed;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &halves);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
  try_world(MPI_COMM_WORLD, "the world's communicator");
  try_world(reversed, "ranks in the other order");
  try_world(halves, "every second rank");
  try_world(MPI_COMM_SELF, "a world of one by communicator");

  /* One PE's attributes are wrong, and all of the communicator return its sentence. */
  xio_init_attr_t attr = XIO_INIT_ATTR_INIT;
  attr.heap_bytes = rank == 0 ? 1 : 1 << 20;
  expect(xio_init_mpi(&attr, MPI_COMM_WORLD, &world) == XIO_ERR_CONFIG, "a heap of one byte on rank 0");
  expect(strstr(xio_last_error(), "heap_bytes is 1") != NULL, "and every rank says so");

  attr = (xio_init_attr_t)XIO_INIT_ATTR_INIT;
  attr.size = 3;
  expect(xio_init_mpi(&attr, MPI_COMM_WORLD, &world) == XIO_ERR_CONFIG, "a size that is none");
  expect(xio_init_mpi(NULL, MPI_COMM_NULL, &world) == XIO_ERR_ARG, "MPI_COMM_NULL");
  expect(strstr(xio_last_error(), "is MPI_COMM_NULL") != NULL, "and says so");
  if (size > 1) {
    MPI_Comm between;
    MPI_Intercomm_create(halves, 0, MPI_COMM_WORLD, rank % 2 == 0 ? 1 : 0, 7, &between);
    expect(xio_init_mpi(NULL, between, &world) == XIO_ERR_ARG, "a communicator between two groups");
    expect(strstr(xio_last_error(), "MPI_Intercomm_merge") != NULL, "and says so");
    MPI_Comm_free(&between);
  }

  MPI_Comm comm = MPI_COMM_WORLD;
  attr = (xio_init_attr_t)XIO_INIT_ATTR_INIT;
  attr.mpi_kind = XIO_MPI_KIND;
  refused(&attr, XIO_ERR_CONFIG, "mpi_comm is null");
  attr.mpi_comm = &comm;
  attr.mpi_comm_bytes = 2;
  refused(&attr, XIO_ERR_CONFIG, "mpi_comm_bytes is 2");
  attr.mpi_comm_bytes = sizeof comm;
  attr.mpi_kind = XIO_MPI_OPEN_MPI + XIO_MPI_MPICH - XIO_MPI_KIND;
  refused(&attr, XIO_ERR_CONFIG, "the MPI that this process has started is");
  attr.mpi_kind = 9;
  refused(&attr, XIO_ERR_UNSUPPORTED, "mpi_kind is 9");
  attr.mpi_kind = XIO_MPI_KIND;
  attr.bootstrap = "tcp";
  refused(&attr, XIO_ERR_CONFIG, "a communicator is for \"mpi\"");
  attr.bootstrap = NULL;
  xio_unique_id_t id;
  memset(&id, 0, sizeof id);
  attr.unique_id = &id;
  refused(&attr, XIO_ERR_CONFIG, "a unique_id and an mpi_comm");

  MPI_Comm_free(&halves);
  MPI_Comm_free(&reversed);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  expect(sum == size * (size - 1) / 2, "the program's MPI goes on");
  MPI_Finalize();
  expect(xio_init_mpi(NULL, MPI_COMM_WORLD, &world) == XIO_ERR_STATE, "after MPI_Finalize");
  return failures == 0 ? 0 : 1;
}
