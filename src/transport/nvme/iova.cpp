// SPDX-License-Identifier: MIT
#include "transport/nvme/iova.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "memory/pages.hpp"

namespace xio::nvme {
namespace {

constexpr std::uint64_t k_large_page = 2 << 20;

}  // namespace

iova_ranges::iova_ranges(const std::vector<range>& ranges, std::uint64_t page) : page_(page) {
  for (const range& r : ranges) {
    const auto begin = memory::align_up(std::max(r.first, page), page);
    // The last page of all is left out: its end has no number.
    const std::uint64_t end = memory::align_down(r.last == ~std::uint64_t{0} ? r.last : r.last + 1, page);
    if (begin && *begin < end) parts_.push_back(part{*begin, end, memory::allocator(*begin, end)});
  }
}

std::uint64_t iova_ranges::take(std::uint64_t bytes, std::uint64_t address) {
  const bool large = bytes >= k_large_page;
  const std::uint64_t alignment = large ? k_large_page : page_;
  const std::uint64_t place = large ? address & (k_large_page - 1) & ~(page_ - 1) : 0;
  for (part& p : parts_) {
    if (bytes > ~std::uint64_t{0} - place) break;
    const auto block = p.free.allocate(place + bytes, alignment);
    if (!block) continue;
    taken_.emplace_back(*block + place, *block);
    return *block + place;
  }
  fail(XIO_ERR_NO_MEMORY, "the IOMMU has no {} bytes of addresses left; register less memory", bytes);
}

void iova_ranges::give_back(std::uint64_t iova) {
  const auto it = std::ranges::find_if(taken_, [&](const auto& t) { return t.first == iova; });
  if (it == taken_.end()) return;
  for (part& p : parts_)
    if (it->second >= p.begin && it->second < p.end) p.free.release(it->second);
  taken_.erase(it);
}

}  // namespace xio::nvme
