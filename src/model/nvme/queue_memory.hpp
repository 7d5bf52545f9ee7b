// SPDX-License-Identifier: MIT
// Where the entries of a queue are: in one piece, or in pages that a PRP list names.
#pragma once
#include "model/nvme/segments.hpp"

namespace xio::model::nvme {

class queue_memory {
 public:
  queue_memory() = default;
  explicit queue_memory(std::byte* base) : base_(base) {}
  // The segments hold whole pages, in order.
  queue_memory(const std::vector<segment>& segments, std::uint64_t page) : page_(page) {
    for (const segment& s : segments)
      for (std::uint64_t at = 0; at < s.bytes; at += page) pages_.push_back(s.at + at);
  }

  std::byte* entry(std::uint32_t index, std::size_t bytes) const {
    const std::uint64_t offset = std::uint64_t{index} * bytes;
    return base_ != nullptr ? base_ + offset : pages_[offset / page_] + offset % page_;
  }

  // Whether holds(at, bytes) says so of all of them.
  template <class Holds>
  bool all(std::uint64_t bytes, Holds&& holds) const {
    if (base_ != nullptr) return holds(base_, bytes);
    return std::ranges::all_of(pages_, [&](const std::byte* page) { return holds(page, page_); });
  }

 private:
  std::byte* base_ = nullptr;
  std::uint64_t page_ = 0;
  std::vector<std::byte*> pages_;
};

}  // namespace xio::model::nvme
