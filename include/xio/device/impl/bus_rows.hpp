// SPDX-License-Identifier: MIT
// Where registered memory lies on a drive's bus. Memory in one part has a bus address. Memory in several has a table
// with a row for each 1 << shift bytes of it, and in the place of an address k_in_runs with an offset in that table.
//
// A row is the number that, added to k_in_runs | offset, makes the bus address. A table is named by one word, which a
// kernel has by one load: where its rows would begin if k_in_runs were a part of the index, and in the low bits the
// shift. So a page is found by one load and a few sums, however many parts there are.
#pragma once
#include "xio/device/impl/view.hpp"
#include "xio/device/platform/platform.hpp"

namespace xio::dev {

constexpr u64 k_shift_bits = 63;      // of that word
constexpr u64 k_rows_align = 64;      // so these are free
constexpr u32 k_most_row_shift = 60;  // with more the index would reach into them

XIO_HOST_DEVICE constexpr u64 rows_word(u64 rows, u32 shift) { return (rows - (k_in_runs >> shift) * 8) | shift; }

// The row for a part that begins at `offset` and has that bus address.
XIO_HOST_DEVICE constexpr u64 row_of(u64 offset, u64 address) { return address - (k_in_runs | offset); }

// Where a buffer lies for a drive.
struct bus_place {
  u64 at;    // its bus address, or k_in_runs and an offset; 0: there is no buffer
  u64 rows;  // the table that the offset counts in
};

XIO_DEVICE u64 bus_address_of(const bus_place& p, u64 at) {
  if ((at & k_in_runs) == 0) [[likely]]
    return at;
  const u64 row = (p.rows & ~k_shift_bits) + (at >> (p.rows & k_shift_bits)) * 8;
  return at + *in_device_memory(reinterpret_cast<const u64*>(row));
}

}  // namespace xio::dev
