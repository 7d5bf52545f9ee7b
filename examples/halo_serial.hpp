// SPDX-License-Identifier: MIT
// The arithmetic of halo.hip without its communication: each PE's cells, their first values, and the serial run.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "xio/hip.h"

// Sums, then one product: nothing that a compiler may fuse, so all platforms get the same bits.
__host__ __device__ inline double mean(double a, double b, double c, double d) { return 0.25 * ((a + b) + (c + d)); }

// The square has a rim around it, so its cells are numbered from 1 and rows are side + 2 apart.
inline double first_value(size_t row, size_t column) {
  const uint64_t x = (row << 32 | column) * 6364136223846793005u + 1442695040888963407u;
  return static_cast<double>(x >> 40);
}

inline std::vector<double> serial(size_t side, uint64_t steps) {
  const size_t pitch = side + 2;
  std::vector<double> now(pitch * pitch);
  for (size_t i = 0; i < now.size(); ++i) now[i] = first_value(i / pitch, i % pitch);
  std::vector<double> next = now;
  for (uint64_t step = 0; step < steps; ++step) {
    for (size_t r = 1; r <= side; ++r)
      for (size_t c = 1; c <= side; ++c) {
        const size_t at = r * pitch + c;
        next[at] = mean(now[at - pitch], now[at + pitch], now[at - 1], now[at + 1]);
      }
    now.swap(next);
  }
  return now;
}

// A PE's tile and its neighbours (-1: none). rows = 0 if the square cannot be cut evenly.
struct place {
  size_t rows, columns, top, left;
  int north, south, west, east;
};

inline place place_of(int me, int n, size_t side) {
  int down = 1;
  for (int d = 1; d * d <= n; ++d)
    if (n % d == 0) down = d;
  const int across = n / down, y = me / across, x = me % across;
  place p{};
  if (side % static_cast<size_t>(down) != 0 || side % static_cast<size_t>(across) != 0) return p;
  p.rows = side / static_cast<size_t>(down);
  p.columns = side / static_cast<size_t>(across);
  p.top = static_cast<size_t>(y) * p.rows;
  p.left = static_cast<size_t>(x) * p.columns;
  p.north = y > 0 ? me - across : -1;
  p.south = y + 1 < down ? me + across : -1;
  p.west = x > 0 ? me - 1 : -1;
  p.east = x + 1 < across ? me + 1 : -1;
  return p;
}

// The tile as it starts: cells and rim have their values, what neighbours will send is `missing`.
inline std::vector<double> first_tile(const place& p, size_t side, double missing) {
  std::vector<double> out;
  for (size_t r = p.top; r < p.top + p.rows + 2; ++r)
    for (size_t c = p.left; c < p.left + p.columns + 2; ++c) {
      const bool own = r > p.top && r <= p.top + p.rows && c > p.left && c <= p.left + p.columns;
      const bool rim = r == 0 || r == side + 1 || c == 0 || c == side + 1;
      out.push_back(own || rim ? first_value(r, c) : missing);
    }
  return out;
}
