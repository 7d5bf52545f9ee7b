// SPDX-License-Identifier: MIT
// What one rank has for each rank, or from each: cells by rank, of sizes of their own, in one piece of memory.
#pragma once
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace xio::bootstrap {

class cells {
 public:
  cells() = default;
  // Zeroed, of these sizes.
  explicit cells(std::span<const std::size_t> sizes) {
    std::size_t all = 0;
    for (const std::size_t bytes : sizes) where_.push_back({std::exchange(all, all + bytes), bytes});
    bytes_.resize(all);
  }
  // The same bytes for each of `count` ranks, kept once.
  static cells same(std::span<const std::byte> bytes, std::size_t count) {
    cells out;
    out.bytes_.assign(bytes.begin(), bytes.end());
    out.where_.assign(count, {0, bytes.size()});
    return out;
  }
  // The cell of the next rank.
  void add(std::span<const std::byte> cell) {
    where_.push_back({bytes_.size(), cell.size()});
    bytes_.insert(bytes_.end(), cell.begin(), cell.end());
  }

  std::size_t count() const { return where_.size(); }
  std::span<const std::byte> operator[](std::size_t rank) const {
    return std::span(bytes_).subspan(where_[rank].at, where_[rank].bytes);
  }
  std::span<std::byte> operator[](std::size_t rank) {
    return std::span(bytes_).subspan(where_[rank].at, where_[rank].bytes);
  }
  // Of all cells together.
  std::size_t bytes() const {
    std::size_t all = 0;
    for (const place& p : where_) all += p.bytes;
    return all;
  }
  // The memory: of cells that differ, one after the other.
  std::vector<std::byte> take_bytes() && { return std::move(bytes_); }

 private:
  struct place {
    std::size_t at, bytes;
  };
  std::vector<std::byte> bytes_;
  std::vector<place> where_;
};

}  // namespace xio::bootstrap
