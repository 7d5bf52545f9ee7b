// SPDX-License-Identifier: MIT
// FLAT, GLOBAL and SCRATCH (MI200 ISA, chapter 9 and 12.15). A FLAT address may lead to memory, to LDS or to the lane's
// private memory, by its upper half.

#include "amdgpu/isa/lds.hpp"
#include "amdgpu/isa/narrow.hpp"
#include "amdgpu/isa/scratch.hpp"
#include "amdgpu/isa/valu.hpp"

namespace amdgpu {
namespace {

// ---- addresses
// -------------------------------------------------------------------------------------------------------

void addresses(const wave& w, const operation& o, const operand& vaddr, const operand& saddr, u64* out) {
  const u32* const low = w.v + vaddr.index * lanes;
  const u64 offset = static_cast<u64>(static_cast<i64>(o.offset));
  if (saddr.where == place::sgpr) {
    const u64 base = w.get64(saddr.index) + offset;
    for (unsigned l = 0; l < lanes; ++l) out[l] = base + low[l];
  } else {
    for (unsigned l = 0; l < lanes; ++l) out[l] = wide(low, l) + offset;
  }
}

// The lanes of a FLAT access by where they lead.
struct ways {
  u64 memory = 0, lds = 0, scratch = 0;
};

ways sort_lanes(const wave& w, const u64* address) {
  const launch& how = w.of->how;
  const u32 lds = static_cast<u32>(how.lds_aperture >> 32), scratch = static_cast<u32>(how.private_aperture >> 32);
  alignas(64) u32 row[lanes];
  ways sorted;
  const u64 exec = w.exec();
  u32 any = 0;
  for (unsigned l = 0; l < lanes; ++l) {
    const u32 high = static_cast<u32>(address[l] >> 32);
    row[l] = (lds && high == lds ? ~u32{0} : 0) | (scratch && high == scratch ? ~u32{0} : 0);
    any |= row[l];
  }
  sorted.memory = exec;
  if (!any) return sorted;
  for (u64 left = exec; left; left &= left - 1) {
    const unsigned l = static_cast<unsigned>(std::countr_zero(left));
    const u64 bit = u64{1} << l;
    const u32 high = static_cast<u32>(address[l] >> 32);
    if (lds && high == lds) sorted.lds |= bit;
    if (scratch && high == scratch) sorted.scratch |= bit;
  }
  sorted.memory &= ~(sorted.lds | sorted.scratch);
  return sorted;
}

void low_halves(const u64* address, u32* out) {
  for (unsigned l = 0; l < lanes; ++l) out[l] = static_cast<u32>(address[l]);
}

access to(const wave& w, const operation& o, const u64* address, u64 active, access_kind kind) {
  access a{address, active, o.width, kind, o.scope, w.of, w.number, w.issued};
  a.to_registers = o.width >= 4;
  a.stores = o.counts_as_store;
  if (a.stores) a.number = w.issued_stores;
  return a;
}

// ---- loads and stores by address
// -------------------------------------------------------------------------------------

// By loads into `data`, or by stores from it.
template <class Data>
bool move_rows(wave& w, const operation& o, const u64* address, bool flat, Data* data) {
  constexpr bool stores = std::is_const_v<Data>;
  ways by;
  by.memory = w.exec();
  if (flat) by = sort_lanes(w, address);
  refusal no;
  const access a = to(w, o, address, by.memory, flat ? access_kind::flat : access_kind::global);
  bool moved;
  if constexpr (stores)
    moved = w.of->memory->store(a, data, no);
  else
    moved = w.of->memory->load(a, data, no);
  if (!moved) {
    stop(w, o, no, o.width);
    return false;
  }
  if (!(by.lds | by.scratch)) return true;
  u32 offset[lanes];
  low_halves(address, offset);
  if constexpr (stores)
    return lds_store(w, o, offset, by.lds, o.width, data) &&
           scratch_store(w, o, scratch_base(w), offset, by.scratch, o.width, data);
  else
    return lds_load(w, o, offset, by.lds, o.width, data) &&
           scratch_load(w, o, scratch_base(w), offset, by.scratch, o.width, data);
}

template <bool flat>
void load(wave& w, const operation& o) {
  if (w.exec() == 0) return;
  u64 address[lanes];
  addresses(w, o, o.src[0], o.src[1], address);
  u32* const d = w.rows(o.dst.index);
  if (o.width >= 4) {
    move_rows(w, o, address, flat, d);
  } else {
    u32 row[lanes];
    if (move_rows(w, o, address, flat, row)) fill_narrow(static_cast<filling>(o.variant), o.width, w.exec(), d, row);
  }
}

void high_halves(const u32* data, u32* out) {
  for (unsigned l = 0; l < lanes; ++l) out[l] = data[l] >> 16;
}

template <bool flat>
void store(wave& w, const operation& o) {
  if (w.exec() == 0) return;
  u64 address[lanes];
  addresses(w, o, o.src[0], o.src[2], address);
  const u32* data = w.rows(o.src[1].index);
  u32 high[lanes];
  if (o.variant) {
    high_halves(data, high);
    data = high;
  }
  move_rows<const u32>(w, o, address, flat, data);
}

// cmpswap's data are the new value and, behind it, what is compared with.
template <bool flat>
void atomic(wave& w, const operation& o) {
  if (w.exec() == 0) return;
  u64 address[lanes];
  addresses(w, o, o.src[0], o.src[2], address);
  const auto op = static_cast<atomic_op>(o.variant);
  const u32* const data = w.rows(o.src[1].index);
  const u32* const compare = op == atomic_op::cmpswap ? data + o.width / 4 * lanes : nullptr;
  ways by;
  by.memory = w.exec();
  if (flat) by = sort_lanes(w, address);
  u32 old[2 * lanes];
  refusal no;
  const access a = to(w, o, address, by.memory, flat ? access_kind::flat : access_kind::global);
  if (!w.of->memory->atomic(a, op, data, compare, old, no)) return stop(w, o, no, o.width);
  if (by.scratch) {
    stop(w, o, fault::kind::memory, "an atomic on private memory").address = address[std::countr_zero(by.scratch)];
    return;
  }
  if (by.lds) {
    u32 offset[lanes];
    low_halves(address, offset);
    if (!lds_atomic(w, o, op, offset, by.lds, o.width, data, compare, old)) return;
  }
  if (o.scope.glc) blend(w, w.rows(o.dst.index), old, o.width / 4);
}

// ---- SCRATCH
// ---------------------------------------------------------------------------------------------------------

void scratch_offsets(const wave& w, const operation& o, const operand& vaddr, const operand& saddr, u32* out) {
  const u32 base = static_cast<u32>(o.offset) + (saddr.where == place::none ? 0 : scalar32(w, saddr));
  const u32* const row = vaddr.where == place::vgpr ? w.v + vaddr.index * lanes : nullptr;
  for (unsigned l = 0; l < lanes; ++l) out[l] = base + (row ? row[l] : 0);
}

void load_scratch(wave& w, const operation& o) {
  u32 offset[lanes], row[lanes];
  scratch_offsets(w, o, o.src[0], o.src[1], offset);
  u32* const d = w.rows(o.dst.index);
  const u64 base = scratch_base(w);
  if (o.width >= 4) {
    scratch_load(w, o, base, offset, w.exec(), o.width, d);
  } else if (scratch_load(w, o, base, offset, w.exec(), o.width, row)) {
    fill_narrow(static_cast<filling>(o.variant), o.width, w.exec(), d, row);
  }
}

void store_scratch(wave& w, const operation& o) {
  u32 offset[lanes], high[lanes];
  scratch_offsets(w, o, o.src[0], o.src[2], offset);
  const u32* data = w.rows(o.src[1].index);
  if (o.variant) {
    high_halves(data, high);
    data = high;
  }
  scratch_store(w, o, scratch_base(w), offset, w.exec(), o.width, data);
}

constexpr std::uint8_t as(filling f) { return static_cast<std::uint8_t>(f); }
constexpr std::uint8_t as(atomic_op op) { return static_cast<std::uint8_t>(op); }

#define LOADS(prefix, form, f)                                                                          \
  {prefix "_load_ubyte", form, f, nullptr, as(filling::zero), 1},                                       \
      {prefix "_load_sbyte", form, f, nullptr, as(filling::sign), 1},                                   \
      {prefix "_load_ushort", form, f, nullptr, as(filling::zero), 2},                                  \
      {prefix "_load_sshort", form, f, nullptr, as(filling::sign), 2},                                  \
      {prefix "_load_ubyte_d16", form, f, nullptr, as(filling::d16), 1},                                \
      {prefix "_load_ubyte_d16_hi", form, f, nullptr, as(filling::d16_hi), 1},                          \
      {prefix "_load_sbyte_d16", form, f, nullptr, as(filling::d16_sign), 1},                           \
      {prefix "_load_sbyte_d16_hi", form, f, nullptr, as(filling::d16_hi_sign), 1},                     \
      {prefix "_load_short_d16", form, f, nullptr, as(filling::d16), 2},                                \
      {prefix "_load_short_d16_hi", form, f, nullptr, as(filling::d16_hi), 2},                          \
      {prefix "_load_dword", form, f, nullptr, 0, 4}, {prefix "_load_dwordx2", form, f, nullptr, 0, 8}, \
      {prefix "_load_dwordx3", form, f, nullptr, 0, 12}, {                                              \
    prefix "_load_dwordx4", form, f, nullptr, 0, 16                                                     \
  }
#define STORES(prefix, form, f)                                                                                \
  {prefix "_store_byte", form, f, nullptr, 0, 1}, {prefix "_store_byte_d16_hi", form, f, nullptr, 1, 1},       \
      {prefix "_store_short", form, f, nullptr, 0, 2}, {prefix "_store_short_d16_hi", form, f, nullptr, 1, 2}, \
      {prefix "_store_dword", form, f, nullptr, 0, 4}, {prefix "_store_dwordx2", form, f, nullptr, 0, 8},      \
      {prefix "_store_dwordx3", form, f, nullptr, 0, 12}, {                                                    \
    prefix "_store_dwordx4", form, f, nullptr, 0, 16                                                           \
  }
#define ATOMIC(name, op)                                                                 \
  {"flat_atomic_" name, "i=ii?", atomic<true>, nullptr, as(atomic_op::op), 4},           \
      {"flat_atomic_" name "_x2", "i=ii?", atomic<true>, nullptr, as(atomic_op::op), 8}, \
      {"global_atomic_" name, "i=iii?", atomic<false>, nullptr, as(atomic_op::op), 4}, { \
    "global_atomic_" name "_x2", "i=iii?", atomic<false>, nullptr, as(atomic_op::op), 8  \
  }
#define FLOAT_ATOMIC(name, op, width)                                                 \
  {"flat_atomic_" name, "i=ii?", atomic<true>, nullptr, as(atomic_op::op), width}, {  \
    "global_atomic_" name, "i=iii?", atomic<false>, nullptr, as(atomic_op::op), width \
  }

constexpr row rows[] = {
    LOADS("flat", "i=i", load<true>),
    LOADS("global", "i=ii", load<false>),
    LOADS("scratch", "i=ii", load_scratch),
    STORES("flat", "=ii", store<true>),
    STORES("global", "=iii", store<false>),
    STORES("scratch", "=iii", store_scratch),
    ATOMICS_OF_INTEGERS(ATOMIC),
    FLOAT_ATOMIC("add_f32", add_float, 4),
    FLOAT_ATOMIC("add_f64", add_float, 8),
    FLOAT_ATOMIC("min_f64", min_float, 8),
    FLOAT_ATOMIC("max_f64", max_float, 8),
    FLOAT_ATOMIC("pk_add_f16", pk_add_f16, 4),
};

}  // namespace

table flat_rows() { return {rows, std::size(rows)}; }

}  // namespace amdgpu
