/* SPDX-License-Identifier: MIT */
/* The same work as bench/rma, written for OpenSHMEM: compile with oshcc, start with oshrun -np 2.
 * Prints "op bytes nanoseconds-per-op" lines. */
#define _POSIX_C_SOURCE 199309L
#include <shmem.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "sizes.h"

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void report(const char* op, size_t bytes, double ns) {
  if (shmem_my_pe() == 0) printf("%s %zu %.1f\n", op, bytes, ns);
}

static void put_and_get(char* dst, char* src) {
  for (size_t bytes = BENCH_MIN_BYTES; bytes <= BENCH_MAX_BYTES; bytes *= 2) {
    const int n = bench_iterations(bytes);
    shmem_barrier_all();
    if (shmem_my_pe() == 0) {
      for (int i = 0; i < n / 10 + 1; ++i) shmem_putmem(dst, src, bytes, 1);
      shmem_quiet();
      double start = now_ns();
      for (int i = 0; i < n; ++i) shmem_putmem(dst, src, bytes, 1);
      shmem_quiet();
      report("put", bytes, (now_ns() - start) / n);
      for (int i = 0; i < n / 10 + 1; ++i) shmem_getmem(dst, src, bytes, 1);
      start = now_ns();
      for (int i = 0; i < n; ++i) shmem_getmem(dst, src, bytes, 1);
      report("get", bytes, (now_ns() - start) / n);
    }
    shmem_barrier_all();
  }
}

static void small_ops(long* word) {
  const int n = BENCH_SMALL_ITERATIONS;
  shmem_barrier_all();
  if (shmem_my_pe() == 0) {
    double start = now_ns();
    for (int i = 0; i < n; ++i) shmem_long_p(word, i, 1);
    shmem_quiet();
    report("p", sizeof(long), (now_ns() - start) / n);
    long sum = 0;
    start = now_ns();
    for (int i = 0; i < n; ++i) sum += shmem_long_g(word, 1);
    report("g", sizeof(long), (now_ns() - start) / n);
    start = now_ns();
    for (int i = 0; i < n; ++i) sum += shmem_long_atomic_fetch_add(word, 1, 1);
    report("fetch_add", sizeof(long), (now_ns() - start) / n);
    start = now_ns();
    for (int i = 0; i < n; ++i) shmem_long_atomic_add(word, 1, 1);
    shmem_quiet();
    report("add", sizeof(long), (now_ns() - start) / n);
    start = now_ns();
    for (int i = 0; i < n; ++i) sum += shmem_long_atomic_compare_swap(word, i, i + 1, 1);
    report("compare_swap", sizeof(long), (now_ns() - start) / n);
    if (sum == 42) printf("# %ld\n", sum);
  }
  shmem_barrier_all();
}

static void round_trips(long* flag) {
  const int n = BENCH_ROUND_TRIPS;
  const int me = shmem_my_pe();
  *flag = 0;
  shmem_barrier_all();
  const double start = now_ns();
  for (int i = 1; i <= n; ++i) {
    if (me == 0) {
      shmem_long_p(flag, i, 1);
      shmem_long_wait_until(flag, SHMEM_CMP_EQ, i);
    } else {
      shmem_long_wait_until(flag, SHMEM_CMP_EQ, i);
      shmem_long_p(flag, i, 0);
    }
  }
  report("signal_pingpong", sizeof(long), (now_ns() - start) / n);
  shmem_barrier_all();
}

static void barriers(void) {
  shmem_barrier_all();
  const double start = now_ns();
  for (int i = 0; i < BENCH_BARRIERS; ++i) shmem_barrier_all();
  report("barrier", 0, (now_ns() - start) / BENCH_BARRIERS);
}

int main(void) {
  shmem_init();
  char* dst = shmem_malloc(BENCH_MAX_BYTES);
  char* src = shmem_malloc(BENCH_MAX_BYTES);
  long* word = shmem_malloc(sizeof(long));
  if (shmem_n_pes() != 2 || dst == NULL || src == NULL || word == NULL) {
    fprintf(stderr, "oshmem_rma: needs 2 PEs and 9 MiB of symmetric heap\n");
    shmem_global_exit(1);
  }
  memset(src, 1, BENCH_MAX_BYTES);
  memset(dst, 2, BENCH_MAX_BYTES);
  *word = 0;
  put_and_get(dst, src);
  small_ops(word);
  round_trips(word);
  barriers();
  shmem_finalize();
  return fflush(stdout) != 0 || ferror(stdout) != 0 ? 1 : 0;
}
