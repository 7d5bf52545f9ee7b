// SPDX-License-Identifier: MIT
// Teams and collectives in kernels, and what both sides ask of a team. Names are those since 3.0 (..._broadcast_wg) and
// those before (..._wg_broadcast). A team runs one collective at a time, as there.
#pragma once
#include "xio/compat/rocshmem/impl/device.hpp"
#include "xio/compat/rocshmem/impl/each_type.hpp"

namespace rocshmem {

namespace impl {

// Whether this thread's call went well, as rocSHMEM says it; a failure is kept as well.
XIO_DEVICE int kept(xio_status_t status) {
  keep(status);
  return status == XIO_OK ? ROCSHMEM_SUCCESS : ROCSHMEM_ERROR;
}

XIO_DEVICE int team_my_pe(rocshmem_team_t team) { return xio_team_my_pe(team_of(team)); }
XIO_DEVICE int team_n_pes(rocshmem_team_t team) {
  const xio_team_t t = team_of(team);
  return t.n_pes == 0 ? -1 : xio_team_n_pes(t);
}

}  // namespace impl

// --- Both sides --------------------------------------------------------------------------------------

// -1 for no team.
XIO_ROCSHMEM_BOTH int rocshmem_team_my_pe(rocshmem_team_t team) {
  XIO_ROCSHMEM_SIDE(impl::team_my_pe(team), impl::host_team_my_pe(team));
}
XIO_ROCSHMEM_BOTH int rocshmem_team_n_pes(rocshmem_team_t team) {
  XIO_ROCSHMEM_SIDE(impl::team_n_pes(team), impl::host_team_n_pes(team));
}
XIO_ROCSHMEM_BOTH int rocshmem_team_translate_pe(rocshmem_team_t from, int pe, rocshmem_team_t to) {
  XIO_ROCSHMEM_SIDE(xio_team_translate(impl::team_of(from), impl::team_of(to), pe),
                    impl::host_team_translate(from, pe, to));
}
XIO_ROCSHMEM_BOTH void rocshmem_barrier(rocshmem_team_t team = ROCSHMEM_TEAM_WORLD) {
  XIO_ROCSHMEM_SIDE(impl::keep(xio_team_barrier(impl::resolve(), impl::team_of(team))), impl::host_barrier(team));
}
XIO_ROCSHMEM_BOTH void rocshmem_team_sync(rocshmem_team_t team) {
  XIO_ROCSHMEM_SIDE(impl::keep(xio_team_sync(impl::resolve(), impl::team_of(team))), impl::host_team_sync(team));
}

// --- Barrier and sync --------------------------------------------------------------------------------

#define XIO_ROCSHMEM_TEAM_CALL(NAME, CALL, SCOPE)                                 \
  XIO_DEVICE void rocshmem_ctx_##NAME(rocshmem_ctx_t ctx, rocshmem_team_t team) { \
    impl::keep(xio_team_##CALL##SCOPE(impl::resolve(ctx), impl::team_of(team)));  \
  }
XIO_ROCSHMEM_TEAM_CALL(barrier, barrier, )
XIO_ROCSHMEM_TEAM_CALL(barrier_wave, barrier, _wave)
XIO_ROCSHMEM_TEAM_CALL(barrier_wg, barrier, _wg)
XIO_ROCSHMEM_TEAM_CALL(wg_barrier, barrier, _wg)
XIO_ROCSHMEM_TEAM_CALL(sync, sync, )
XIO_ROCSHMEM_TEAM_CALL(sync_wave, sync, _wave)
XIO_ROCSHMEM_TEAM_CALL(sync_wg, sync, _wg)
XIO_ROCSHMEM_TEAM_CALL(wg_team_sync, sync, _wg)
#undef XIO_ROCSHMEM_TEAM_CALL
XIO_DEVICE void rocshmem_barrier_wave(rocshmem_team_t team = ROCSHMEM_TEAM_WORLD) {
  rocshmem_ctx_barrier_wave(ROCSHMEM_CTX_DEFAULT, team);
}
XIO_DEVICE void rocshmem_barrier_wg(rocshmem_team_t team = ROCSHMEM_TEAM_WORLD) {
  rocshmem_ctx_barrier_wg(ROCSHMEM_CTX_DEFAULT, team);
}
XIO_DEVICE void rocshmem_team_sync_wave(rocshmem_team_t team) { rocshmem_ctx_sync_wave(ROCSHMEM_CTX_DEFAULT, team); }
XIO_DEVICE void rocshmem_team_sync_wg(rocshmem_team_t team) { rocshmem_ctx_sync_wg(ROCSHMEM_CTX_DEFAULT, team); }
XIO_DEVICE void rocshmem_wg_team_sync(rocshmem_team_t team) { rocshmem_ctx_sync_wg(ROCSHMEM_CTX_DEFAULT, team); }

// --- Blocks ------------------------------------------------------------------------------------------

// Those three in one scope, whose name SCOPE stands before or behind theirs. UNIT is what n counts in bytes.
#define XIO_ROCSHMEM_BLOCKS(RESULT, END, ALLTOALL, FCOLLECT, BROADCAST, T, UNIT, SCOPE)                            \
  XIO_DEVICE RESULT rocshmem_ctx_##ALLTOALL(rocshmem_ctx_t c, rocshmem_team_t team, T* to, const T* from, int n) { \
    END(xio_alltoall##SCOPE(impl::resolve(c), impl::team_of(team), impl::unless_negative(n, to), from,             \
                            impl::size_of(n, UNIT)));                                                              \
  }                                                                                                                \
  XIO_DEVICE RESULT rocshmem_##ALLTOALL(rocshmem_team_t team, T* to, const T* from, int n) {                       \
    return rocshmem_ctx_##ALLTOALL(ROCSHMEM_CTX_DEFAULT, team, to, from, n);                                       \
  }                                                                                                                \
  XIO_DEVICE RESULT rocshmem_ctx_##FCOLLECT(rocshmem_ctx_t c, rocshmem_team_t team, T* to, const T* from, int n) { \
    END(xio_fcollect##SCOPE(impl::resolve(c), impl::team_of(team), impl::unless_negative(n, to), from,             \
                            impl::size_of(n, UNIT)));                                                              \
  }                                                                                                                \
  XIO_DEVICE RESULT rocshmem_##FCOLLECT(rocshmem_team_t team, T* to, const T* from, int n) {                       \
    return rocshmem_ctx_##FCOLLECT(ROCSHMEM_CTX_DEFAULT, team, to, from, n);                                       \
  }                                                                                                                \
  XIO_DEVICE RESULT rocshmem_ctx_##BROADCAST(rocshmem_ctx_t c, rocshmem_team_t team, T* to, const T* from, int n,  \
                                             int root) {                                                           \
    END(xio_broadcast##SCOPE(impl::resolve(c), impl::team_of(team), impl::unless_negative(n, to), from,            \
                             impl::size_of(n, UNIT), root));                                                       \
  }                                                                                                                \
  XIO_DEVICE RESULT rocshmem_##BROADCAST(rocshmem_team_t team, T* to, const T* from, int n, int root) {            \
    return rocshmem_ctx_##BROADCAST(ROCSHMEM_CTX_DEFAULT, team, to, from, n, root);                                \
  }
