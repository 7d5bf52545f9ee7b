// SPDX-License-Identifier: MIT
#include "model/sdma/memory_map.hpp"

#include <algorithm>

namespace xio::model::sdma {

bool memory_map::add(std::uint64_t base, std::uint64_t bytes, memory_kind kind) {
  if (bytes == 0 || base + bytes - 1 < base) return false;
  ranges_.push_back(range{base, bytes, kind});
  return true;
}

bool memory_map::remove(std::uint64_t base) {
  const auto found = std::ranges::find_if(ranges_, [&](const range& r) { return r.base == base; });
  if (found == ranges_.end()) return false;
  ranges_.erase(found);
  last_ = 0;
  return true;
}

const memory_map::range* memory_map::range_of(std::uint64_t address, std::uint64_t bytes) const {
  if (last_ < ranges_.size() && ranges_[last_].holds(address, bytes)) return &ranges_[last_];
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    if (!ranges_[i].holds(address, bytes)) continue;
    last_ = i;
    return &ranges_[i];
  }
  return nullptr;
}

const memory_kind* memory_map::find(std::uint64_t address, std::uint64_t bytes) const {
  const range* r = range_of(address, bytes);
  return r == nullptr ? nullptr : &r->kind;
}

std::uint64_t memory_map::bytes_from(std::uint64_t address, std::uint64_t at_least) const {
  const range* r = range_of(address, at_least);
  return r == nullptr ? 0 : r->bytes - (address - r->base);
}

}  // namespace xio::model::sdma
