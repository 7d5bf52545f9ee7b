// SPDX-License-Identifier: MIT
// Teams in kernels: members' numbers, sync and barrier (xio/team.h makes teams).
//
// Parameters.
//   ctx       a ctx of the same world, which carries what the team sends; any will do
//   team      the team, by one of its channels
//   channel   0 .. xio_team_n_channels(team) - 1
//   from, to  two teams of one world
//   pe        number of a member in the team, from 0 on
//
// A team has XIO_TEAM_CHANNELS channels (xio/team.h). On one channel a PE runs one call at a time, and all members make
// the same calls in the same order; different teams, and different channels of one team, are independent of each other,
// and may be used by different workgroups at once.
//
// Errors of every call of a team. XIO_ERR_STATE: null ctx, empty team, or a team that was destroyed. XIO_ERR_ARG: the
// team is of another world than the ctx; or a member made another call, gave another count, type or root, or arguments
// that are wrong: every member returns it as soon as it has heard all of them. Nothing was written then but the team's
// own memory, and the next call can succeed. XIO_ERR_TIMEOUT after the world's timeout if a member does not come, and
// the failure of an engine that carries words to a member: then the channel is of no use any more, and every later call
// on it returns that status at once. An engine that fails when all members have been heard, as one that still reads a
// source, is returned, too, and leaves the channel as it is. No other error of the ctx, and no drive, is any business
// of these calls. xio_ctx_error has a sentence for each, with the call, the team and the other member; quiet does not
// report them again.
#pragma once
#include "xio/device/impl/forms.hpp"
#include "xio/device/signal.hpp"
#include "xio/device/sync.hpp"
#include "xio/team.h"

// The same team by another of its channels; the empty team for a number that is none. Host and device, local.
// xio_team_create gives channel 0.
XIO_HOST_DEVICE xio_team_t xio_team_channel(xio_team_t team, uint32_t channel);

// The world's number of member `pe` of the team; -1 if there is none. Any thread.
XIO_DEVICE int xio_team_world_pe(const xio_team_t& team, int pe);

// The number in `to` of member `pe` of `from`; -1 if it is not in `to`, or there is no such member. Any thread.
XIO_DEVICE int xio_team_translate(const xio_team_t& from, const xio_team_t& to, int pe);

// Waits until every member has called it: their ordinary stores from before are visible then. It says nothing about
// puts. By one thread, wave or workgroup of each member.
XIO_FORMS(xio_status_t, xio_team_sync, xio_team_sync_wave, xio_team_sync_wg,
          (const xio_ctx_t& ctx, const xio_team_t& team));

// xio_quiet, then xio_team_sync: when it returns, all ops that members made by their ctx are complete and visible. A
// failure of one member's quiet is that member's status alone.
XIO_FORMS(xio_status_t, xio_team_barrier, xio_team_barrier_wave, xio_team_barrier_wg,
          (const xio_ctx_t& ctx, const xio_team_t& team));

#include "xio/device/impl/team.hpp"
