// SPDX-License-Identifier: MIT
// Which local memory engines may reach: rows 0 .. k_max_regions-1 of world_view::regions, row 0 being the heap.
// Books only; keys and device rows are made by src/ctx/engines.cpp.
#pragma once
#include <array>

#include "xio/device/impl/view.hpp"

namespace xio::memory {

class registration {
 public:
  // Throws for null, empty and wrapping.
  static void check_range(const void* base, std::uint64_t bytes);
  // A new row for [base, base + bytes). Throws as check_range, and for overlapping or one too many.
  std::uint32_t add(void* base, std::uint64_t bytes);
  // The row that was added with this very base, not the heap's. Throws if there is none.
  std::uint32_t find(void* base) const;
  // Its base and bytes stay, as they do where kernels look.
  void remove(std::uint32_t row) { rows_[row].live = 0; }

  dev::region_view& row(std::uint32_t i) { return rows_[i]; }
  const dev::region_view& row(std::uint32_t i) const { return rows_[i]; }

 private:
  bool would_mix(const dev::region_view& old, std::uint64_t at, std::uint64_t bytes) const;

  std::array<dev::region_view, dev::k_max_regions> rows_{};
};

}  // namespace xio::memory
