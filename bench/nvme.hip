// SPDX-License-Identifier: MIT
// Random 4 KiB reads and writes of a storage from kernels.
//   bench/nvme rate NAME read|write THREADS QUEUES DEPTH SECONDS
//       THREADS GPU threads in workgroups of at most 64, each with one op in flight, on QUEUES queues of DEPTH entries.
//       Prints "rate OP THREADS QUEUES DEPTH IOPS DOORBELLS-PER-COMMAND".
//   bench/nvme steps NAME read|write COUNT
//       One thread, one op at a time. Prints the mean time in nanoseconds of each part of an op:
//       "steps OP build NS enqueue NS doorbell NS poll NS total NS".
// NAME is a storage's, as file:PATH; it must hold 1 MiB at least and is written to.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "xio/hip.h"
#include "xio/xio.h"
#include "xio/xio_device.hpp"

namespace {

using namespace xio::dev;

constexpr uint64_t k_block = 4096;
constexpr uint32_t k_most_ops = 1u << 30;  // of a thread

[[noreturn]] void give_up(const char* what, const char* why) {
  std::fprintf(stderr, "bench/nvme: %s: %s\n", what, why);
  std::exit(1);
}
void must(xio_status_t status, const char* what) {
  if (status != XIO_OK) give_up(what, xio_last_error());
}
void must(hipError_t status, const char* what) {
  if (status != hipSuccess) give_up(what, hipGetErrorString(status));
}

// Marsaglia's xorshift: neighbours start far apart.
__device__ uint64_t next_random(uint64_t& x) {
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  return x;
}

__device__ uint64_t seed_of(uint32_t thread) { return (thread + 1) * 0x9e3779b97f4a7c15u; }

__global__ void one_in_flight(xio_ctx_t ctx, xio_storage_t s, unsigned char* memory, uint64_t blocks, bool write,
                              uint32_t count, uint32_t threads, uint32_t* wrong) {
  const uint32_t me = blockIdx.x * blockDim.x + threadIdx.x;
  if (me >= threads) return;
  unsigned char* buffer = memory + me * k_block;
  uint64_t random = seed_of(me);
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t at = next_random(random) % blocks * k_block;
    const xio_status_t status = write ? xio_write(ctx, buffer, s, at, k_block) : xio_read(ctx, buffer, s, at, k_block);
    if (status != XIO_OK) *wrong = 1;
  }
}

// The parts that xio_read and xio_write are made of, with a clock between.
__global__ void steps(xio_ctx_t ctx, xio_storage_t s, unsigned char* memory, uint64_t blocks, bool write,
                      uint32_t count, u64* sums, uint32_t* wrong) {
  const ctx_view& c = ctx_of(ctx);
  const xio::wire::nvme::opcode op = write ? xio::wire::nvme::opcode::write : xio::wire::nvme::opcode::read;
  uint64_t random = seed_of(0);
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t at = next_random(random) % blocks * k_block;
    const u64 t0 = wall_clock();
    transfer t{};
    if (check_transfer(ctx, {op, memory, s, at, k_block}, &t) != XIO_OK) {
      *wrong = 1;
      return;
    }
    const ring_view& r = storage_queue(t.shape, member_of(t.shape, at));
    const command all = command_of(t, only_piece(t));
    const u64 t1 = wall_clock();
    ring_place taken{};
    const ring_share share{1, 0, 0, 0, k_block};
    if (ring_reserve<nvme_codec>(lanes{1}, r, *c.world, share, &taken) != XIO_OK) *wrong = 1;
    write_command(r, taken.first, all);
    const u64 t2 = wall_clock();
    ring_publish<nvme_codec>(r, taken.first, 1, taken.turn);
    const u64 t3 = wall_clock();
    if (nvme_codec::wait(r, *c.world, taken.first) != XIO_OK) *wrong = 1;
    const u64 t4 = wall_clock();
    sums[0] += t1 - t0;
    sums[1] += t2 - t1;
    sums[2] += t3 - t2;
    sums[3] += t4 - t3;
  }
}

class bench {
 public:
  bench(const char* name, uint32_t queues, uint32_t depth, size_t memory_bytes) {
    xio_init_attr_t init = XIO_INIT_ATTR_INIT;
    init.bootstrap = "local";
    init.heap_bytes = memory_bytes + (2u << 20);
    must(xio_init(&init, &world_), "xio_init");
    must(xio_ctx_create(world_, nullptr, &ctx), "xio_ctx_create");
    xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
    attr.queues = queues;
    attr.depth = depth;
    must(xio_storage_open(world_, name, &attr, &storage), "xio_storage_open");
    uint64_t bytes = 0;
    must(xio_storage_size(world_, storage, &bytes, nullptr), "xio_storage_size");
    blocks = bytes / k_block;
    if (blocks < 256) give_up(name, "it holds less than 1 MiB");
    must(xio_malloc(world_, memory_bytes, reinterpret_cast<void**>(&memory)), "xio_malloc");
    must(hipMalloc(reinterpret_cast<void**>(&wrong), sizeof *wrong), "hipMalloc");
    must(hipMemset(wrong, 0, sizeof *wrong), "hipMemset");
  }
  ~bench() {
    uint32_t bad = 0;
    must(hipMemcpy(&bad, wrong, sizeof bad, hipMemcpyDeviceToHost), "hipMemcpy");
    if (bad != 0) give_up("an op", "failed");
    must(xio_storage_close(world_, storage), "xio_storage_close");
    must(xio_ctx_destroy(world_, ctx), "xio_ctx_destroy");
    must(xio_finalize(world_), "xio_finalize");
  }
  bench(const bench&) = delete;
  bench& operator=(const bench&) = delete;

