// SPDX-License-Identifier: MIT
// Gives out the bytes of the symmetric heap. Works on offsets and keeps its books outside the heap, which may be
// memory of a GPU. The same calls in the same order give the same offsets, which is what makes the heap symmetric.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace xio::memory {

// Best fit over free ranges kept by address (to coalesce) and by size (to search); ties go to the lowest address.
class allocator {
 public:
  // Blocks start and end on multiples of this: no two share a cache line of any GPU we know.
  static constexpr std::uint64_t k_granule = 128;

  struct block {
    std::uint64_t offset, bytes;
  };

  // Hands out [begin, end). Both are multiples of k_granule.
  allocator(std::uint64_t begin, std::uint64_t end);

  // An offset that is a multiple of alignment (a power of two; at least k_granule is used), or nothing when no free
  // range holds it. bytes > 0.
  std::optional<std::uint64_t> allocate(std::uint64_t bytes, std::uint64_t alignment);

  // The live block that holds this offset.
  std::optional<block> find(std::uint64_t offset) const;

  // offset is the start of a live block.
  void release(std::uint64_t offset);

  // Ranges that only some PEs hold (teams made by their parent's members alone). They lie above all live blocks, and no
  // block is given out across the lowest of them: allocate() finds nothing then, so that it never gives another offset
  // than on a PE that holds none. They are in no digest.
  //
  // The highest offset of a free range of so many bytes that ends at `end` or below it.
  std::optional<std::uint64_t> place_below(std::uint64_t end, std::uint64_t bytes) const;
  void hold(std::uint64_t offset, std::uint64_t bytes) { held_.emplace(offset, bytes); }
  void let_go(std::uint64_t offset) { held_.erase(offset); }
  bool holds_any() const { return !held_.empty(); }

  // Of the live blocks and the free ranges: equal where both are.
  std::uint64_t digest() const;

  std::uint64_t free_bytes() const { return free_bytes_; }
  std::uint64_t largest_free() const { return by_size_.empty() ? 0 : by_size_.rbegin()->first; }
  std::size_t live_blocks() const { return live_.size(); }
  std::size_t free_ranges() const { return free_.size(); }

 private:
  using by_address = std::map<std::uint64_t, std::uint64_t>;  // start -> bytes

  void add_free(std::uint64_t offset, std::uint64_t bytes);
  void take_free(by_address::iterator range);
  std::uint64_t end_of_live() const { return live_.empty() ? begin_ : live_.rbegin()->first + live_.rbegin()->second; }
  std::uint64_t ceiling() const { return held_.empty() ? end_ : held_.begin()->first; }

  std::uint64_t begin_, end_;
  by_address free_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_size_;  // bytes, start
  by_address live_, held_;
  std::uint64_t free_bytes_ = 0;
};

}  // namespace xio::memory
