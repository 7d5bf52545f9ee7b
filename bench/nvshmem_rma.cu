// SPDX-License-Identifier: MIT
// The ops that xio-perf measures, written for NVSHMEM's API: same sizes, scopes and CSV, so that bench/vs_nvshmem can
// lay one beside the other. The program starts its two PEs itself, one a GPU, and needs no launcher.
//   nvshmem_rma [-n ITERATIONS] [-w WARMUP] [-r LAUNCHES]
//   nvshmem_rma -s [-n CALLS]     the calls on a stream of bench/streams instead, in its table
// A figure is the time of one kernel's loop divided by its iterations, and the median of the launches: as NVSHMEM's own
// performance tests divide. Data, words and counts are compared after each measurement. Configure builds it where it
// finds NVSHMEM (--with-nvshmem=DIR, or the Python wheel).
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

constexpr size_t k_most = size_t{16} << 20;
constexpr size_t k_guard = 256;
constexpr size_t k_line = 128;
constexpr unsigned char k_poison = 0xA5;
constexpr unsigned k_block = 256;

struct settings {
  unsigned iterations = 300, warm_up = 30, launches = 11;
  bool streams = false;
};
settings g_set;
int g_me = 0;

[[noreturn]] void fail(const char* what, const char* why) {
  std::fprintf(stderr, "nvshmem_rma: PE %d: %s: %s\n", g_me, what, why);
  std::_Exit(1);
}
void check(cudaError_t e, const char* what) {
  if (e != cudaSuccess) fail(what, cudaGetErrorString(e));
}
void check(bool good, const char* what) {
  if (!good) fail(what, "is not as expected");
}

// The memory of kernels. Symmetric: src, dst, flag, word.
struct work {
  char *src, *dst;
  uint64_t *flag, *word;
  size_t bytes;
  int me, peer;
  unsigned warm_up, iterations;
  uint64_t base;    // of the flags' values: no launch takes the flags of one before
  uint64_t* spans;  // begin and end of each workgroup, ns
  uint64_t* sum;    // what fetched values add up to
};

__device__ uint64_t now() {
  uint64_t t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
  return t;
}

template <class Body>
__device__ void timed(const work& w, Body&& body) {
  for (unsigned i = 0; i < w.warm_up; ++i) body(i);
  const uint64_t begin = now();
  for (unsigned i = 0; i < w.iterations; ++i) body(w.warm_up + i);
  const uint64_t end = now();
  if (threadIdx.x == 0) {
    w.spans[2 * blockIdx.x] = begin;
    w.spans[2 * blockIdx.x + 1] = end;
  }
}

struct by_thread {
  static constexpr const char* name = "thread";
  static constexpr unsigned threads = 1;
  __device__ static void sync() {}
  __device__ static void put(void* d, const void* s, size_t n, int pe) { nvshmem_putmem_nbi(d, s, n, pe); }
  __device__ static void get(void* d, const void* s, size_t n, int pe) { nvshmem_getmem(d, s, n, pe); }
  __device__ static void get_nbi(void* d, const void* s, size_t n, int pe) { nvshmem_getmem_nbi(d, s, n, pe); }
  __device__ static void put_signal(void* d, const void* s, size_t n, uint64_t* f, uint64_t v, int pe) {
    nvshmem_putmem_signal_nbi(d, s, n, f, v, NVSHMEM_SIGNAL_SET, pe);
  }
  __device__ static void barrier() { nvshmem_barrier_all(); }
};
struct by_wave {
  static constexpr const char* name = "wave";
  static constexpr unsigned threads = 32;
  __device__ static void sync() { __syncwarp(); }
  __device__ static void put(void* d, const void* s, size_t n, int pe) { nvshmemx_putmem_nbi_warp(d, s, n, pe); }
  __device__ static void get(void* d, const void* s, size_t n, int pe) { nvshmemx_getmem_warp(d, s, n, pe); }
  __device__ static void get_nbi(void* d, const void* s, size_t n, int pe) { nvshmemx_getmem_nbi_warp(d, s, n, pe); }
  __device__ static void put_signal(void* d, const void* s, size_t n, uint64_t* f, uint64_t v, int pe) {
    nvshmemx_putmem_signal_nbi_warp(d, s, n, f, v, NVSHMEM_SIGNAL_SET, pe);
  }
  __device__ static void barrier() { nvshmemx_barrier_all_warp(); }
};
struct by_block {
  static constexpr const char* name = "block";
  static constexpr unsigned threads = k_block;
  __device__ static void sync() { __syncthreads(); }
  __device__ static void put(void* d, const void* s, size_t n, int pe) { nvshmemx_putmem_nbi_block(d, s, n, pe); }
  __device__ static void get(void* d, const void* s, size_t n, int pe) { nvshmemx_getmem_block(d, s, n, pe); }
  __device__ static void get_nbi(void* d, const void* s, size_t n, int pe) { nvshmemx_getmem_nbi_block(d, s, n, pe); }
  __device__ static void put_signal(void* d, const void* s, size_t n, uint64_t* f, uint64_t v, int pe) {
    nvshmemx_putmem_signal_nbi_block(d, s, n, f, v, NVSHMEM_SIGNAL_SET, pe);
  }
  __device__ static void barrier() { nvshmemx_barrier_all_block(); }
};

