// SPDX-License-Identifier: MIT
// The calls of kernels, and those of both sides. Each is XIO's call of the same meaning on the context's queues; what
// XIO returns is kept (state.hpp).
#pragma once
#include <cstdint>

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

// The four copies of one scope. PUT and GET are the names between rocshmem_ and the suffixes, SCOPE is empty, _wave or
// _wg, UNIT is what n counts in bytes.
#define XIO_ROCSHMEM_COPY(PUT, GET, T, UNIT, SCOPE)                                                                \
  XIO_DEVICE void rocshmem_ctx_##PUT##SCOPE(rocshmem_ctx_t c, T* to, const T* from, std::size_t n, int pe) {       \
    impl::keep(xio_put##SCOPE(impl::resolve(c), to, from, n*(UNIT), impl::world_pe(c, pe)));                       \
  }                                                                                                                \
  XIO_DEVICE void rocshmem_##PUT##SCOPE(T* to, const T* from, std::size_t n, int pe) {                             \
    rocshmem_ctx_##PUT##SCOPE(ROCSHMEM_CTX_DEFAULT, to, from, n, pe);                                              \
  }                                                                                                                \
  XIO_DEVICE void rocshmem_ctx_##PUT##_nbi##SCOPE(rocshmem_ctx_t c, T* to, const T* from, std::size_t n, int pe) { \
    impl::keep_request(xio_put_nbi##SCOPE(impl::resolve(c), to, from, n*(UNIT), impl::world_pe(c, pe)));           \
  }                                                                                                                \
  XIO_DEVICE void rocshmem_##PUT##_nbi##SCOPE(T* to, const T* from, std::size_t n, int pe) {                       \
    rocshmem_ctx_##PUT##_nbi##SCOPE(ROCSHMEM_CTX_DEFAULT, to, from, n, pe);                                        \
  }                                                                                                                \
  XIO_DEVICE void rocshmem_ctx_##GET##SCOPE(rocshmem_ctx_t c, T* to, const T* from, std::size_t n, int pe) {       \
    impl::keep(xio_get##SCOPE(impl::resolve(c), to, from, n*(UNIT), impl::world_pe(c, pe)));                       \
  }                                                                                                                \
  XIO_DEVICE void rocshmem_##GET##SCOPE(T* to, const T* from, std::size_t n, int pe) {                             \
    rocshmem_ctx_##GET##SCOPE(ROCSHMEM_CTX_DEFAULT, to, from, n, pe);                                              \
  }                                                                                                                \
  XIO_DEVICE void rocshmem_ctx_##GET##_nbi##SCOPE(rocshmem_ctx_t c, T* to, const T* from, std::size_t n, int pe) { \
    impl::keep_request(xio_get_nbi##SCOPE(impl::resolve(c), to, from, n*(UNIT), impl::world_pe(c, pe)));           \
  }                                                                                                                \
  XIO_DEVICE void rocshmem_##GET##_nbi##SCOPE(T* to, const T* from, std::size_t n, int pe) {                       \
    rocshmem_ctx_##GET##_nbi##SCOPE(ROCSHMEM_CTX_DEFAULT, to, from, n, pe);                                        \
  }
// Data, and a signal that is seen after it.
#define XIO_ROCSHMEM_SIGNAL(PUT, T, UNIT, SCOPE)                                                                    \
  XIO_DEVICE void rocshmem_ctx_##PUT##_signal##SCOPE(rocshmem_ctx_t c, T* to, const T* from, std::size_t n,         \
                                                     std::uint64_t* sig, std::uint64_t value, int op, int pe) {     \
    impl::keep(xio_put_signal##SCOPE(impl::resolve(c), to, from, n*(UNIT), sig, value, xio_signal_op_t(op),         \
                                     impl::world_pe(c, pe)));                                                       \
  }                                                                                                                 \
  XIO_DEVICE void rocshmem_##PUT##_signal##SCOPE(T* to, const T* from, std::size_t n, std::uint64_t* sig,           \
                                                 std::uint64_t value, int op, int pe) {                             \
    rocshmem_ctx_##PUT##_signal##SCOPE(ROCSHMEM_CTX_DEFAULT, to, from, n, sig, value, op, pe);                      \
  }                                                                                                                 \
  XIO_DEVICE void rocshmem_ctx_##PUT##_signal_nbi##SCOPE(rocshmem_ctx_t c, T* to, const T* from, std::size_t n,     \
                                                         std::uint64_t* sig, std::uint64_t value, int op, int pe) { \
    impl::keep_request(xio_put_signal_nbi##SCOPE(impl::resolve(c), to, from, n*(UNIT), sig, value,                  \
                                                 xio_signal_op_t(op), impl::world_pe(c, pe)));                      \
  }                                                                                                                 \
  XIO_DEVICE void rocshmem_##PUT##_signal_nbi##SCOPE(T* to, const T* from, std::size_t n, std::uint64_t* sig,       \
                                                     std::uint64_t value, int op, int pe) {                         \
    rocshmem_ctx_##PUT##_signal_nbi##SCOPE(ROCSHMEM_CTX_DEFAULT, to, from, n, sig, value, op, pe);                  \
  }
