// SPDX-License-Identifier: MIT
// Calls on a stream: microseconds a call in a replayed graph, in a row of launches, and of the host's own time.
//
//   mpirun -np 2 bench/streams [TIMES [MOST]]       (or xiorun -n 2)
//
// A graph has 50 calls and is replayed TIMES / 50 times (TIMES is 1000 unless given, a tenth of it from 1 MiB on); a
// row is TIMES calls by the host, and the host's time that of the first 64 of a row, before the stream is full. Behind
// each the data of the last call is compared. PE 0 prints the table, of up to MOST bytes (64 MiB).
#include <xio/hip.h>
#include <xio/stream.h>
#include <xio/team.h>
#include <xio/xio.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

namespace {

[[noreturn]] void give_up(const char* what, const char* why) {
  std::fprintf(stderr, "streams: %s: %s\n", what, why);
  std::exit(1);
}
void check(xio_status_t s, const char* what) {
  if (s != XIO_OK) give_up(what, xio_last_error());
}
void check(hipError_t e, const char* what) {
  if (e != hipSuccess) give_up(what, hipGetErrorString(e));
}
#define CHECK(call) check((call), #call)

using clock_type = std::chrono::steady_clock;
double microseconds_since(clock_type::time_point begin) {
  return std::chrono::duration<double, std::micro>(clock_type::now() - begin).count();
}

__global__ void nothing() {}

struct session {
  xio_world_t* world = nullptr;
  xio_ctx_t ctx{};
  xio_team_t team{};
  hipStream_t stream = nullptr;
  float *dst = nullptr, *src = nullptr;
  size_t room = 0;  // of each
  int me = 0, n = 0, times = 1000;

  // Block b of this PE's src.
  float value(int pe, size_t block) const { return static_cast<float>(pe * 16 + static_cast<int>(block) + 1); }

  void fill(size_t count, size_t blocks) const {
    std::vector<float> data(count * blocks);
    for (size_t i = 0; i < data.size(); ++i) data[i] = value(me, i / count);
    CHECK(hipMemcpy(src, data.data(), data.size() * sizeof(float), hipMemcpyHostToDevice));
    CHECK(hipMemset(dst, 0xa5, room));
    CHECK(xio_host_barrier(world));
  }
  void compare(const char* name, size_t count, const std::function<float(size_t block)>& wanted, size_t blocks) const {
    std::vector<float> got(count * blocks);
    CHECK(hipMemcpy(got.data(), dst, got.size() * sizeof(float), hipMemcpyDeviceToHost));
    for (size_t i = 0; i < got.size(); ++i)
      if (got[i] != wanted(i / count)) give_up(name, "the data is not what the members sent");
    xio_status_t failed = XIO_OK;
    CHECK(xio_ctx_failed(world, ctx, &failed));
    if (failed != XIO_OK) give_up(name, xio_status_name(failed));
  }

