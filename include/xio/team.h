/* SPDX-License-Identifier: MIT */
/* Teams: groups of a world's PEs that synchronise and run collectives by themselves (docs/teams.md).
 *
 * A member has a number of its own in the team, 0 .. n - 1. A team is passed to kernels by value;
 * <xio/xio_device.hpp> has what kernels call. xio_team_create, _world, _shared and _same_local_rank are collective over
 * the world, and so is destroying what they made: every PE calls, members or not, in the same order. A split is
 * collective over the members of its parent alone, and destroying what it made over the new team's. Each PE says which
 * team it will be in; several disjoint teams are made by one call, and a PE that is in none gets the empty team. */
#ifndef XIO_TEAM_H
#define XIO_TEAM_H

#include <stddef.h>
#include <stdint.h>

#include "xio/xio.h"

#if defined(__CUDACC__) || defined(__HIPCC__)
#define XIO_TEAM_FUNCTION __host__ __device__ inline
#else
#define XIO_TEAM_FUNCTION static inline
#endif
/* C++ programs may be compiled with warnings of C's casts. */
#ifdef __cplusplus
#define XIO_TEAM_NUMBER(n) static_cast<int>(n)
#else
#define XIO_TEAM_NUMBER(n) ((int)(n))
#endif

/* How many collectives a team can have in flight at a time: see xio_team_channel. The option XIO_TEAM_CHANNELS gives
 * another number, 1 to 64, and xio_team_n_channels says it. */
#define XIO_TEAM_CHANNELS 4

/* A team as this PE sees it. Its members are not for programs; all zero is the empty team. */
typedef struct xio_team {
  void* list; /* on the device: PE numbers of the members */
  void* work; /* symmetric: flags and packets of this channel */
  uint64_t id;
  uint32_t my_pe;  /* this PE's number in the team */
  uint32_t n_pes;  /* 0: the empty team */
  uint32_t first;  /* member i is PE first + i * stride, */
  uint32_t stride; /* unless this is 0: then it is list[i] */
  uint16_t channel, channels;
  uint32_t packet_bytes; /* messages of a member up to this many bytes go as packets */
  uint32_t area_bytes;   /* of each of the areas where a reduce combines what is larger: XIO_TEAM_AREA */
  uint32_t token;        /* random: marks this PE's words of the team */
} xio_team_t;

/* Host and device, local. This PE's number in the team; -1 for the empty team. */
XIO_TEAM_FUNCTION int xio_team_my_pe(xio_team_t team) { return team.n_pes == 0 ? -1 : XIO_TEAM_NUMBER(team.my_pe); }
/* Host and device, local. How many members the team has; 0 for the empty team. */
XIO_TEAM_FUNCTION int xio_team_n_pes(xio_team_t team) { return XIO_TEAM_NUMBER(team.n_pes); }

/* Host and device, local. How many channels it has; 0 for the empty team. */
XIO_TEAM_FUNCTION int xio_team_n_channels(xio_team_t team) { return XIO_TEAM_NUMBER(team.channels); }

#ifdef __cplusplus
extern "C" {
#endif

/* Makes a team of the PEs `pes`, in that order: all `count` of them give the same list, and the caller is one of them.
 * A PE that is to be in no team gives count 0, and gets the empty team. Collective over the world.
 *
 * Returns, on every PE: XIO_ERR_ARG (the caller is not in its list, a PE is there twice, lists of members differ, a
 * null pointer), XIO_ERR_PE (no such PE), XIO_ERR_NO_MEMORY (the symmetric heap has no room for the work memory),
 * XIO_ERR_PEER, XIO_ERR_TIMEOUT. *team is empty then.
 *
 * The work memory is about 1 MiB for two members, 1.3 MiB for 8, 1 MiB for 64 (0.45, 0.7 and 0.5 MiB with
 * XIO_TEAM_AREA=16k): for each channel packets to and from every member, and three areas of XIO_TEAM_AREA bytes
 * (64 KiB). An area has a part for each other member, for what members send each other of a reduce that packets do not
 * carry. A part is how large a reduce may be to take one exchange instead of two; of a larger one an area's bytes are
 * got at a time where a NIC or copy engine is the way. Programs with many teams that reduce little set 16k or less; no
 * other collective uses areas. */
XIO_EXPORT xio_status_t xio_team_create(xio_world_t* world, const int* pes, size_t count, xio_team_t* team);
/* Makes a team of all PEs, in their order. Collective over the world. Errors are those of xio_team_create. */
XIO_EXPORT xio_status_t xio_team_world(xio_world_t* world, xio_team_t* team);
/* Makes a team of the PEs on this PE's machine, in their order: each machine gets its own. Collective over the world.
 * Errors are those of xio_team_create. */
XIO_EXPORT xio_status_t xio_team_shared(xio_world_t* world, xio_team_t* team);
/* Makes a team of one PE of each machine, all with one local number: the first PEs of all machines are a team, the
 * second ones another. Collective over the world. Errors are those of xio_team_create. */
XIO_EXPORT xio_status_t xio_team_same_local_rank(xio_world_t* world, xio_team_t* team);
/* Makes a team of the members first, first + stride, ... of `parent`, `count` of them; stride may be negative, not 0.
 * The others get the empty team. Collective over the members of `parent`; a PE that is in none may call, too, with the
 * empty team, which it gets back at once.
 *
 * Returns, on every member of `parent`: errors of xio_team_create; XIO_ERR_NO_MEMORY also where no place at the heap's
 * end is free at all members: see docs/teams.md. On this PE alone: XIO_ERR_STATE for a parent that was destroyed or of
 * which a member has left the world, XIO_ERR_ARG for one of another world. Where a member does not come or has ended,
 * XIO_ERR_TIMEOUT or XIO_ERR_PEER, from then on for all splits of that parent; kernels go on using it. */
XIO_EXPORT xio_status_t xio_team_split_strided(xio_world_t* world, xio_team_t parent, int first, int stride,
                                               size_t count, xio_team_t* team);
/* Makes two teams for each member: lays out `parent` in rows of `width` members (the last row may be shorter); x is the
 * row that holds the caller, y its column. Collective as xio_team_split_strided is, with its errors. */
XIO_EXPORT xio_status_t xio_team_split_2d(xio_world_t* world, xio_team_t parent, int width, xio_team_t* x,
                                          xio_team_t* y);
/* Local. The number in `to` of member `pe` of `from`; -1 if it is not in `to`, or if anything is wrong. */
XIO_EXPORT int xio_team_translate(const xio_world_t* world, xio_team_t from, xio_team_t to, int pe);
/* Ends a team, with all its channels. No kernel may be using it. Collective over the members of a team that was split
 * off, for others nothing is done; over the world for one that all made: PEs without one give the empty team that they
 * got. XIO_ERR_STATE if it was destroyed already, XIO_ERR_ARG if it is none of this world. Where the members of a split
 * have come to agree on nothing any more, each ends its part alone, and the memory is not given out again. */
XIO_EXPORT xio_status_t xio_team_destroy(xio_world_t* world, xio_team_t team);

#ifdef __cplusplus
}
#endif
#endif
