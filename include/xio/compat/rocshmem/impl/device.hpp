// SPDX-License-Identifier: MIT
// The calls of kernels, and those of both sides. Each is XIO's call of the same meaning on the context's queues; what
// XIO returns is kept (state.hpp).
#pragma once
#include <cstdint>

#include "xio/compat/rocshmem/impl/each_type.hpp"
#include "xio/compat/rocshmem/impl/host.hpp"

namespace rocshmem {

// --- Both sides --------------------------------------------------------------------------------------

// Before rocshmem_init they are what the launcher says, PE 0 of 1 without one.
XIO_ROCSHMEM_BOTH int rocshmem_my_pe() { XIO_ROCSHMEM_SIDE(xio_my_pe(impl::resolve()), impl::host_my_pe()); }
XIO_ROCSHMEM_BOTH int rocshmem_n_pes() { XIO_ROCSHMEM_SIDE(xio_n_pes(impl::resolve()), impl::host_n_pes()); }
XIO_ROCSHMEM_BOTH void* rocshmem_ptr(const void* symmetric, int pe) {
  XIO_ROCSHMEM_SIDE(xio_ptr(impl::resolve(), symmetric, pe), xio_ptr(impl::host().world, symmetric, pe));
}
XIO_ROCSHMEM_BOTH void rocshmem_barrier_all() {
  XIO_ROCSHMEM_SIDE(impl::keep(xio_barrier_all(impl::resolve())), impl::host_barrier_all());
}
XIO_ROCSHMEM_BOTH void rocshmem_sync_all() {
  XIO_ROCSHMEM_SIDE(impl::keep(xio_sync_all(impl::resolve())), impl::host_barrier_all());
}
XIO_ROCSHMEM_BOTH void rocshmem_quiet() {
  XIO_ROCSHMEM_SIDE(impl::keep(xio_quiet(impl::resolve())), impl::host_quiet());
}
// The host has no copies of its own to order: it completes those of the kernels.
XIO_ROCSHMEM_BOTH void rocshmem_fence() {
  XIO_ROCSHMEM_SIDE(impl::keep(xio_fence(impl::resolve())), impl::host_quiet());
}
XIO_ROCSHMEM_BOTH void rocshmem_query_thread(int* provided) { *provided = ROCSHMEM_THREAD_MULTIPLE; }

// --- Contexts ----------------------------------------------------------------------------------------

// Kernels need no beginning and no end.
XIO_DEVICE void rocshmem_wg_init() {}
XIO_DEVICE void rocshmem_wg_finalize() {}
XIO_DEVICE void rocshmem_wg_init_thread(int, int* provided) { *provided = ROCSHMEM_THREAD_MULTIPLE; }

// All threads of the workgroup call; `ctx` may be of each thread or shared.
XIO_DEVICE int rocshmem_wg_ctx_create(std::int64_t, rocshmem_ctx_t* ctx) {
  xio_ctx_t own{};
  const xio_status_t status = xio_ctx_create_wg(impl::resolve(), &own);
  impl::keep(status);
  *ctx = status == XIO_OK ? rocshmem_ctx_t{reinterpret_cast<unsigned long long>(own.view), 0} : ROCSHMEM_CTX_INVALID;
  __syncthreads();
  return status == XIO_OK ? ROCSHMEM_SUCCESS : ROCSHMEM_ERROR;
}
XIO_DEVICE int rocshmem_wg_team_create_ctx(rocshmem_team_t team, long options, rocshmem_ctx_t* ctx) {
  const xio_team_t t = impl::team_of(team);
  if (t.n_pes == 0) impl::keep(XIO_ERR_STATE);
  if (t.n_pes == 0) *ctx = ROCSHMEM_CTX_INVALID;
  if (t.n_pes == 0 || rocshmem_wg_ctx_create(options, ctx) != ROCSHMEM_SUCCESS) return ROCSHMEM_ERROR;
  ctx->team_opaque = team.index;
  __syncthreads();
  return ROCSHMEM_SUCCESS;
}
XIO_DEVICE void rocshmem_wg_ctx_destroy(rocshmem_ctx_t* ctx) {
  const bool none = ctx->ctx_opaque == ROCSHMEM_CTX_INVALID.ctx_opaque;
  xio_ctx_t own = impl::resolve(*ctx);
  __syncthreads();
  if (none) return;
  impl::keep(xio_ctx_destroy_wg(impl::resolve(), &own));
  *ctx = ROCSHMEM_CTX_INVALID;
}
// Of the context's team.
XIO_DEVICE int rocshmem_ctx_my_pe(rocshmem_ctx_t ctx) {
  if (ctx.team_opaque <= ROCSHMEM_TEAM_WORLD.index) return xio_my_pe(impl::resolve(ctx));
  return xio_team_my_pe(impl::team_of(rocshmem_team_t{static_cast<std::uint32_t>(ctx.team_opaque)}));
}
XIO_DEVICE int rocshmem_ctx_n_pes(rocshmem_ctx_t ctx) {
  if (ctx.team_opaque <= ROCSHMEM_TEAM_WORLD.index) return xio_n_pes(impl::resolve(ctx));
  return xio_team_n_pes(impl::team_of(rocshmem_team_t{static_cast<std::uint32_t>(ctx.team_opaque)}));
}

// Contexts for kernels that choose one by a number, rocshmem_ctx_array[i]: those of rocshmem_wg_ctx_create's pool, as
// there, so there are ROCSHMEM_MAX_NUM_CONTEXTS of them. Any number of workgroups may use one.
struct rocshmem_ctx_array_t {
  XIO_DEVICE rocshmem_ctx_t operator[](std::size_t i) const {
    const xio_ctx_t one = xio_pool_ctx(impl::resolve(), static_cast<std::uint32_t>(i < ~0u ? i : ~0u));
    if (one.view == nullptr) return ROCSHMEM_CTX_INVALID;
    return rocshmem_ctx_t{reinterpret_cast<unsigned long long>(one.view), 0};
  }
};
[[maybe_unused]] static __device__ const rocshmem_ctx_array_t rocshmem_ctx_array{};

// --- Order, barriers ---------------------------------------------------------------------------------

XIO_DEVICE void rocshmem_ctx_fence(rocshmem_ctx_t ctx) { impl::keep(xio_fence(impl::resolve(ctx))); }
XIO_DEVICE void rocshmem_ctx_fence(rocshmem_ctx_t ctx, int pe) {
  impl::keep(xio_fence_pe(impl::resolve(ctx), impl::world_pe(ctx, pe)));
}
XIO_DEVICE void rocshmem_fence(int pe) { impl::keep(xio_fence_pe(impl::resolve(), pe)); }
XIO_DEVICE void rocshmem_ctx_quiet(rocshmem_ctx_t ctx) { impl::keep(xio_quiet(impl::resolve(ctx))); }
XIO_DEVICE void rocshmem_ctx_pe_quiet(rocshmem_ctx_t ctx, const int* pes, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) impl::keep(xio_quiet_pe(impl::resolve(ctx), impl::world_pe(ctx, pes[i])));
}
XIO_DEVICE void rocshmem_pe_quiet(const int* pes, std::size_t count) {
  rocshmem_ctx_pe_quiet(ROCSHMEM_CTX_DEFAULT, pes, count);
}
XIO_DEVICE void rocshmem_threadfence_system() { xio::dev::fence<xio::dev::scope::system, xio::dev::order::seq_cst>(); }
XIO_DEVICE void rocshmem_ctx_threadfence_system(rocshmem_ctx_t) { rocshmem_threadfence_system(); }

