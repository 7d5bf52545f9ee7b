// SPDX-License-Identifier: MIT
// The memory that packets may name.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace xio::model::sdma {

enum class memory_kind {
  payload,  // touched through the payload agent: may be a GPU's
  host      // plain host memory, such as completion words
};

// Ranges may overlap or be added twice, as registrations may. They are few, and the last one found is looked at first.
class memory_map {
 public:
  // False if the range is empty or wraps.
  bool add(std::uint64_t base, std::uint64_t bytes, memory_kind kind);
  // Removes one range of that base; false if there is none.
  bool remove(std::uint64_t base);
  // The kind of a range that holds all of [address, address + bytes), or null.
  const memory_kind* find(std::uint64_t address, std::uint64_t bytes) const;
  // Bytes from address to the end of a range that holds at least that many there, or 0.
  std::uint64_t bytes_from(std::uint64_t address, std::uint64_t at_least) const;

 private:
  struct range {
    std::uint64_t base, bytes;
    memory_kind kind;
    bool holds(std::uint64_t address, std::uint64_t n) const {
      return address - base < bytes && n <= bytes - (address - base);
    }
  };
  const range* range_of(std::uint64_t address, std::uint64_t bytes) const;

  std::vector<range> ranges_;
  mutable std::size_t last_ = 0;
};

}  // namespace xio::model::sdma
