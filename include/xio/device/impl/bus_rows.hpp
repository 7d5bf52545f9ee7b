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

// A row of registered memory, in registers.
struct region_row {
  u64 base, bytes, software_bus, first_bus, rows;
  u32 live;

  XIO_DEVICE static region_row of(const region_view& g) {
    static_assert(k_usual_spaces == 2);
    return {g.base, g.bytes, g.bus[static_cast<u32>(bus_space::software)], g.bus[static_cast<u32>(bus_space::first)],
            g.rows, g.live};
  }
  XIO_DEVICE bool holds(u64 p, u64 n) const {
    const u64 from = p - base;
    return (static_cast<int>(live != 0) & static_cast<int>(from < bytes) & static_cast<int>(n <= bytes - from)) != 0;
  }
  // Of p, which it holds, for drives of a usual space; 0 if they do not see it.
  XIO_DEVICE u64 address(bus_space space, u64 p) const {
    const u64 bus = space == bus_space::software ? software_bus : first_bus;
    return bus == 0 ? 0 : bus + (p - base);
  }
};

// Two rows in one look: the heap's, and what most often is asked for besides.
struct region_pair {
  region_row a, b;
  XIO_DEVICE static region_pair at(const world_view& w, u32 i) {
    return {region_row::of(w.regions[i]), region_row::of(w.regions[i + 1])};
  }
};
static_assert(k_max_regions % 2 == 0);

// Of p in a row, for drives of another than the usual spaces.
XIO_DEVICE bus_place address_elsewhere(const region_view& g, bus_space space, u64 p) {
  const u32 i = static_cast<u32>(space) - k_usual_spaces;
  const u64 bus = g.more_bus[i];
  return {bus == 0 ? 0 : bus + (p - g.base), g.more_rows[i]};
}

// Address of [p, p + bytes) for drives of that space, or 0 if no single registered region holds it. `rows` are the
// first two. Memory in parts brings its table.
XIO_DEVICE bus_place bus_address(const world_view& w, region_pair rows, bus_space space, const void* p, u64 bytes) {
  const u64 at = reinterpret_cast<u64>(p);
  for (u32 i = 2;; i += 2) {
    const bool first = rows.a.holds(at, bytes), second = rows.b.holds(at, bytes);
    const u64 address = first ? rows.a.address(space, at) : rows.b.address(space, at);
    if (first || second) {
      if (static_cast<u32>(space) >= k_usual_spaces) [[unlikely]]
        return address_elsewhere(w.regions[first ? i - 2 : i - 1], space, at);
      return {address, first ? rows.a.rows : rows.b.rows};
    }
    if (i == k_max_regions) return {0, 0};
    rows = region_pair::at(w, i);
  }
}

}  // namespace xio::dev