// As they are called since 3.0, and before.
#define XIO_ROCSHMEM_MEET(what)                                                                                     \
  XIO_DEVICE void rocshmem_ctx_##what(rocshmem_ctx_t ctx) { impl::keep(xio_##what(impl::resolve(ctx))); }           \
  XIO_DEVICE void rocshmem_ctx_##what##_wave(rocshmem_ctx_t ctx) {                                                  \
    impl::keep(xio_##what##_wave(impl::resolve(ctx)));                                                              \
  }                                                                                                                 \
  XIO_DEVICE void rocshmem_ctx_##what##_wg(rocshmem_ctx_t ctx) { impl::keep(xio_##what##_wg(impl::resolve(ctx))); } \
  XIO_DEVICE void rocshmem_##what##_wave() { impl::keep(xio_##what##_wave(impl::resolve())); }                      \
  XIO_DEVICE void rocshmem_##what##_wg() { impl::keep(xio_##what##_wg(impl::resolve())); }                          \
  XIO_DEVICE void rocshmem_ctx_wg_##what(rocshmem_ctx_t ctx) { rocshmem_ctx_##what##_wg(ctx); }                     \
  XIO_DEVICE void rocshmem_wg_##what() { rocshmem_##what##_wg(); }
XIO_ROCSHMEM_MEET(barrier_all)
XIO_ROCSHMEM_MEET(sync_all)
#undef XIO_ROCSHMEM_MEET

// --- Copies, and copies with a signal ----------------------------------------------------------------

