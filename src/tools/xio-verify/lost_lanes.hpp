// SPDX-License-Identifier: MIT
// Finds where a compiler lost lanes in machine code for AMD GPUs (docs/decisions/0182-lost-lanes.md). Where lanes of a
// wave come together, a block begins with few lanes, or none, until `s_or exec` lets the others in. A vector register
// that is written in between keeps its old value in those others.
#pragma once
#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

namespace xio::verify {

struct lost_lane {
  std::string function, place;  // place: "line 12" of a listing, "+0x1a8" of a function in a code object
  std::string written, join;    // the two instructions
};

struct machine_code {
  std::size_t instructions = 0, joins = 0;
  std::vector<lost_lane> lost;
};

// Reads what a compiler printed (-S), or llvm-objdump -d.
machine_code look_for_lost_lanes(std::istream& text);

}  // namespace xio::verify
