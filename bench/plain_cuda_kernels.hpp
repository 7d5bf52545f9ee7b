// SPDX-License-Identifier: MIT
// The kernels of plain_cuda.cu, each of which does what its op must and nothing else.
#pragma once
#include <cuda_runtime.h>
#include <errno.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace plain {

// A failure ends the program; `subject` names it.
void check(bool good, const char* subject, const char* why = "failed") {
  if (good) return;
  std::fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, subject, why);
  std::exit(1);
}
void check(cudaError_t e, const char* subject) { check(e == cudaSuccess, subject, cudaGetErrorString(e)); }

constexpr int k_in_flight = 16;  // vectors of 16 bytes that a thread loads before it stores

struct span {
  uint64_t begin, end, first, last;
};

struct work {
  char* dst;
  const char* src;
  uint64_t* mine;    // flag on this GPU
  uint64_t* theirs;  // flag on the other one
  size_t bytes;
  unsigned iterations, warm_up;
  int first_to_call;
  uint64_t* samples;
  span* spans;
  uint64_t* sum;
};

__device__ uint64_t now_ns() {
  uint64_t t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
  return t;
}
__device__ uint64_t now_cycles() {
  uint64_t t;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(t)::"memory");
  return t;
}
__device__ void store_relaxed(uint64_t* p, uint64_t v) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}
__device__ void store_release(uint64_t* p, uint64_t v) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}
__device__ uint64_t load_relaxed(const uint64_t* p) {
  uint64_t v;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}
__device__ uint64_t load_acquire(const uint64_t* p) {
  uint64_t v;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}

enum class scope { thread, wave, block };
const char* name_of(scope s) { return s == scope::thread ? "thread" : s == scope::wave ? "wave" : "block"; }

template <scope S>
__device__ void sync() {
  if constexpr (S == scope::wave) __syncwarp();
  if constexpr (S == scope::block) __syncthreads();
}

// Loads from the other GPU must not come out of a cache; loads of words stored here may.
template <bool k_remote>
__device__ uint4 load16(const uint4* p) {
  return k_remote ? __ldcv(p) : *p;
}

// By `count` threads of which the caller is number `rank`.
template <bool k_get>
__device__ void copy(char* dst, const char* src, size_t bytes, unsigned rank, unsigned count) {
  auto* to = reinterpret_cast<uint4*>(dst);
  const auto* from = reinterpret_cast<const uint4*>(src);
  const size_t vectors = bytes / 16;
  size_t at = rank;
  for (; at + size_t{k_in_flight - 1} * count < vectors; at += size_t{k_in_flight} * count) {
    uint4 v[k_in_flight];
#pragma unroll
    for (int k = 0; k < k_in_flight; ++k) v[k] = load16<k_get>(from + at + size_t(k) * count);
#pragma unroll
    for (int k = 0; k < k_in_flight; ++k) to[at + size_t(k) * count] = v[k];
  }
#pragma unroll 4
  for (; at < vectors; at += count) to[at] = load16<k_get>(from + at);
  if (rank == 0 && bytes % 16 != 0) {
    const size_t words = bytes / 8 - 1;
    reinterpret_cast<uint64_t*>(dst)[words] = __ldcv(reinterpret_cast<const unsigned long long*>(src) + words);
  }
}

// Each turn to another place: how long a flag takes depends on where it lies.
constexpr uint64_t k_places = 64, k_place_words = (4096 + 128) / 8;
__device__ uint64_t* place_of(uint64_t* flags, uint64_t turn) { return flags + turn % k_places * k_place_words; }

// The same number or address, in a register: what a kernel was given is fetched anew every time else.
template <class T>
__device__ T in_register(T value) {
  value += now_cycles() >> 63;  // 0, which the assembler does not know
  if constexpr (sizeof value == 8) {
    asm volatile("" : "+l"(value));
  } else {
    asm volatile("" : "+r"(value));
  }
  return value;
}

