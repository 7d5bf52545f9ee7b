// SPDX-License-Identifier: MIT
// One kernel per op that a GPU pays for: cost.sh compiles it and counts instructions and registers. Never run.
#include <xio/hip.h>
#include <xio/xio_device.hpp>

extern "C" {

__global__ void cost_put_nbi(xio_ctx_t c, void* to, const void* from, size_t n, int pe, xio_req_t* q) {
  *q = xio_put_nbi(c, to, from, n, pe);
}
__global__ void cost_put_nbi_wave(xio_ctx_t c, void* to, const void* from, size_t n, int pe, xio_req_t* q) {
  *q = xio_put_nbi_wave(c, to, from, n, pe);
}
__global__ void cost_put_nbi_wg(xio_ctx_t c, void* to, const void* from, size_t n, int pe, xio_req_t* q) {
  *q = xio_put_nbi_wg(c, to, from, n, pe);
}
__global__ void cost_get_nbi(xio_ctx_t c, void* to, const void* from, size_t n, int pe, xio_req_t* q) {
  *q = xio_get_nbi(c, to, from, n, pe);
}
__global__ void cost_p(xio_ctx_t c, long* to, long value, int pe) { xio_p(c, to, value, pe); }
__global__ void cost_put_signal_nbi(xio_ctx_t c, void* to, const void* from, size_t n, uint64_t* flag, int pe,
                                    xio_req_t* q) {
  *q = xio_put_signal_nbi(c, to, from, n, flag, 1, XIO_SIGNAL_SET, pe);
}
__global__ void cost_fetch_add(xio_ctx_t c, long* word, long* old, int pe) {
  *old = xio_atomic_fetch_add(c, word, 1L, pe);
}
__global__ void cost_wait(xio_ctx_t c, const uint64_t* flag, int* status) {
  *status = xio_signal_wait_until(c, flag, XIO_CMP_GE, 1);
}
__global__ void cost_quiet(xio_ctx_t c, int* status) { *status = xio_quiet(c); }

// A program that uses much of the API in one kernel: the engines' code is there once.
__global__ void cost_ten_ops(xio_ctx_t c, long* to, const long* from, size_t n, uint64_t* flag, int pe, int* status) {
  xio_put_nbi(c, to, from, n, pe);
  xio_get_nbi(c, to + n, from + n, n, pe);
  xio_p(c, to, 1L, pe);
  to[n] = xio_g(c, from, pe);
  xio_put_signal_nbi(c, to, from, n, flag, 1, XIO_SIGNAL_ADD, pe);
  xio_atomic_add(c, to, 1L, pe);
  to[n + 1] = xio_atomic_fetch_add(c, to, 1L, pe);
  status[0] = xio_signal_wait_until(c, flag, XIO_CMP_GE, 1);
  xio_fence(c);
  status[1] = xio_quiet(c);
}

// A stencil whose border threads put what they have computed: registers that an op takes are waves that it loses.
__device__ inline float stencil_at(const float* from, int width, int at) {
  float sum = 0;
#pragma unroll
  for (int dy = -2; dy <= 2; ++dy)
#pragma unroll
    for (int dx = -2; dx <= 2; ++dx) sum += from[at + dy * width + dx] * static_cast<float>(1 + dx * dx + dy * dy);
  return sum;
}
__global__ void cost_stencil(float* to, const float* from, int width) {
  const int at = static_cast<int>((blockIdx.x + 2) * width + threadIdx.x + 2);
  to[at] = stencil_at(from, width, at);
}
__global__ void cost_stencil_two_puts(xio_ctx_t c, float* to, const float* from, int width, int up, int down) {
  const int at = static_cast<int>((blockIdx.x + 2) * width + threadIdx.x + 2);
  to[at] = stencil_at(from, width, at);
  if (blockIdx.x == 0) xio_put_nbi(c, to + at + width, to + at, sizeof(float), up);
  if (blockIdx.x == 1) xio_put_nbi(c, to + at - width, to + at, sizeof(float), down);
}

// A queue of xio/sdma.h: what submitting one copy costs, and one with its signal.
__global__ void cost_sdma_put(xio_sdma_queue_t q, void* to, const void* from, size_t n, xio_req_t* r) {
  *r = xio_sdma_put(q, to, from, n);
}
__global__ void cost_sdma_put_signal(xio_sdma_queue_t q, void* to, const void* from, size_t n, uint64_t* word,
                                     xio_req_t* r) {
  *r = xio_sdma_put_signal(q, to, from, n, word, 1, XIO_SIGNAL_ADD);
}

}  // extern "C"
