// SPDX-License-Identifier: MIT
// Latency and bandwidth of the RDMA route between 2 PEs, the way ib_write_lat and ib_write_bw measure them:
//   bench/rdma_link [--seconds S] [--latency SIZE,...] [--bandwidth SIZE,...]
// S seconds in all (3), latency of 8 and 4096 bytes, bandwidth of 65536; the same options on both PEs.
// lat_us SIZE VALUE   half of a round trip: put, then a flag behind it on the same queue, and back the same way
// bw_mbs SIZE VALUE   puts, many in flight, MB/s of 10^6 bytes until the last one is complete
// PE 0 prints.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "xio/hip.h"
#include "xio/xio.h"
#include "xio/xio_device.hpp"

namespace {

struct work {
  xio_ctx_t ctx;
  size_t bytes;
  unsigned iterations;
  char* dst;
  char* src;
  uint64_t* flag;    // symmetric
  uint64_t* agreed;  // symmetric
  uint64_t* ticks;   // result, host memory
  int* status;
};

// Sizes of up to 8 bytes are the flag itself: ib_write_lat, too, polls the last byte of its data.
__device__ void send(const work& w, uint64_t value, int pe) {
  if (w.bytes <= sizeof value) {
    xio_signal_op(w.ctx, w.flag, value, XIO_SIGNAL_SET, pe);
  } else {
    xio_put_signal_nbi(w.ctx, w.dst, w.src, w.bytes, w.flag, value, XIO_SIGNAL_SET, pe);
  }
}

// Values go on from call to call: the flag never falls.
__global__ void ping_pong(work w, uint64_t first) {
  const int me = xio_my_pe(w.ctx);
  const uint64_t start = xio::dev::wall_clock();
  int status = XIO_OK;
  for (uint64_t i = first; i < first + w.iterations && status == XIO_OK; ++i) {
    if (me == 0) send(w, i, 1);
    status = xio_signal_wait_until(w.ctx, w.flag, XIO_CMP_EQ, i);
    if (me == 1 && status == XIO_OK) send(w, i, 0);
  }
  *w.ticks = xio::dev::wall_clock() - start;
  const int last = xio_quiet(w.ctx);
  *w.status = status != XIO_OK ? status : last;
}

__global__ void stream(work w) {
  const uint64_t start = xio::dev::wall_clock();
  for (unsigned i = 0; i < w.iterations; ++i) xio_put_nbi(w.ctx, w.dst, w.src, w.bytes, 1);
  *w.status = xio_quiet(w.ctx);
  *w.ticks = xio::dev::wall_clock() - start;
}

__global__ void ask(work w) { *w.ticks = xio_g(w.ctx, w.agreed, 0); }

// Rate of wall_clock().
double ticks_per_us() {
#if defined(XIO_ON_HIP)
  return 100;  // s_memrealtime counts at 100 MHz
#else
  return 1000;
#endif
}

void check(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "bench/rdma_link: %s: %s\n", what, xio_last_error());
  std::exit(1);
}

struct options {
  double seconds = 3;
  size_t latency[8] = {8, 4096};
  size_t bandwidth[8] = {65536};
  unsigned latencies = 2, bandwidths = 1;
  size_t bulk = 0;  // the largest
};

bool parse_sizes(const char* text, size_t* sizes, unsigned* count) {
  char* end = nullptr;
  for (*count = 0; *count < 8; text = end + 1) {
    const unsigned long n = std::strtoul(text, &end, 10);
    if (end == text || n == 0 || n > (64u << 20)) return false;
    sizes[(*count)++] = n;
    if (*end == '\0') return true;
    if (*end != ',') return false;
  }
  return false;
}

options parse(int argc, char** argv) {
  options o;
  bool good = true;
  for (int i = 1; i < argc && good; i += 2) {
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (std::strcmp(argv[i], "--seconds") == 0) {
      o.seconds = std::atof(value);
      good = o.seconds >= 0.1 && o.seconds <= 3600;
    } else if (std::strcmp(argv[i], "--latency") == 0) {
      good = parse_sizes(value, o.latency, &o.latencies);
    } else {
      good = std::strcmp(argv[i], "--bandwidth") == 0 && parse_sizes(value, o.bandwidth, &o.bandwidths);
    }
  }
  if (!good) {
    std::fprintf(stderr,
                 "usage: bench/rdma_link [--seconds 0.1..3600] [--latency SIZE,...] [--bandwidth SIZE,...], at most 8 "
                 "sizes of 1 byte to 64 MiB\n");
    std::exit(2);
  }
  for (unsigned i = 0; i < o.latencies; ++i) o.bulk = std::max(o.bulk, o.latency[i]);
  for (unsigned i = 0; i < o.bandwidths; ++i) o.bulk = std::max(o.bulk, o.bandwidth[i]);
  return o;
}

