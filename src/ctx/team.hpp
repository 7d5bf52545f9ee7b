// SPDX-License-Identifier: MIT
// Teams on the host: their members, and the memory that they hold.
#pragma once
#include "bootstrap/groups.hpp"
#include "gpu/gpu.hpp"
#include "xio/device/impl/team_layout.hpp"

namespace xio {

// A PE gives this for the team that it will be in.
struct team_offer {
  std::uint64_t digest;  // of the list
  std::uint64_t count;
};
team_offer offer_of(const std::vector<int>& pes);

// Throws unless `pes` is empty, or names PEs below n, each once, and this PE.
void check_members(const std::vector<int>& pes, int me, int n);
// The work memory that serves each of the offered teams: smaller ones have larger packets.
std::uint64_t work_bytes_for(const std::vector<team_offer>& all, const dev::team_wishes& wanted);
// Throws unless every member has made the same offer.
void check_offers(const std::vector<int>& pes, int me, const std::vector<team_offer>& all);

// Members first, first + stride, ... of a team of `parent`. Empty if this PE is none of them.
std::vector<int> strided_members(const std::vector<int>& parent, int me, int first, int stride, std::size_t count);
// This PE's row, and its column, of a team that is laid out in rows of `width`.
struct grid_lines {
  std::vector<int> x, y;
};
grid_lines lines_of(const std::vector<int>& parent, int me, int width);

struct team {
  std::vector<int> pes;  // empty: this PE is in none, but holds its part of the memory
  std::uint64_t offset;  // of the work memory in the heap
  gpu::buffer list;
  std::uint32_t token;   // see dev::mark_of
  bool is_kept = false;  // its memory is not given out again
  bool alone = false;    // split off by its parent's members, and only its own hold its memory
  // Of its members, where they are not all of the world.
  std::unique_ptr<bootstrap::group_channel> channel;
  gpu::buffer shown;  // its value, for callers that pass kernels a word; empty where this PE is in none

  xio_team_t value(std::uint64_t id, int me, unsigned char* heap, const dev::team_wishes& wanted) const;
};

}  // namespace xio