// A copy by CALL, whose result KEEP keeps. NAME is what follows rocshmem_, UNIT is what n counts in bytes.
#define XIO_ROCSHMEM_COPY(NAME, CALL, KEEP, T, UNIT)                                                   \
  XIO_DEVICE void rocshmem_ctx_##NAME(rocshmem_ctx_t c, T* to, const T* from, std::size_t n, int pe) { \
    impl::KEEP(CALL(impl::resolve(c), to, from, n*(UNIT), impl::world_pe(c, pe)));                     \
  }                                                                                                    \
  XIO_DEVICE void rocshmem_##NAME(T* to, const T* from, std::size_t n, int pe) {                       \
    rocshmem_ctx_##NAME(ROCSHMEM_CTX_DEFAULT, to, from, n, pe);                                        \
  }
// Likewise, and a signal that is seen after the data.
#define XIO_ROCSHMEM_SIGNAL(NAME, CALL, KEEP, T, UNIT)                                                              \
  XIO_DEVICE void rocshmem_ctx_##NAME(rocshmem_ctx_t c, T* to, const T* from, std::size_t n, std::uint64_t* sig,    \
                                      std::uint64_t value, int op, int pe) {                                        \
    impl::KEEP(CALL(impl::resolve(c), to, from, n*(UNIT), sig, value, xio_signal_op_t(op), impl::world_pe(c, pe))); \
  }                                                                                                                 \
  XIO_DEVICE void rocshmem_##NAME(T* to, const T* from, std::size_t n, std::uint64_t* sig, std::uint64_t value,     \
                                  int op, int pe) {                                                                 \
    rocshmem_ctx_##NAME(ROCSHMEM_CTX_DEFAULT, to, from, n, sig, value, op, pe);                                     \
  }
// All of one scope, which is empty, _wave or _wg.
#define XIO_ROCSHMEM_COPIES(PUT, GET, T, UNIT, SCOPE)                            \
  XIO_ROCSHMEM_COPY(PUT##SCOPE, xio_put##SCOPE, keep, T, UNIT)                   \
  XIO_ROCSHMEM_COPY(PUT##_nbi##SCOPE, xio_put_nbi##SCOPE, keep_request, T, UNIT) \
  XIO_ROCSHMEM_COPY(GET##SCOPE, xio_get##SCOPE, keep, T, UNIT)                   \
  XIO_ROCSHMEM_COPY(GET##_nbi##SCOPE, xio_get_nbi##SCOPE, keep_request, T, UNIT) \
  XIO_ROCSHMEM_SIGNAL(PUT##_signal##SCOPE, xio_put_signal##SCOPE, keep, T, UNIT) \
  XIO_ROCSHMEM_SIGNAL(PUT##_signal_nbi##SCOPE, xio_put_signal_nbi##SCOPE, keep_request, T, UNIT)
// All of a type, and its single values.
#define XIO_ROCSHMEM_TYPE(NAME, T)                                                    \
  XIO_ROCSHMEM_COPIES(NAME##_put, NAME##_get, T, sizeof(T), )                         \
  XIO_ROCSHMEM_COPIES(NAME##_put, NAME##_get, T, sizeof(T), _wave)                    \
  XIO_ROCSHMEM_COPIES(NAME##_put, NAME##_get, T, sizeof(T), _wg)                      \
  XIO_DEVICE void rocshmem_ctx_##NAME##_p(rocshmem_ctx_t c, T* to, T value, int pe) { \
    impl::keep(xio_p(impl::resolve(c), to, value, impl::world_pe(c, pe)));            \
  }                                                                                   \
  XIO_DEVICE void rocshmem_##NAME##_p(T* to, T value, int pe) {                       \
    rocshmem_ctx_##NAME##_p(ROCSHMEM_CTX_DEFAULT, to, value, pe);                     \
  }                                                                                   \
  XIO_DEVICE T rocshmem_ctx_##NAME##_g(rocshmem_ctx_t c, const T* from, int pe) {     \
    return xio_g(impl::resolve(c), from, impl::world_pe(c, pe));                      \
  }                                                                                   \
  XIO_DEVICE T rocshmem_##NAME##_g(const T* from, int pe) {                           \
    return rocshmem_ctx_##NAME##_g(ROCSHMEM_CTX_DEFAULT, from, pe);                   \
  }
#define XIO_ROCSHMEM_WAITS(NAME, T)                                                                                    \
  XIO_DEVICE void rocshmem_##NAME##_wait_until(T* ivar, int cmp, T value) {                                            \
    impl::keep(xio_wait_until(impl::resolve(), ivar, xio_cmp_t(cmp), value));                                          \
  }                                                                                                                    \
  XIO_DEVICE int rocshmem_##NAME##_test(T* ivar, int cmp, T value) {                                                   \
    const xio_status_t status = xio_test_until(impl::resolve(), ivar, xio_cmp_t(cmp), value);                          \
    impl::keep(status);                                                                                                \
    return status == XIO_OK;                                                                                           \
  }                                                                                                                    \
  XIO_DEVICE void rocshmem_##NAME##_wait_until_all(T* ivars, std::size_t n, const int* status, int cmp, T value) {     \
    impl::keep(xio_wait_until_all(impl::resolve(), ivars, n, status, xio_cmp_t(cmp), value));                          \
  }                                                                                                                    \
  XIO_DEVICE std::size_t rocshmem_##NAME##_wait_until_any(T* ivars, std::size_t n, const int* status, int cmp,         \
                                                          T value) {                                                   \
    std::size_t index = SIZE_MAX;                                                                                      \
    impl::keep(xio_wait_until_any(impl::resolve(), ivars, n, status, xio_cmp_t(cmp), value, &index));                  \
    return index;                                                                                                      \
  }                                                                                                                    \
  XIO_DEVICE std::size_t rocshmem_##NAME##_wait_until_some(T* ivars, std::size_t n, std::size_t* indices,              \
                                                           const int* status, int cmp, T value) {                      \
    std::size_t found = 0;                                                                                             \
    impl::keep(xio_wait_until_some(impl::resolve(), ivars, n, indices, status, xio_cmp_t(cmp), value, &found));        \
    return found;                                                                                                      \
  }                                                                                                                    \
  XIO_DEVICE void rocshmem_##NAME##_wait_until_all_vector(T* ivars, std::size_t n, const int* status, int cmp,         \
                                                          T* value) {                                                  \
    impl::keep(xio_wait_until_all_vector(impl::resolve(), ivars, n, status, xio_cmp_t(cmp), value));                   \
  }                                                                                                                    \
  XIO_DEVICE std::size_t rocshmem_##NAME##_wait_until_any_vector(T* ivars, std::size_t n, const int* status, int cmp,  \
                                                                 T* value) {                                           \
    std::size_t index = SIZE_MAX;                                                                                      \
    impl::keep(xio_wait_until_any_vector(impl::resolve(), ivars, n, status, xio_cmp_t(cmp), value, &index));           \
    return index;                                                                                                      \
  }                                                                                                                    \
  XIO_DEVICE std::size_t rocshmem_##NAME##_wait_until_some_vector(T* ivars, std::size_t n, std::size_t* indices,       \
                                                                  const int* status, int cmp, T* value) {              \
    std::size_t found = 0;                                                                                             \
    impl::keep(xio_wait_until_some_vector(impl::resolve(), ivars, n, indices, status, xio_cmp_t(cmp), value, &found)); \
    return found;                                                                                                      \
  }