// Microseconds that the kernel took.
double finish(const work& w, const char* what) {
  check(hipDeviceSynchronize() == hipSuccess, what);
  if (*w.status != XIO_OK) {
    std::fprintf(stderr, "bench/rdma_link: %s of %zu bytes ended with status %d\n", what, w.bytes, *w.status);
    std::exit(1);
  }
  return static_cast<double>(*w.ticks) / ticks_per_us();
}

// PE 0's clock says how often; PE 1 reads it there.
unsigned agree(xio_world_t* world, work w, unsigned mine) {
  uint64_t word = mine;
  check(hipMemcpy(w.agreed, &word, sizeof word, hipMemcpyHostToDevice) == hipSuccess, "hipMemcpy");
  check(xio_host_barrier(world) == XIO_OK, "xio_host_barrier");
  if (xio_my_pe(world) == 1) {
    hipLaunchKernelGGL(ask, dim3(1), dim3(1), 0, nullptr, w);
    check(hipDeviceSynchronize() == hipSuccess && *w.status == XIO_OK, "how often");
    word = *w.ticks;
  }
  check(xio_host_barrier(world) == XIO_OK, "xio_host_barrier");
  return static_cast<unsigned>(word);
}

unsigned how_often(double us, double us_each) {
  const double n = us / us_each;
  return n < 10 ? 10 : n > 1e9 ? 1000000000u : static_cast<unsigned>(n);
}

// First a few, to learn how long one takes.
void latency(xio_world_t* world, work w, size_t bytes, double us, uint64_t* next) {
  double took = 0;
  w.bytes = bytes;
  w.iterations = 100;
  for (int turn = 0; turn < 2; ++turn) {
    if (turn == 1) w.iterations = agree(world, w, how_often(us, took / w.iterations));
    check(xio_host_barrier(world) == XIO_OK, "xio_host_barrier");
    hipLaunchKernelGGL(ping_pong, dim3(1), dim3(1), 0, nullptr, w, *next);
    took = finish(w, "lat_us");
    *next += w.iterations;
  }
  if (xio_my_pe(world) == 0) std::printf("lat_us %zu %.3f\n", bytes, took / w.iterations / 2);
}

void bandwidth(xio_world_t* world, work w, size_t bytes, double us) {
  w.bytes = bytes;
  if (xio_my_pe(world) == 0) {
    double took = 0;
    w.iterations = 100;
    for (int turn = 0; turn < 2; ++turn) {
      if (turn == 1) w.iterations = how_often(us, took / w.iterations);
      hipLaunchKernelGGL(stream, dim3(1), dim3(1), 0, nullptr, w);
      took = finish(w, "bw_mbs");
    }
    std::printf("bw_mbs %zu %.1f\n", bytes, static_cast<double>(bytes) * w.iterations / took);
  }
  check(xio_host_barrier(world) == XIO_OK, "xio_host_barrier");
}

}  // namespace

int main(int argc, char** argv) {
  const options o = parse(argc, argv);
  xio_world_t* world = nullptr;
  check(xio_init(nullptr, &world) == XIO_OK, "xio_init");
  check(xio_n_pes(world) == 2, "needs 2 PEs");
  xio_ctx_attr_t attr = XIO_CTX_ATTR_INIT;
  attr.route = XIO_ROUTE_RDMA;
  work w{};
  check(xio_ctx_create(world, &attr, &w.ctx) == XIO_OK, "xio_ctx_create");
  void *dst = nullptr, *src = nullptr, *words = nullptr;
  check(xio_calloc(world, 1, o.bulk, &dst) == XIO_OK, "xio_calloc");
  check(xio_calloc(world, 1, o.bulk, &src) == XIO_OK, "xio_calloc");
  check(xio_calloc(world, 2, sizeof(uint64_t), &words) == XIO_OK, "xio_calloc");
  w.dst = static_cast<char*>(dst);
  w.src = static_cast<char*>(src);
  w.flag = static_cast<uint64_t*>(words);
  w.agreed = w.flag + 1;
  check(hipHostMalloc(reinterpret_cast<void**>(&w.ticks), sizeof(uint64_t), 0) == hipSuccess, "hipHostMalloc");
  check(hipHostMalloc(reinterpret_cast<void**>(&w.status), sizeof(int), 0) == hipSuccess, "hipHostMalloc");
  const double us = o.seconds * 1e6 / static_cast<double>(o.latencies + o.bandwidths);
  uint64_t next = 1;
  for (unsigned i = 0; i < o.latencies; ++i) latency(world, w, o.latency[i], us, &next);
  for (unsigned i = 0; i < o.bandwidths; ++i) bandwidth(world, w, o.bandwidth[i], us);
  check(xio_finalize(world) == XIO_OK, "xio_finalize");
  return std::fflush(stdout) != 0 || std::ferror(stdout) != 0 ? 1 : 0;
}
