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

// A queue of xio/sdma.h: what submitting one copy costs, and one with its signal.
__global__ void cost_sdma_put(xio_sdma_queue_t q, void* to, const void* from, size_t n, xio_req_t* r) {
  *r = xio_sdma_put(q, to, from, n);
}
__global__ void cost_sdma_put_signal(xio_sdma_queue_t q, void* to, const void* from, size_t n, uint64_t* word,
                                     xio_req_t* r) {
  *r = xio_sdma_put_signal(q, to, from, n, word, 1, XIO_SIGNAL_ADD);
}

}  // extern "C"
