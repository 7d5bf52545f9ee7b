// SPDX-License-Identifier: MIT
// What two GPUs of one process give to collectives: plain CUDA by a block of 256 on each, that does no more than the op
// must. No library, no team, no checks of arguments; beside xio-perf it says how much of the limit is reached.
//   plain_collectives [TIMES [asks]]
// With `asks` a block above packets is sent only when the other GPU has said that it is in the call, too: what it takes
// that a call which is refused writes nothing. Prints the same table. Data is compared after each measurement. Alone:
// nvcc -std=c++17 -arch=sm_90 -O3 bench/plain_collectives.cu
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "plain_cuda_kernels.hpp"

namespace {

using namespace plain;

constexpr size_t k_most = size_t{4} << 20;  // bytes of a block
constexpr size_t k_packets = 4096;          // up to here words of data travel beside the number of the call
constexpr size_t k_area = 32768;            // up to here a reduce combines what the other GPU stored here

enum class op { alltoall, fcollect, broadcast, reduce, sync };  // sync is also the whole of a barrier
constexpr const char* k_names[] = {"alltoall", "fcollect", "broadcast", "reduce sum int32", "sync"};

// Memory of one GPU, as both see it.
struct side {
  char *src, *dst, *area;
  uint64_t *flag, *packets;
};

// Behind what the block has stored; and waits for the other one's.
__device__ void synchronise(const side& mine, const side& theirs, uint64_t epoch) {
  __syncthreads();
  if (threadIdx.x == 0) {
    store_release(theirs.flag, epoch);
    while (load_acquire(mine.flag) < epoch) {
    }
  }
  __syncthreads();
}

// Both are in call `epoch`; nothing is ordered by it.
__device__ void ask(const side& mine, const side& theirs, uint64_t epoch) {
  if (threadIdx.x == 0) {
    store_relaxed(theirs.flag, epoch);
    while (load_relaxed(mine.flag) < epoch) {
    }
  }
  __syncthreads();
}

// `bytes` to one or two places.
template <int N>
__device__ void copy_to(char* to, char* to2, const char* from, size_t bytes) {
  const size_t vectors = bytes / 16, count = blockDim.x;
  const auto* in = reinterpret_cast<const uint4*>(from);
  auto *out = reinterpret_cast<uint4*>(to), *out2 = reinterpret_cast<uint4*>(to2);
  for (size_t at = threadIdx.x; at < vectors; at += N * count) {
    uint4 v[N];
#pragma unroll
    for (int k = 0; k < N; ++k)
      if (at + k * count < vectors) v[k] = in[at + k * count];
#pragma unroll
    for (int k = 0; k < N; ++k)
      if (at + k * count < vectors) out[at + k * count] = v[k];
#pragma unroll
    for (int k = 0; k < N; ++k)
      if (out2 != nullptr && at + k * count < vectors) out2[at + k * count] = v[k];
  }
}

__device__ uint4 sum(uint4 a, uint4 b) { return make_uint4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }

// Sums from..to of two sources, one of which may be the other GPU's, to one or two places.
template <bool k_remote>
__device__ void add(char* to, char* to2, const char* own, const char* other, size_t from, size_t end) {
  constexpr int n = 8;
  const size_t count = blockDim.x, last = end / 16;
  const auto *a = reinterpret_cast<const uint4*>(own), *b = reinterpret_cast<const uint4*>(other);
  auto *out = reinterpret_cast<uint4*>(to), *out2 = reinterpret_cast<uint4*>(to2);
  for (size_t at = from / 16 + threadIdx.x; at < last; at += n * count) {
    uint4 x[n], y[n];
#pragma unroll
    for (int k = 0; k < n; ++k)
      if (at + k * count < last) y[k] = load16<k_remote>(b + at + k * count), x[k] = a[at + k * count];
#pragma unroll
    for (int k = 0; k < n; ++k) {
      if (at + k * count >= last) continue;
      out[at + k * count] = sum(x[k], y[k]);
      if (out2 != nullptr) out2[at + k * count] = sum(x[k], y[k]);
    }
  }
}

// Words of `from`, each beside the number of the call, to the other GPU; take(i, word) for each that comes.
template <class Take>
__device__ void packets(const side& mine, const side& theirs, const char* from, size_t send, size_t receive,
                        uint64_t epoch, Take&& take) {
  const size_t slot = (epoch & 1) * (k_packets / 4), words = (receive + 3) / 4;
  const auto* in = reinterpret_cast<const uint32_t*>(from);
  for (size_t i = threadIdx.x; i < (send + 3) / 4; i += blockDim.x)
    store_relaxed(theirs.packets + slot + i, epoch << 32 | in[i]);
  for (size_t i = threadIdx.x; i < words; i += 4 * blockDim.x) {
    uint64_t v[4];
    for (bool all = false; !all;) {
      all = true;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const size_t at = i + k * blockDim.x < words ? i + k * blockDim.x : i;
        v[k] = load_relaxed(mine.packets + slot + at);
        all = all && v[k] >> 32 == epoch;
      }
    }
#pragma unroll
    for (int k = 0; k < 4; ++k)
      if (i + k * blockDim.x < words) take(i + k * blockDim.x, static_cast<uint32_t>(v[k]));
  }
}

