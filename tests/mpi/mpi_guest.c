/* SPDX-License-Identifier: MIT */
/* mpi_guest N [SENTENCE]: a world of N PEs by mpirun, in a process that has at most one MPI before and after. Compiled
 * by mpi_modules.sh in three ways: without MPI; with USES_MPI, linked with one; with LOADS_MPI, the name of a library
 * that a plugin of the program would load for itself. With a SENTENCE xio_init fails, and its sentence holds that. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xio/xio.h>
#ifdef USES_MPI
#include <mpi.h>
#endif

static int failures = 0;
static void expect(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "mpi_guest: not so: %s: %s\n", what, xio_last_error());
  ++failures;
}

/* How many files that hold an MPI the process has mapped from their beginning. */
static int mpis(void) {
  int n = 0;
  char line[4096];
  FILE* maps = fopen("/proc/self/maps", "r");
  if (maps == NULL) return -1;
  while (fgets(line, sizeof line, maps) != NULL) {
    const char* name = strrchr(line, '/');
    if (name != NULL && strstr(line, " 00000000 ") != NULL &&
        (strncmp(name, "/libmpi.so", 10) == 0 || strncmp(name, "/libmpich.so", 12) == 0))
      ++n;
  }
  fclose(maps);
  return n;
}

static void handler(int s) { (void)s; }

int main(int argc, char** argv) {
  const int size = argc > 1 ? atoi(argv[1]) : 1;
  const char* sentence = argc > 2 ? argv[2] : NULL;
  xio_world_t* world = NULL;
#ifdef USES_MPI
  MPI_Init(NULL, NULL);
  expect(mpis() == 1, "the program has one MPI");
#elif defined(LOADS_MPI)
  void* library = dlopen(LOADS_MPI, RTLD_LAZY | RTLD_LOCAL);
  if (library == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
  int (*start)(int*, char***);
  int (*finish)(void);
  *(void**)&start = dlsym(library, "MPI_Init");
  *(void**)&finish = dlsym(library, "MPI_Finalize");
  start(NULL, NULL);
  expect(mpis() == 1, "the program has one MPI");
#else
  expect(mpis() == 0, "libxio brings no MPI when it is loaded");
  xio_init_attr_t attr = XIO_INIT_ATTR_INIT;
  attr.bootstrap = "local";
  expect(xio_init(&attr, &world) == XIO_OK && xio_finalize(world) == XIO_OK, "a world of one");
  expect(mpis() == 0, "a world of one brings no MPI");
#endif
  signal(SIGSEGV, handler);
  signal(SIGUSR2, handler);
  const xio_status_t status = xio_init(NULL, &world);
  if (sentence != NULL) {
    expect(status == XIO_ERR_UNSUPPORTED && strstr(xio_last_error(), sentence) != NULL, sentence);
  } else {
    expect(status == XIO_OK, "a world");
    expect(xio_n_pes(world) == size, "of as many PEs as were started");
    expect(xio_host_barrier(world) == XIO_OK && xio_finalize(world) == XIO_OK, "its barrier and end");
    expect(mpis() == 1, "there is one MPI");
  }
  expect(signal(SIGSEGV, SIG_DFL) == handler && signal(SIGUSR2, SIG_DFL) == handler, "the program's handlers stay");
#ifdef USES_MPI
  int rank = 0, n = 0, sum = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  expect(sum == n * (n - 1) / 2, "the program's MPI goes on");
  MPI_Finalize();
#elif defined(LOADS_MPI)
  expect(finish() == 0, "the program's MPI ends");
#endif
  return failures == 0 ? 0 : 1;
}
