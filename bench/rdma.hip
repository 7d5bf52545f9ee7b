// SPDX-License-Identifier: MIT
// How fast kernels post RDMA writes, and how many of them share a doorbell:
//   mpirun -np 2 bench/rdma [--format table|csv] [--rounds N]        (XIO_NIC_FAMILY chooses the entries' format)
// PE 0 posts to PE 1 by xio_put_nbi of thread scope: 1, 4 and 16 waves, each a workgroup of its own, with one lane of
// each wave or all of them. The ring holds all ops of a round, so that "posts" is not held up by the NIC; "done" is the
// same ops until xio_quiet. Medians of the rounds.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "xio/hip.h"
#include "xio/xio.h"
#include "xio/xio_device.hpp"

namespace {

constexpr uint32_t k_depth = 16384;
constexpr uint32_t k_ops = 8192;  // of one round: at most two entries each
constexpr unsigned k_most_waves = 16;
constexpr size_t k_most_bytes = 64;
#if defined(XIO_ON_CUDA)
constexpr unsigned k_lanes = 32;
#else
constexpr unsigned k_lanes = 64;
#endif

struct times {
  uint64_t start, posted, done;
  int status;
};

struct work {
  xio_ctx_t ctx;
  unsigned iterations;
  size_t bytes;
  char* dst;
  const char* src;
  times* result;  // one for each workgroup, host memory
};

__global__ void post(work w) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  char* dst = w.dst + thread * k_most_bytes;
  const char* src = w.src + thread * k_most_bytes;
  times t{};
  __syncthreads();
  t.start = xio::dev::wall_clock();
  for (unsigned i = 0; i < w.iterations; ++i) xio_put_nbi(w.ctx, dst, src, w.bytes, 1);
  __syncthreads();
  t.posted = xio::dev::wall_clock();
  t.status = xio_quiet_wg(w.ctx);
  t.done = xio::dev::wall_clock();
  if (threadIdx.x == 0) w.result[blockIdx.x] = t;
}

// Rate of wall_clock().
double ticks_per_second() {
#if defined(XIO_ON_HIP)
  return 1e8;  // s_memrealtime counts at 100 MHz
#else
  return 1e9;
#endif
}

struct options {
  bool csv = false;
  unsigned rounds = 9;
};

void check(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "bench/rdma: %s: %s\n", what, xio_last_error());
  std::exit(1);
}

options parse(int argc, char** argv) {
  options o;
  for (int i = 1; i < argc; i += 2) {
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (std::strcmp(argv[i], "--format") == 0 && std::strcmp(value, "csv") == 0) {
      o.csv = true;
    } else if (std::strcmp(argv[i], "--rounds") == 0 && std::atoi(value) > 0) {
      o.rounds = static_cast<unsigned>(std::atoi(value));
    } else if (std::strcmp(argv[i], "--format") != 0 || std::strcmp(value, "table") != 0) {
      std::fprintf(stderr, "bench/rdma: '%s %s' is no option; give --format table|csv or --rounds N\n", argv[i], value);
      std::exit(2);
    }
  }
  return o;
}

struct figures {
  double posts, done;  // per second
  double doorbells;    // per op
};

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

xio_engine_stats_t stats(xio_world_t* world, const work& w) {
  xio_engine_stats_t now = XIO_ENGINE_STATS_INIT;
  check(xio_ctx_stats(world, w.ctx, XIO_ROUTE_RDMA, &now) == XIO_OK, "xio_ctx_stats");
  return now;
}

figures measure(xio_world_t* world, work w, unsigned waves, unsigned lanes, unsigned rounds) {
  w.iterations = k_ops / (waves * lanes);
  const double ops = static_cast<double>(w.iterations) * waves * lanes;
  std::vector<double> posts, done, doorbells;
  for (unsigned round = 0; round <= rounds; ++round) {
    const xio_engine_stats_t before = stats(world, w);
    hipLaunchKernelGGL(post, dim3(waves), dim3(lanes), 0, nullptr, w);
    check(hipDeviceSynchronize() == hipSuccess, "kernel");
    const xio_engine_stats_t after = stats(world, w);
    times all = w.result[0];
    for (unsigned i = 0; i < waves; ++i) {
      const times& one = w.result[i];
      check(one.status == XIO_OK, "xio_quiet");
      all.start = std::min(all.start, one.start);
      all.posted = std::max(all.posted, one.posted);
      all.done = std::max(all.done, one.done);
    }
    if (round == 0) continue;  // warms up
    posts.push_back(ops * ticks_per_second() / static_cast<double>(all.posted - all.start));
    done.push_back(ops * ticks_per_second() / static_cast<double>(all.done - all.start));
    doorbells.push_back(static_cast<double>(after.doorbells - before.doorbells) /
                        static_cast<double>(after.ops - before.ops));
  }
  return {median(posts), median(done), median(doorbells)};
}

void print(const options& o, unsigned waves, unsigned lanes, size_t bytes, const figures& f) {
  if (o.csv) {
    std::printf("%u,%u,%zu,%.0f,%.0f,%.6f\n", waves, lanes, bytes, f.posts, f.done, f.doorbells);
  } else {
    std::printf("| %u | %u | %zu | %.2f | %.2f | 1/%.1f |\n", waves, lanes, bytes, f.posts / 1e6, f.done / 1e6,
                1 / f.doorbells);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const options o = parse(argc, argv);
  xio_world_t* world = nullptr;
  check(xio_init(nullptr, &world) == XIO_OK, "xio_init");
  check(xio_n_pes(world) == 2, "needs 2 PEs");
  xio_ctx_attr_t attr = XIO_CTX_ATTR_INIT;
  attr.route = XIO_ROUTE_RDMA;
  attr.ring_depth = k_depth;
  work w{};
  check(xio_ctx_create(world, &attr, &w.ctx) == XIO_OK, "xio_ctx_create");
  void *dst = nullptr, *src = nullptr;
  check(xio_calloc(world, k_most_waves * k_lanes, k_most_bytes, &dst) == XIO_OK, "xio_calloc");
  check(xio_calloc(world, k_most_waves * k_lanes, k_most_bytes, &src) == XIO_OK, "xio_calloc");
  w.dst = static_cast<char*>(dst);
  w.src = static_cast<const char*>(src);
  check(hipHostMalloc(reinterpret_cast<void**>(&w.result), k_most_waves * sizeof(times), 0) == hipSuccess,
        "hipHostMalloc");
  if (xio_my_pe(world) == 0) {
    if (o.csv) {
      std::puts("waves,lanes,bytes,posts_per_s,done_per_s,doorbells_per_op");
    } else {
      std::puts("| waves | lanes of each | bytes | Mposts/s | Mdone/s | doorbells per op |\n|---|---|---|---|---|---|");
    }
    for (const size_t bytes : {size_t{8}, k_most_bytes})
      for (const unsigned lanes : {1u, k_lanes})
        for (const unsigned waves : {1u, 4u, k_most_waves}) {
          w.bytes = bytes;
          print(o, waves, lanes, bytes, measure(world, w, waves, lanes, o.rounds));
        }
  }
  check(xio_host_barrier(world) == XIO_OK, "xio_host_barrier");
  check(xio_finalize(world) == XIO_OK, "xio_finalize");
  return std::fflush(stdout) != 0 || std::ferror(stdout) != 0 ? 1 : 0;
}
