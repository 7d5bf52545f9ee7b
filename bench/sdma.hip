// SPDX-License-Identifier: MIT
// Copies by copy engines that a kernel drives, beside plain copies by as many threads (or streams, on a GPU):
//   bench/sdma [ROUNDS]
// One PE copies within its own heap by route sdma, with 1, 2 and 4 queues, each of an engine and a thread of its own.
// Prints "copy QUEUES BYTES GB/s PLAIN-GB/s RATIO" (median of ROUNDS, default 9, the two measured in turn) and
// "packets QUEUES LANES PACKETS/s DOORBELLS-PER-PACKET" for 64-byte copies by whole waves.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "xio/hip.h"
#include "xio/xio.h"
#include "xio/xio_device.hpp"

namespace {

constexpr size_t k_most_queues = 4;
constexpr size_t k_most_bytes = size_t{64} << 20;
constexpr int k_packets_a_lane = 64;

void check(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "bench/sdma: %s: %s\n", what, xio_last_error());
  std::exit(1);
}

// One thread of every workgroup, each on its own queue and its own part of the heap.
__global__ void copies(xio_ctx_t ctx, char* dst, const char* src, size_t stride, size_t bytes, int times, int* status) {
  const size_t at = blockIdx.x * stride;
  for (int i = 0; i < times; ++i) xio_put_nbi(ctx, dst + at, src + at, bytes, 0);
  const xio_status_t s = xio_quiet(ctx);
  if (s != XIO_OK) *status = s;
}

__global__ void packets(xio_ctx_t ctx, char* dst, const char* src, int times, int* status) {
  const size_t at = (blockIdx.x * blockDim.x + threadIdx.x) * size_t{64};
  for (int i = 0; i < times; ++i) xio_put_nbi(ctx, dst + at, src + at, 64, 0);
  const xio_status_t s = xio_quiet_wg(ctx);
  if (s != XIO_OK) *status = s;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

// Copies of the same bytes by nobody's engine: a thread for each queue, or a stream on a GPU.
double plain(char* dst, const char* src, size_t stride, size_t bytes, int times, size_t queues) {
#if defined(XIO_ON_HOST)
  std::vector<std::thread> threads;
  const auto start = std::chrono::steady_clock::now();
  for (size_t q = 0; q < queues; ++q)
    threads.emplace_back([=] {
      for (int i = 0; i < times; ++i) std::memcpy(dst + q * stride, src + q * stride, bytes);
    });
  for (auto& t : threads) t.join();
  return seconds_since(start);
#else
  std::vector<hipStream_t> streams(queues);
  for (auto& s : streams) check(hipStreamCreate(&s) == hipSuccess, "hipStreamCreate");
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i)
    for (size_t q = 0; q < queues; ++q)
      check(
          hipMemcpyAsync(dst + q * stride, src + q * stride, bytes, hipMemcpyDeviceToDevice, streams[q]) == hipSuccess,
          "hipMemcpyAsync");
  check(hipDeviceSynchronize() == hipSuccess, "plain copies");
  const double took = seconds_since(start);
  for (auto& s : streams) check(hipStreamDestroy(s) == hipSuccess, "hipStreamDestroy");
  return took;
#endif
}

struct bench {
  size_t queues;
  int rounds;
  xio_world_t* world = nullptr;
  xio_ctx_t ctx{};
  char* src = nullptr;
  char* dst = nullptr;
  int* status = nullptr;

