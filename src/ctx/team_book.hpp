// SPDX-License-Identifier: MIT
// The teams of a world, and the memory that each holds in the heap.
#pragma once
#include <functional>

#include "ctx/handles.hpp"
#include "ctx/shared_heap.hpp"
#include "ctx/team.hpp"

namespace xio {

class team_book {
 public:
  // The book keeps references to its arguments. world: see handles.
  team_book(const team_options& o, membership& members, shared_heap& heap, std::uint32_t world)
      : options_(o), members_(members), heap_(heap), teams_("team", "destroyed", world) {}

  // Collective. `choose` names the members, and may throw; empty: this PE is in none, and gets the empty team.
  xio_team_t create(const std::function<std::vector<int>()>& choose);
  void destroy(xio_team_t t);
  // By their numbers in the world; empty for the empty team.
  std::vector<int> members_of(xio_team_t t) const;
  // Any thread. Throws for a team that is none of this world, or was destroyed.
  const team& get(xio_team_t t) const { return teams_.get(t.id); }
  void clear() { teams_.clear(); }

  // Of a call that not all PEs have completed (xio_world_shrink): undoes the last one that made a team; where it was
  // not complete, passes its number over; ends the team of that number, if it is still there.
  void undo_create(std::uint64_t serial) { end(teams_.id_of(serial)); }
  void skip() { teams_.skip(); }
  void destroy_late(std::uint64_t serial) {
    if (teams_.has(teams_.id_of(serial))) end(teams_.id_of(serial));
  }
  // A PE that was left out, and may still store, is in any of the teams that are there, so none gives its memory back.
  void keep_memory();

 private:
  void end(std::uint64_t id);
  const team_options& options_;
  membership& members_;
  shared_heap& heap_;
  handles<team> teams_;
};

}  // namespace xio
