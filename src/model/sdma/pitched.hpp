// SPDX-License-Identifier: MIT
// Where the rows of a copy lie: rows of one width, a pitch apart, in slices. A linear copy is one row.
#pragma once
#include "model/sdma/memory_map.hpp"

namespace xio::model::sdma {

// Bytes all. Rows do not run into each other: pitch >= width, and a slice holds all of its rows.
struct extent {
  std::uint64_t width, height, depth;
};
struct pitched {
  std::uint64_t start, pitch, slice;

  std::uint64_t row(std::uint64_t number, const extent& e) const {
    if (number < e.height) return start + number * pitch;
    return start + number / e.height * slice + number % e.height * pitch;
  }
};

// Bytes from the first to the last that is touched; 0 if that is no 64-bit number or wraps around the address space.
std::uint64_t span(const pitched& p, const extent& e);
// Whether each row lies in one range of the map. Only rows are looked at, not what is between them.
bool covered(const memory_map& map, const pitched& p, const extent& e);
// Whether any byte is in rows of both. Both have a span.
bool overlap(const pitched& a, const pitched& b, const extent& e);

}  // namespace xio::model::sdma
