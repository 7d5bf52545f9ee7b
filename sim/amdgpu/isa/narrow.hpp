// SPDX-License-Identifier: MIT
// What loads and stores of all kinds of memory share: how less than a dword fills its register, or is taken out of one
// (MI200 ISA 9.2, "D16": the other half stays), and the rows of their tables.
#pragma once
#include "amdgpu/isa/wave.hpp"

namespace amdgpu {

enum class filling : std::uint8_t { zero, sign, d16, d16_hi, d16_sign, d16_hi_sign };

inline std::uint32_t filled(filling how, unsigned bytes, std::uint32_t value, std::uint32_t was) {
  const unsigned up = 32 - 8 * bytes;
  const auto extended = static_cast<std::uint32_t>(static_cast<std::int32_t>(value << up) >> up);
  switch (how) {
    case filling::zero: return value;
    case filling::sign: return extended;
    case filling::d16: return (was & 0xffff0000) | (value & 0xffff);
    case filling::d16_hi: return (was & 0xffff) | value << 16;
    case filling::d16_sign: return (was & 0xffff0000) | (extended & 0xffff);
    case filling::d16_hi_sign: return (was & 0xffff) | extended << 16;
  }
  return value;
}

// The lanes of D that are active take their values from ROW.
inline void fill_narrow(filling how, unsigned bytes, std::uint64_t active, std::uint32_t* d, const std::uint32_t* row) {
  for (const unsigned l : active_lanes(active)) {
    d[l] = filled(how, bytes, row[l], d[l]);
  }
}

// Loads by get(rows), which returns false if it failed.
template <class Get>
void load_filled(wave& w, const operation& o, const Get& get) {
  std::uint32_t* const d = w.rows(o.dst.index);
  std::uint32_t row[lanes];
  if (o.width >= 4)
    get(d);
  else if (get(row))
    fill_narrow(static_cast<filling>(o.variant), o.width, w.exec(), d, row);
}

// The rows that a store takes from registers: variant 1 has their high halves, in `room`.
inline const std::uint32_t* stored_rows(wave& w, const operation& o, const operand& data, std::uint32_t* room) {
  const std::uint32_t* const rows = w.rows(data.index);
  if (!o.variant) return rows;
  for (unsigned l = 0; l < lanes; ++l) room[l] = rows[l] >> 16;
  return room;
}

// Variants in tables.
constexpr std::uint8_t as(filling f) { return static_cast<std::uint8_t>(f); }
constexpr std::uint8_t as(atomic_op op) { return static_cast<std::uint8_t>(op); }

}  // namespace amdgpu

#define AMDGPU_LOADS(prefix, form, f)                                                                         \
  row(prefix "_load_ubyte", form, f, nullptr, as(filling::zero), 1),                                          \
      row(prefix "_load_sbyte", form, f, nullptr, as(filling::sign), 1),                                      \
      row(prefix "_load_ushort", form, f, nullptr, as(filling::zero), 2),                                     \
      row(prefix "_load_sshort", form, f, nullptr, as(filling::sign), 2),                                     \
      row(prefix "_load_ubyte_d16", form, f, nullptr, as(filling::d16), 1),                                   \
      row(prefix "_load_ubyte_d16_hi", form, f, nullptr, as(filling::d16_hi), 1),                             \
      row(prefix "_load_sbyte_d16", form, f, nullptr, as(filling::d16_sign), 1),                              \
      row(prefix "_load_sbyte_d16_hi", form, f, nullptr, as(filling::d16_hi_sign), 1),                        \
      row(prefix "_load_short_d16", form, f, nullptr, as(filling::d16), 2),                                   \
      row(prefix "_load_short_d16_hi", form, f, nullptr, as(filling::d16_hi), 2),                             \
      row(prefix "_load_dword", form, f, nullptr, 0, 4), row(prefix "_load_dwordx2", form, f, nullptr, 0, 8), \
      row(prefix "_load_dwordx3", form, f, nullptr, 0, 12), row(prefix "_load_dwordx4", form, f, nullptr, 0, 16)
#define AMDGPU_STORES(prefix, form, f)                                                                               \
  row(prefix "_store_byte", form, f, nullptr, 0, 1), row(prefix "_store_byte_d16_hi", form, f, nullptr, 1, 1),       \
      row(prefix "_store_short", form, f, nullptr, 0, 2), row(prefix "_store_short_d16_hi", form, f, nullptr, 1, 2), \
      row(prefix "_store_dword", form, f, nullptr, 0, 4), row(prefix "_store_dwordx2", form, f, nullptr, 0, 8),      \
      row(prefix "_store_dwordx3", form, f, nullptr, 0, 12), row(prefix "_store_dwordx4", form, f, nullptr, 0, 16)
