// SPDX-License-Identifier: MIT
// Collectives, sync and barrier of the team of all PEs, each by one workgroup, and those of the world by a thread, a
// wave and a workgroup: microseconds a call.
//
//   mpirun -np 2 bench/collectives [TIMES [THREADS]]       (or xiorun -n 2)
//
// TIMES calls (500 unless given) run in one kernel of THREADS threads (256), which synchronises, reads the clock, calls
// and reads it again: neither the launch counts nor how long after each other the PEs' kernels start. PE 0 prints a
// table; every PE checks what the last call left.
#include <xio/hip.h>
#include <xio/team.h>
#include <xio/xio.h>
#include <xio/xio_device.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

[[noreturn]] void give_up(const char* what, const char* why) {
  std::fprintf(stderr, "collectives: %s: %s\n", what, why);
  std::exit(1);
}
void check(xio_status_t s, const char* what) {
  if (s != XIO_OK) give_up(what, xio_last_error());
}
void check(hipError_t e, const char* what) {
  if (e != hipSuccess) give_up(what, hipGetErrorString(e));
}
#define CHECK(call) check((call), #call)

enum class op { alltoall, fcollect, broadcast, reduce, sync, barrier };
constexpr const char* k_names[] = {"alltoall", "fcollect", "broadcast", "reduce sum int32", "sync", "barrier"};
enum class scope { thread, wave, workgroup };
constexpr const char* k_scope_names[] = {"thread", "wave", "workgroup"};

// The result of a kernel, in device memory.
struct outcome {
  uint64_t ticks;
  int status;
};

struct work {
  xio_ctx_t ctx;
  xio_team_t team;
  int *dst, *src;  // symmetric, a block per member
  outcome* out;
};

// Rate of wall_clock().
double ticks_per_us() {
#if defined(XIO_ON_HIP)
  return 100;  // s_memrealtime counts at 100 MHz
#else
  return 1000;
#endif
}

template <op Op>
__device__ xio_status_t call(const work& w, size_t bytes) {
  if constexpr (Op == op::alltoall) return xio_alltoall_wg(w.ctx, w.team, w.dst, w.src, bytes);
  if constexpr (Op == op::fcollect) return xio_fcollect_wg(w.ctx, w.team, w.dst, w.src, bytes);
  if constexpr (Op == op::broadcast) return xio_broadcast_wg(w.ctx, w.team, w.dst, w.src, bytes, 0);
  if constexpr (Op == op::reduce)
    return xio_reduce_wg<xio_reduction::sum>(w.ctx, w.team, w.dst, w.src, bytes / sizeof(int));
  if constexpr (Op == op::sync) return xio_team_sync_wg(w.ctx, w.team);
  if constexpr (Op == op::barrier) return xio_team_barrier_wg(w.ctx, w.team);
}

// Of `times` turns, behind what synchronises the PEs.
template <class Synchronise, class Turn>
__device__ void timed(const work& w, int times, Synchronise synchronise, Turn turn) {
  const bool reports = threadIdx.x == 0;
  const xio_status_t begun = synchronise();
  if (reports && begun != XIO_OK) w.out->status = begun;
  const uint64_t start = xio::dev::wall_clock();
  for (int i = 0; i < times; ++i) {
    const xio_status_t s = turn();
    if (s != XIO_OK && reports) w.out->status = s;
  }
  if (reports) w.out->ticks = xio::dev::wall_clock() - start;
}

template <op Op>
__global__ void calls(work w, size_t bytes, int times) {
  timed(
      w, times, [&] { return xio_team_sync_wg(w.ctx, w.team); }, [&] { return call<Op>(w, bytes); });
}

template <op Op, scope S>
__device__ xio_status_t synchronise(const xio_ctx_t& ctx) {
  if constexpr (Op == op::sync) {
    if constexpr (S == scope::thread) return xio_sync_all(ctx);
    if constexpr (S == scope::wave) return xio_sync_all_wave(ctx);
    return xio_sync_all_wg(ctx);
  } else {
    if constexpr (S == scope::thread) return xio_barrier_all(ctx);
    if constexpr (S == scope::wave) return xio_barrier_all_wave(ctx);
    return xio_barrier_all_wg(ctx);
  }
}

