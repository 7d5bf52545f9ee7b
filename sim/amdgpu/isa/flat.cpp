// SPDX-License-Identifier: MIT
// FLAT, GLOBAL and SCRATCH (MI200 ISA, chapter 9 and 12.15). A FLAT address may lead to memory, to LDS or to the lane's
// private memory, by its upper half.

#include "amdgpu/isa/lds.hpp"
#include "amdgpu/isa/narrow.hpp"
#include "amdgpu/isa/scratch.hpp"
#include "amdgpu/isa/valu.hpp"

namespace amdgpu {
namespace {

// ---- addresses ------------------------------------------------------------------------------------------------------

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
  for (const unsigned l : active_lanes(exec)) {
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

// ---- loads and stores by address ------------------------------------------------------------------------------------

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
  load_filled(w, o, [&](u32* d) { return move_rows(w, o, address, flat, d); });
}

template <bool flat>
void store(wave& w, const operation& o) {
  if (w.exec() == 0) return;
  u64 address[lanes];
  addresses(w, o, o.src[0], o.src[2], address);
  u32 high[lanes];
  move_rows<const u32>(w, o, address, flat, stored_rows(w, o, o.src[1], high));
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

// ---- SCRATCH --------------------------------------------------------------------------------------------------------

void scratch_offsets(const wave& w, const operation& o, const operand& vaddr, const operand& saddr, u32* out) {
  const u32 base = static_cast<u32>(o.offset) + (saddr.where == place::none ? 0 : scalar32(w, saddr));
  const u32* const row = vaddr.where == place::vgpr ? w.v + vaddr.index * lanes : nullptr;
  for (unsigned l = 0; l < lanes; ++l) out[l] = base + (row ? row[l] : 0);
}

void load_scratch(wave& w, const operation& o) {
  u32 offset[lanes];
  scratch_offsets(w, o, o.src[0], o.src[1], offset);
  load_filled(w, o, [&](u32* d) { return scratch_load(w, o, scratch_base(w), offset, w.exec(), o.width, d); });
}

void store_scratch(wave& w, const operation& o) {
  u32 offset[lanes], high[lanes];
  scratch_offsets(w, o, o.src[0], o.src[2], offset);
  scratch_store(w, o, scratch_base(w), offset, w.exec(), o.width, stored_rows(w, o, o.src[1], high));
}

#define ATOMIC(name, op)                                                                    \
  row("flat_atomic_" name, "i=ii?", atomic<true>, nullptr, as(atomic_op::op), 4),           \
      row("flat_atomic_" name "_x2", "i=ii?", atomic<true>, nullptr, as(atomic_op::op), 8), \
      row("global_atomic_" name, "i=iii?", atomic<false>, nullptr, as(atomic_op::op), 4),   \
      row("global_atomic_" name "_x2", "i=iii?", atomic<false>, nullptr, as(atomic_op::op), 8)
#define FLOAT_ATOMIC(name, op, width)                                                 \
  row("flat_atomic_" name, "i=ii?", atomic<true>, nullptr, as(atomic_op::op), width), \
      row("global_atomic_" name, "i=iii?", atomic<false>, nullptr, as(atomic_op::op), width)

constexpr row rows[] = {
    AMDGPU_LOADS("flat", "i=i", load<true>),
    AMDGPU_LOADS("global", "i=ii", load<false>),
    AMDGPU_LOADS("scratch", "i=ii", load_scratch),
    AMDGPU_STORES("flat", "=ii", store<true>),
    AMDGPU_STORES("global", "=iii", store<false>),
    AMDGPU_STORES("scratch", "=iii", store_scratch),
    ATOMICS_OF_INTEGERS(ATOMIC),
    FLOAT_ATOMIC("add_f32", add_float, 4),
    FLOAT_ATOMIC("add_f64", add_float, 8),
    FLOAT_ATOMIC("min_f64", min_float, 8),
    FLOAT_ATOMIC("max_f64", max_float, 8),
    FLOAT_ATOMIC("pk_add_f16", pk_add_f16, 4),
};

}  // namespace

table flat_rows() { return rows; }

}  // namespace amdgpu