// The work that a kernel repeats, in registers.
__device__ work in_registers(work w) {
  w.dst = in_register(w.dst);
  w.src = in_register(w.src);
  w.mine = in_register(w.mine);
  w.theirs = in_register(w.theirs);
  w.bytes = in_register(w.bytes);
  w.first_to_call = in_register(w.first_to_call);
  return w;
}

template <class Body>
__device__ void timed(const work& w, Body body) {
  uint64_t* const samples = in_register(w.samples);
  const unsigned before = in_register(w.warm_up);
  for (unsigned i = 0; i < w.warm_up; ++i) body(i);
  span all;
  all.begin = now_ns();
  all.first = now_cycles();
  uint64_t last = all.first;
  for (unsigned i = 0; i < w.iterations; ++i) {
    body(before + i);
    const uint64_t t = now_cycles();
    if (threadIdx.x == 0) samples[i] = t - last;
    last = t;
  }
  all.last = last;
  all.end = now_ns();
  if (threadIdx.x == 0) w.spans[0] = all;
}

template <scope S>
__global__ void put_latency(work given) {
  const work w = in_registers(given);
  timed(w, [&](unsigned) {
    copy<false>(w.dst, w.src, w.bytes, threadIdx.x, blockDim.x);
    sync<S>();
    if (threadIdx.x == 0) __threadfence_system();
    sync<S>();
  });
}

// The same, and a look at a word of this GPU's memory that somebody may have changed: whether anything has failed.
__global__ void put_latency_and_look(work given) {
  const work w = in_registers(given);
  uint64_t changed = 0;
  timed(w, [&](unsigned) {
    copy<false>(w.dst, w.src, w.bytes, threadIdx.x, blockDim.x);
    const uint64_t seen = load_relaxed(w.mine);
    __threadfence_system();
    changed |= seen;
  });
  *w.sum = changed;
}

template <scope S>
__global__ void get_latency(work given) {
  const work w = in_registers(given);
  timed(w, [&](unsigned) {
    copy<true>(w.dst, w.src, w.bytes, threadIdx.x, blockDim.x);
    sync<S>();
  });
}

__global__ void load_latency(work given) {
  const work w = in_registers(given);
  uint64_t sum = 0;
  timed(w, [&](unsigned) { sum += load_relaxed(w.theirs) + (sum & 1); });
  *w.sum = sum;
}

__global__ void atomic_latency(work given) {
  const work w = in_registers(given);
  uint64_t sum = 0;
  timed(w, [&](unsigned) {
    sum += atomicAdd_system(reinterpret_cast<unsigned long long*>(w.theirs), 1ull + (sum >> 63));
  });
  *w.sum = sum;
}

__global__ void flag_pingpong(work given) {
  const work w = in_registers(given);
  timed(w, [&](unsigned i) {
    uint64_t *mine = place_of(w.mine, i), *theirs = place_of(w.theirs, i);
    if (w.first_to_call) store_relaxed(theirs, i + 1);
    while (load_relaxed(mine) != i + 1) {
    }
    if (!w.first_to_call) store_relaxed(theirs, i + 1);
  });
}

template <scope S>
__global__ void put_pingpong(work given) {
  const work w = in_registers(given);
  const auto call = [&](uint64_t v) {
    copy<false>(w.dst, w.src, w.bytes, threadIdx.x, blockDim.x);
    sync<S>();
    if (threadIdx.x == 0) store_release(place_of(w.theirs, v), v);
  };
  timed(w, [&](unsigned i) {
    if (w.first_to_call) call(i + 1);
    if (threadIdx.x == 0)
      while (load_acquire(place_of(w.mine, i + 1)) != i + 1) {
      }
    sync<S>();
    if (!w.first_to_call) call(i + 1);
  });
}

__device__ void store_pair(uint64_t* p, uint64_t a, uint64_t b) {
  asm volatile("st.relaxed.sys.global.v2.b64 [%0], {%1, %2};" ::"l"(p), "l"(a), "l"(b) : "memory");
}
__device__ void load_pair(const uint64_t* p, uint64_t& a, uint64_t& b) {
  asm volatile("ld.relaxed.sys.global.v2.b64 {%0, %1}, [%2];" : "=l"(a), "=l"(b) : "l"(p) : "memory");
}

