// SPDX-License-Identifier: MIT
// XIO's calls for kernels that are compiled from other languages (docs/python.md): C symbols in LLVM's bitcode, which
// bitcode.py makes of this file for one GPU. The ctx goes by its address on the device (xio_ctx_device), as a word:
// there is no global for anybody to fill, so kernels work in graphs and beside those of other libraries.
//
// Calls `_wg` are made by all threads of a workgroup, as Triton's programs make every call; all others by one thread.
// They return the status, and XIO_ERR_STATE for a ctx of a libxio with another layout than these headers'.
#if defined(__CUDA__) && defined(__clang__) && __clang_major__ < 22
// clang's headers have these from 22 on.
template <class T>
__device__ inline T __ldcv(const T* p) {
  T v;
  if constexpr (sizeof(T) == 16)
    asm volatile("ld.cv.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p) : "memory");
  else if constexpr (sizeof(T) == 8)
    asm volatile("ld.cv.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  else if constexpr (sizeof(T) == 4)
    asm volatile("ld.cv.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  else
    v = *static_cast<const volatile T*>(p);
  return v;
}
#endif
#include <xio/xio_device.hpp>

#define XIO_SYMBOL extern "C" __device__ __attribute__((visibility("default"), used))

namespace {

__device__ inline const xio_ctx_t& ctx_at(uint64_t ctx) { return *reinterpret_cast<const xio_ctx_t*>(ctx); }
__device__ inline bool fits(uint64_t ctx) { return ctx != 0 && ctx_at(ctx).layout == xio::dev::k_layout; }
template <class T = void>
__device__ inline T* at(uint64_t address) {
  return reinterpret_cast<T*>(address);
}
// One thread makes the call for all, and all return its status.
template <class Call>
__device__ inline int once(uint64_t ctx, Call&& call) {
  __shared__ int status;
  if (!fits(ctx)) return XIO_ERR_STATE;
  __syncthreads();
  if (threadIdx.x == 0) status = call(ctx_at(ctx));
  __syncthreads();
  return status;
}

}  // namespace

XIO_SYMBOL int xio_bc_my_pe(uint64_t ctx) { return fits(ctx) ? xio_my_pe(ctx_at(ctx)) : -1; }
XIO_SYMBOL int xio_bc_n_pes(uint64_t ctx) { return fits(ctx) ? xio_n_pes(ctx_at(ctx)) : -1; }
// The address of a symmetric one at a PE for loads and stores; 0 where they do not go.
XIO_SYMBOL uint64_t xio_bc_ptr(uint64_t ctx, uint64_t symmetric, int pe) {
  return fits(ctx) ? reinterpret_cast<uint64_t>(xio_ptr(ctx_at(ctx), at(symmetric), pe)) : 0;
}
XIO_SYMBOL int xio_bc_put_wg(uint64_t ctx, uint64_t dst, uint64_t src, uint64_t bytes, int pe) {
  return fits(ctx) ? xio_put_wg(ctx_at(ctx), at(dst), at(src), bytes, pe) : XIO_ERR_STATE;
}
XIO_SYMBOL int xio_bc_get_wg(uint64_t ctx, uint64_t dst, uint64_t src, uint64_t bytes, int pe) {
  return fits(ctx) ? xio_get_wg(ctx_at(ctx), at(dst), at(src), bytes, pe) : XIO_ERR_STATE;
}
XIO_SYMBOL int xio_bc_put_signal_wg(uint64_t ctx, uint64_t dst, uint64_t src, uint64_t bytes, uint64_t sig,
                                    uint64_t value, int op, int pe) {
  if (!fits(ctx)) return XIO_ERR_STATE;
  return xio_put_signal_wg(ctx_at(ctx), at(dst), at(src), bytes, at<uint64_t>(sig), value,
                           static_cast<xio_signal_op_t>(op), pe);
}
XIO_SYMBOL int xio_bc_signal_op_wg(uint64_t ctx, uint64_t sig, uint64_t value, int op, int pe) {
  return once(ctx, [&](const xio_ctx_t& c) {
    return xio_signal_op(c, at<uint64_t>(sig), value, static_cast<xio_signal_op_t>(op), pe);
  });
}
XIO_SYMBOL int xio_bc_signal_wait_wg(uint64_t ctx, uint64_t sig, int cmp, uint64_t value) {
  return once(ctx, [&](const xio_ctx_t& c) {
    return xio_signal_wait_until(c, at<uint64_t>(sig), static_cast<xio_cmp_t>(cmp), value);
  });
}
XIO_SYMBOL int xio_bc_fence_wg(uint64_t ctx) {
  return once(ctx, [](const xio_ctx_t& c) { return xio_fence(c); });
}
XIO_SYMBOL int xio_bc_quiet_wg(uint64_t ctx) {
  return once(ctx, [](const xio_ctx_t& c) { return xio_quiet(c); });
}
// By one workgroup of each PE.
XIO_SYMBOL int xio_bc_barrier_all_wg(uint64_t ctx) {
  return once(ctx, [](const xio_ctx_t& c) { return xio_barrier_all(c); });
}
// The old value comes back; of a call that fails it is 0, and the next quiet has the status.
XIO_SYMBOL uint64_t xio_bc_atomic_fetch_add(uint64_t ctx, uint64_t word, uint64_t value, int pe) {
  return fits(ctx) ? xio_atomic_fetch_add(ctx_at(ctx), at<uint64_t>(word), value, pe) : 0;
}
