// SPDX-License-Identifier: MIT
// What the hardware gives: plain CUDA between two GPUs of one process that does no more than each op of xio-perf must.
// No library, no ctx, no checks; beside XIO's figures these say how much of the limit is reached.
//   plain_cuda [-n ITERATIONS] [-w WARMUP] [-r REPEAT] [-t THREADS] [TEST...]
// Prints the same CSV as xio-perf --format csv. Data, sums and flags are compared after each measurement. Built with
// --with-gpu=cuda, or alone: nvcc -std=c++17 -arch=sm_90 -O3 bench/plain_cuda.cu
#include <cuda_runtime.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "plain_cuda_kernels.hpp"

namespace {

using namespace plain;

constexpr size_t k_most = size_t{64} << 20;
constexpr unsigned char k_poison = 0xA5;
constexpr size_t k_flag_bytes = k_places * k_place_words * 8;

struct settings {
  unsigned iterations = 200, warm_up = 20, repeat = 11, threads = 256;
  std::vector<std::string> tests;
};
settings g_set;

struct side {
  char *src, *dst;
  uint64_t *flag, *samples, *sum;
  span* spans;
  cudaStream_t stream;
};
side g_side[2];

uint64_t pattern(int owner, size_t word) { return (word + 1) * 0x9e3779b97f4a7c15ull ^ static_cast<uint64_t>(owner); }

void make_side(int gpu) {
  check(cudaSetDevice(gpu), "cudaSetDevice");
  int can = 0;
  check(cudaDeviceCanAccessPeer(&can, gpu, 1 - gpu), "cudaDeviceCanAccessPeer");
  check(can == 1, "the two GPUs do not reach each other's memory");
  check(cudaDeviceEnablePeerAccess(1 - gpu, 0), "cudaDeviceEnablePeerAccess");
  side& s = g_side[gpu];
  check(cudaMalloc(&s.src, k_most), "cudaMalloc");
  check(cudaMalloc(&s.dst, k_most), "cudaMalloc");
  check(cudaMalloc(&s.flag, k_flag_bytes), "cudaMalloc");
  check(cudaMalloc(&s.sum, 4096), "cudaMalloc");
  check(cudaMalloc(&s.samples, g_set.iterations * sizeof(uint64_t)), "cudaMalloc");
  check(cudaMalloc(&s.spans, 1024 * sizeof(span)), "cudaMalloc");
  check(cudaStreamCreateWithFlags(&s.stream, cudaStreamNonBlocking), "cudaStreamCreate");
  std::vector<uint64_t> data(k_most / 8);
  for (size_t i = 0; i < data.size(); ++i) data[i] = pattern(gpu, i);
  check(cudaMemcpy(s.src, data.data(), k_most, cudaMemcpyHostToDevice), "cudaMemcpy");
}

void finish() {
  for (int gpu : {0, 1}) {
    check(cudaSetDevice(gpu), "cudaSetDevice");
    check(cudaDeviceSynchronize(), "kernel");
  }
  check(cudaSetDevice(0), "cudaSetDevice");
}

void prepare(size_t bytes) {
  for (int gpu : {0, 1}) {
    check(cudaSetDevice(gpu), "cudaSetDevice");
    check(cudaMemset(g_side[gpu].dst, k_poison, std::min(k_most, bytes + 256)), "cudaMemset");
    check(cudaMemset(g_side[gpu].flag, 0, k_flag_bytes), "cudaMemset");
  }
  finish();
}

// put: what GPU 0 wrote to GPU 1; else what it read from there.
void compare(bool put, size_t bytes) {
  std::vector<uint64_t> found(bytes / 8);
  check(cudaMemcpy(found.data(), g_side[put ? 1 : 0].dst, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
  for (size_t i = 0; i < found.size(); ++i) check(found[i] == pattern(put ? 0 : 1, i), "wrong data arrived");
}

// Returns the work of `gpu`; one-sided tests run on GPU 0.
work work_of(int gpu, bool put, size_t bytes) {
  side &me = g_side[gpu], &other = g_side[1 - gpu];
  return {put ? other.dst : me.dst,
          put ? me.src : other.src,
          me.flag,
          other.flag,
          bytes,
          g_set.iterations,
          g_set.warm_up,
          gpu == 0,
          me.samples,
          me.spans,
          me.sum};
}

struct row {
  const char *test, *op, *scope;
  size_t bytes;
  unsigned ctas, threads;
  std::vector<double> us;
  bool rate;
};

void print(row r) {
  static bool headed = false;
  if (!headed)
    std::puts(
        "test,op,scope,bytes,ctas,threads,iterations,samples,min_us,median_us,p99_us,p999_us,max_us,mean_us,GB_per_s,"
        "Mmsg_per_s,route,emulated,backend,gpu");
  headed = true;
  std::sort(r.us.begin(), r.us.end());
  const size_t n = r.us.size();
  const double median = n % 2 == 1 ? r.us[n / 2] : (r.us[n / 2 - 1] + r.us[n / 2]) / 2;
  double sum = 0;
  for (const double t : r.us) sum += t;
  cudaDeviceProp about;
  check(cudaGetDeviceProperties(&about, 0), "cudaGetDeviceProperties");
  std::printf("%s,%s,%s,%zu,%u,%u,%u,%zu,%.4f,%.4f,%.4f,%.4f,%.4f,%.4f,", r.test, r.op, r.scope, r.bytes, r.ctas,
              r.threads, g_set.iterations, n, r.us[0], median, r.us[(n * 99 + 99) / 100 - 1],
              r.us[(n * 999 + 999) / 1000 - 1], r.us[n - 1], sum / double(n));
  if (r.rate) std::printf("%.4f", double(r.bytes) / median / 1e3);
  std::printf(",,direct,,plain CUDA,%s\n", about.name);
  std::fflush(stdout);
}

std::vector<double> samples() {
  std::vector<uint64_t> ticks(g_set.iterations);
  span all;
  check(cudaMemcpy(ticks.data(), g_side[0].samples, ticks.size() * 8, cudaMemcpyDeviceToHost), "cudaMemcpy");
  check(cudaMemcpy(&all, g_side[0].spans, sizeof all, cudaMemcpyDeviceToHost), "cudaMemcpy");
  const double scale = double(all.end - all.begin) / 1e3 / double(all.last - all.first);
  std::vector<double> us;
  for (const uint64_t t : ticks) us.push_back(double(t) * scale);
  return us;
}

bool wanted(const char* test) {
  return g_set.tests.empty() || std::find(g_set.tests.begin(), g_set.tests.end(), test) != g_set.tests.end();
}

const size_t k_sizes[] = {8, 64, 1024, 65536, 1u << 20, 4u << 20};

template <scope S>
unsigned threads_of() {
  return S == scope::thread ? 1 : S == scope::wave ? 32 : g_set.threads;
}

// A kernel on GPU 0, whose samples are the figures of a row.
template <class Kernel>
void one_sided(Kernel kernel, const char* test, const char* s, bool put, size_t bytes, unsigned threads) {
  if (!wanted(test)) return;
  prepare(bytes);
  kernel<<<1, threads, 0, g_side[0].stream>>>(work_of(0, put, bytes));
  finish();
  compare(put, bytes);
  print({test, "", s, bytes, 1, threads, samples(), true});
}

template <scope S>
void latencies() {
  for (const size_t bytes : k_sizes) {
    // One thread takes its time.
    if (S == scope::thread && bytes > 65536) continue;
    one_sided(put_latency<S>, "put_lat", name_of(S), true, bytes, threads_of<S>());
    one_sided(get_latency<S>, "get_lat", name_of(S), false, bytes, threads_of<S>());
  }
}

uint64_t word_of(const uint64_t* memory) {
  uint64_t word = 0;
  check(cudaMemcpy(&word, memory, 8, cudaMemcpyDeviceToHost), "cudaMemcpy");
  return word;
}

void words() {
  const uint64_t ops = g_set.iterations + g_set.warm_up;
  if (wanted("g_lat")) {
    prepare(8);
    const uint64_t value = 2;
    check(cudaMemcpy(g_side[1].flag, &value, 8, cudaMemcpyHostToDevice), "cudaMemcpy");
    load_latency<<<1, 1, 0, g_side[0].stream>>>(work_of(0, true, 8));
    finish();
    check(word_of(g_side[0].sum) == 2 * ops, "g_lat: wrong values came");
    print({"g_lat", "", "thread", 8, 1, 1, samples(), true});
  }
  if (!wanted("atomic_lat")) return;
  prepare(8);
  atomic_latency<<<1, 1, 0, g_side[0].stream>>>(work_of(0, true, 8));
  finish();
  check(word_of(g_side[1].flag) == ops && word_of(g_side[0].sum) == ops * (ops - 1) / 2,
        "atomic_lat: wrong values came");
  print({"atomic_lat", "fetch_add", "thread", 8, 1, 1, samples(), true});
}

// The same kernel on both GPUs.
template <class Kernel>
void on_both(Kernel kernel, const char* test, const char* s, size_t bytes, unsigned threads) {
  if (!wanted(test)) return;
  prepare(bytes);
  for (int gpu : {0, 1}) {
    check(cudaSetDevice(gpu), "cudaSetDevice");
    kernel<<<1, threads, 0, g_side[gpu].stream>>>(work_of(gpu, true, bytes));
    check(cudaGetLastError(), test);
  }
  finish();
  if (!std::strcmp(test, "put_signal_pingpong")) compare(true, bytes);
  if (!std::strcmp(test, "packet_pingpong")) check(word_of(g_side[0].sum) == 0, "packet_pingpong: wrong data arrived");
  print({test, "", s, bytes, 1, threads, samples(), false});
}

template <scope S>
void pingpongs() {
  for (const size_t bytes : {size_t{16}, size_t{1024}, size_t{65536}})
    on_both(put_pingpong<S>, "put_signal_pingpong", name_of(S), bytes, threads_of<S>());
  on_both(barrier<S>, "barrier", name_of(S), 0, threads_of<S>());
}

template <class Kernel>
void stream(Kernel kernel, const char* test, bool put, size_t bytes, unsigned ctas) {
  if (!wanted(test)) return;
  prepare(bytes);
  std::vector<double> us;
  for (unsigned i = 0; i <= g_set.repeat; ++i) {
    kernel<<<ctas, g_set.threads, 0, g_side[0].stream>>>(work_of(0, put, bytes));
    check(cudaGetLastError(), test);
    finish();
    std::vector<span> spans(ctas);
    check(cudaMemcpy(spans.data(), g_side[0].spans, ctas * sizeof(span), cudaMemcpyDeviceToHost), "cudaMemcpy");
    uint64_t begin = ~0ull, end = 0;
    for (const span& s : spans) begin = std::min(begin, s.begin), end = std::max(end, s.end);
    if (i != 0) us.push_back(double(end - begin) / 1e3 / g_set.iterations);
  }
  compare(put, bytes);
  print({test, "", "block", bytes, ctas, g_set.threads, us, true});
}

void copy_engine(size_t bytes) {
  if (!wanted("sdma_copy")) return;
  prepare(bytes);
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  std::vector<double> us;
  for (unsigned r = 0; r <= g_set.repeat; ++r) {
    check(cudaEventRecord(begin, g_side[0].stream), "cudaEventRecord");
    for (unsigned i = 0; i < g_set.iterations; ++i)
      check(cudaMemcpyPeerAsync(g_side[1].dst, 1, g_side[0].src, 0, bytes, g_side[0].stream), "cudaMemcpyPeerAsync");
    check(cudaEventRecord(end, g_side[0].stream), "cudaEventRecord");
    finish();
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
    if (r != 0) us.push_back(double(ms) * 1e3 / g_set.iterations);
  }
  compare(true, bytes);
  print({"sdma_copy", "", "host", bytes, 0, 0, us, true});
}

unsigned number(const char* text, unsigned high) {
  char* end = nullptr;
  const unsigned long n = std::strtoul(text, &end, 10);
  if (*text < '0' || *text > '9' || *end != '\0' || n == 0 || n > high) {
    std::fprintf(stderr, "plain_cuda: '%s' is not a number in 1 .. %u\n", text, high);
    std::exit(2);
  }
  return static_cast<unsigned>(n);
}

}  // namespace

int main(int argc, char** argv) {
  for (int c; (c = getopt(argc, argv, "n:w:r:t:")) != -1;) {
    if (c == 'n') g_set.iterations = number(optarg, 1000000);
    if (c == 'w') g_set.warm_up = number(optarg, 1000000);
    if (c == 'r') g_set.repeat = number(optarg, 10000);
    if (c == 't') g_set.threads = number(optarg, 1024) / 32 * 32;
    if (c == '?') return 2;
  }
  if (g_set.threads == 0) g_set.threads = 32;
  g_set.tests.assign(argv + optind, argv + argc);
  int gpus = 0;
  check(cudaGetDeviceCount(&gpus), "cudaGetDeviceCount");
  check(gpus >= 2, "two GPUs are wanted");
  make_side(0);
  make_side(1);
  finish();
  latencies<scope::thread>();
  latencies<scope::wave>();
  latencies<scope::block>();
  one_sided(put_latency_and_look, "put_and_look_lat", "thread", true, 8, 1);
  words();
  on_both(flag_pingpong, "p_pingpong", "thread", 8, 1);
  on_both(packet_pingpong<1>, "packet_pingpong", "thread", 4, 1);
  on_both(packet_pingpong<4>, "packet_pingpong", "thread", 16, 1);
  on_both(packet_pingpong<16>, "packet_pingpong", "thread", 64, 1);
  pingpongs<scope::thread>();
  pingpongs<scope::wave>();
  pingpongs<scope::block>();
  for (const unsigned ctas : {32u, 132u})
    for (const size_t bytes : {size_t{65536}, size_t{1} << 20, size_t{4} << 20, k_most}) {
      stream(bandwidth<false>, "put_bw", true, bytes, ctas);
      stream(bandwidth<true>, "get_bw", false, bytes, ctas);
    }
  for (const unsigned ctas : {32u, 132u}) stream(word_bandwidth, "p_bw", true, size_t{4} << 20, ctas);
  for (const size_t bytes : {size_t{1} << 20, size_t{4} << 20, k_most}) copy_engine(bytes);
  return std::fflush(stdout) != 0 || std::ferror(stdout) != 0 ? 1 : 0;
}
