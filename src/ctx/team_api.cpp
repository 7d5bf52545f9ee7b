// SPDX-License-Identifier: MIT
// The C boundary of xio/team.h.
#include "xio/team.h"

#include "ctx/door.hpp"

using xio::in_world;
using xio::not_null;

namespace {

// Every PE comes to the collective part, also one whose arguments are wrong: that is where the others learn of it.
void make_team(xio::world& w, const char* function, const xio::team* parent, xio_team_t* team,
               const std::function<std::vector<int>()>& choose) {
  if (team != nullptr) *team = {};
  const xio_team_t made = w.teams().create(parent, [&] {
    not_null(team, function, "team");
    return choose();
  });
  *team = made;
}

xio_status_t make_team(xio_world_t* world, const char* function, xio_team_t* team,
                       const std::function<std::vector<int>(const xio::world&)>& choose) {
  return in_world(world, function,
                  [&](xio::world& w) { make_team(w, function, nullptr, team, [&] { return choose(w); }); });
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
    make_team(w, "xio_team_same_local_rank", nullptr, team, [&] { return pes; });
  });
}

xio_status_t xio_team_split_strided(xio_world_t* world, xio_team_t parent, int first, int stride, size_t count,
                                    xio_team_t* team) {
  return in_world(world, __func__, [&](xio::world& w) {
    if (team != nullptr) *team = {};
    const xio::team* all = w.teams().parent(parent);
    if (all == nullptr) return;
    make_team(w, "xio_team_split_strided", all, team,
              [&] { return xio::strided_members(all->pes, w.members().me(), first, stride, count); });
  });
}

xio_status_t xio_team_split_2d(xio_world_t* world, xio_team_t parent, int width, xio_team_t* x, xio_team_t* y) {
  return in_world(world, __func__, [&](xio::world& w) {
    for (xio_team_t* one : {x, y})
      if (one != nullptr) *one = {};
    const xio::team* all = w.teams().parent(parent);
    if (all == nullptr) return;
    const xio::bootstrap::one_call whole = w.teams().one_call(all);
    const auto lines = [&] { return xio::lines_of(all->pes, w.members().me(), width); };
    make_team(w, "xio_team_split_2d", all, x, [&] {
      not_null(y, "xio_team_split_2d", "y");
      return lines().x;
    });
    make_team(w, "xio_team_split_2d", all, y, [&] { return lines().y; });
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