// All of a type, and its single values.
#define XIO_ROCSHMEM_TYPE(NAME, T)                                                    \
  XIO_ROCSHMEM_COPY(NAME##_put, NAME##_get, T, sizeof(T), )                           \
  XIO_ROCSHMEM_COPY(NAME##_put, NAME##_get, T, sizeof(T), _wave)                      \
  XIO_ROCSHMEM_COPY(NAME##_put, NAME##_get, T, sizeof(T), _wg)                        \
  XIO_ROCSHMEM_SIGNAL(NAME##_put, T, sizeof(T), )                                     \
  XIO_ROCSHMEM_SIGNAL(NAME##_put, T, sizeof(T), _wave)                                \
  XIO_ROCSHMEM_SIGNAL(NAME##_put, T, sizeof(T), _wg)                                  \
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
XIO_ROCSHMEM_TYPE(float, float)
XIO_ROCSHMEM_TYPE(double, double)
XIO_ROCSHMEM_TYPE(char, char)
XIO_ROCSHMEM_TYPE(schar, signed char)
XIO_ROCSHMEM_TYPE(short, short)
XIO_ROCSHMEM_TYPE(int, int)
XIO_ROCSHMEM_TYPE(long, long)
XIO_ROCSHMEM_TYPE(longlong, long long)
XIO_ROCSHMEM_TYPE(uchar, unsigned char)
XIO_ROCSHMEM_TYPE(ushort, unsigned short)
XIO_ROCSHMEM_TYPE(uint, unsigned)
XIO_ROCSHMEM_TYPE(ulong, unsigned long)
XIO_ROCSHMEM_TYPE(ulonglong, unsigned long long)
XIO_ROCSHMEM_TYPE(int8, std::int8_t)
XIO_ROCSHMEM_TYPE(int16, std::int16_t)
XIO_ROCSHMEM_TYPE(int32, std::int32_t)
XIO_ROCSHMEM_TYPE(int64, std::int64_t)
XIO_ROCSHMEM_TYPE(uint8, std::uint8_t)
XIO_ROCSHMEM_TYPE(uint16, std::uint16_t)
XIO_ROCSHMEM_TYPE(uint32, std::uint32_t)
XIO_ROCSHMEM_TYPE(uint64, std::uint64_t)
XIO_ROCSHMEM_TYPE(size, std::size_t)
XIO_ROCSHMEM_TYPE(ptrdiff, std::ptrdiff_t)
XIO_ROCSHMEM_WAITS(float, float)
XIO_ROCSHMEM_WAITS(double, double)
XIO_ROCSHMEM_WAITS(char, char)
XIO_ROCSHMEM_WAITS(schar, signed char)
XIO_ROCSHMEM_WAITS(short, short)
XIO_ROCSHMEM_WAITS(int, int)
XIO_ROCSHMEM_WAITS(long, long)
XIO_ROCSHMEM_WAITS(longlong, long long)
XIO_ROCSHMEM_WAITS(uchar, unsigned char)
XIO_ROCSHMEM_WAITS(ushort, unsigned short)
XIO_ROCSHMEM_WAITS(uint, unsigned)
XIO_ROCSHMEM_WAITS(ulong, unsigned long)
XIO_ROCSHMEM_WAITS(ulonglong, unsigned long long)
XIO_ROCSHMEM_WAITS(int8, std::int8_t)
XIO_ROCSHMEM_WAITS(int16, std::int16_t)
XIO_ROCSHMEM_WAITS(int32, std::int32_t)
XIO_ROCSHMEM_WAITS(int64, std::int64_t)
XIO_ROCSHMEM_WAITS(uint8, std::uint8_t)
XIO_ROCSHMEM_WAITS(uint16, std::uint16_t)
XIO_ROCSHMEM_WAITS(uint32, std::uint32_t)
XIO_ROCSHMEM_WAITS(uint64, std::uint64_t)
XIO_ROCSHMEM_WAITS(size, std::size_t)
XIO_ROCSHMEM_WAITS(ptrdiff, std::ptrdiff_t)
XIO_ROCSHMEM_COPY(putmem, getmem, void, 1, )
XIO_ROCSHMEM_COPY(putmem, getmem, void, 1, _wave)
XIO_ROCSHMEM_COPY(putmem, getmem, void, 1, _wg)
XIO_ROCSHMEM_SIGNAL(putmem, void, 1, )
XIO_ROCSHMEM_SIGNAL(putmem, void, 1, _wave)
XIO_ROCSHMEM_SIGNAL(putmem, void, 1, _wg)
#undef XIO_ROCSHMEM_WAITS
#undef XIO_ROCSHMEM_TYPE
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

#define XIO_ROCSHMEM_AMO_ANY(NAME, T)                                                           \
  XIO_DEVICE T rocshmem_ctx_##NAME##_atomic_fetch(rocshmem_ctx_t c, T* dst, int pe) {           \
    return xio_atomic_fetch(impl::resolve(c), dst, impl::world_pe(c, pe));                      \
  }                                                                                             \
  XIO_DEVICE T rocshmem_##NAME##_atomic_fetch(T* dst, int pe) {                                 \
    return rocshmem_ctx_##NAME##_atomic_fetch(ROCSHMEM_CTX_DEFAULT, dst, pe);                   \
  }                                                                                             \
  XIO_DEVICE void rocshmem_ctx_##NAME##_atomic_set(rocshmem_ctx_t c, T* dst, T value, int pe) { \
    impl::keep(xio_atomic_set(impl::resolve(c), dst, value, impl::world_pe(c, pe)));            \
  }                                                                                             \
  XIO_DEVICE void rocshmem_##NAME##_atomic_set(T* dst, T value, int pe) {                       \
    rocshmem_ctx_##NAME##_atomic_set(ROCSHMEM_CTX_DEFAULT, dst, value, pe);                     \
  }                                                                                             \
  XIO_DEVICE T rocshmem_ctx_##NAME##_atomic_swap(rocshmem_ctx_t c, T* dst, T value, int pe) {   \
    return xio_atomic_swap(impl::resolve(c), dst, value, impl::world_pe(c, pe));                \
  }                                                                                             \
  XIO_DEVICE T rocshmem_##NAME##_atomic_swap(T* dst, T value, int pe) {                         \
    return rocshmem_ctx_##NAME##_atomic_swap(ROCSHMEM_CTX_DEFAULT, dst, value, pe);             \
  }
