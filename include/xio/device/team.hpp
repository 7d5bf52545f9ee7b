// SPDX-License-Identifier: MIT
// Teams in kernels: members' numbers, sync and barrier (xio/team.h makes teams).
//
// A ctx of the same world carries what a team sends; any will do. A team has XIO_TEAM_CHANNELS channels. On one channel
// a PE runs one call at a time, and all members make the same calls in the same order; different teams, and different
// channels of one team, are independent of each other, and may be used by different workgroups at once.
//
// Errors of every call of a team. XIO_ERR_STATE: null ctx, empty team, or a team that was destroyed. XIO_ERR_ARG: a
// member made another call, or gave another count, type or root: every member returns it as soon as it has heard of all
// of them; what the call writes is not defined then, and the next call can succeed. XIO_ERR_TIMEOUT after the world's
// timeout if a member does not come, and the failure of an engine: then the channel is of no use any more, and every
// later call on it returns that status at once. xio_ctx_error has a sentence for each, with the call, the team and the
// other member; quiet does not report them again.
#pragma once
#include "xio/device/impl/team.hpp"
#include "xio/device/signal.hpp"
#include "xio/device/sync.hpp"
#include "xio/team.h"

// The same team by another of its channels, 0 .. XIO_TEAM_CHANNELS - 1; the empty team for any other number. Host and
// device, local. xio_team_create gives channel 0.
XIO_HOST_DEVICE xio_team_t xio_team_channel(xio_team_t team, uint32_t channel) {
  if (team.n_pes == 0 || channel >= XIO_TEAM_CHANNELS) return xio_team_t{};
  const uint64_t each = xio::dev::team_channel_bytes(team.n_pes, team.packet_bytes, team.area_bytes);
  team.work = static_cast<unsigned char*>(team.work) + (uint64_t{channel} - team.channel) * each;
  team.channel = channel;
  return team;
}

// The world's number of member `pe` of the team; -1 if there is none. Any thread.
XIO_DEVICE int xio_team_world_pe(const xio_team_t& team, int pe) {
  using xio::dev::u32;
  return static_cast<u32>(pe) < team.n_pes ? static_cast<int>(xio::dev::teams::pe_of(team, static_cast<u32>(pe))) : -1;
}

// The number in `to` of member `pe` of `from`; -1 if it is not in `to`, or there is no such member. Any thread.
XIO_DEVICE int xio_team_translate(const xio_team_t& from, const xio_team_t& to, int pe) {
  const int wanted = xio_team_world_pe(from, pe);
  for (int i = 0; wanted >= 0 && i < static_cast<int>(to.n_pes); ++i)
    if (xio_team_world_pe(to, i) == wanted) return i;
  return -1;
}

// Waits until every member has called it: their ordinary stores from before are visible then. It says nothing about
// puts. By one thread, wave or workgroup of each member.
XIO_DEVICE xio_status_t xio_team_sync(const xio_ctx_t& ctx, const xio_team_t& team) {
  return xio::dev::teams::sync(xio::dev::thread_group::here(), ctx, team);
}
XIO_DEVICE xio_status_t xio_team_sync_wave(const xio_ctx_t& ctx, const xio_team_t& team) {
  return xio::dev::teams::sync(xio::dev::wave_group::here(), ctx, team);
}
XIO_DEVICE xio_status_t xio_team_sync_wg(const xio_ctx_t& ctx, const xio_team_t& team) {
  return xio::dev::teams::sync(xio::dev::workgroup_group::here(), ctx, team);
}

// xio_quiet, then xio_team_sync: when it returns, all ops that members made by their ctx are complete and visible.
XIO_DEVICE xio_status_t xio_team_barrier(const xio_ctx_t& ctx, const xio_team_t& team) {
  return xio::dev::teams::barrier(xio::dev::thread_group::here(), ctx, team);
}
XIO_DEVICE xio_status_t xio_team_barrier_wave(const xio_ctx_t& ctx, const xio_team_t& team) {
  return xio::dev::teams::barrier(xio::dev::wave_group::here(), ctx, team);
}
XIO_DEVICE xio_status_t xio_team_barrier_wg(const xio_ctx_t& ctx, const xio_team_t& team) {
  return xio::dev::teams::barrier(xio::dev::workgroup_group::here(), ctx, team);
}