// Data that carries its own flags: 4 bytes of each beside 4 bytes of the other, stored as one, and two of these in one
// access. All words are asked for before one is looked at.
template <unsigned k_words>
__global__ void packet_pingpong(work given) {
  const work w = in_registers(given);
  const auto call = [&](uint64_t v) {
    uint64_t* to = place_of(w.theirs, v);
    if (k_words == 1) store_relaxed(to, v << 32 | v);
#pragma unroll
    for (unsigned k = 0; k + 1 < k_words; k += 2) store_pair(to + k, (v + k) << 32 | v, (v + k + 1) << 32 | v);
  };
  uint64_t wrong = 0;
  timed(w, [&](unsigned i) {
    const uint64_t v = i + 1;
    if (w.first_to_call) call(v);
    uint64_t got[k_words + 1];
    for (bool here = false; !here;) {
      if (k_words == 1) got[0] = load_relaxed(place_of(w.mine, v));
#pragma unroll
      for (unsigned k = 0; k + 1 < k_words; k += 2) load_pair(place_of(w.mine, v) + k, got[k], got[k + 1]);
      uint32_t other = 0;
#pragma unroll
      for (unsigned k = 0; k < k_words; ++k) other |= static_cast<uint32_t>(got[k]) ^ static_cast<uint32_t>(v);
      here = other == 0;
    }
#pragma unroll
    for (unsigned k = 0; k < k_words; ++k) wrong += got[k] >> 32 != v + k ? 1 : 0;
    if (!w.first_to_call) call(v);
  });
  *w.sum = wrong;
}

template <scope S>
__global__ void barrier(work given) {
  const work w = in_registers(given);
  timed(w, [&](unsigned i) {
    sync<S>();
    if (threadIdx.x == 0) {
      store_release(w.theirs, i + 1);
      while (load_acquire(w.mine) < i + 1) {
      }
    }
    sync<S>();
  });
}

// Words stored one by one, of which a thread loads some before it stores the first.
__global__ void word_bandwidth(work w) {
  constexpr unsigned k_ahead = 4;
  const size_t words = w.bytes / 8, step = size_t{gridDim.x} * blockDim.x;
  const auto* from = reinterpret_cast<const uint64_t*>(w.src);
  auto* to = reinterpret_cast<uint64_t*>(w.dst);
  span all{now_ns(), 0, 0, 0};
  for (unsigned i = 0; i < w.iterations; ++i) {
    for (size_t at = size_t{blockIdx.x} * blockDim.x + threadIdx.x; at < words; at += k_ahead * step) {
      uint64_t v[k_ahead];
#pragma unroll
      for (unsigned k = 0; k < k_ahead; ++k) v[k] = from[at + k * step < words ? at + k * step : at];
#pragma unroll
      for (unsigned k = 0; k < k_ahead; ++k)
        if (at + k * step < words) store_relaxed(to + at + k * step, v[k]);
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence_system();
    all.end = now_ns();
    w.spans[blockIdx.x] = all;
  }
}

template <bool k_get>
__global__ void bandwidth(work w) {
  const size_t each = ((w.bytes + gridDim.x - 1) / gridDim.x + 127) / 128 * 128;
  const size_t at = each * blockIdx.x;
  const size_t bytes = at >= w.bytes ? 0 : w.bytes - at < each ? w.bytes - at : each;
  span all{now_ns(), 0, 0, 0};
  for (unsigned i = 0; i < w.iterations; ++i) {
    copy<k_get>(w.dst + at, w.src + at, bytes, threadIdx.x, blockDim.x);
    asm volatile("" ::: "memory");  // every iteration moves it all
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence_system();
    all.end = now_ns();
    w.spans[blockIdx.x] = all;
  }
}

}  // namespace plain
