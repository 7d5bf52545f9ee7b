// SPDX-License-Identifier: MIT
// Pages of a device's registers: the program's mapping cannot be written, and what a store would have written is taken
// from the instruction that faults. A GPU promises of such a page less than a CPU does: of the stores of one
// instruction, or of one core until it waits, those to one address may be merged, and the last alone arrives. Here a
// thread's store waits for 2 ms, and another to the same address takes its place; an SFENCE right behind a store lets
// it leave at once, with all of its thread that wait.
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

// The page as a dma-buf: a memfd of the name `registers`, of which a preloaded GPU calls xio_registers_written().
int export_doorbell_page(std::uint32_t page);
void revoke_doorbell_page(std::uint32_t page);  // it is freed: stores by its dma-buf fail from now on

}  // namespace uverbs
