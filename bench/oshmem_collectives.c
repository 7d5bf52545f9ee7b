/* SPDX-License-Identifier: MIT */
/* The collectives of xio-perf, written for OpenSHMEM: compile with oshcc, start with oshrun -np N [TIMES].
 * PE 0 prints rows as that program does; every PE checks the data of the last call. */
#define _POSIX_C_SOURCE 199309L
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum op { ALLTOALL, FCOLLECT, BROADCAST, REDUCE, SYNC, BARRIER };
static const char* const k_names[] = {"alltoall", "fcollect", "broadcast", "reduce", "sync", "barrier"};

static int me, n, times = 500;
static int *dst, *src, *work;
static long* flags; /* two sets, which take turns, as OpenSHMEM asks for */
static size_t flag_words;

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int word_of(int from, int block, size_t i) { return from * 1000003 + block * 7919 + (int)i; }

static void call(enum op o, size_t words, int turn) {
  long* sync = flags + (turn & 1) * flag_words;
  switch (o) {
    case ALLTOALL: shmem_alltoall32(dst, src, words, 0, 0, n, sync); break;
    case FCOLLECT: shmem_fcollect32(dst, src, words, 0, 0, n, sync); break;
    case BROADCAST: shmem_broadcast32(dst, src, words, 0, 0, 0, n, sync); break;
    case REDUCE: shmem_int_sum_to_all(dst, src, (int)words, 0, 0, n, work, sync); break;
    case SYNC: shmem_sync_all(); break;
    case BARRIER: shmem_barrier_all(); break;
  }
}

static double microseconds(enum op o, size_t words, int count) {
  shmem_barrier_all();
  const double begin = now_us();
  for (int i = 0; i < count; ++i) call(o, words, i);
  return now_us() - begin;
}

static int expected(enum op o, int block, size_t i) {
  unsigned sum = 0;
  if (o == ALLTOALL) return word_of(block, me, i);
  if (o == FCOLLECT) return word_of(block, 0, i);
  if (o == BROADCAST) return word_of(0, 0, i);
  for (int from = 0; from < n; ++from) sum += (unsigned)word_of(from, 0, i);
  return (int)sum;
}

static void row(enum op o, size_t bytes) {
  const size_t words = bytes / sizeof(int);
  for (int b = 0; b < n; ++b)
    for (size_t i = 0; i < words; ++i) src[(size_t)b * words + i] = word_of(me, b, i);
  if (words != 0) memset(dst, 0xa5, words * (size_t)n * sizeof(int));
  int count = bytes > 65536 ? times / 10 : times;
  if (count < 1) count = 1;
  /* Only OpenSHMEM's barrier makes the flags ready for another kind of call. */
  microseconds(o, words, count / 10 > 0 ? count / 10 : 1);
  const double took = microseconds(o, words, count);
  shmem_barrier_all();
  const int blocks = o == ALLTOALL || o == FCOLLECT ? n : 1;
  for (int b = 0; b < blocks && !(o == BROADCAST && me == 0); ++b)
    for (size_t i = 0; i < words; ++i)
      if (dst[(size_t)b * words + i] != expected(o, b, i)) {
        fprintf(stderr, "oshmem_collectives: %s: the data is not what the members sent\n", k_names[o]);
        shmem_global_exit(1);
      }
  if (me == 0) printf("| %s | %zu | %.2f |\n", k_names[o], bytes, took / count);
  shmem_barrier_all();
}

int main(int argc, char** argv) {
  static const size_t alltoall[] = {8, 4096, 32768, 262144, 4 << 20}, fcollect[] = {8, 1024, 65536, 1 << 20};
  static const size_t broadcast[] = {8, 4096, 65536, 1 << 20}, reduce[] = {8, 1024, 16384, 65536, 1 << 20};
  if (argc > 1) times = atoi(argv[1]);
  if (times < 1) return 2;
  shmem_init();
  me = shmem_my_pe();
  n = shmem_n_pes();
  const size_t most = (size_t)4 << 20, all = most * (size_t)n;
  dst = shmem_malloc(all);
  src = shmem_malloc(all);
  work = shmem_malloc(most);
  flag_words = SHMEM_ALLTOALL_SYNC_SIZE;
  if (flag_words < SHMEM_COLLECT_SYNC_SIZE) flag_words = SHMEM_COLLECT_SYNC_SIZE;
  if (flag_words < SHMEM_BCAST_SYNC_SIZE) flag_words = SHMEM_BCAST_SYNC_SIZE;
  if (flag_words < SHMEM_REDUCE_SYNC_SIZE) flag_words = SHMEM_REDUCE_SYNC_SIZE;
  flags = shmem_malloc(2 * flag_words * sizeof(long));
  if (dst == NULL || src == NULL || work == NULL || flags == NULL) return 2;
  for (size_t i = 0; i < 2 * flag_words; ++i) flags[i] = SHMEM_SYNC_VALUE;
  shmem_barrier_all();
  if (me == 0) printf("| op, %d PEs, OpenSHMEM | bytes | us |\n|---|---|---|\n", n);
  for (size_t i = 0; i < sizeof alltoall / sizeof *alltoall; ++i) row(ALLTOALL, alltoall[i]);
  for (size_t i = 0; i < sizeof fcollect / sizeof *fcollect; ++i) row(FCOLLECT, fcollect[i]);
  for (size_t i = 0; i < sizeof broadcast / sizeof *broadcast; ++i) row(BROADCAST, broadcast[i]);
  for (size_t i = 0; i < sizeof reduce / sizeof *reduce; ++i) row(REDUCE, reduce[i]);
  row(SYNC, 0);
  row(BARRIER, 0);
  shmem_finalize();
  return fflush(stdout) != 0;
}
