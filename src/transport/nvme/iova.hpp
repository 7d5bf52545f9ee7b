// SPDX-License-Identifier: MIT
// Addresses that the IOMMU takes, handed out.
#pragma once
#include <list>
#include <vector>

#include "memory/allocator.hpp"

namespace xio::nvme {

class iova_ranges {
 public:
  struct range {
    std::uint64_t first;
    std::uint64_t last;  // inclusive, as the kernel tells them
  };
  // page: a power of two. Page 0 is never handed out.
  iova_ranges(const std::vector<range>& ranges, std::uint64_t page);

  // bytes are whole pages. From 2 MiB on the address keeps its place in 2 MiB, so that the IOMMU can use large pages.
  // Throws XIO_ERR_NO_MEMORY.
  std::uint64_t take(std::uint64_t bytes, std::uint64_t address);
  void give_back(std::uint64_t iova);

 private:
  struct part {
    std::uint64_t begin, end;
    memory::allocator free;
  };
  std::list<part> parts_;
  std::uint64_t page_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> taken_;  // the address returned, and the block around it
};

}  // namespace xio::nvme
