/* SPDX-License-Identifier: MIT */
/* What bench/rma and bench/oshmem_rma have in common, so that both do the same work. */
#ifndef XIO_BENCH_SIZES_H
#define XIO_BENCH_SIZES_H

#include <stddef.h>

#define BENCH_MIN_BYTES 8
#define BENCH_MAX_BYTES (4u << 20)

/* Enough repetitions that one size takes some ten milliseconds. */
static inline int bench_iterations(size_t bytes) {
  const size_t budget = 128u << 20;
  size_t n = budget / bytes;
  if (n < 40) n = 40;
  if (n > 200000) n = 200000;
  return (int)n;
}

/* Repetitions of ops of a few bytes, and of round trips. */
#define BENCH_SMALL_ITERATIONS 200000
#define BENCH_ROUND_TRIPS 20000
#define BENCH_BARRIERS 5000

#endif
