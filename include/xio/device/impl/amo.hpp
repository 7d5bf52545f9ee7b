// SPDX-License-Identifier: MIT
// The atomic operations that a route must know. Fetching or not is asked separately: swap is `set` that fetches.
#pragma once
#include "xio/device/platform/platform.hpp"

namespace xio::dev {

enum class amo : u8 {
  fetch,         // reads; operand unused
  set,           // old -> operand
  compare_swap,  // old == compare ? operand : old, bit patterns
  add,           // old + operand, modulo the width
  bit_and,
  bit_or,
  bit_xor
};

}  // namespace xio::dev
