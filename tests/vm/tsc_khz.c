// SPDX-License-Identifier: MIT
// Prints the frequency of this processor's time stamp counter in kHz. QEMU's translator gives guests this counter as it
// is.
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

static uint64_t now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

// Both clocks at one moment: of many pairs the one whose two readings of the counter lie closest, for a process can be
// suspended between them.
static void both(uint64_t* ns, uint64_t* ticks) {
  uint64_t best = UINT64_MAX;
  for (int i = 0; i < 1000; ++i) {
    uint64_t const before = __rdtsc();
    uint64_t const at = now();
    uint64_t const after = __rdtsc();
    if (after - before < best) {
      best = after - before;
      *ns = at;
      *ticks = before + best / 2;
    }
  }
}

int main(void) {
  uint64_t ns[2], ticks[2];
  struct timespec const pause = {0, 100000000};
  both(&ns[0], &ticks[0]);
  nanosleep(&pause, NULL);
  both(&ns[1], &ticks[1]);
  printf("%.0f\n", (double)(ticks[1] - ticks[0]) * 1e6 / (double)(ns[1] - ns[0]));
  return 0;
}