#define XIO_ROCSHMEM_AMO_INTEGER(NAME, T)                                                                         \
  XIO_DEVICE void rocshmem_ctx_##NAME##_atomic_add(rocshmem_ctx_t c, T* dst, T value, int pe) {                   \
    impl::keep(xio_atomic_add(impl::resolve(c), dst, value, impl::world_pe(c, pe)));                              \
  }                                                                                                               \
  XIO_DEVICE void rocshmem_##NAME##_atomic_add(T* dst, T value, int pe) {                                         \
    rocshmem_ctx_##NAME##_atomic_add(ROCSHMEM_CTX_DEFAULT, dst, value, pe);                                       \
  }                                                                                                               \
  XIO_DEVICE T rocshmem_ctx_##NAME##_atomic_fetch_add(rocshmem_ctx_t c, T* dst, T value, int pe) {                \
    return xio_atomic_fetch_add(impl::resolve(c), dst, value, impl::world_pe(c, pe));                             \
  }                                                                                                               \
  XIO_DEVICE T rocshmem_##NAME##_atomic_fetch_add(T* dst, T value, int pe) {                                      \
    return rocshmem_ctx_##NAME##_atomic_fetch_add(ROCSHMEM_CTX_DEFAULT, dst, value, pe);                          \
  }                                                                                                               \
  XIO_DEVICE void rocshmem_ctx_##NAME##_atomic_inc(rocshmem_ctx_t c, T* dst, int pe) {                            \
    impl::keep(xio_atomic_inc(impl::resolve(c), dst, impl::world_pe(c, pe)));                                     \
  }                                                                                                               \
  XIO_DEVICE void rocshmem_##NAME##_atomic_inc(T* dst, int pe) {                                                  \
    rocshmem_ctx_##NAME##_atomic_inc(ROCSHMEM_CTX_DEFAULT, dst, pe);                                              \
  }                                                                                                               \
  XIO_DEVICE T rocshmem_ctx_##NAME##_atomic_fetch_inc(rocshmem_ctx_t c, T* dst, int pe) {                         \
    return xio_atomic_fetch_inc(impl::resolve(c), dst, impl::world_pe(c, pe));                                    \
  }                                                                                                               \
  XIO_DEVICE T rocshmem_##NAME##_atomic_fetch_inc(T* dst, int pe) {                                               \
    return rocshmem_ctx_##NAME##_atomic_fetch_inc(ROCSHMEM_CTX_DEFAULT, dst, pe);                                 \
  }                                                                                                               \
  XIO_DEVICE T rocshmem_ctx_##NAME##_atomic_compare_swap(rocshmem_ctx_t c, T* dst, T expected, T value, int pe) { \
    return xio_atomic_compare_swap(impl::resolve(c), dst, expected, value, impl::world_pe(c, pe));                \
  }                                                                                                               \
  XIO_DEVICE T rocshmem_##NAME##_atomic_compare_swap(T* dst, T expected, T value, int pe) {                       \
    return rocshmem_ctx_##NAME##_atomic_compare_swap(ROCSHMEM_CTX_DEFAULT, dst, expected, value, pe);             \
  }