  bench(size_t q, int n) : queues(q), rounds(n) {
    const std::string count = std::to_string(q);
    const xio_option_t options[] = {
        {"XIO_SDMA_QUEUES", count.c_str()}, {"XIO_MODEL_ENGINES", count.c_str()}, {"XIO_MODEL_THREADS", count.c_str()}};
    xio_init_attr_t attr = XIO_INIT_ATTR_INIT;
    attr.options = options;
    attr.option_count = 3;
    attr.bootstrap = "local";
    attr.heap_bytes = 2 * k_most_bytes * q + (size_t{4} << 20);
    check(xio_init(&attr, &world) == XIO_OK, "xio_init");
    xio_ctx_attr_t how = XIO_CTX_ATTR_INIT;
    how.route = XIO_ROUTE_SDMA;
    check(xio_ctx_create(world, &how, &ctx) == XIO_OK, "xio_ctx_create");
    void* block = nullptr;
    check(xio_malloc(world, k_most_bytes * q, &block) == XIO_OK, "xio_malloc");
    src = static_cast<char*>(block);
    check(xio_malloc(world, k_most_bytes * q, &block) == XIO_OK, "xio_malloc");
    dst = static_cast<char*>(block);
    check(hipHostMalloc(reinterpret_cast<void**>(&status), sizeof(int), 0) == hipSuccess, "hipHostMalloc");
    *status = XIO_OK;
    check(hipMemset(src, 1, k_most_bytes * q) == hipSuccess && hipMemset(dst, 2, k_most_bytes * q) == hipSuccess,
          "hipMemset");
  }
  ~bench() {
    (void)hipHostFree(status);
    xio_finalize(world);
  }

  double engines(size_t bytes, int times) {
    const auto start = std::chrono::steady_clock::now();
    hipLaunchKernelGGL(copies, dim3(static_cast<unsigned>(queues)), dim3(1), 0, nullptr, ctx, dst, src, k_most_bytes,
                       bytes, times, status);
    check(hipDeviceSynchronize() == hipSuccess && *status == XIO_OK, "copies");
    return seconds_since(start);
  }

  void sizes() {
    for (size_t bytes = 4096; bytes <= k_most_bytes; bytes *= 4) {
      const int times = static_cast<int>(std::max<size_t>(2, std::min<size_t>(20000, (size_t{256} << 20) / bytes)));
      std::vector<double> by_engine, by_thread;
      for (int i = 0; i <= rounds; ++i) {
        const double e = engines(bytes, times);
        const double p = plain(dst, src, k_most_bytes, bytes, times, queues);
        if (i == 0) continue;  // warm up
        by_engine.push_back(e);
        by_thread.push_back(p);
      }
      const double all = static_cast<double>(bytes) * times * static_cast<double>(queues) / 1e9;
      std::printf("copy %zu %zu %.2f %.2f %.2f\n", queues, bytes, all / median(by_engine), all / median(by_thread),
                  median(by_thread) / median(by_engine));
    }
  }

  void rate(unsigned lanes) {
    xio_engine_stats_t before = XIO_ENGINE_STATS_INIT, after = XIO_ENGINE_STATS_INIT;
    check(xio_ctx_stats(world, ctx, XIO_ROUTE_SDMA, &before) == XIO_OK, "xio_ctx_stats");
    std::vector<double> took;
    for (int i = 0; i < rounds; ++i) {
      const auto start = std::chrono::steady_clock::now();
      hipLaunchKernelGGL(packets, dim3(static_cast<unsigned>(queues)), dim3(lanes), 0, nullptr, ctx, dst, src,
                         k_packets_a_lane, status);
      check(hipDeviceSynchronize() == hipSuccess && *status == XIO_OK, "packets");
      took.push_back(seconds_since(start));
    }
    check(xio_ctx_stats(world, ctx, XIO_ROUTE_SDMA, &after) == XIO_OK, "xio_ctx_stats");
    const double each = static_cast<double>(queues) * lanes * k_packets_a_lane;
    std::printf("packets %zu %u %.0f %.4f\n", queues, lanes, each / median(took),
                static_cast<double>(after.doorbells - before.doorbells) / static_cast<double>(after.ops - before.ops));
  }
};

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 9;
  if (rounds < 1 || rounds > 1000) {
    std::fprintf(stderr, "bench/sdma: ROUNDS is %s; give 1 to 1000\n", argv[1]);
    return 2;
  }
  for (size_t queues = 1; queues <= k_most_queues; queues *= 2) {
    bench b(queues, rounds);
    b.sizes();
    for (const unsigned lanes : {1u, 64u, 256u}) b.rate(lanes);
  }
  return std::fflush(stdout) != 0 || std::ferror(stdout) != 0 ? 1 : 0;
}