  xio_engine_stats_t stats() const {
    xio_engine_stats_t s = XIO_ENGINE_STATS_INIT;
    must(xio_storage_stats(world_, storage, &s), "xio_storage_stats");
    return s;
  }

  xio_ctx_t ctx{};
  xio_storage_t storage{};
  uint64_t blocks = 0;
  unsigned char* memory = nullptr;
  uint32_t* wrong = nullptr;

 private:
  xio_world_t* world_ = nullptr;
};

int rate(const char* name, bool write, uint32_t threads, uint32_t queues, uint32_t depth, double seconds) {
  bench b(name, queues, depth, threads * k_block);
  const uint32_t lanes = threads < 64 ? threads : 64;
  const auto run = [&](uint32_t count) {
    const auto start = std::chrono::steady_clock::now();
    hipLaunchKernelGGL(one_in_flight, dim3((threads + lanes - 1) / lanes), dim3(lanes), 0, nullptr, b.ctx, b.storage,
                       b.memory, b.blocks, write, count, threads, b.wrong);
    must(hipDeviceSynchronize(), "the kernel");
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  // Warm, and more each time until a tenth of that long; then as many as take that long.
  uint32_t some = threads < 1000 ? 2000 / threads + 1 : 2;
  double once = run(some);
  while (once < seconds / 10 && some < k_most_ops) once = run(some *= 2);
  const double wanted = some * seconds / once;
  const uint32_t count = wanted < 1 ? 1 : wanted > k_most_ops ? k_most_ops : static_cast<uint32_t>(wanted);
  const xio_engine_stats_t before = b.stats();
  const double took = run(count);
  const xio_engine_stats_t after = b.stats();
  const double ops = static_cast<double>(after.ops - before.ops);
  std::printf("rate %s %u %u %u %.0f %.4f\n", write ? "write" : "read", threads, queues, depth, ops / took,
              static_cast<double>(after.doorbells - before.doorbells) / ops);
  return std::fflush(stdout) != 0 || std::ferror(stdout) != 0 ? 1 : 0;
}

int parts(const char* name, bool write, uint32_t count) {
  bench b(name, 1, 64, k_block);
  u64* sums = nullptr;
  must(hipMalloc(reinterpret_cast<void**>(&sums), 4 * sizeof *sums), "hipMalloc");
  // How long a tick of the kernel's clock is, by the host's.
  u64 got[4] = {};
  double took = 0;
  for (int round = 0; round < 2; ++round) {
    must(hipMemset(sums, 0, 4 * sizeof *sums), "hipMemset");
    const auto start = std::chrono::steady_clock::now();
    hipLaunchKernelGGL(steps, dim3(1), dim3(1), 0, nullptr, b.ctx, b.storage, b.memory, b.blocks, write, count, sums,
                       b.wrong);
    must(hipDeviceSynchronize(), "the kernel");
    took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  must(hipMemcpy(got, sums, sizeof got, hipMemcpyDeviceToHost), "hipMemcpy");
  const double all = static_cast<double>(got[0] + got[1] + got[2] + got[3]);
  const auto ns = [&](u64 ticks) { return took * 1e9 / count * static_cast<double>(ticks) / all; };
  std::printf("steps %s build %.0f enqueue %.0f doorbell %.0f poll %.0f total %.0f\n", write ? "write" : "read",
              ns(got[0]), ns(got[1]), ns(got[2]), ns(got[3]), took * 1e9 / count);
  must(hipFree(sums), "hipFree");
  return std::fflush(stdout) != 0 || std::ferror(stdout) != 0 ? 1 : 0;
}

uint32_t number(const char* text, uint32_t most) {
  char* end = nullptr;
  const unsigned long long v = std::strtoull(text, &end, 10);
  if (end == text || *end != 0 || v == 0 || v > most) give_up(text, "is no number in range");
  return static_cast<uint32_t>(v);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const std::string op = argc > 3 ? argv[3] : "";
  const bool known = op == "read" || op == "write";
  if (mode == "rate" && argc == 8 && known)
    return rate(argv[2], op == "write", number(argv[4], 4096), number(argv[5], 64), number(argv[6], 4096),
                number(argv[7], 3600));
  if (mode == "steps" && argc == 5 && known) return parts(argv[2], op == "write", number(argv[4], 100000000));
  std::fprintf(
      stderr,
      "usage: nvme rate NAME read|write THREADS QUEUES DEPTH SECONDS\n       nvme steps NAME read|write COUNT\n");
  return 2;
}