#define XIO_ROCSHMEM_BLOCKS_OF(NAME, T)                                                                             \
  XIO_ROCSHMEM_BLOCKS(void, impl::keep, NAME##_alltoall_wg, NAME##_fcollect_wg, NAME##_broadcast_wg, T, sizeof(T),  \
                      _wg)                                                                                          \
  XIO_ROCSHMEM_BLOCKS(void, impl::keep, NAME##_wg_alltoall, NAME##_wg_fcollect, NAME##_wg_broadcast, T, sizeof(T),  \
                      _wg)                                                                                          \
  XIO_ROCSHMEM_BLOCKS(int, return impl::kept, NAME##_alltoall_wave, NAME##_fcollect_wave, NAME##_broadcast_wave, T, \
                      sizeof(T), _wave)
XIO_ROCSHMEM_EACH_TYPE(XIO_ROCSHMEM_BLOCKS_OF)
XIO_ROCSHMEM_BLOCKS(void, impl::keep, alltoallmem_wg, fcollectmem_wg, broadcastmem_wg, void, 1, _wg)
XIO_ROCSHMEM_BLOCKS(int, return impl::kept, alltoallmem_wave, fcollectmem_wave, broadcastmem_wave, void, 1, _wave)
#undef XIO_ROCSHMEM_BLOCKS_OF
#undef XIO_ROCSHMEM_BLOCKS

// --- Blocks of any sizes -----------------------------------------------------------------------------

// `in` and `out` count elements, by member, and so do the places where the blocks lie.
#define XIO_ROCSHMEM_VARIED(NAME, T)                                                                                 \
  XIO_DEVICE void rocshmem_ctx_##NAME##_alltoallv_wg(rocshmem_ctx_t c, rocshmem_team_t team, T* to,                  \
                                                     const std::size_t in[], const std::size_t in_places[], T* from, \
                                                     const std::size_t out[], const std::size_t out_places[]) {      \
    impl::keep(                                                                                                      \
        xio::dev::teams::alltoallv(xio::dev::workgroup_group::here(), impl::resolve(c), impl::team_of(team),         \
                                   {reinterpret_cast<unsigned char*>(to), in_places, in,                             \
                                    reinterpret_cast<const unsigned char*>(from), out_places, out, sizeof(T)}));     \
  }                                                                                                                  \
  XIO_DEVICE void rocshmem_##NAME##_alltoallv_wg(rocshmem_team_t team, T* to, const std::size_t in[],                \
                                                 const std::size_t in_places[], T* from, const std::size_t out[],    \
                                                 const std::size_t out_places[]) {                                   \
    rocshmem_ctx_##NAME##_alltoallv_wg(ROCSHMEM_CTX_DEFAULT, team, to, in, in_places, from, out, out_places);        \
  }
