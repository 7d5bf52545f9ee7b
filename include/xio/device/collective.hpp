// SPDX-License-Identifier: MIT
// Collectives of a team: alltoall(v), fcollect, collect, broadcast, reduce and reduce_scatter, called by one wave
// (`_wave`) or one workgroup (`_wg`) of every member, all threads with the same arguments. Blocking: on return this
// PE's `dst` is complete and visible to the callers, and `src` may be changed.
//
// Parameters.
//   ctx          a ctx of the team's world
//   team         the team, by one of its channels
//   dst          where the result goes: a symmetric address, aligned for its type where there is one. It must be ready
//                on every member before one of them calls: another may write to it at once
//   src          where this member's data is, likewise; of alltoall(v), fcollect, collect and broadcast also memory
//                that xio_mem_register has, or any where no engine carries it. It must not overlap `dst`; only
//                xio_reduce takes dst == src
//   bytes        size of a block in bytes; 0 only synchronises, and dst and src may be null
//   count        elements of a result; 0 likewise
//   root         number in the team of the member that sends
//   dst_offsets  for each member where in `dst` its block is stored, in bytes
//   dst_bytes    for each member the size of the block that comes from it, in bytes
//   src_offsets  for each member where in `src` its block lies, in bytes
//   src_bytes    for each member the size of the block that goes to it, in bytes
//
// Calls on one channel need no barrier between them. Messages up to xio_team_t::packet_bytes go as packets, whose words
// carry the number of the call. Larger ones go straight to `dst` when all members are known to be in the same call,
// which costs one way of the link; those of a reduce go by the ways that team_reduce.hpp names.
//
// Errors are those of team.hpp; a small broadcast over a network tells them to some members by a later call
// (docs/teams.md). Wrong arguments of any members (null, no such root, not symmetric, more bytes than the
// heap has, an unregistered src that an engine is to carry) are XIO_ERR_ARG for all, and nothing is written.
#pragma once
#include "xio/device/impl/forms.hpp"
#include "xio/device/reduction.hpp"
#include "xio/team.h"

// Block i of `src`, `bytes` long, goes to member i, where it becomes block m of `dst`, m being this PE's number in the
// team.
XIO_GROUP_FORMS(xio_status_t, xio_alltoall_wave, xio_alltoall_wg,
                (const xio_ctx_t& ctx, const xio_team_t& team, void* dst, const void* src, size_t bytes));

// The `bytes` of every member's `src`, in the members' order, become `dst` of every member.
XIO_GROUP_FORMS(xio_status_t, xio_fcollect_wave, xio_fcollect_wg,
                (const xio_ctx_t& ctx, const xio_team_t& team, void* dst, const void* src, size_t bytes));

// The `bytes` of `src` at member `root` become `dst` at every other member; dst at the root stays as it is.
XIO_GROUP_FORMS(xio_status_t, xio_broadcast_wave, xio_broadcast_wg,
                (const xio_ctx_t& ctx, const xio_team_t& team, void* dst, const void* src, size_t bytes, int root));

// Blocks of any sizes: `src_bytes[i]` bytes from src + src_offsets[i] on go to member i. They are stored there from
// that member's dst + dst_offsets[m] on, m being this PE's number in the team, and its dst_bytes[m] must be the same
// size. All threads read the four arrays. Sizes that do not agree are XIO_ERR_ARG for all.
XIO_GROUP_FORMS(xio_status_t, xio_alltoallv_wave, xio_alltoallv_wg,
                (const xio_ctx_t& ctx, const xio_team_t& team, void* dst, const size_t* dst_offsets,
                 const size_t* dst_bytes, const void* src, const size_t* src_offsets, const size_t* src_bytes));

// As xio_fcollect, but every member may give another number of bytes, also 0.
XIO_GROUP_FORMS(xio_status_t, xio_collect_wave, xio_collect_wg,
                (const xio_ctx_t& ctx, const xio_team_t& team, void* dst, const void* src, size_t bytes));

// dst[i] at every member becomes src[i] of all members, combined by Op in the members' order: bit for bit the same on
// every member and in every run. dst may be src.
template <xio_reduction Op, class T>
XIO_DEVICE xio_status_t xio_reduce_wave(const xio_ctx_t& ctx, const xio_team_t& team, T* dst, const T* src,
                                        size_t count);
template <xio_reduction Op, class T>
XIO_DEVICE xio_status_t xio_reduce_wg(const xio_ctx_t& ctx, const xio_team_t& team, T* dst, const T* src, size_t count);

// `src` has `count` elements for each member, in the members' order: dst[i] at member m becomes src[m * count + i] of
// all members, combined as by a reduce. dst lies outside of src.
template <xio_reduction Op, class T>
XIO_DEVICE xio_status_t xio_reduce_scatter_wave(const xio_ctx_t& ctx, const xio_team_t& team, T* dst, const T* src,
                                                size_t count);
template <xio_reduction Op, class T>
XIO_DEVICE xio_status_t xio_reduce_scatter_wg(const xio_ctx_t& ctx, const xio_team_t& team, T* dst, const T* src,
                                              size_t count);

#include "xio/device/impl/collective.hpp"