#define XIO_ROCSHMEM_AMO_BITS(NAME, T)                                                             \
  XIO_DEVICE void rocshmem_ctx_##NAME##_atomic_and(rocshmem_ctx_t c, T* dst, T value, int pe) {    \
    impl::keep(xio_atomic_and(impl::resolve(c), dst, value, impl::world_pe(c, pe)));               \
  }                                                                                                \
  XIO_DEVICE void rocshmem_##NAME##_atomic_and(T* dst, T value, int pe) {                          \
    rocshmem_ctx_##NAME##_atomic_and(ROCSHMEM_CTX_DEFAULT, dst, value, pe);                        \
  }                                                                                                \
  XIO_DEVICE T rocshmem_ctx_##NAME##_atomic_fetch_and(rocshmem_ctx_t c, T* dst, T value, int pe) { \
    return xio_atomic_fetch_and(impl::resolve(c), dst, value, impl::world_pe(c, pe));              \
  }                                                                                                \
  XIO_DEVICE T rocshmem_##NAME##_atomic_fetch_and(T* dst, T value, int pe) {                       \
    return rocshmem_ctx_##NAME##_atomic_fetch_and(ROCSHMEM_CTX_DEFAULT, dst, value, pe);           \
  }                                                                                                \
  XIO_DEVICE void rocshmem_ctx_##NAME##_atomic_or(rocshmem_ctx_t c, T* dst, T value, int pe) {     \
    impl::keep(xio_atomic_or(impl::resolve(c), dst, value, impl::world_pe(c, pe)));                \
  }                                                                                                \
  XIO_DEVICE void rocshmem_##NAME##_atomic_or(T* dst, T value, int pe) {                           \
    rocshmem_ctx_##NAME##_atomic_or(ROCSHMEM_CTX_DEFAULT, dst, value, pe);                         \
  }                                                                                                \
  XIO_DEVICE T rocshmem_ctx_##NAME##_atomic_fetch_or(rocshmem_ctx_t c, T* dst, T value, int pe) {  \
    return xio_atomic_fetch_or(impl::resolve(c), dst, value, impl::world_pe(c, pe));               \
  }                                                                                                \
  XIO_DEVICE T rocshmem_##NAME##_atomic_fetch_or(T* dst, T value, int pe) {                        \
    return rocshmem_ctx_##NAME##_atomic_fetch_or(ROCSHMEM_CTX_DEFAULT, dst, value, pe);            \
  }                                                                                                \
  XIO_DEVICE void rocshmem_ctx_##NAME##_atomic_xor(rocshmem_ctx_t c, T* dst, T value, int pe) {    \
    impl::keep(xio_atomic_xor(impl::resolve(c), dst, value, impl::world_pe(c, pe)));               \
  }                                                                                                \
  XIO_DEVICE void rocshmem_##NAME##_atomic_xor(T* dst, T value, int pe) {                          \
    rocshmem_ctx_##NAME##_atomic_xor(ROCSHMEM_CTX_DEFAULT, dst, value, pe);                        \
  }                                                                                                \
  XIO_DEVICE T rocshmem_ctx_##NAME##_atomic_fetch_xor(rocshmem_ctx_t c, T* dst, T value, int pe) { \
    return xio_atomic_fetch_xor(impl::resolve(c), dst, value, impl::world_pe(c, pe));              \
  }                                                                                                \
  XIO_DEVICE T rocshmem_##NAME##_atomic_fetch_xor(T* dst, T value, int pe) {                       \
    return rocshmem_ctx_##NAME##_atomic_fetch_xor(ROCSHMEM_CTX_DEFAULT, dst, value, pe);           \
  }
