// SPDX-License-Identifier: MIT
// The teams of a world, and the memory that each holds in the heap.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "base/options.hpp"
#include "ctx/handles.hpp"
#include "ctx/membership.hpp"
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

 private:
  const team_options& options_;
  membership& members_;
  shared_heap& heap_;
  handles<team> teams_;
};

}  // namespace xio
