// SPDX-License-Identifier: MIT
// Collectives of a team: alltoall(v), fcollect, collect, broadcast, reduce and reduce_scatter, called by one wave
// (`_wave`) or one workgroup (`_wg`) of every member, all threads with the same arguments. Blocking: on return this
// PE's `dst` is complete and visible to the callers, and `src` may be changed.
//
// `dst` and `src` are symmetric addresses, aligned for their type where there is one. `dst` must be ready on every
// member before one of them calls: another may write to it at once. Calls on one channel need no barrier between them.
// `dst` and `src` must not overlap; only xio_reduce takes dst == src. Messages up to
// xio_team_t::packet_bytes go as packets, whose words carry the number of the call; larger ones go straight to `dst`,
// with a word behind them, or, of a reduce, by the ways that team_reduce.hpp names. A count of 0 only synchronises.
//
// Errors are those of team.hpp. Wrong arguments of one member (null, no such root) are XIO_ERR_ARG for all.
#pragma once
#include "xio/device/impl/collective.hpp"
#include "xio/device/reduction.hpp"

// Block i of `src`, `bytes` long, goes to member i, where it becomes block `my number` of `dst`.
XIO_DEVICE xio_status_t xio_alltoall_wave(const xio_ctx_t& ctx, const xio_team_t& team, void* dst, const void* src,
                                          size_t bytes) {
  return xio::dev::teams::alltoall(xio::dev::wave_group::here(), ctx, team, {dst, src, bytes});
}
XIO_DEVICE xio_status_t xio_alltoall_wg(const xio_ctx_t& ctx, const xio_team_t& team, void* dst, const void* src,
                                        size_t bytes) {
  return xio::dev::teams::alltoall(xio::dev::workgroup_group::here(), ctx, team, {dst, src, bytes});
}

// The `bytes` of every member's `src`, in the members' order, become `dst` of every member.
XIO_DEVICE xio_status_t xio_fcollect_wave(const xio_ctx_t& ctx, const xio_team_t& team, void* dst, const void* src,
                                          size_t bytes) {
  return xio::dev::teams::fcollect(xio::dev::wave_group::here(), ctx, team, {dst, src, bytes});
}
XIO_DEVICE xio_status_t xio_fcollect_wg(const xio_ctx_t& ctx, const xio_team_t& team, void* dst, const void* src,
                                        size_t bytes) {
  return xio::dev::teams::fcollect(xio::dev::workgroup_group::here(), ctx, team, {dst, src, bytes});
}

// The `bytes` of `src` at member `root` become `dst` at every other member; dst at the root stays as it is.
XIO_DEVICE xio_status_t xio_broadcast_wave(const xio_ctx_t& ctx, const xio_team_t& team, void* dst, const void* src,
                                           size_t bytes, int root) {
  return xio::dev::teams::broadcast(xio::dev::wave_group::here(), ctx, team, {dst, src, bytes}, root);
}
XIO_DEVICE xio_status_t xio_broadcast_wg(const xio_ctx_t& ctx, const xio_team_t& team, void* dst, const void* src,
                                         size_t bytes, int root) {
  return xio::dev::teams::broadcast(xio::dev::workgroup_group::here(), ctx, team, {dst, src, bytes}, root);
}

// Blocks of any sizes: `src_bytes[i]` bytes from src + src_offsets[i] on go to member i. They are stored there from
// that member's dst + dst_offsets[m] on, m being this PE's number, and its dst_bytes[m] must be the same size. The four
// arrays have an element for each member, and are read by all threads; offsets and sizes are bytes. Sizes that do not
// agree are XIO_ERR_ARG for all.
XIO_DEVICE xio_status_t xio_alltoallv_wave(const xio_ctx_t& ctx, const xio_team_t& team, void* dst,
                                           const size_t* dst_offsets, const size_t* dst_bytes, const void* src,
                                           const size_t* src_offsets, const size_t* src_bytes) {
  return xio::dev::teams::alltoallv(xio::dev::wave_group::here(), ctx, team,
                                    {static_cast<unsigned char*>(dst), dst_offsets, dst_bytes,
                                     static_cast<const unsigned char*>(src), src_offsets, src_bytes, 1});
}
XIO_DEVICE xio_status_t xio_alltoallv_wg(const xio_ctx_t& ctx, const xio_team_t& team, void* dst,
                                         const size_t* dst_offsets, const size_t* dst_bytes, const void* src,
                                         const size_t* src_offsets, const size_t* src_bytes) {
  return xio::dev::teams::alltoallv(xio::dev::workgroup_group::here(), ctx, team,
                                    {static_cast<unsigned char*>(dst), dst_offsets, dst_bytes,
                                     static_cast<const unsigned char*>(src), src_offsets, src_bytes, 1});
}

// As xio_fcollect, but every member may give another number of bytes, also 0.
XIO_DEVICE xio_status_t xio_collect_wave(const xio_ctx_t& ctx, const xio_team_t& team, void* dst, const void* src,
                                         size_t bytes) {
  return xio::dev::teams::collect(xio::dev::wave_group::here(), ctx, team, {dst, src, bytes});
}
XIO_DEVICE xio_status_t xio_collect_wg(const xio_ctx_t& ctx, const xio_team_t& team, void* dst, const void* src,
                                       size_t bytes) {
  return xio::dev::teams::collect(xio::dev::workgroup_group::here(), ctx, team, {dst, src, bytes});
}

// dst[i] at every member becomes src[i] of all members, combined by Op in the members' order: bit for bit the same on
// every member and in every run. dst may be src.
template <xio_reduction Op, class T>
XIO_DEVICE xio_status_t xio_reduce_wave(const xio_ctx_t& ctx, const xio_team_t& team, T* dst, const T* src,
                                        size_t count) {
  const xio::dev::teams::reduce_job job = xio::dev::teams::job_of(team, dst, src, count, false);
  return xio::dev::teams::reduce<Op, T>(xio::dev::wave_group::here(), ctx, team, job);
}
template <xio_reduction Op, class T>
XIO_DEVICE xio_status_t xio_reduce_wg(const xio_ctx_t& ctx, const xio_team_t& team, T* dst, const T* src,
                                      size_t count) {
  const xio::dev::teams::reduce_job job = xio::dev::teams::job_of(team, dst, src, count, false);
  return xio::dev::teams::reduce<Op, T>(xio::dev::workgroup_group::here(), ctx, team, job);
}

// `src` has `count` elements for each member, in the members' order: dst[i] at member m becomes src[m * count + i] of
// all members, combined as by a reduce. dst lies outside of src.
template <xio_reduction Op, class T>
XIO_DEVICE xio_status_t xio_reduce_scatter_wave(const xio_ctx_t& ctx, const xio_team_t& team, T* dst, const T* src,
                                                size_t count) {
  const xio::dev::teams::reduce_job job = xio::dev::teams::job_of(team, dst, src, count, true);
  return xio::dev::teams::reduce<Op, T>(xio::dev::wave_group::here(), ctx, team, job);
}
// The same, called by all threads of the workgroup.
template <xio_reduction Op, class T>
XIO_DEVICE xio_status_t xio_reduce_scatter_wg(const xio_ctx_t& ctx, const xio_team_t& team, T* dst, const T* src,
                                              size_t count) {
  const xio::dev::teams::reduce_job job = xio::dev::teams::job_of(team, dst, src, count, true);
  return xio::dev::teams::reduce<Op, T>(xio::dev::workgroup_group::here(), ctx, team, job);
}
