// SPDX-License-Identifier: MIT
// Kernels that the interpreter's tests run: what compilers make of ordinary programs, at each level of optimization.
#include <hip/hip_runtime.h>

// XIO's clock on gfx1100 is a builtin that clang 15 has not.
#if !defined(__GFX11__) || __has_builtin(__builtin_amdgcn_s_sendmsg_rtnl)
#define HAS_XIO 1
#include "xio/device/platform/platform.hpp"
#endif

extern "C" {

__global__ void vector_add(const int* a, const int* b, int* c, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) c[i] = a[i] + b[i];
}

#if defined(HAS_XIO)
// Every lane rings one register, or stores to it.
__global__ void ring_one_register(unsigned long* at, int times) {
  for (int i = 0; i < times; ++i) xio::dev::ring_doorbell(at, threadIdx.x + 1000ul * static_cast<unsigned>(i));
}
__global__ void store_to_one_register(unsigned long* at, int times) {
  for (int i = 0; i < times; ++i)
    xio::dev::store<xio::dev::scope::system, xio::dev::order::relaxed>(at,
                                                                       threadIdx.x + 1000ul * static_cast<unsigned>(i));
}
#endif

// Each workgroup's sum by LDS and barriers, then one atomic.
__global__ void reduce_lds(const unsigned* in, unsigned long long* sum, unsigned n) {
  __shared__ unsigned part[256];
  const unsigned t = threadIdx.x;
  unsigned mine = 0;
  for (unsigned i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) mine += in[i];
  part[t] = mine;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (t < half) part[t] += part[t + half];
    __syncthreads();
  }
  if (t == 0) atomicAdd(sum, static_cast<unsigned long long>(part[0]));
}

__global__ void reduce_shuffle(const int* in, int* out) {
  int x = in[blockIdx.x * blockDim.x + threadIdx.x];
  for (int by = warpSize / 2; by > 0; by /= 2) x += __shfl_xor(x, by);
  const unsigned long long odd = __ballot(in[threadIdx.x] & 1);
  if (threadIdx.x == 0) {
    out[2 * blockIdx.x] = x;
    out[2 * blockIdx.x + 1] = __popcll(odd);
  }
}

__global__ void copy_bytes(const char* from, char* to, unsigned n) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) to[i] = from[i];
}

__global__ void copy_wide(const uint4* from, uint4* to, unsigned n) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) to[i] = from[i];
}

__device__ __attribute__((noinline)) unsigned fibonacci(unsigned n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__global__ void recursion(unsigned* out) { out[threadIdx.x] = fibonacci(threadIdx.x % 12); }

// An array in private memory whose index no compiler knows, and a pointer that leads there, to LDS or to memory.
__global__ void private_array(const unsigned* where, unsigned* out) {
  __shared__ unsigned shared[64];
  unsigned own[16];
  for (unsigned i = 0; i < 16; ++i) own[i] = i * 3 + threadIdx.x;
  shared[threadIdx.x] = 1000 + threadIdx.x;
  __syncthreads();
  const unsigned w = where[threadIdx.x];
  own[w & 15] += 100;
  unsigned* p = (w & 64) ? &own[w & 15] : (w & 128) ? &shared[63 - threadIdx.x] : &out[64 + threadIdx.x];
  atomicExch(&out[64 + threadIdx.x], 7u);
  *p += 5;
  __syncthreads();
  unsigned sum = shared[threadIdx.x];
  for (unsigned i = 0; i < 16; ++i) sum = sum * 31 + own[i];
  out[threadIdx.x] = sum;
}

__global__ void atomics(unsigned* u, int* s, unsigned long long* q, float* f, double* d) {
  const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&u[0], t);
  atomicSub(&u[1], 1u);
  atomicMax(&u[2], t);
  atomicMin(&u[3], t);
  atomicOr(&u[4], 1u << (t & 31));
  atomicAnd(&u[5], ~(1u << (t & 7)));
  atomicXor(&u[6], t);
  atomicInc(&u[7], 10u);
  atomicMax(&s[0], static_cast<int>(t) - 50);
  atomicMin(&s[1], static_cast<int>(t) - 50);
  atomicAdd(&q[0], 0x100000001ull);
  unsigned long long seen = q[1];
  while (true) {
    const unsigned long long was = atomicCAS(&q[1], seen, seen + 3);
    if (was == seen) break;
    seen = was;
  }
  atomicAdd(&f[0], 0.5f);
  atomicAdd(&d[0], 0.25);
}

__global__ void divisions(const unsigned* a, const unsigned* b, const long long* la, const long long* lb,
                          const float* fa, const float* fb, const double* da, const double* db, unsigned* u,
                          long long* l, float* f, double* d) {
  const unsigned t = threadIdx.x;
  u[t] = a[t] / b[t];
  u[64 + t] = a[t] % b[t];
  l[t] = la[t] / lb[t];
  l[64 + t] = la[t] % lb[t];
  f[t] = fa[t] / fb[t];
  f[64 + t] = sqrtf(fabsf(fa[t]));
  d[t] = da[t] / db[t];
  d[64 + t] = sqrt(fabs(da[t]));
}

__global__ void halves_and_bytes(const unsigned short* h, const signed char* c, unsigned short* h_out, short* c_out) {
  const unsigned t = threadIdx.x;
  h_out[t] = static_cast<unsigned short>(h[t] * 3 + h[t ^ 1] / 2);
  c_out[t] = static_cast<short>(c[t] * c[t ^ 1] - (c[t] >> 1));
}

typedef unsigned (*operation)(unsigned, unsigned);
__device__ __attribute__((noinline)) unsigned plus(unsigned a, unsigned b) { return a + b; }
__device__ __attribute__((noinline)) unsigned times(unsigned a, unsigned b) { return a * b; }
__device__ __attribute__((noinline)) unsigned less(unsigned a, unsigned b) { return a - b; }

__global__ void pointers_to_functions(const unsigned* which, unsigned* out) {
  operation const table[3] = {plus, times, less};
  out[threadIdx.x] = table[which[threadIdx.x] % 3](threadIdx.x, which[threadIdx.x]);
}

// Wave 1 of the workgroup waits for wave 0, which waits for the host's word: turns must go round.
__global__ void ping(unsigned* word) {
  if (threadIdx.x == 0) {
    __hip_atomic_store(&word[0], 1u, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
  } else if (threadIdx.x == 64) {
    while (__hip_atomic_load(&word[0], __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM) != 1) __builtin_amdgcn_s_sleep(1);
    __hip_atomic_store(&word[1], 2u, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
  }
}

// The math library: range reduction, tables, exponents.
__global__ void mathematics(const double* x, double* y, float* f) {
  const unsigned t = threadIdx.x;
  const double a = x[t];
  const float b = static_cast<float>(a);
  y[t] = sin(a);
  y[64 + t] = sin(a * 1e15);
  y[128 + t] = exp(-a) + log1p(a);
  y[192 + t] = pow(a, 2.5);
  f[t] = sinf(b * 1000);
  f[64 + t] = expf(b);
  f[128 + t] = powf(b, 1.75f);
  f[192 + t] = logf(b);
}

__global__ void three_dimensions(unsigned* out) {
  const unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
                 z = blockIdx.z * blockDim.z + threadIdx.z;
  const unsigned w = gridDim.x * blockDim.x, h = gridDim.y * blockDim.y;
  out[(z * h + y) * w + x] = x | y << 8 | z << 16;
}
}