XIO_ROCSHMEM_EACH_NUMBER(XIO_ROCSHMEM_TYPE)
XIO_ROCSHMEM_EACH_NUMBER(XIO_ROCSHMEM_WAITS)
XIO_ROCSHMEM_COPIES(putmem, getmem, void, 1, )
XIO_ROCSHMEM_COPIES(putmem, getmem, void, 1, _wave)
XIO_ROCSHMEM_COPIES(putmem, getmem, void, 1, _wg)
#undef XIO_ROCSHMEM_WAITS
#undef XIO_ROCSHMEM_TYPE
#undef XIO_ROCSHMEM_COPIES
#undef XIO_ROCSHMEM_SIGNAL
#undef XIO_ROCSHMEM_COPY

// --- Signals alone -----------------------------------------------------------------------------------

XIO_DEVICE std::uint64_t rocshmem_signal_fetch(const std::uint64_t* sig) {
  return xio_signal_fetch(impl::resolve(), sig);
}
XIO_DEVICE std::uint64_t rocshmem_signal_fetch_wave(const std::uint64_t* sig) { return rocshmem_signal_fetch(sig); }
XIO_DEVICE std::uint64_t rocshmem_signal_fetch_wg(const std::uint64_t* sig) { return rocshmem_signal_fetch(sig); }
// Returns the value that ended the wait.
XIO_DEVICE std::uint64_t rocshmem_signal_wait_until(std::uint64_t* sig, int cmp, std::uint64_t value) {
  std::uint64_t seen = 0;
  impl::keep(xio_signal_wait_until(impl::resolve(), sig, xio_cmp_t(cmp), value, &seen));
  return seen;
}
XIO_DEVICE void rocshmem_signal_op(std::uint64_t* sig, std::uint64_t value, int op, int pe) {
  impl::keep(xio_signal_op(impl::resolve(), sig, value, xio_signal_op_t(op), pe));
}

