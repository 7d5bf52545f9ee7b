// SPDX-License-Identifier: MIT
// What the kernel says of this process's memory: /proc/self/smaps (proc(5)) and move_pages(2).
#pragma once
#include <cstddef>
#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <vector>

namespace xio::memory {

struct mapping {
  std::uint64_t begin = 0, end = 0;
  bool readable = false;
  bool locked = false;         // by mlock
  std::size_t page_bytes = 0;  // KernelPageSize, 0 if it is not said
  std::string name;            // file, "[heap]" or ""
  bool writable = false;
};

// Those that [first, last) touches, from text in the format of smaps; ends early at what it does not understand.
std::vector<mapping> read_mappings(std::istream& smaps, std::uint64_t first, std::uint64_t last);
std::vector<mapping> mappings_of(std::uint64_t first, std::uint64_t last);
// The same without page size and lock, which the kernel would walk all pages for. Nothing where it does not say (no
// /proc).
std::optional<std::vector<mapping>> plain_mappings(std::uint64_t first, std::uint64_t last);
// Whether they leave no gap in [first, last).
bool cover(const std::vector<mapping>& all, std::uint64_t first, std::uint64_t last);

struct page_state {
  int resident = -1;   // 1: it has memory of its own, 0: not, -1: not known
  int numa_node = -1;  // where that is
};
page_state state_of_page(std::uint64_t address);

}  // namespace xio::memory