template <class Scope>
__device__ void quiet() {
  Scope::sync();
  if (threadIdx.x == 0) nvshmem_quiet();
  Scope::sync();
}

template <class Scope>
__global__ void put_lat(work w) {
  timed(w, [&](unsigned) {
    Scope::put(w.dst, w.src, w.bytes, w.peer);
    quiet<Scope>();
  });
}
// A blocking get of NVSHMEM reads by plain loads, which the first-level cache serves when the same bytes are asked for
// again: 0.18 us on an H200, old data. The quiet, as in NVSHMEM's own perftest, makes every round read the peer.
template <class Scope>
__global__ void get_lat(work w) {
  timed(w, [&](unsigned) {
    Scope::get_nbi(w.dst, w.src, w.bytes, w.peer);
    quiet<Scope>();
  });
}
// g reads by a plain load, too; a cache line of its own for every round is not in the cache.
__host__ __device__ constexpr size_t word_of_round(size_t round) {
  return round % (k_most / k_line) * (k_line / sizeof(uint64_t));
}
__global__ void g_lat(work w) {
  uint64_t sum = 0;
  timed(w, [&](unsigned i) { sum += nvshmem_uint64_g(reinterpret_cast<uint64_t*>(w.src) + word_of_round(i), w.peer); });
  *w.sum = sum;
}
__global__ void atomic_lat(work w) {
  uint64_t sum = 0;
  timed(w, [&](unsigned) { sum += nvshmem_uint64_atomic_fetch_add(w.word, 3, w.peer); });
  *w.sum = sum;
}

// PE 0 calls first; the other PE waits first.
template <class Call, class Wait>
__device__ void in_turn(const work& w, Call&& call, Wait&& wait) {
  timed(w, [&](unsigned i) {
    const uint64_t value = w.base + i + 1;
    if (w.me == 0) {
      call(value);
      wait(value);
    } else {
      wait(value);
      call(value);
    }
  });
}
__global__ void signal_pingpong(work w) {
  in_turn(
      w, [&](uint64_t v) { nvshmemx_signal_op(w.flag, v, NVSHMEM_SIGNAL_SET, w.peer); },
      [&](uint64_t v) { nvshmem_signal_wait_until(w.flag, NVSHMEM_CMP_EQ, v); });
  nvshmem_quiet();
}
template <class Scope>
__global__ void put_signal_pingpong(work w) {
  in_turn(
      w, [&](uint64_t v) { Scope::put_signal(w.dst, w.src, w.bytes, w.flag, v, w.peer); },
      [&](uint64_t v) {
        if (threadIdx.x == 0) nvshmem_signal_wait_until(w.flag, NVSHMEM_CMP_EQ, v);
        Scope::sync();
      });
  quiet<Scope>();
}
template <class Scope>
__global__ void barrier(work w) {
  timed(w, [&](unsigned) { Scope::barrier(); });
}

// Each workgroup's part is whole cache lines.
__global__ void put_bw(work w) {
  const size_t each = (w.bytes / gridDim.x + 127) / 128 * 128, at = each * blockIdx.x;
  const size_t part = at >= w.bytes ? 0 : min(each, w.bytes - at);
  timed(w, [&](unsigned) { by_block::put(w.dst + at, w.src + at, part, w.peer); });
  quiet<by_block>();
  if (threadIdx.x == 0) w.spans[2 * blockIdx.x + 1] = now();
}
// A quiet in each round, as in get_lat: else the first-level cache serves what the round before has read.
__global__ void get_bw(work w) {
  const size_t each = (w.bytes / gridDim.x + 127) / 128 * 128, at = each * blockIdx.x;
  const size_t part = at >= w.bytes ? 0 : min(each, w.bytes - at);
  timed(w, [&](unsigned) {
    by_block::get_nbi(w.dst + at, w.src + at, part, w.peer);
    quiet<by_block>();
  });
}

