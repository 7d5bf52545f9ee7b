// SPDX-License-Identifier: MIT
// The C boundary of xio/team.h.
#include "xio/team.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "ctx/door.hpp"

using xio::in_world;
using xio::not_null;

namespace {

// Every PE comes to the collective part, also one whose arguments are wrong: that is where the others learn of it.
void make_team(xio::world& w, const char* function, xio_team_t* team,
               const std::function<std::vector<int>(const xio::world&)>& choose) {
  if (team != nullptr) *team = {};
  const xio_team_t made = w.teams().create([&] {
    not_null(team, function, "team");
    return choose(w);
  });
  *team = made;
}

xio_status_t make_team(xio_world_t* world, const char* function, xio_team_t* team,
                       const std::function<std::vector<int>(const xio::world&)>& choose) {
  return in_world(world, function, [&](xio::world& w) { make_team(w, function, team, choose); });
}

}  // namespace

extern "C" {
xio_status_t xio_team_create(xio_world_t* world, const int* pes, size_t count, xio_team_t* team) {
  return make_team(world, __func__, team, [&](const xio::world&) {
    if (count != 0) not_null(pes, "xio_team_create", "pes");
    return std::vector<int>(pes, pes + count);
  });
}

xio_status_t xio_team_world(xio_world_t* world, xio_team_t* team) {
  return make_team(world, __func__, team, [](const xio::world& w) { return w.members().everybody(); });
}

xio_status_t xio_team_shared(xio_world_t* world, xio_team_t* team) {
  return make_team(world, __func__, team, [](const xio::world& w) { return w.members().machine_mates(); });
}

xio_status_t xio_team_same_local_rank(xio_world_t* world, xio_team_t* team) {
  return in_world(world, __func__, [&](xio::world& w) {
    const xio::bootstrap::one_call whole = w.members().one_call();
    const std::vector<int> pes = w.members().across_machines();
    make_team(w, "xio_team_same_local_rank", team, [&](const xio::world&) { return pes; });
  });
}

xio_status_t xio_team_split_strided(xio_world_t* world, xio_team_t parent, int first, int stride, size_t count,
                                    xio_team_t* team) {
  return make_team(world, __func__, team, [&](const xio::world& w) {
    return xio::strided_members(w.teams().members_of(parent), w.members().me(), first, stride, count);
  });
}

xio_status_t xio_team_split_2d(xio_world_t* world, xio_team_t parent, int width, xio_team_t* x, xio_team_t* y) {
  return in_world(world, __func__, [&](xio::world& w) {
    if (y != nullptr) *y = {};
    const xio::bootstrap::one_call whole = w.members().one_call();
    make_team(w, "xio_team_split_2d", x, [&](const xio::world& here) {
      not_null(y, "xio_team_split_2d", "y");
      return xio::lines_of(here.teams().members_of(parent), here.members().me(), width).x;
    });
    make_team(w, "xio_team_split_2d", y, [&](const xio::world& here) {
      return xio::lines_of(here.teams().members_of(parent), here.members().me(), width).y;
    });
  });
}

int xio_team_translate(const xio_world_t* world, xio_team_t from, xio_team_t to, int pe) {
  int found = -1;
  in_world(world, __func__, [&](const xio::world& w) {
    const auto members = w.teams().members_of(from), others = w.teams().members_of(to);
    if (pe < 0 || static_cast<size_t>(pe) >= members.size()) return;
    const auto at = std::find(others.begin(), others.end(), members[static_cast<size_t>(pe)]);
    if (at != others.end()) found = static_cast<int>(at - others.begin());
  });
  return found;
}

xio_status_t xio_team_destroy(xio_world_t* world, xio_team_t team) {
  return in_world(world, __func__, [&](xio::world& w) { w.teams().destroy(team); });
}

}  // extern "C"