// A call of one GPU. `number` counts calls, from 1 on; a flag may take two steps in one.
template <op Op>
__device__ void call(int me, const side& mine, const side& theirs, size_t bytes, uint64_t number, bool asks) {
  if constexpr (Op == op::sync) return synchronise(mine, theirs, 2 * number);
  const size_t step = Op == op::alltoall ? bytes : 0, place = Op == op::broadcast ? 0 : me * bytes;
  if constexpr (Op == op::reduce) {
    auto* out = reinterpret_cast<uint32_t*>(mine.dst);
    const auto* own = reinterpret_cast<const uint32_t*>(mine.src);
    if (bytes <= k_packets) {
      packets(mine, theirs, mine.src, bytes, bytes, number, [&](size_t i, uint32_t v) { out[i] = own[i] + v; });
      __syncthreads();
    } else if (bytes <= k_area) {
      const size_t slot = (number & 1) * k_area;
      copy_to<8>(theirs.area + slot, nullptr, mine.src, bytes);
      synchronise(mine, theirs, 2 * number);
      add<false>(mine.dst, nullptr, mine.src, mine.area + slot, 0, bytes);
      __syncthreads();
    } else {
      synchronise(mine, theirs, 2 * number - 1);
      add<true>(mine.dst, theirs.dst, mine.src, theirs.src, me * (bytes / 2), (me + 1) * (bytes / 2));
      synchronise(mine, theirs, 2 * number);
    }
    return;
  }
  const bool sends = Op != op::broadcast || me == 0;
  const char* other = mine.src + (1 - me) * step;
  if (bytes <= k_packets) {
    // The other way only a word, for broadcasts too: the next call but one uses the same places.
    auto* out = reinterpret_cast<uint32_t*>(mine.dst + (Op == op::broadcast ? 0 : (1 - me) * bytes));
    const bool takes = Op != op::broadcast || me == 1;
    packets(mine, theirs, other, sends ? bytes : 4, takes ? bytes : 4, number, [&](size_t i, uint32_t v) {
      if (takes) out[i] = v;
    });
    if (Op != op::broadcast)
      for (size_t i = threadIdx.x; i < bytes / 4; i += blockDim.x)
        reinterpret_cast<uint32_t*>(mine.dst + place)[i] = reinterpret_cast<const uint32_t*>(mine.src + me * step)[i];
    __syncthreads();
    return;
  }
  if (asks) ask(mine, theirs, 2 * number - 1);
  if (sends && Op == op::alltoall) {
    copy_to<16>(theirs.dst + place, nullptr, other, bytes);
    copy_to<16>(mine.dst + place, nullptr, mine.src + me * step, bytes);
  } else if (sends) {
    copy_to<8>(theirs.dst + place, Op == op::fcollect ? mine.dst + place : nullptr, other, bytes);
  }
  synchronise(mine, theirs, 2 * number);
}

template <op Op>
__global__ void __launch_bounds__(256)
    calls(int me, side mine, side theirs, size_t bytes, int times, uint64_t before, bool asks) {
  for (int i = 1; i <= times; ++i) call<Op>(me, mine, theirs, bytes, before + i, asks);
}

// A sync by one thread, one warp or a block.
template <scope S>
__global__ void __launch_bounds__(256) syncs(side mine, side theirs, int times, uint64_t before) {
  for (int i = 1; i <= times; ++i) {
    sync<S>();
    if (threadIdx.x == 0) {
      store_release(theirs.flag, 2 * (before + i));
      while (load_acquire(mine.flag) < 2 * (before + i)) {
      }
    }
    sync<S>();
  }
}

uint32_t word_of(int from, int block, size_t i) { return from * 1000003u + block * 7919u + static_cast<uint32_t>(i); }

struct session {
  side sides[2];
  cudaStream_t streams[2];
  uint64_t number = 0;
  int times = 500;
  bool asks = false;