uint64_t pattern(int owner, size_t word) {
  return (word + 1) * 0x9e3779b97f4a7c15ull ^ static_cast<uint64_t>(owner + 1);
}

work g_work;

void prepare() {
  check(cudaMemset(g_work.dst, k_poison, k_most + k_guard), "cudaMemset");
  check(cudaMemset(g_work.word, 0, 8), "cudaMemset");
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  nvshmem_barrier_all();
}

// The data of `owner` lie in dst, and nothing behind them.
void compare(int owner, size_t bytes) {
  std::vector<unsigned char> found(bytes + k_guard);
  check(cudaMemcpy(found.data(), g_work.dst, found.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
  for (size_t i = 0; i < bytes; ++i)
    check(found[i] == static_cast<unsigned char>(pattern(owner, i / 8) >> (8 * (i % 8))), "the data");
  for (size_t i = bytes; i < found.size(); ++i) check(found[i] == k_poison, "what lies behind the data");
}

struct shape {
  const char *test, *op, *scope;
  size_t bytes;
  unsigned ctas, threads;
  bool both;  // both PEs run the kernel
  bool rate;
};

void print(const shape& s, std::vector<double> us) {
  std::sort(us.begin(), us.end());
  const size_t n = us.size();
  double sum = 0;
  for (const double t : us) sum += t;
  const double median = n % 2 == 1 ? us[n / 2] : (us[n / 2 - 1] + us[n / 2]) / 2;
  std::printf("%s,%s,%s,%zu,%u,%u,%u,%zu,%.4f,%.4f,,,%.4f,%.4f,", s.test, s.op, s.scope, s.bytes, s.ctas, s.threads,
              g_set.iterations, n, us[0], median, us[n - 1], sum / double(n));
  if (s.rate) std::printf("%.4f", double(s.bytes) / median / 1e3);
  std::printf(",,NVSHMEM,,NVSHMEM,\n");
  std::fflush(stdout);
}

template <class Kernel>
void measure(Kernel kernel, const shape& s) {
  prepare();
  std::vector<double> us;
  for (unsigned launch = 0; launch <= g_set.launches; ++launch) {
    g_work.bytes = s.bytes;
    g_work.warm_up = g_set.warm_up;
    g_work.iterations = g_set.iterations;
    if (s.both || g_me == 0) {
      void* arguments[] = {&g_work};
      // One workgroup or few: those of both PEs are resident, so that kernels may wait for each other.
      check(
          cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(s.ctas), dim3(s.threads), arguments, 0, nullptr),
          s.test);
    }
    check(cudaDeviceSynchronize(), s.test);
    nvshmem_barrier_all();
    g_work.base += g_set.warm_up + g_set.iterations;
    std::vector<uint64_t> spans(2 * s.ctas);
    check(cudaMemcpy(spans.data(), g_work.spans, spans.size() * 8, cudaMemcpyDeviceToHost), "cudaMemcpy");
    uint64_t begin = spans[0], end = spans[1];
    for (unsigned c = 0; c < s.ctas; ++c) {
      begin = std::min(begin, spans[2 * c]);
      end = std::max(end, spans[2 * c + 1]);
    }
    if (launch > 0) us.push_back(double(end - begin) / 1e3 / g_set.iterations);
  }
  if (g_me == 0) print(s, us);
}

void check_sum(uint64_t expected, const char* what) {
  uint64_t sum = 0;
  check(cudaMemcpy(&sum, g_work.sum, 8, cudaMemcpyDeviceToHost), "cudaMemcpy");
  if (g_me == 0) check(sum == expected, what);
}

template <class Scope>
void latencies(size_t most) {
  for (size_t bytes = 8; bytes <= most; bytes *= 2) {
    measure(put_lat<Scope>, {"put_lat", "", Scope::name, bytes, 1, Scope::threads, false, false});
    if (g_me == 1) compare(0, bytes);
    measure(get_lat<Scope>, {"get_lat", "", Scope::name, bytes, 1, Scope::threads, false, false});
    if (g_me == 0) compare(1, bytes);
  }
}

template <class Scope>
void turns() {
  for (const size_t bytes : {size_t{16}, size_t{65536}}) {
    measure(put_signal_pingpong<Scope>,
            {"put_signal_pingpong", "", Scope::name, bytes, 1, Scope::threads, true, false});
    compare(1 - g_me, bytes);
  }
  measure(barrier<Scope>, {"barrier", "", Scope::name, 0, 1, Scope::threads, true, false});
}

void bandwidths() {
  const settings was = g_set;
  g_set.iterations = 50;
  g_set.warm_up = 5;
  for (const size_t bytes : {size_t{65536}, size_t{1} << 20, k_most}) {
    measure(put_bw, {"put_bw", "", "block", bytes, 32, k_block, false, true});
    if (g_me == 1) compare(0, bytes);
    measure(get_bw, {"get_bw", "", "block", bytes, 32, k_block, false, true});
    if (g_me == 0) compare(1, bytes);
  }
  g_set = was;
}

void run_all() {
  latencies<by_thread>(65536);
  latencies<by_wave>(65536);
  latencies<by_block>(65536);
  const uint64_t all = g_set.warm_up + g_set.iterations;
  measure(g_lat, {"g_lat", "", "thread", 8, 1, 1, false, false});
  uint64_t fetched = 0;
  for (uint64_t i = 0; i < all; ++i) fetched += pattern(1, word_of_round(i));
  check_sum(fetched, "the sum of what g fetched");
  measure(atomic_lat, {"atomic_lat", "fetch_add", "thread", 8, 1, 1, false, false});
  // The last launch's values: an arithmetic series that goes on from the launches before.
  const uint64_t first = 3 * all * g_set.launches;
  check_sum(all * first + 3 * (all * (all - 1) / 2), "the sum of what fetch_add fetched");
  measure(signal_pingpong, {"signal_pingpong", "", "thread", 8, 1, 1, true, false});
  turns<by_thread>();
  turns<by_wave>();
  turns<by_block>();
  bandwidths();
}

// --- Calls on a stream ---

template <class Call>
double on_stream(cudaStream_t stream, bool in_graph, Call&& call) {
  constexpr unsigned k_calls = 50;
  cudaGraphExec_t made = nullptr;
  if (in_graph) {
    cudaGraph_t graph = nullptr;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    for (unsigned i = 0; i < k_calls; ++i) call();
    check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    check(cudaGraphInstantiate(&made, graph, 0), "cudaGraphInstantiate");
  }
  const unsigned turns = g_set.iterations / k_calls;
  uint64_t begin = 0;
  const auto host_now = [] {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1000000000 + static_cast<uint64_t>(t.tv_nsec);
  };
  for (unsigned turn = 0; turn <= turns; ++turn) {
    if (turn == 1) {
      check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
      nvshmem_barrier_all();
      begin = host_now();
    }
    if (in_graph)
      check(cudaGraphLaunch(made, stream), "cudaGraphLaunch");
    else
      for (unsigned i = 0; i < k_calls; ++i) call();
  }
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  return static_cast<double>(host_now() - begin) / 1000 / turns / k_calls;
}

void run_streams() {
  cudaStream_t stream;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  const auto row = [&](const char* name, size_t bytes, auto&& call) {
    const double graph = on_stream(stream, true, call), launched = on_stream(stream, false, call);
    if (g_me == 0) std::printf("| %s | %zu | %.2f | %.2f |\n", name, bytes, graph, launched);
    std::fflush(stdout);
  };
  char *dst = g_work.dst, *src = g_work.src;
  row("barrier_all", 0, [&] { nvshmemx_barrier_all_on_stream(stream); });
  row("sync_all", 0, [&] { nvshmemx_sync_all_on_stream(stream); });
  row("quiet", 0, [&] { nvshmemx_quiet_on_stream(stream); });
  const nvshmem_team_t all = NVSHMEM_TEAM_WORLD;
  for (const size_t bytes : {size_t{8}, size_t{65536}, size_t{4} << 20}) {
    row("alltoall", bytes, [&] { nvshmemx_alltoallmem_on_stream(all, dst, src, bytes, stream); });
    row("fcollect", bytes, [&] { nvshmemx_fcollectmem_on_stream(all, dst, src, bytes, stream); });
    row("broadcast", bytes, [&] { nvshmemx_broadcastmem_on_stream(all, dst, src, bytes, 0, stream); });
    row("reduce sum float", bytes, [&] {
      nvshmemx_float_sum_reduce_on_stream(all, reinterpret_cast<float*>(dst), reinterpret_cast<const float*>(src),
                                          bytes / sizeof(float), stream);
    });
  }
}

template <class T>
T* symmetric(size_t bytes) {
  T* p = static_cast<T*>(nvshmem_malloc(bytes));
  check(p != nullptr, "nvshmem_malloc");
  check(cudaMemset(p, 0, bytes), "cudaMemset");
  return p;
}

int run_pe(int me, int id_from, int id_to) {
  g_me = me;
  check(cudaSetDevice(me), "cudaSetDevice");
  nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
  if (me == 0) {
    check(nvshmemx_get_uniqueid(&id) == 0, "nvshmemx_get_uniqueid");
    check(write(id_to, &id, sizeof id) == static_cast<ssize_t>(sizeof id), "the pipe to PE 1");
  } else {
    check(read(id_from, &id, sizeof id) == static_cast<ssize_t>(sizeof id), "the pipe from PE 0");
  }
  nvshmemx_init_attr_t attr = NVSHMEMX_INIT_ATTR_INITIALIZER;
  check(nvshmemx_set_attr_uniqueid_args(me, 2, &id, &attr) == 0, "nvshmemx_set_attr_uniqueid_args");
  check(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attr) == 0, "nvshmemx_init_attr");
  g_work = {symmetric<char>(k_most + k_guard),
            symmetric<char>(k_most + k_guard),
            symmetric<uint64_t>(8),
            symmetric<uint64_t>(8),
            0,
            me,
            1 - me,
            g_set.warm_up,
            g_set.iterations,
            0,
            nullptr,
            nullptr};
  check(cudaMalloc(&g_work.spans, 4096), "cudaMalloc");
  check(cudaMalloc(&g_work.sum, 8), "cudaMalloc");
  std::vector<uint64_t> data(k_most / 8);
  for (size_t i = 0; i < data.size(); ++i) data[i] = pattern(me, i);
  check(cudaMemcpy(g_work.src, data.data(), k_most, cudaMemcpyHostToDevice), "cudaMemcpy");
  if (g_set.streams) {
    run_streams();
    nvshmem_finalize();
    return 0;
  }
  if (me == 0)
    std::puts(
        "test,op,scope,bytes,ctas,threads,iterations,samples,min_us,median_us,p99_us,p999_us,max_us,mean_us,GB_per_s,"
        "Mmsg_per_s,route,emulated,backend,gpu");
  run_all();
  nvshmem_finalize();
  return std::fflush(stdout) != 0 || std::ferror(stdout) != 0 ? 1 : 0;
}

