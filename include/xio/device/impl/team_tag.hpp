// SPDX-License-Identifier: MIT
// What host and device both know of a team's call: the word that names it, and why it is refused. Members whose tags
// differ are in different calls. Bits 28 to 31 say which call, 20 to 27 the root or the reduction, 0 to 18 the bytes;
// with bit 19 set these are folded. A member that refuses its own arguments says which call 0 and why: the refusal in
// bits 20 to 27, and its number below bit 19.
#pragma once
#include <cstdint>

#include "xio/team.h"

namespace xio::dev::teams {

enum class op : std::uint32_t {
  sync = 1,
  barrier,
  broadcast,
  alltoall,
  alltoallv,
  fcollect,
  collect,
  reduce,
  reduce_scatter
};
constexpr std::uint32_t k_refuses = 0;  // the tag of a member that has heard of another call than its own

constexpr std::uint32_t k_tag_folded = 1u << 19;
constexpr std::uint32_t k_tag_bytes = k_tag_folded - 1;
constexpr std::uint32_t k_tag_detail_shift = 20, k_tag_op_shift = 28;

// Counts below 512 KiB, and roots below 256, always differ in it. Of larger counts agree() compares all bits.
XIO_TEAM_FUNCTION constexpr std::uint32_t tag_of(op what, std::uint64_t bytes = 0, std::uint32_t detail = 0) {
  const std::uint32_t size =
      bytes <= k_tag_bytes
          ? static_cast<std::uint32_t>(bytes)
          : k_tag_folded | (static_cast<std::uint32_t>(bytes ^ (bytes >> 19) ^ (bytes >> 38)) & k_tag_bytes);
  return (static_cast<std::uint32_t>(what) << k_tag_op_shift) | ((detail & 0xff) << k_tag_detail_shift) | size;
}

// The detail of a reduce: the operation from bit 5 on, the type, and whether members read each other's memory.
constexpr std::uint32_t k_reduction_shift = 5;
constexpr std::uint32_t k_floats = 16, k_brain_floats = 8, k_reads = 4, k_log2_size = 3;

// Why a call is refused. `found` is a word of its record (team_refusal.hpp).
enum class refusal : std::uint32_t {
  none,           // another member's
  unlike,         // member `found` is in another call
  null_pointer,   // of this PE's arguments
  not_symmetric,  // dst, or of a large reduce dst or src
  unreachable,    // src, by an engine that carries it
  overlap,        // of dst and src
  no_such_root,   // `found` is none
  unequal,        // member `found` gave `wanted` bytes where this PE gave `bytes`
  empty_team,
  foreign,  // the team is of another world than the ctx
  destroyed,
  broken,   // by an earlier call, which ended with status `found`
  excluded  // a member was, by xio_exclude
};
XIO_TEAM_FUNCTION constexpr std::uint32_t tag_of(refusal why, std::uint32_t number) {
  return (static_cast<std::uint32_t>(why) << k_tag_detail_shift) | (number & k_tag_bytes);
}
XIO_TEAM_FUNCTION constexpr bool is_refusal(std::uint32_t tag) { return tag >> k_tag_op_shift == 0; }

}  // namespace xio::dev::teams
