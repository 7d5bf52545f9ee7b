// SPDX-License-Identifier: MIT
// The teams of a world, and the memory that each holds in the heap.
#pragma once
#include "ctx/handles.hpp"
#include "ctx/shared_heap.hpp"
#include "ctx/team.hpp"

namespace xio {

class team_book {
 public:
  // The book keeps references to its arguments. world: see handles.
  team_book(const team_options& o, membership& members, shared_heap& heap, std::uint32_t world)
      : options_(o), members_(members), heap_(heap), teams_("team", "destroyed", world) {}

  // Collective over the members of `parent`, or over the world where that is null. `choose` names the members, and may
  // throw; empty: this PE is in none, and gets the empty team.
  xio_team_t create(const team* parent, const std::function<std::vector<int>()>& choose);
  // Collective over the world, or over the members of a team that was split off.
  void destroy(xio_team_t t);
  // All exchanges of calls by `parent` have one deadline while it lives.
  bootstrap::one_call one_call(const team* parent);
  // By their numbers in the world; empty for the empty team.
  std::vector<int> members_of(xio_team_t t) const;
  // The team that a split begins with; null for the empty team. Throws where a member of it has left the world.
  const team* parent(xio_team_t t) const;
  // Any thread. Throws for a team that is none of this world, or was destroyed.
  const team& get(xio_team_t t) const { return teams_.get(t.id); }
  std::uint64_t channels() const { return options_.team_channels; }
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
  // The PEs that make a call together.
  struct makers {
    bootstrap::channel& channel;
    agreement agree;
    bool are_all;
  };
  makers makers_of(const team* parent);
  void connect(const makers& all, team& made, const std::vector<team_offer>& offers);
  std::uint64_t common_place(const makers& all, std::uint64_t bytes, bool holds);
  void prepare(team& made, std::uint64_t bytes, const dev::team_wishes& wanted);
  xio_team_t add(std::unique_ptr<team> made, const dev::team_wishes& wanted);
  // Of a split by its parent's members, for those that are in no part.
  xio_team_t empty_alone() const {
    xio_team_t t{};
    t.id = teams_.id_of(teams_.k_alone);
    return t;
  }
  void give_back(const team& t);
  void end(std::uint64_t id);
  const team_options& options_;
  membership& members_;
  shared_heap& heap_;
  handles<team> teams_;
};

}  // namespace xio