  double replayed(const std::function<void()>& call, int count) const {
    constexpr int k_calls = 50;
    hipGraph_t graph = nullptr;
    hipGraphExec_t made = nullptr;
    CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeThreadLocal));
    for (int i = 0; i < k_calls; ++i) call();
    CHECK(hipStreamEndCapture(stream, &graph));
    CHECK(hipGraphInstantiateWithFlags(&made, graph, 0));
    const int replays = std::max(count / k_calls, 2);
    clock_type::time_point begin;
    for (int i = 0; i <= replays; ++i) {  // the first one warms up
      if (i == 1) {
        CHECK(hipStreamSynchronize(stream));
        CHECK(xio_host_barrier(world));
        begin = clock_type::now();
      }
      CHECK(hipGraphLaunch(made, stream));
    }
    CHECK(hipStreamSynchronize(stream));
    const double took = microseconds_since(begin) / replays / k_calls;
    CHECK(hipGraphExecDestroy(made));
    CHECK(hipGraphDestroy(graph));
    return took;
  }
  double in_a_row(const std::function<void()>& call, int count) const {
    call();
    CHECK(hipStreamSynchronize(stream));
    CHECK(xio_host_barrier(world));
    const auto begin = clock_type::now();
    for (int i = 0; i < count; ++i) call();
    CHECK(hipStreamSynchronize(stream));
    return microseconds_since(begin) / count;
  }
  double of_host(const std::function<void()>& call) const {
    constexpr int k_calls = 64;
    CHECK(xio_host_barrier(world));
    const auto begin = clock_type::now();
    for (int i = 0; i < k_calls; ++i) call();
    const double took = microseconds_since(begin) / k_calls;
    CHECK(hipStreamSynchronize(stream));
    return took;
  }

  void row(const char* name, size_t bytes, const std::function<void()>& call,
           const std::function<float(size_t)>& wanted = nullptr, size_t blocks = 1, size_t src_blocks = 1) const {
    const size_t count = bytes / sizeof(float);
    if (count != 0) fill(count, src_blocks);
    const int calls = bytes >= size_t{1} << 20 ? std::max(times / 10, 100) : times;
    const double graph = replayed(call, calls), launched = in_a_row(call, calls), host = of_host(call);
    if (wanted) compare(name, count, wanted, blocks);
    if (me == 0) std::printf("| %s | %zu | %.2f | %.2f | %.2f |\n", name, bytes, graph, launched, host);
  }

  void rows_of(size_t bytes) const {
    const auto all = static_cast<size_t>(n);
    row(
        "alltoall", bytes, [&] { CHECK(xio_alltoall_on_stream(world, ctx, team, dst, src, bytes, stream, nullptr)); },
        [&](size_t block) { return value(static_cast<int>(block), static_cast<size_t>(me)); }, all, all);
    row(
        "fcollect", bytes, [&] { CHECK(xio_fcollect_on_stream(world, ctx, team, dst, src, bytes, stream, nullptr)); },
        [&](size_t block) { return value(static_cast<int>(block), 0); }, all);
    row(
        "broadcast", bytes,
        [&] { CHECK(xio_broadcast_on_stream(world, ctx, team, dst, src, bytes, 0, stream, nullptr)); },
        [&](size_t) { return value(0, 0); }, me == 0 ? 0 : 1);
    row_of_reduce(bytes);
  }
  void row_of_reduce(size_t bytes) const {
    float sum = 0;
    for (int pe = 0; pe < n; ++pe) sum += value(pe, 0);
    row(
        "reduce sum float", bytes,
        [&] {
          CHECK(xio_reduce_on_stream(world, ctx, team, XIO_REDUCE_SUM, XIO_FLOAT, dst, src, bytes / sizeof(float),
                                     stream, nullptr));
        },
        [&](size_t) { return sum; });
  }
};

}  // namespace

int main(int argc, char** argv) {
  constexpr size_t k_most = size_t{64} << 20;
  session s;
  if (argc > 1) s.times = std::atoi(argv[1]);
  if (s.times < 100) give_up("arguments", "streams [TIMES [MOST]], TIMES a number of 100 and more");
  const size_t largest = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : k_most;
  xio_init_attr_t attr = XIO_INIT_ATTR_INIT;
  attr.heap_bytes = 4 * largest + (size_t{64} << 20);
  CHECK(xio_init(&attr, &s.world));
  s.me = xio_my_pe(s.world);
  s.n = xio_n_pes(s.world);
  CHECK(xio_ctx_create(s.world, nullptr, &s.ctx));
  CHECK(xio_team_world(s.world, &s.team));
  s.room = std::max(largest, static_cast<size_t>(s.n) * (size_t{4} << 20));
  void *dst = nullptr, *src = nullptr;
  CHECK(xio_malloc(s.world, s.room, &dst));
  CHECK(xio_malloc(s.world, s.room, &src));
  s.dst = static_cast<float*>(dst);
  s.src = static_cast<float*>(src);
  CHECK(hipStreamCreateWithFlags(&s.stream, hipStreamNonBlocking));
  CHECK(xio_stream_prepare(s.world, s.ctx));

  if (s.me == 0)
    std::printf(
        "| on a stream, %d PEs | bytes | us in a graph | us in a row | us of the host |\n|---|---|---|---|---|\n", s.n);
  // Any call costs this at least.
  s.row("an empty kernel", 0, [&] { hipLaunchKernelGGL(nothing, dim3(1), dim3(1), 0, s.stream); });
  s.row("barrier_all", 0, [&] { CHECK(xio_barrier_all_on_stream(s.world, s.ctx, s.stream, nullptr)); });
  s.row("sync_all", 0, [&] { CHECK(xio_sync_all_on_stream(s.world, s.ctx, s.stream, nullptr)); });
  s.row("quiet", 0, [&] { CHECK(xio_quiet_on_stream(s.world, s.ctx, s.stream, nullptr)); });
  for (const size_t bytes : {size_t{8}, size_t{32768}, size_t{65536}, size_t{4} << 20})
    if (bytes <= largest) s.rows_of(bytes);
  for (const size_t bytes : {size_t{4}, size_t{1} << 20, size_t{16} << 20, size_t{64} << 20})
    if (bytes <= largest) s.row_of_reduce(bytes);
  CHECK(hipStreamDestroy(s.stream));
  CHECK(xio_team_destroy(s.world, s.team));
  CHECK(xio_ctx_destroy(s.world, s.ctx));
  CHECK(xio_finalize(s.world));
  return std::fflush(stdout) != 0 || std::ferror(stdout) != 0 ? 1 : 0;
}
