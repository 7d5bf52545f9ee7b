// SPDX-License-Identifier: MIT
// DS: the workgroup's LDS, and permutes between lanes (MI200 ISA, chapter 11 and 12.13).
#include "amdgpu/isa/lds.hpp"
#include "amdgpu/isa/narrow.hpp"
#include "amdgpu/isa/valu.hpp"
#include "amdgpu/memory/read_modify_write.hpp"

namespace amdgpu {
namespace {

bool outside(wave& w, const operation& o, unsigned lane, u32 offset, unsigned bytes, bool write) {
  fault& f = stop(w, o, fault::kind::lds,
                  w.of->lds.empty() ? "the workgroup has no LDS" : "it is outside of the workgroup's LDS");
  f.lane = static_cast<int>(lane);
  f.address = offset;
  f.bytes = bytes;
  f.write = write;
  return false;
}

bool in_bounds(const wave& w, u32 offset, unsigned bytes) { return u64{offset} + bytes <= w.of->lds.size(); }

// Byte offsets of lanes: the register plus a constant.
void offsets(const wave& w, const operand& address, u32 add, u32* out) {
  const u32* const row = w.v + address.index * lanes;
  for (unsigned l = 0; l < lanes; ++l) out[l] = row[l] + add;
}

template <class T>
T modify(std::uint8_t* where, atomic_op op, T value, T compare) {
  T old;
  std::memcpy(&old, where, sizeof(T));
  const T now = changed<T>(op, old, value, compare);
  std::memcpy(where, &now, sizeof(T));
  return old;
}

}  // namespace

bool lds_load(wave& w, const operation& o, const u32* offset, u64 active, unsigned bytes, u32* data) {
  const std::uint8_t* const lds = w.of->lds.data();
  for (const unsigned l : active_lanes(active)) {
    if (!in_bounds(w, offset[l], bytes)) return outside(w, o, l, offset[l], bytes, false);
    if (bytes < 4) data[l] = 0;
    for (unsigned k = 0; 4 * k < bytes; ++k)
      std::memcpy(&data[k * lanes + l], lds + offset[l] + 4 * k, bytes - 4 * k < 4 ? bytes - 4 * k : 4);
  }
  return true;
}

bool lds_store(wave& w, const operation& o, const u32* offset, u64 active, unsigned bytes, const u32* data) {
  std::uint8_t* const lds = w.of->lds.data();
  for (const unsigned l : active_lanes(active)) {
    if (!in_bounds(w, offset[l], bytes)) return outside(w, o, l, offset[l], bytes, true);
    for (unsigned k = 0; 4 * k < bytes; ++k)
      std::memcpy(lds + offset[l] + 4 * k, &data[k * lanes + l], bytes - 4 * k < 4 ? bytes - 4 * k : 4);
  }
  return true;
}

bool lds_atomic(wave& w, const operation& o, atomic_op op, const u32* offset, u64 active, unsigned bytes,
                const u32* data, const u32* compare, u32* old) {
  for (const unsigned l : active_lanes(active)) {
    if (!in_bounds(w, offset[l], bytes)) return outside(w, o, l, offset[l], bytes, true);
    if (offset[l] % bytes) {
      fault& f = stop(w, o, fault::kind::alignment, "an atomic's address is not a multiple of its size");
      f.lane = static_cast<int>(l);
      f.address = offset[l];
      return false;
    }
    std::uint8_t* const where = w.of->lds.data() + offset[l];
    if (bytes == 4) {
      const u32 was = modify<u32>(where, op, data[l], compare ? compare[l] : 0);
      if (old) old[l] = was;
    } else {
      const u64 was = modify<u64>(where, op, wide(data, l), compare ? wide(compare, l) : 0);
      if (old) put(old, l, was);
    }
  }
  return true;
}

namespace {

void read(wave& w, const operation& o) {
  u32 at[lanes];
  offsets(w, o.src[0], o.immediate, at);
  load_filled(w, o, [&](u32* d) { return lds_load(w, o, at, w.exec(), o.width, d); });
}

void write(wave& w, const operation& o) {
  u32 at[lanes], high[lanes];
  offsets(w, o.src[0], o.immediate, at);
  lds_store(w, o, at, w.exec(), o.width, stored_rows(w, o, o.src[1], high));
}

// Two places; the offsets count elements, or 64 of them (variant 1).
void two_offsets(const wave& w, const operation& o, u32* first, u32* second) {
  const u32 unit = o.width * (o.variant ? 64u : 1u);
  offsets(w, o.src[0], static_cast<u32>(o.offset) * unit, first);
  offsets(w, o.src[0], static_cast<u32>(o.offset2) * unit, second);
}

void read2(wave& w, const operation& o) {
  u32 first[lanes], second[lanes], room[4 * lanes];
  two_offsets(w, o, first, second);
  const unsigned rows = o.width / 4;
  if (lds_load(w, o, first, w.exec(), o.width, room) && lds_load(w, o, second, w.exec(), o.width, room + rows * lanes))
    blend(w, w.rows(o.dst.index), room, 2 * rows);
}

void write2(wave& w, const operation& o) {
  u32 first[lanes], second[lanes];
  two_offsets(w, o, first, second);
  if (lds_store(w, o, first, w.exec(), o.width, w.rows(o.src[1].index)))
    lds_store(w, o, second, w.exec(), o.width, w.rows(o.src[2].index));
}

// ds_OP address, data[, data]: of two data, the first is what cmpst compares with, or mskor's mask.
void atomic(wave& w, const operation& o) {
  u32 at[lanes];
  offsets(w, o.src[0], o.immediate, at);
  const bool two = o.n_src == 3;
  u32* const old = o.dst.where == place::vgpr ? w.rows(o.dst.index) : nullptr;
  u32 room[2 * lanes];
  if (lds_atomic(w, o, static_cast<atomic_op>(o.variant), at, w.exec(), o.width, w.rows(o.src[two ? 2 : 1].index),
                 two ? w.rows(o.src[1].index) : nullptr, old ? room : nullptr) &&
      old)
    blend(w, old, room, o.width / 4);
}

// ---- lanes ----------------------------------------------------------------------------------------------------------

// The lane that a permute names. gfx1100 has 32 lanes to permute among, in a wave of 64 too (RDNA3 ISA,
// "DS_PERMUTE_B32").
u32 permuted(const wave& w, unsigned lane, u32 named) {
  return w.of->how.target == target::gfx1100 ? (lane & 32) | (named & 31) : named & 63;
}

void bpermute(wave& w, const operation& o) {
  const u64 exec = w.exec();
  const u32* const address = w.rows(o.src[0].index);
  const u32* const data = w.rows(o.src[1].index);
  u32 r[lanes];
  for (unsigned l = 0; l < lanes; ++l) {
    const u32 from = permuted(w, l, (address[l] + o.immediate) / 4);
    r[l] = exec >> from & 1 ? data[from] : 0;
  }
  blend(w, w.rows(o.dst.index), r, 1);
}

void permute(wave& w, const operation& o) {
  const u64 exec = w.exec();
  const u32* const address = w.rows(o.src[0].index);
  const u32* const data = w.rows(o.src[1].index);
  u32 r[lanes] = {};
  for (unsigned l = 0; l < lanes; ++l)
    if (exec >> l & 1) r[permuted(w, l, (address[l] + o.immediate) / 4)] = data[l];
  blend(w, w.rows(o.dst.index), r, 1);
}

void swizzle(wave& w, const operation& o) {
  const u32 how = o.immediate;
  if (how >= 0xc000) {
    stop(w, o, fault::kind::unknown, "swizzles that rotate or serve FFTs are not interpreted");
    return;
  }
  const u64 exec = w.exec();
  const u32* const data = w.rows(o.src[0].index);
  u32 r[lanes];
  for (unsigned l = 0; l < lanes; ++l) {
    u32 from = 0;
    if (how & 0x8000) {
      from = (l & ~3u) | (how >> (2 * (l & 3)) & 3);
    } else {
      const u32 in_half = (((l & 31) & (how & 31)) | (how >> 5 & 31)) ^ (how >> 10 & 31);
      from = (l & 32) | in_half;
    }
    r[l] = exec >> from & 1 ? data[from] : 0;
  }
  blend(w, w.rows(o.dst.index), r, 1);
}

void nothing(wave&, const operation&) {}

#define ATOMIC(name, type, data, op, width)                                       \
  row("ds_" name "_" type, "=i" data, atomic, nullptr, as(atomic_op::op), width), \
      row("ds_" name "_rtn_" type, "i=i" data, atomic, nullptr, as(atomic_op::op), width)
#define BOTH(name, kind, op) ATOMIC(name, kind "32", "i", op, 4), ATOMIC(name, kind "64", "i", op, 8)
#define BOTH2(name, kind, op) ATOMIC(name, kind "32", "ii", op, 4), ATOMIC(name, kind "64", "ii", op, 8)
#define TWO(name, form, f)                                                                          \
  row("ds_" name "2_b32", form, f, nullptr, 0, 4), row("ds_" name "2_b64", form, f, nullptr, 0, 8), \
      row("ds_" name "2st64_b32", form, f, nullptr, 1, 4), row("ds_" name "2st64_b64", form, f, nullptr, 1, 8)

constexpr row rows[] = {
    {"ds_read_b32", "i=i", read, nullptr, 0, 4},
    {"ds_read_b64", "i=i", read, nullptr, 0, 8},
    {"ds_read_b96", "i=i", read, nullptr, 0, 12},
    {"ds_read_b128", "i=i", read, nullptr, 0, 16},
    {"ds_read_u8", "i=i", read, nullptr, as(filling::zero), 1},
    {"ds_read_i8", "i=i", read, nullptr, as(filling::sign), 1},
    {"ds_read_u16", "i=i", read, nullptr, as(filling::zero), 2},
    {"ds_read_i16", "i=i", read, nullptr, as(filling::sign), 2},
    {"ds_read_u8_d16", "i=i", read, nullptr, as(filling::d16), 1},
    {"ds_read_u8_d16_hi", "i=i", read, nullptr, as(filling::d16_hi), 1},
    {"ds_read_i8_d16", "i=i", read, nullptr, as(filling::d16_sign), 1},
    {"ds_read_i8_d16_hi", "i=i", read, nullptr, as(filling::d16_hi_sign), 1},
    {"ds_read_u16_d16", "i=i", read, nullptr, as(filling::d16), 2},
    {"ds_read_u16_d16_hi", "i=i", read, nullptr, as(filling::d16_hi), 2},
    TWO("read", "i=i", read2),
    {"ds_write_b8", "=ii", write, nullptr, 0, 1},
    {"ds_write_b16", "=ii", write, nullptr, 0, 2},
    {"ds_write_b8_d16_hi", "=ii", write, nullptr, 1, 1},
    {"ds_write_b16_d16_hi", "=ii", write, nullptr, 1, 2},
    {"ds_write_b32", "=ii", write, nullptr, 0, 4},
    {"ds_write_b64", "=ii", write, nullptr, 0, 8},
    {"ds_write_b96", "=ii", write, nullptr, 0, 12},
    {"ds_write_b128", "=ii", write, nullptr, 0, 16},
    TWO("write", "=iii", write2),
    BOTH("add", "u", add),
    BOTH("sub", "u", sub),
    BOTH("rsub", "u", rsub),
    BOTH("inc", "u", inc),
    BOTH("dec", "u", dec),
    BOTH("min", "i", smin),
    BOTH("max", "i", smax),
    BOTH("min", "u", umin),
    BOTH("max", "u", umax),
    BOTH("and", "b", bit_and),
    BOTH("or", "b", bit_or),
    BOTH("xor", "b", bit_xor),
    BOTH("add", "f", add_float),
    BOTH("min", "f", min_float),
    BOTH("max", "f", max_float),
    BOTH2("cmpst", "b", cmpswap),
    BOTH2("mskor", "b", mskor),
    {"ds_wrxchg_rtn_b32", "i=ii", atomic, nullptr, as(atomic_op::swap), 4},
    {"ds_wrxchg_rtn_b64", "i=ii", atomic, nullptr, as(atomic_op::swap), 8},
    {"ds_bpermute_b32", "i=ii", bpermute},
    {"ds_permute_b32", "i=ii", permute},
    {"ds_swizzle_b32", "i=i", swizzle},
    {"ds_nop", "*", nothing},
};

}  // namespace

table lds_rows() { return rows; }

}  // namespace amdgpu