  void make(int gpu) {
    check(cudaSetDevice(gpu), "cudaSetDevice");
    check(cudaDeviceEnablePeerAccess(1 - gpu, 0), "cudaDeviceEnablePeerAccess");
    side& s = sides[gpu];
    check(cudaMalloc(&s.src, 2 * k_most), "cudaMalloc");
    check(cudaMalloc(&s.dst, 2 * k_most), "cudaMalloc");
    check(cudaMalloc(&s.area, 2 * k_area), "cudaMalloc");
    check(cudaMalloc(&s.flag, 128), "cudaMalloc");
    check(cudaMalloc(&s.packets, 4 * k_packets), "cudaMalloc");
    check(cudaMemset(s.flag, 0, 128), "cudaMemset");
    check(cudaMemset(s.packets, 0, 4 * k_packets), "cudaMemset");
    check(cudaStreamCreateWithFlags(&streams[gpu], cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaDeviceSynchronize(), "memory");
  }

  void fill(size_t bytes) const {
    const size_t words = bytes / 4;
    std::vector<uint32_t> data(2 * words);
    for (int gpu : {0, 1}) {
      for (size_t i = 0; i < data.size(); ++i) data[i] = word_of(gpu, static_cast<int>(i / words), i % words);
      check(cudaMemcpy(sides[gpu].src, data.data(), 2 * bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
      check(cudaMemset(sides[gpu].dst, 0xa5, 2 * bytes), "cudaMemset");
    }
  }

  static uint32_t expected(op o, int me, size_t words, size_t at) {
    const int b = static_cast<int>(at / words);
    if (o == op::alltoall) return word_of(b, me, at % words);
    if (o == op::fcollect) return word_of(b, 0, at % words);
    return o == op::broadcast ? word_of(0, 0, at) : word_of(0, 0, at) + word_of(1, 0, at);
  }

  void compare(op o, size_t bytes) const {
    const size_t words = bytes / 4, blocks = o == op::alltoall || o == op::fcollect ? 2 : 1;
    std::vector<uint32_t> got(words * blocks);
    for (int gpu = o == op::broadcast ? 1 : 0; gpu < 2; ++gpu) {
      check(cudaMemcpy(got.data(), sides[gpu].dst, got.size() * 4, cudaMemcpyDeviceToHost), "cudaMemcpy");
      for (size_t i = 0; i < got.size(); ++i) check(got[i] == expected(o, gpu, words, i), "wrong data arrived");
    }
  }

  template <class Launch>
  double seconds_of(const char* name, int count, Launch&& launch) {
    const auto begin = std::chrono::steady_clock::now();
    for (int gpu : {0, 1}) {
      check(cudaSetDevice(gpu), "cudaSetDevice");
      launch(gpu);
      check(cudaGetLastError(), "launch");
    }
    for (int gpu : {0, 1}) check(cudaStreamSynchronize(streams[gpu]), name);
    number += count;
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  template <op Op>
  double seconds(size_t bytes, int count) {
    return seconds_of(k_names[static_cast<int>(Op)], count, [&](int gpu) {
      calls<Op><<<1, 256, 0, streams[gpu]>>>(gpu, sides[gpu], sides[1 - gpu], bytes, count, number, asks);
    });
  }

  template <op Op>
  void row(size_t bytes) {
    if (bytes != 0) fill(bytes);
    const int count = bytes > size_t{64} << 10 ? std::max(times / 10, 1) : times;
    seconds<Op>(bytes, std::max(count / 10, 1));
    const double took = seconds<Op>(bytes, count);
    if (bytes != 0) compare(Op, bytes);
    std::printf("| %s | %zu | %.2f |\n", k_names[static_cast<int>(Op)], bytes, took / count * 1e6);
  }

  template <scope S>
  void sync_row(const char* name, unsigned threads) {
    const auto seconds = [&](int count) {
      return seconds_of(name, count, [&](int gpu) {
        syncs<S><<<1, threads, 0, streams[gpu]>>>(sides[gpu], sides[1 - gpu], count, number);
      });
    };
    seconds(std::max(times / 10, 1));
    std::printf("| %s | 0 | %.2f |\n", name, seconds(times) / times * 1e6);
  }
};

}  // namespace

int main(int argc, char** argv) {
  session s;
  if (argc > 1) s.times = std::atoi(argv[1]);
  if (argc > 2) s.asks = std::strcmp(argv[2], "asks") == 0;
  check(s.times > 0 && (argc < 3 || s.asks), "plain_collectives [TIMES [asks]], a number from 1 up");
  s.make(0);
  s.make(1);
  std::printf("| op, 2 GPUs, plain, one block of 256 | bytes | us |\n|---|---|---|\n");
  for (size_t bytes : {size_t{8}, size_t{4096}, size_t{32768}, size_t{262144}, k_most}) s.row<op::alltoall>(bytes);
  for (size_t bytes : {size_t{8}, size_t{1024}, size_t{65536}, size_t{1} << 20}) s.row<op::fcollect>(bytes);
  for (size_t bytes : {size_t{8}, size_t{4096}, size_t{65536}, size_t{1} << 20}) s.row<op::broadcast>(bytes);
  for (size_t bytes : {size_t{8}, size_t{1024}, size_t{16384}, size_t{65536}, size_t{1} << 20})
    s.row<op::reduce>(bytes);
  s.row<op::sync>(0);
  s.sync_row<scope::thread>("sync by a thread", 1);
  s.sync_row<scope::wave>("sync by a warp", 32);
  s.sync_row<scope::block>("sync by a block", 256);
  return std::fflush(stdout) != 0 || std::ferror(stdout) != 0 ? 1 : 0;
}
