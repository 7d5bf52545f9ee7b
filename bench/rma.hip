// SPDX-License-Identifier: MIT
// Latency of put, get, p, g, atomics, signals and barrier by one GPU thread, 2 PEs:
//   mpirun -np 2 bench/rma        (XIO_ROUTE=direct|rdma|sdma chooses the way)
// Prints "op bytes nanoseconds-per-op" lines; bench/vs_oshmem lays them beside OpenSHMEM's.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "sizes.h"
#include "xio/hip.h"
#include "xio/xio.h"
#include "xio/xio_device.hpp"

namespace {

enum op { op_put, op_get, op_memcpy, op_p, op_g, op_fetch_add, op_add, op_compare_swap, op_pingpong, op_barrier };

struct work {
  xio_ctx_t ctx;
  op what;
  int iterations;
  size_t bytes;
  char* dst;
  char* src;
  long* word;
  void* peer_dst;   // dst on PE 1, mapped here, for the memcpy baseline
  uint64_t* ticks;  // result, host memory
  int* status;
};

template <class Body>
__device__ void timed(const work& w, int warm_up, Body body) {
  for (int i = 0; i < warm_up; ++i) body(i);
  xio_quiet(w.ctx);
  const uint64_t start = xio::dev::wall_clock();
  for (int i = 0; i < w.iterations; ++i) body(i);
  *w.status = xio_quiet(w.ctx);
  *w.ticks = xio::dev::wall_clock() - start;
}

__global__ void measure(work w) {
  const int me = xio_my_pe(w.ctx);
  const int warm_up = w.iterations / 10 + 1;
  long sum = 0;
  switch (w.what) {
    case op_put: timed(w, warm_up, [&](int) { xio_put(w.ctx, w.dst, w.src, w.bytes, 1); }); break;
    case op_get: timed(w, warm_up, [&](int) { xio_get(w.ctx, w.dst, w.src, w.bytes, 1); }); break;
    case op_memcpy: timed(w, warm_up, [&](int) { memcpy(w.peer_dst, w.src, w.bytes); }); break;
    case op_p: timed(w, 1, [&](int i) { xio_p<long>(w.ctx, w.word, i, 1); }); break;
    case op_g: timed(w, 1, [&](int) { sum += xio_g<long>(w.ctx, w.word, 1); }); break;
    case op_fetch_add: timed(w, 1, [&](int) { sum += xio_atomic_fetch_add<long>(w.ctx, w.word, 1, 1); }); break;
    case op_add: timed(w, 1, [&](int) { xio_atomic_add<long>(w.ctx, w.word, 1, 1); }); break;
    case op_compare_swap:
      timed(w, 1, [&](int i) { sum += xio_atomic_compare_swap<long>(w.ctx, w.word, i, i + 1, 1); });
      break;
    case op_pingpong: {
      auto* flag = reinterpret_cast<uint64_t*>(w.word);
      timed(w, 0, [&](int i) {
        const uint64_t value = static_cast<uint64_t>(i) + 1;
        if (me == 0) xio_signal_op(w.ctx, flag, value, XIO_SIGNAL_SET, 1);
        xio_signal_wait_until(w.ctx, flag, XIO_CMP_EQ, value);
        if (me == 1) xio_signal_op(w.ctx, flag, value, XIO_SIGNAL_SET, 0);
      });
      break;
    }
    case op_barrier: timed(w, 1, [&](int) { xio_barrier_all(w.ctx); }); break;
  }
  if (sum == 42) *w.status = XIO_PENDING;  // keeps the compiler from dropping the loops
}

// Rate of wall_clock().
uint64_t ticks_per_ms() {
#if defined(XIO_ON_HIP)
  return 100000;  // s_memrealtime counts at 100 MHz
#else
  return 1000000;
#endif
}

void check(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "bench/rma: %s: %s\n", what, xio_last_error());
  std::exit(1);
}

void run(xio_world_t* world, work w, const char* name, op what, size_t bytes, int iterations, bool both) {
  w.what = what;
  w.bytes = bytes;
  w.iterations = iterations;
  check(xio_host_barrier(world) == XIO_OK, "barrier");
  if (both || xio_my_pe(world) == 0) {
    hipLaunchKernelGGL(measure, dim3(1), dim3(1), 0, nullptr, w);
    check(hipDeviceSynchronize() == hipSuccess && *w.status == XIO_OK, name);
  }
  if (xio_my_pe(world) == 0)
    std::printf("%s %zu %.1f\n", name, bytes,
                static_cast<double>(*w.ticks) * 1e6 / static_cast<double>(ticks_per_ms()) / iterations);
  check(xio_host_barrier(world) == XIO_OK, "barrier");
}

template <class T>
T* symmetric(xio_world_t* world, size_t bytes) {
  void* block = nullptr;
  check(xio_calloc(world, 1, bytes, &block) == XIO_OK, "xio_calloc");
  return static_cast<T*>(block);
}

}  // namespace

int main() {
  xio_world_t* world = nullptr;
  check(xio_init(nullptr, &world) == XIO_OK, "xio_init");
  check(xio_n_pes(world) == 2, "needs 2 PEs");
  work w{};
  check(xio_ctx_create(world, nullptr, &w.ctx) == XIO_OK, "xio_ctx_create");
  w.dst = symmetric<char>(world, BENCH_MAX_BYTES);
  w.src = symmetric<char>(world, BENCH_MAX_BYTES);
  w.word = symmetric<long>(world, sizeof(long));
  w.peer_dst = xio_ptr(world, w.dst, 1);
  check(hipHostMalloc(reinterpret_cast<void**>(&w.ticks), sizeof(uint64_t), 0) == hipSuccess, "hipHostMalloc");
  check(hipHostMalloc(reinterpret_cast<void**>(&w.status), sizeof(int), 0) == hipSuccess, "hipHostMalloc");
  check(hipMemset(w.src, 1, BENCH_MAX_BYTES) == hipSuccess, "hipMemset");
  check(hipMemset(w.dst, 2, BENCH_MAX_BYTES) == hipSuccess, "hipMemset");
  for (size_t bytes = BENCH_MIN_BYTES; bytes <= BENCH_MAX_BYTES; bytes *= 2) {
    const int n = bench_iterations(bytes);
    run(world, w, "put", op_put, bytes, n, false);
    run(world, w, "get", op_get, bytes, n, false);
#if defined(XIO_ON_HOST)
    // The ceiling of put; one GPU thread's memcpy would say nothing.
    if (w.peer_dst != nullptr) run(world, w, "memcpy", op_memcpy, bytes, n, false);
#endif
  }
  run(world, w, "p", op_p, sizeof(long), BENCH_SMALL_ITERATIONS, false);
  run(world, w, "g", op_g, sizeof(long), BENCH_SMALL_ITERATIONS, false);
  run(world, w, "fetch_add", op_fetch_add, sizeof(long), BENCH_SMALL_ITERATIONS, false);
  run(world, w, "add", op_add, sizeof(long), BENCH_SMALL_ITERATIONS, false);
  run(world, w, "compare_swap", op_compare_swap, sizeof(long), BENCH_SMALL_ITERATIONS, false);
  check(hipMemset(w.word, 0, sizeof(long)) == hipSuccess, "hipMemset");
  run(world, w, "signal_pingpong", op_pingpong, sizeof(long), BENCH_ROUND_TRIPS, true);
  run(world, w, "barrier", op_barrier, 0, BENCH_BARRIERS, true);
  check(xio_finalize(world) == XIO_OK, "xio_finalize");
  return std::fflush(stdout) != 0 || std::ferror(stdout) != 0 ? 1 : 0;
}