XIO_ROCSHMEM_AMO_ANY(int, int)
XIO_ROCSHMEM_AMO_ANY(long, long)
XIO_ROCSHMEM_AMO_ANY(longlong, long long)
XIO_ROCSHMEM_AMO_ANY(uint, unsigned)
XIO_ROCSHMEM_AMO_ANY(ulong, unsigned long)
XIO_ROCSHMEM_AMO_ANY(ulonglong, unsigned long long)
XIO_ROCSHMEM_AMO_ANY(int32, std::int32_t)
XIO_ROCSHMEM_AMO_ANY(int64, std::int64_t)
XIO_ROCSHMEM_AMO_ANY(uint32, std::uint32_t)
XIO_ROCSHMEM_AMO_ANY(uint64, std::uint64_t)
XIO_ROCSHMEM_AMO_ANY(size, std::size_t)
XIO_ROCSHMEM_AMO_ANY(ptrdiff, std::ptrdiff_t)
XIO_ROCSHMEM_AMO_ANY(float, float)
XIO_ROCSHMEM_AMO_ANY(double, double)
XIO_ROCSHMEM_AMO_INTEGER(int, int)
XIO_ROCSHMEM_AMO_INTEGER(long, long)
XIO_ROCSHMEM_AMO_INTEGER(longlong, long long)
XIO_ROCSHMEM_AMO_INTEGER(uint, unsigned)
XIO_ROCSHMEM_AMO_INTEGER(ulong, unsigned long)
XIO_ROCSHMEM_AMO_INTEGER(ulonglong, unsigned long long)
XIO_ROCSHMEM_AMO_INTEGER(int32, std::int32_t)
XIO_ROCSHMEM_AMO_INTEGER(int64, std::int64_t)
XIO_ROCSHMEM_AMO_INTEGER(uint32, std::uint32_t)
XIO_ROCSHMEM_AMO_INTEGER(uint64, std::uint64_t)
XIO_ROCSHMEM_AMO_INTEGER(size, std::size_t)
XIO_ROCSHMEM_AMO_INTEGER(ptrdiff, std::ptrdiff_t)
XIO_ROCSHMEM_AMO_BITS(uint, unsigned)
XIO_ROCSHMEM_AMO_BITS(ulong, unsigned long)
XIO_ROCSHMEM_AMO_BITS(ulonglong, unsigned long long)
XIO_ROCSHMEM_AMO_BITS(int32, std::int32_t)
XIO_ROCSHMEM_AMO_BITS(int64, std::int64_t)
XIO_ROCSHMEM_AMO_BITS(uint32, std::uint32_t)
XIO_ROCSHMEM_AMO_BITS(uint64, std::uint64_t)
#undef XIO_ROCSHMEM_AMO_BITS
#undef XIO_ROCSHMEM_AMO_INTEGER
#undef XIO_ROCSHMEM_AMO_ANY

}  // namespace rocshmem
