// SPDX-License-Identifier: MIT
// Pages of a device's registers. Hardware sees every store to them, in order, and so does this: the program's mapping
// cannot be written, and what a store would have written is taken from the instruction that faults.
#pragma once
#include <cstddef>
#include <cstdint>

namespace uverbs {

struct doorbell {
  std::uint32_t page;    // as add_doorbell_page was given it
  std::uint32_t offset;  // in the page
  std::uint64_t value;
};

// Null where there is no memory, or no room for one more page.
void* map_doorbell_page(std::uint32_t page);
// Before the program unmaps this range.
void forget_doorbell_pages(void* at, std::size_t bytes);
// The oldest that was not taken yet; false: there is none.
bool take_doorbell(doorbell* to);

}  // namespace uverbs