unsigned number(const char* text, unsigned high) {
  char* end = nullptr;
  const unsigned long n = std::strtoul(text, &end, 10);
  if (*text < '0' || *text > '9' || *end != '\0' || n == 0 || n > high) {
    std::fprintf(stderr, "nvshmem_rma: '%s' is not a number in 1 .. %u\n", text, high);
    std::exit(2);
  }
  return static_cast<unsigned>(n);
}

}  // namespace

int main(int argc, char** argv) {
  for (int c; (c = getopt(argc, argv, "n:w:r:s")) != -1;) {
    if (c == 'n') g_set.iterations = number(optarg, 1000000);
    if (c == 'w') g_set.warm_up = number(optarg, 1000000);
    if (c == 'r') g_set.launches = number(optarg, 10000);
    if (c == 's') g_set.streams = true;
    if (c == '?') return 2;
  }
  int ends[2];
  if (pipe(ends) != 0) fail("pipe", "no descriptor is left");
  pid_t children[2];
  for (int me : {0, 1}) {
    children[me] = fork();
    if (children[me] < 0) fail("fork", "no process is left");
    if (children[me] == 0) {
      close(ends[me == 0 ? 0 : 1]);
      std::exit(run_pe(me, ends[0], ends[1]));
    }
  }
  close(ends[0]);
  close(ends[1]);
  int bad = 0;
  for (int ended = 0; ended < 2; ++ended) {
    int status = 0;
    const pid_t child = wait(&status);
    if (status == 0) continue;
    bad = 1;
    for (const pid_t other : children)
      if (other != child) kill(other, SIGTERM);
  }
  return bad;
}
