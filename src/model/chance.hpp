// SPDX-License-Identifier: MIT
// Chances that fall the same way every time: drawn from what names the occasion, not from a running generator.
#pragma once
#include <cstdint>
#include <initializer_list>

namespace xio::model {

// splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
inline std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// parts: the seed and all that distinguishes one occasion from another.
inline bool drawn(std::initializer_list<std::uint64_t> parts, double chance) {
  std::uint64_t x = 0;
  bool first = true;
  for (const std::uint64_t part : parts) {
    x = mixed(first ? part : x ^ part);
    first = false;
  }
  return static_cast<double>(x >> 11) * 0x1p-53 < chance;
}

}  // namespace xio::model