template <op Op, scope S>
__global__ void syncs(work w, int times) {
  const auto turn = [&] { return synchronise<Op, S>(w.ctx); };
  timed(w, times, turn, turn);
}

int word_of(int from, int block, size_t i) { return from * 1000003 + block * 7919 + static_cast<int>(i); }

struct session {
  xio_world_t* world = nullptr;
  int me = 0, n = 0, times = 500;
  unsigned threads = 256, wave = 64;
  work w{};

  template <class Launch>
  double microseconds_of(op o, Launch&& launch) const {
    CHECK(xio_host_barrier(world));
    launch();
    outcome out{};
    CHECK(hipMemcpy(&out, w.out, sizeof out, hipMemcpyDeviceToHost));
    if (out.status != 0) give_up(k_names[static_cast<int>(o)], xio_status_name(static_cast<xio_status_t>(out.status)));
    return static_cast<double>(out.ticks) / ticks_per_us();
  }
  template <op Op>
  double microseconds(size_t bytes, int count) const {
    return microseconds_of(Op,
                           [&] { hipLaunchKernelGGL(calls<Op>, dim3(1), dim3(threads), 0, nullptr, w, bytes, count); });
  }

  // The value that word i of block b of this PE's dst has after the call.
  int expected(op o, int b, size_t i) const {
    if (o == op::alltoall) return word_of(b, me, i);
    if (o == op::fcollect) return word_of(b, 0, i);
    if (o == op::broadcast) return word_of(0, 0, i);
    unsigned sum = 0;
    for (int from = 0; from < n; ++from) sum += static_cast<unsigned>(word_of(from, 0, i));
    return static_cast<int>(sum);
  }

  void fill(size_t bytes) const {
    const size_t words = bytes / sizeof(int);
    std::vector<int> data(words * static_cast<size_t>(n));
    for (int b = 0; b < n; ++b)
      for (size_t i = 0; i < words; ++i) data[static_cast<size_t>(b) * words + i] = word_of(me, b, i);
    CHECK(hipMemcpy(w.src, data.data(), data.size() * sizeof(int), hipMemcpyHostToDevice));
    CHECK(hipMemset(w.dst, 0xa5, data.size() * sizeof(int)));
  }

  void compare(op o, size_t bytes) const {
    CHECK(xio_host_barrier(world));
    if (o == op::broadcast && me == 0) return;  // the root's destination stays as it is
    const size_t words = bytes / sizeof(int);
    const int blocks = o == op::alltoall || o == op::fcollect ? n : 1;
    std::vector<int> got(words * static_cast<size_t>(blocks));
    CHECK(hipMemcpy(got.data(), w.dst, got.size() * sizeof(int), hipMemcpyDeviceToHost));
    for (int b = 0; b < blocks; ++b)
      for (size_t i = 0; i < words; ++i)
        if (got[static_cast<size_t>(b) * words + i] != expected(o, b, i))
          give_up(k_names[static_cast<int>(o)], "the data is not what the members sent");
  }

  template <op Op>
  void row(size_t bytes) const {
    if (bytes != 0) fill(bytes);
    const int count = bytes > size_t{64} << 10 ? std::max(times / 10, 1) : times;
    microseconds<Op>(bytes, std::max(count / 10, 1));
    const double took = microseconds<Op>(bytes, count);
    if (bytes != 0) compare(Op, bytes);
    if (me == 0) std::printf("| %s | %zu | %.2f |\n", k_names[static_cast<int>(Op)], bytes, took / count);
  }

