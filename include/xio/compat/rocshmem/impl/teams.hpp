// SPDX-License-Identifier: MIT
// How the host makes teams: by XIO's splits, which the members of the parent alone call, as there.
#pragma once
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "xio/compat/rocshmem/impl/failure.hpp"
#include "xio/compat/rocshmem/impl/state.hpp"
#include "xio/team.h"

namespace rocshmem::impl {

// A team's handle is its place in the table: 0 is none, then the world and the PEs of this machine.
constexpr std::uint32_t k_team_world = 1, k_team_shared = 2, k_first_split = 3;

struct team_table {
  xio_world_t* world = nullptr;
  std::vector<xio_team_t> all;  // an empty team: the place is free
  xio_team_t* on_device = nullptr;
};

inline void put_team(team_table& t, std::uint32_t at, const xio_team_t& team) {
  t.all[at] = team;
  must(hipMemcpy(t.on_device + at, &team, sizeof team, hipMemcpyHostToDevice), "a team");
}

inline std::size_t teams_wanted() {
  const char* text = std::getenv("ROCSHMEM_MAX_NUM_TEAMS");
  const int all = text != nullptr ? std::atoi(text) : 40;  // the world is one of them, as there
  return static_cast<std::size_t>(std::clamp(all, 1, 4096) - 1);
}

inline void start_teams(team_table& t, xio_world_t* world) {
  const char* call = "rocshmem_init";
  t.world = world;
  t.all.assign(k_first_split + teams_wanted(), {});
  must(hipMalloc(&t.on_device, t.all.size() * sizeof t.all[0]), call);
  must(hipMemset(t.on_device, 0, t.all.size() * sizeof t.all[0]), call);
  xio_team_t everybody{}, machine{};
  must(xio_team_world(world, &everybody), call);
  must(xio_team_shared(world, &machine), call);
  put_team(t, k_team_world, everybody);
  put_team(t, k_team_shared, machine);
}

// The world ends next, and its teams with it.
inline void end_teams(team_table& t) {
  (void)hipFree(t.on_device);
  t = {};
}

inline bool is_team(const team_table& t, rocshmem_team_t team) {
  return team.index != 0 && team.index < t.all.size() && t.all[team.index].n_pes != 0;
}

// `count` free places, or none.
inline std::vector<std::uint32_t> free_places(const team_table& t, std::size_t count) {
  std::vector<std::uint32_t> found;
  for (std::size_t i = k_first_split; i < t.all.size() && found.size() < count; ++i)
    if (t.all[i].n_pes == 0) found.push_back(static_cast<std::uint32_t>(i));
  if (found.size() == count) return found;
  std::fprintf(stderr, "rocshmem over XIO: PE %d has %zu teams, which are all that it may (ROCSHMEM_MAX_NUM_TEAMS)\n",
               xio_my_pe(t.world), t.all.size() - k_first_split);
  return {};
}

// Where this PE is a member, the team gets that place.
inline void keep_team(team_table& t, std::uint32_t place, const xio_team_t& made, rocshmem_team_t* out) {
  if (made.n_pes == 0) return;
  put_team(t, place, made);
  *out = rocshmem_team_t{place};
}

inline bool went_well(xio_status_t status, const char* call) {
  if (status != XIO_OK) std::fprintf(stderr, "%s: %s\n", call, xio_last_error());
  return status == XIO_OK;
}

}  // namespace rocshmem::impl
