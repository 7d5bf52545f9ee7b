// SPDX-License-Identifier: MIT
#include "memory/allocator.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/fnv.hpp"

namespace xio::memory {

allocator::allocator(std::uint64_t begin, std::uint64_t end) : begin_(begin), end_(end) {
  if (end > begin) add_free(begin, end - begin);
}

void allocator::add_free(std::uint64_t offset, std::uint64_t bytes) {
  free_.emplace(offset, bytes);
  by_size_.emplace(bytes, offset);
  free_bytes_ += bytes;
}

void allocator::take_free(by_address::iterator range) {
  by_size_.erase({range->second, range->first});
  free_bytes_ -= range->second;
  free_.erase(range);
}

std::optional<std::uint64_t> allocator::allocate(std::uint64_t bytes, std::uint64_t alignment) {
  if (bytes == 0 || bytes > largest_free()) return {};
  const std::uint64_t need = (bytes + k_granule - 1) / k_granule * k_granule;
  alignment = std::max(alignment, k_granule);
  // From the smallest range that could hold it. One of need + alignment - k_granule bytes always does, so that few
  // ranges are looked at unless many of nearly the right size lie badly.
  for (auto candidate = by_size_.lower_bound({need, 0}); candidate != by_size_.end(); ++candidate) {
    const auto [size, start] = *candidate;
    const std::uint64_t pad = (alignment - (start & (alignment - 1))) & (alignment - 1);
    if (pad > size || size - pad < need) continue;
    if (start + pad + need > ceiling()) return {};
    take_free(free_.find(start));
    if (pad != 0) add_free(start, pad);
    if (size - pad > need) add_free(start + pad + need, size - pad - need);
    live_.emplace(start + pad, need);
    return start + pad;
  }
  return {};
}

std::optional<std::uint64_t> allocator::place_below(std::uint64_t end, std::uint64_t bytes) const {
  end = std::min(end, end_) / k_granule * k_granule;
  const std::uint64_t need = (bytes + k_granule - 1) / k_granule * k_granule;
  for (auto held = held_.rbegin(); held != held_.rend() && end >= need; ++held) {
    const auto [start, size] = *held;
    if (end - need >= start + size) break;
    if (end > start) end = start;
  }
  if (end < need || end - need < end_of_live()) return {};
  return end - need;
}

std::optional<allocator::block> allocator::find(std::uint64_t offset) const {
  auto after = live_.upper_bound(offset);
  if (after == live_.begin()) return {};
  const auto& [start, bytes] = *std::prev(after);
  if (offset - start >= bytes) return {};
  return block{start, bytes};
}

void allocator::release(std::uint64_t offset) {
  const auto found = live_.find(offset);
  if (found == live_.end()) return;
  std::uint64_t start = offset;
  std::uint64_t bytes = found->second;
  live_.erase(found);
  auto next = free_.lower_bound(start);
  if (next != free_.end() && next->first == start + bytes) {
    bytes += next->second;
    take_free(next++);
  }
  if (next != free_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == start) {
      start = previous->first;
      bytes += previous->second;
      take_free(previous);
    }
  }
  add_free(start, bytes);
}

std::uint64_t allocator::digest() const {
  std::vector<std::uint64_t> all;
  for (const by_address* books : {&live_, &free_}) {
    all.push_back(books->size());
    for (const auto& [offset, bytes] : *books) all.insert(all.end(), {offset, bytes});
  }
  return fnv_1a(std::as_bytes(std::span(all)));
}

}  // namespace xio::memory