  template <op Op, scope S>
  void row_of() const {
    const unsigned callers = S == scope::thread ? 1 : S == scope::wave ? wave : threads;
    const auto microseconds = [&](int count) {
      return microseconds_of(Op,
                             [&] { hipLaunchKernelGGL((syncs<Op, S>), dim3(1), dim3(callers), 0, nullptr, w, count); });
    };
    microseconds(std::max(times / 10, 1));
    const double took = microseconds(times);
    if (me == 0)
      std::printf("| %s all by a %s | 0 | %.2f |\n", k_names[static_cast<int>(Op)], k_scope_names[static_cast<int>(S)],
                  took / times);
  }
};

}  // namespace

int main(int argc, char** argv) {
  constexpr size_t k_most = size_t{4} << 20;
  session s;
  if (argc > 1) s.times = std::atoi(argv[1]);
  if (argc > 2) s.threads = static_cast<unsigned>(std::atoi(argv[2]));
  if (s.times < 1 || s.threads < 1 || s.threads > 1024)
    give_up("arguments", "collectives [TIMES [THREADS]], numbers from 1 up, and at most 1024 threads");
  const char* size = std::getenv("OMPI_COMM_WORLD_SIZE");
  if (size == nullptr) size = std::getenv("XIO_TCP_SIZE");
  const size_t pes = size != nullptr ? std::strtoull(size, nullptr, 10) : 1;
  xio_init_attr_t attr = XIO_INIT_ATTR_INIT;
  attr.heap_bytes = 2 * pes * k_most + (size_t{16} << 20);
  CHECK(xio_init(&attr, &s.world));
  CHECK(xio_ctx_create(s.world, nullptr, &s.w.ctx));
  CHECK(xio_team_world(s.world, &s.w.team));
  s.me = xio_my_pe(s.world);
  s.n = xio_n_pes(s.world);
  void *dst = nullptr, *src = nullptr;
  CHECK(xio_malloc(s.world, static_cast<size_t>(s.n) * k_most, &dst));
  CHECK(xio_malloc(s.world, static_cast<size_t>(s.n) * k_most, &src));
  s.w.dst = static_cast<int*>(dst);
  s.w.src = static_cast<int*>(src);
  hipDeviceProp_t gpu{};
  int device = 0;
  CHECK(hipGetDevice(&device));
  CHECK(hipGetDeviceProperties(&gpu, device));
  s.wave = static_cast<unsigned>(gpu.warpSize);
  CHECK(hipMalloc(&s.w.out, sizeof *s.w.out));
  CHECK(hipMemset(s.w.out, 0, sizeof *s.w.out));

  if (s.me == 0) std::printf("| op, %d PEs, one workgroup of %u | bytes | us |\n|---|---|---|\n", s.n, s.threads);
  for (const size_t bytes : {size_t{8}, size_t{4096}, size_t{32768}, size_t{262144}, k_most})
    s.row<op::alltoall>(bytes);
  for (const size_t bytes : {size_t{8}, size_t{1024}, size_t{65536}, size_t{1} << 20}) s.row<op::fcollect>(bytes);
  for (const size_t bytes : {size_t{8}, size_t{4096}, size_t{65536}, size_t{1} << 20}) s.row<op::broadcast>(bytes);
  for (const size_t bytes : {size_t{8}, size_t{1024}, size_t{16384}, size_t{65536}, size_t{1} << 20})
    s.row<op::reduce>(bytes);
  s.row<op::sync>(0);
  s.row<op::barrier>(0);
  s.row_of<op::sync, scope::thread>();
  s.row_of<op::sync, scope::wave>();
  s.row_of<op::sync, scope::workgroup>();
  s.row_of<op::barrier, scope::thread>();
  s.row_of<op::barrier, scope::wave>();
  s.row_of<op::barrier, scope::workgroup>();
  CHECK(hipFree(s.w.out));
  CHECK(xio_team_destroy(s.world, s.w.team));
  CHECK(xio_ctx_destroy(s.world, s.w.ctx));
  CHECK(xio_finalize(s.world));
  return std::fflush(stdout) != 0 || std::ferror(stdout) != 0 ? 1 : 0;
}
