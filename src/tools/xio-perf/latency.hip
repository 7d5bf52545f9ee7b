// SPDX-License-Identifier: MIT
// One put or get after another, each complete before the next begins.
#include "tools/xio-perf/timing.hpp"

namespace xio::perf {
namespace {

template <class Scope>
__global__ void put_latency(work w) {
  const operands o = operands::of(w);
  keep(w, timed(w, [&](std::uint32_t) {
         Scope::put_nbi(w, o);
         return Scope::quiet(w);
       }));
}

template <class Scope>
__global__ void get_latency(work w) {
  const operands o = operands::of(w);
  keep(w, timed(w, [&](std::uint32_t) { return Scope::get(w, o); }));
}

// Shared memory of the staged tests: what every GPU has, and where the bulk copy unit is, what keeps the link busy.
#if defined(XIO_ON_CUDA)
constexpr unsigned k_stage = 96 << 10;
#else
constexpr unsigned k_stage = 32 << 10;
#endif

XIO_DEVICE unsigned char* stage_at(unsigned char* memory) {
  return reinterpret_cast<unsigned char*>((reinterpret_cast<std::uintptr_t>(memory) + 127) & ~std::uintptr_t{127});
}

__global__ void put_staged_latency(work w) {
  HIP_DYNAMIC_SHARED(unsigned char, memory)
  unsigned char* stage = stage_at(memory);
  const operands o = operands::of(w);
  keep(w, timed(w, [&](std::uint32_t) {
         const xio_status_t put = xio_put_staged(w.ctx, o.dst, o.src, o.bytes, stage, k_stage - 128, o.peer);
         return put == XIO_OK ? xio_quiet(w.ctx) : put;
       }));
}

__global__ void get_staged_latency(work w) {
  HIP_DYNAMIC_SHARED(unsigned char, memory)
  unsigned char* stage = stage_at(memory);
  const operands o = operands::of(w);
  keep(w, timed(w, [&](std::uint32_t) {
         return xio_get_staged(w.ctx, o.dst, o.src, o.bytes, stage, k_stage - 128, o.peer);
       }));
}

}  // namespace

void launch_staged_latency(bool put, const work& w) {
#if defined(XIO_ON_CUDA)
  // An error shows at the launch, which asks for as much.
  (void)cudaFuncSetAttribute(put ? put_staged_latency : get_staged_latency, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(k_stage));
#endif
  if (put) {
    hipLaunchKernelGGL(put_staged_latency, dim3(1), dim3(1), k_stage, nullptr, w);
  } else {
    hipLaunchKernelGGL(get_staged_latency, dim3(1), dim3(1), k_stage, nullptr, w);
  }
}

void launch_put_latency(scope s, unsigned threads, const work& w) {
  XIO_PERF_BY_SCOPE(s, dim3(1), threads_of(s, threads), put_latency)
}

void launch_get_latency(scope s, unsigned threads, const work& w) {
  XIO_PERF_BY_SCOPE(s, dim3(1), threads_of(s, threads), get_latency)
}

}  // namespace xio::perf