// --- Atomics -----------------------------------------------------------------------------------------

// An atomic that returns the word as it was, and one that returns nothing. OP is what follows NAME##_atomic_; LIST and
// ARGS are its operands in brackets, each with a comma before it.
#define XIO_ROCSHMEM_PASS(...) __VA_ARGS__
#define XIO_ROCSHMEM_FETCH(NAME, T, OP, LIST, ARGS)                                                         \
  XIO_DEVICE T rocshmem_ctx_##NAME##_atomic_##OP(rocshmem_ctx_t c, T* dst XIO_ROCSHMEM_PASS LIST, int pe) { \
    return xio_atomic_##OP(impl::resolve(c), dst XIO_ROCSHMEM_PASS ARGS, impl::world_pe(c, pe));            \
  }                                                                                                         \
  XIO_DEVICE T rocshmem_##NAME##_atomic_##OP(T* dst XIO_ROCSHMEM_PASS LIST, int pe) {                       \
    return rocshmem_ctx_##NAME##_atomic_##OP(ROCSHMEM_CTX_DEFAULT, dst XIO_ROCSHMEM_PASS ARGS, pe);         \
  }
#define XIO_ROCSHMEM_CHANGE(NAME, T, OP, LIST, ARGS)                                                           \
  XIO_DEVICE void rocshmem_ctx_##NAME##_atomic_##OP(rocshmem_ctx_t c, T* dst XIO_ROCSHMEM_PASS LIST, int pe) { \
    impl::keep(xio_atomic_##OP(impl::resolve(c), dst XIO_ROCSHMEM_PASS ARGS, impl::world_pe(c, pe)));          \
  }                                                                                                            \
  XIO_DEVICE void rocshmem_##NAME##_atomic_##OP(T* dst XIO_ROCSHMEM_PASS LIST, int pe) {                       \
    rocshmem_ctx_##NAME##_atomic_##OP(ROCSHMEM_CTX_DEFAULT, dst XIO_ROCSHMEM_PASS ARGS, pe);                   \
  }
#define XIO_ROCSHMEM_AMO_ANY(NAME, T)                       \
  XIO_ROCSHMEM_FETCH(NAME, T, fetch, (), ())                \
  XIO_ROCSHMEM_FETCH(NAME, T, swap, (, T value), (, value)) \
  XIO_ROCSHMEM_CHANGE(NAME, T, set, (, T value), (, value))
#define XIO_ROCSHMEM_AMO_INTEGER(NAME, T)                        \
  XIO_ROCSHMEM_AMO_ANY(NAME, T)                                  \
  XIO_ROCSHMEM_CHANGE(NAME, T, add, (, T value), (, value))      \
  XIO_ROCSHMEM_CHANGE(NAME, T, inc, (), ())                      \
  XIO_ROCSHMEM_FETCH(NAME, T, fetch_add, (, T value), (, value)) \
  XIO_ROCSHMEM_FETCH(NAME, T, fetch_inc, (), ())                 \
  XIO_ROCSHMEM_FETCH(NAME, T, compare_swap, (, T expected, T value), (, expected, value))
#define XIO_ROCSHMEM_AMO_BITS(NAME, T)                           \
  XIO_ROCSHMEM_CHANGE(NAME, T, and, (, T value), (, value))      \
  XIO_ROCSHMEM_CHANGE(NAME, T, or, (, T value), (, value))       \
  XIO_ROCSHMEM_CHANGE(NAME, T, xor, (, T value), (, value))      \
  XIO_ROCSHMEM_FETCH(NAME, T, fetch_and, (, T value), (, value)) \
  XIO_ROCSHMEM_FETCH(NAME, T, fetch_or, (, T value), (, value))  \
  XIO_ROCSHMEM_FETCH(NAME, T, fetch_xor, (, T value), (, value))
XIO_ROCSHMEM_AMO_ANY(float, float)
XIO_ROCSHMEM_AMO_ANY(double, double)
XIO_ROCSHMEM_EACH_ATOMIC(XIO_ROCSHMEM_AMO_INTEGER)
XIO_ROCSHMEM_EACH_BITS(XIO_ROCSHMEM_AMO_BITS)
#undef XIO_ROCSHMEM_AMO_BITS
#undef XIO_ROCSHMEM_AMO_INTEGER
#undef XIO_ROCSHMEM_AMO_ANY
#undef XIO_ROCSHMEM_CHANGE
#undef XIO_ROCSHMEM_FETCH
#undef XIO_ROCSHMEM_PASS

}  // namespace rocshmem