XIO_ROCSHMEM_EACH_TYPE(XIO_ROCSHMEM_VARIED)
#undef XIO_ROCSHMEM_VARIED

// --- Reduce ------------------------------------------------------------------------------------------

#define XIO_ROCSHMEM_REDUCE(NAME, T, OP, SCOPE)                                                                       \
  XIO_DEVICE int rocshmem_ctx_##NAME(rocshmem_ctx_t c, rocshmem_team_t team, T* to, const T* from, int n) {           \
    return impl::kept(xio_reduce##SCOPE<xio_reduction::OP>(impl::resolve(c), impl::team_of(team),                     \
                                                           impl::unless_negative(n, to), from, impl::size_of(n, 1))); \
  }                                                                                                                   \
  XIO_DEVICE int rocshmem_##NAME(rocshmem_team_t team, T* to, const T* from, int n) {                                 \
    return rocshmem_ctx_##NAME(ROCSHMEM_CTX_DEFAULT, team, to, from, n);                                              \
  }
// `from` has n elements for each member, and `to` n.
#define XIO_ROCSHMEM_SCATTER(NAME, T, OP, SCOPE)                                                            \
  XIO_DEVICE int rocshmem_ctx_##NAME(rocshmem_ctx_t c, rocshmem_team_t team, T* to, const T* from, int n) { \
    return impl::kept(xio_reduce_scatter##SCOPE<xio_reduction::OP>(                                         \
        impl::resolve(c), impl::team_of(team), impl::unless_negative(n, to), from, impl::size_of(n, 1)));   \
  }                                                                                                         \
  XIO_DEVICE int rocshmem_##NAME(rocshmem_team_t team, T* to, const T* from, int n) {                       \
    return rocshmem_ctx_##NAME(ROCSHMEM_CTX_DEFAULT, team, to, from, n);                                    \
  }
#define XIO_ROCSHMEM_REDUCE_OF(NAME, T, NAMED, OP)                         \
  XIO_ROCSHMEM_SCATTER(NAME##_##NAMED##_reduce_scatter_wg, T, OP, _wg)     \
  XIO_ROCSHMEM_SCATTER(NAME##_##NAMED##_reduce_scatter_wave, T, OP, _wave) \
  XIO_ROCSHMEM_REDUCE(NAME##_##NAMED##_reduce_wg, T, OP, _wg)              \
  XIO_ROCSHMEM_REDUCE(NAME##_##NAMED##_wg_reduce, T, OP, _wg)              \
  XIO_ROCSHMEM_REDUCE(NAME##_##NAMED##_reduce_wave, T, OP, _wave)
#define XIO_ROCSHMEM_REDUCE_NUMBERS(NAME, T)  \
  XIO_ROCSHMEM_REDUCE_OF(NAME, T, sum, sum)   \
  XIO_ROCSHMEM_REDUCE_OF(NAME, T, prod, prod) \
  XIO_ROCSHMEM_REDUCE_OF(NAME, T, min, min)   \
  XIO_ROCSHMEM_REDUCE_OF(NAME, T, max, max)
#define XIO_ROCSHMEM_REDUCE_INTEGERS(NAME, T)   \
  XIO_ROCSHMEM_REDUCE_NUMBERS(NAME, T)          \
  XIO_ROCSHMEM_REDUCE_OF(NAME, T, and, bit_and) \
  XIO_ROCSHMEM_REDUCE_OF(NAME, T, or, bit_or)   \
  XIO_ROCSHMEM_REDUCE_OF(NAME, T, xor, bit_xor)
XIO_ROCSHMEM_REDUCE_NUMBERS(float, float)
XIO_ROCSHMEM_REDUCE_NUMBERS(double, double)
XIO_ROCSHMEM_REDUCE_NUMBERS(half, rocshmem_half_t)
XIO_ROCSHMEM_REDUCE_NUMBERS(bfloat16, rocshmem_bfloat16_t)
XIO_ROCSHMEM_EACH_INTEGER(XIO_ROCSHMEM_REDUCE_INTEGERS)
#undef XIO_ROCSHMEM_REDUCE_INTEGERS
#undef XIO_ROCSHMEM_REDUCE_NUMBERS
#undef XIO_ROCSHMEM_REDUCE_OF
#undef XIO_ROCSHMEM_SCATTER
#undef XIO_ROCSHMEM_REDUCE

}  // namespace rocshmem
