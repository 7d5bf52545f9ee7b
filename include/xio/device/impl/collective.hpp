// SPDX-License-Identifier: MIT
// How collectives are done.
#pragma once
#include "xio/device/impl/forms.hpp"
#include "xio/device/impl/team_network_move.hpp"
#include "xio/device/impl/team_reduce.hpp"
#include "xio/device/impl/team_varied.hpp"

#define XIO_BLOCKS (const xio_ctx_t& ctx, const xio_team_t& team, void* dst, const void* src, size_t bytes)
XIO_DEFINE_GROUP_FORMS(xio_status_t, xio_alltoall, XIO_BLOCKS, (ctx, team, dst, src, bytes),
                       xio::dev::teams::alltoall(g, ctx, team, {dst, src, bytes}))
XIO_DEFINE_GROUP_FORMS(xio_status_t, xio_fcollect, XIO_BLOCKS, (ctx, team, dst, src, bytes),
                       xio::dev::teams::fcollect(g, ctx, team, {dst, src, bytes}))
XIO_DEFINE_GROUP_FORMS(xio_status_t, xio_collect, XIO_BLOCKS, (ctx, team, dst, src, bytes),
                       xio::dev::teams::collect(g, ctx, team, {dst, src, bytes}))
#undef XIO_BLOCKS
XIO_DEFINE_GROUP_FORMS(xio_status_t, xio_broadcast,
                       (const xio_ctx_t& ctx, const xio_team_t& team, void* dst, const void* src, size_t bytes,
                        int root),
                       (ctx, team, dst, src, bytes, root),
                       xio::dev::teams::broadcast(g, ctx, team, {dst, src, bytes}, root))
XIO_DEFINE_GROUP_FORMS(xio_status_t, xio_alltoallv,
                       (const xio_ctx_t& ctx, const xio_team_t& team, void* dst, const size_t* dst_offsets,
                        const size_t* dst_bytes, const void* src, const size_t* src_offsets, const size_t* src_bytes),
                       (ctx, team, dst, src),
                       xio::dev::teams::alltoallv(g, ctx, team,
                                                  {static_cast<unsigned char*>(dst), dst_offsets, dst_bytes,
                                                   static_cast<const unsigned char*>(src), src_offsets, src_bytes, 1}))

#define XIO_DEFINE_REDUCE(name, kind, scatter)                                                                      \
  template <xio_reduction Op, class T>                                                                              \
  XIO_DEFINE_FORM(                                                                                                  \
      xio_status_t, name, kind, (const xio_ctx_t& ctx, const xio_team_t& team, T* dst, const T* src, size_t count), \
      (ctx, team, dst, src, count),                                                                                 \
      xio::dev::teams::reduce<Op, T>(g, ctx, team, xio::dev::teams::job_of(team, dst, src, count, scatter)))
XIO_DEFINE_REDUCE(xio_reduce_wave, wave_group, false)
XIO_DEFINE_REDUCE(xio_reduce_wg, workgroup_group, false)
XIO_DEFINE_REDUCE(xio_reduce_scatter_wave, wave_group, true)
XIO_DEFINE_REDUCE(xio_reduce_scatter_wg, workgroup_group, true)
#undef XIO_DEFINE_REDUCE
