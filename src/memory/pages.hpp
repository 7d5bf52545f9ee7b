// SPDX-License-Identifier: MIT
// Arithmetic of pages, of any size that is a power of two: 4 KiB, 16 KiB and 64 KiB are all in use. Addresses and
// lengths may be anything; a result that does not fit into 64 bits is reported, not wrapped.
#pragma once
#include <cstdint>
#include <optional>

namespace xio::memory {

inline std::uint64_t number(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

constexpr std::uint64_t align_down(std::uint64_t value, std::uint64_t page) { return value & ~(page - 1); }

constexpr std::optional<std::uint64_t> align_up(std::uint64_t value, std::uint64_t page) {
  if (value > ~std::uint64_t{0} - (page - 1)) return {};
  return align_down(value + page - 1, page);
}

// The whole pages that [address, address + bytes) touches.
struct page_span {
  std::uint64_t first;   // address of the first page
  std::uint64_t offset;  // of address in it
  std::uint64_t bytes;   // of all pages
  std::uint64_t pages;
  constexpr bool operator==(const page_span&) const = default;
};

// Nothing when the range or its last page leaves the address space. An empty range touches no page.
constexpr std::optional<page_span> pages_of(std::uint64_t address, std::uint64_t bytes, std::uint64_t page) {
  const std::uint64_t first = align_down(address, page);
  if (bytes == 0) return page_span{first, address - first, 0, 0};
  if (bytes > ~std::uint64_t{0} - address) return {};
  const auto end = align_up(address + bytes, page);
  if (!end) return {};
  return page_span{first, address - first, *end - first, (*end - first) / page};
}

}  // namespace xio::memory
