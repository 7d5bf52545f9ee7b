// SPDX-License-Identifier: MIT
// Words that packets load, store and change: in host memory by plain atomics, in a payload's through its agent.
#pragma once
#include "base/payload.hpp"
#include "model/sdma/memory_map.hpp"

namespace xio::model::sdma {

// Aligned to its width, 4 or 8, and mapped.
struct word {
  const payload_agent& payload;
  memory_kind kind;
  std::uint64_t address;
  unsigned width;

  std::uint64_t load() const;
  // Visible after everything that was stored before.
  void store(std::uint64_t value) const;
  // Does what an ATOMIC's code says. Returns false if others kept changing the word all the while: try again.
  bool change(std::uint32_t code, std::uint64_t operand, std::uint64_t compare) const;

 private:
  std::uint64_t apply(atomic_op op, std::uint64_t operand, std::uint64_t compare) const;
};

// 4 or 8, or 0 if the code is no atomic of integers.
unsigned width_of_atomic(std::uint32_t code);

}  // namespace xio::model::sdma
