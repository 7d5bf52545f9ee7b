// SPDX-License-Identifier: MIT
#include "model/sdma/pitched.hpp"

#include <algorithm>

namespace xio::model::sdma {
namespace {

// Rows that begin at or before offset `at` of rows that are `pitch` apart.
std::uint64_t rows_up_to(std::uint64_t at, std::uint64_t pitch) {
  return pitch == 0 ? ~std::uint64_t{0} : at / pitch + 1;
}

// Rows of one pitch, each set in one slice: whether some row of b, moved by whole pitches, overlaps one of a.
bool overlap_of_one_pitch(const pitched& a, const pitched& b, const extent& e) {
  const std::uint64_t apart = a.start < b.start ? b.start - a.start : a.start - b.start;
  const std::uint64_t rows = apart / a.pitch;
  const std::uint64_t rest = apart % a.pitch;
  return (rest < e.width && rows < e.height) || (a.pitch - rest < e.width && rows + 1 < e.height);
}

}  // namespace

std::uint64_t span(const pitched& p, const extent& e) {
  std::uint64_t rows = 0, slices = 0, all = 0, end = 0;
  if (__builtin_mul_overflow(e.height - 1, p.pitch, &rows) || __builtin_mul_overflow(e.depth - 1, p.slice, &slices) ||
      __builtin_add_overflow(rows, slices, &all) || __builtin_add_overflow(all, e.width, &all) ||
      __builtin_add_overflow(p.start, all - 1, &end))
    return 0;
  return all;
}

bool covered(const memory_map& map, const pitched& p, const extent& e) {
  const std::uint64_t all = span(p, e);
  if (all == 0) return false;
  if (map.find(p.start, all) != nullptr) return true;
  for (std::uint64_t z = 0; z < e.depth; ++z) {
    std::uint64_t y = 0;
    while (y < e.height) {
      const std::uint64_t at = p.start + z * p.slice + y * p.pitch;
      const std::uint64_t behind = map.bytes_from(at, e.width);
      if (behind == 0) return false;
      y += std::min(rows_up_to(behind - e.width, p.pitch), e.height - y);
    }
  }
  return true;
}

bool overlap(const pitched& a, const pitched& b, const extent& e) {
  const std::uint64_t a_last = a.start + (span(a, e) - 1);
  const std::uint64_t b_last = b.start + (span(b, e) - 1);
  if (a_last < b.start || b_last < a.start) return false;
  if (e.height == 1 && e.depth == 1) return true;
  if (a.pitch == b.pitch && e.depth == 1) return overlap_of_one_pitch(a, b, e);
  // Both go upwards: pass over them side by side.
  const std::uint64_t rows = e.height * e.depth;
  for (std::uint64_t i = 0, j = 0; i < rows && j < rows;) {
    const std::uint64_t from_a = a.row(i, e), from_b = b.row(j, e);
    if (from_a + (e.width - 1) < from_b) {
      ++i;
    } else if (from_b + (e.width - 1) < from_a) {
      ++j;
    } else {
      return true;
    }
  }
  return false;
}

}  // namespace xio::model::sdma
