// SPDX-License-Identifier: MIT
// The beginning of all tests of the L2s: kinds of memory, by where it lies and how caches may keep it.
#pragma once
#include "amdgpu/memory/address_space.hpp"

namespace amdgpu::test {

using place_kind = mapping::place;
using caching = mapping::caching;

// A run that ignores an order may go well by luck; one of so many seeds shows it.
constexpr unsigned seeds = 24;

struct kind {
  place_kind where;
  caching how;
};

}  // namespace amdgpu::test
