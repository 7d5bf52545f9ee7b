/* SPDX-License-Identifier: MIT */
/* What bench/vs_oshmem runs xio-perf for, written for OpenSHMEM: compile with oshcc, start with oshrun -np 2.
 * Prints rows as those of xio-perf --format csv, with the mean as median. */
#define _POSIX_C_SOURCE 199309L
#include <shmem.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define MIN_BYTES 8
#define MAX_BYTES (4u << 20)
/* Repetitions of ops of a few bytes, and of round trips. */
#define SMALL_ITERATIONS 200000
#define ROUND_TRIPS 20000
#define BARRIERS 5000

/* Enough repetitions that one size takes some ten milliseconds. */
static int iterations_of(size_t bytes) {
  const size_t n = (128u << 20) / bytes;
  return n < 40 ? 40 : n > 200000 ? 200000 : (int)n;
}

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void report(const char* test, const char* op, size_t bytes, double ns) {
  if (shmem_my_pe() == 0) printf("%s,%s,thread,%zu,1,1,,,,%.5f,\n", test, op, bytes, ns / 1e3);
}

static void put_and_get(char* dst, char* src) {
  for (size_t bytes = MIN_BYTES; bytes <= MAX_BYTES; bytes *= 2) {
    const int n = iterations_of(bytes);
    shmem_barrier_all();
    if (shmem_my_pe() == 0) {
      for (int i = 0; i < n / 10 + 1; ++i) shmem_putmem(dst, src, bytes, 1);
      shmem_quiet();
      double start = now_ns();
      for (int i = 0; i < n; ++i) shmem_putmem(dst, src, bytes, 1);
      shmem_quiet();
      report("put_bw", "", bytes, (now_ns() - start) / n);
      for (int i = 0; i < n / 10 + 1; ++i) shmem_getmem(dst, src, bytes, 1);
      start = now_ns();
      for (int i = 0; i < n; ++i) shmem_getmem(dst, src, bytes, 1);
      report("get_bw", "", bytes, (now_ns() - start) / n);
    }
    shmem_barrier_all();
  }
}

static void small_ops(long* word) {
  const int n = SMALL_ITERATIONS;
  shmem_barrier_all();
  if (shmem_my_pe() == 0) {
    double start = now_ns();
    for (int i = 0; i < n; ++i) shmem_long_p(word, i, 1);
    shmem_quiet();
    report("p_bw", "", sizeof(long), (now_ns() - start) / n);
    long sum = 0;
    start = now_ns();
    for (int i = 0; i < n; ++i) sum += shmem_long_g(word, 1);
    report("g_bw", "", sizeof(long), (now_ns() - start) / n);
    start = now_ns();
    for (int i = 0; i < n; ++i) sum += shmem_long_atomic_fetch_add(word, 1, 1);
    report("atomic_bw", "fetch_add", sizeof(long), (now_ns() - start) / n);
    start = now_ns();
    for (int i = 0; i < n; ++i) shmem_long_atomic_add(word, 1, 1);
    shmem_quiet();
    report("atomic_bw", "add", sizeof(long), (now_ns() - start) / n);
    start = now_ns();
    for (int i = 0; i < n; ++i) sum += shmem_long_atomic_compare_swap(word, i, i + 1, 1);
    report("atomic_bw", "compare_swap", sizeof(long), (now_ns() - start) / n);
    if (sum == 42) printf("# %ld\n", sum);
  }
  shmem_barrier_all();
}

static void round_trips(long* flag) {
  const int n = ROUND_TRIPS;
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
  report("signal_pingpong", "", sizeof(long), (now_ns() - start) / n);
  shmem_barrier_all();
}

static void barriers(void) {
  shmem_barrier_all();
  const double start = now_ns();
  for (int i = 0; i < BARRIERS; ++i) shmem_barrier_all();
  report("barrier", "", 0, (now_ns() - start) / BARRIERS);
}

int main(void) {
  shmem_init();
  char* dst = shmem_malloc(MAX_BYTES);
  char* src = shmem_malloc(MAX_BYTES);
  long* word = shmem_malloc(sizeof(long));
  if (shmem_n_pes() != 2 || dst == NULL || src == NULL || word == NULL) {
    fprintf(stderr, "oshmem_rma: needs 2 PEs and 9 MiB of symmetric heap\n");
    shmem_global_exit(1);
  }
  memset(src, 1, MAX_BYTES);
  memset(dst, 2, MAX_BYTES);
  *word = 0;
  put_and_get(dst, src);
  small_ops(word);
  round_trips(word);
  barriers();
  shmem_finalize();
  return fflush(stdout) != 0 || ferror(stdout) != 0 ? 1 : 0;
}
