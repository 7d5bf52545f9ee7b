// SPDX-License-Identifier: MIT
// What all VALU instructions share: sources, modifiers (MI200 ISA 6.2 to 6.5), SDWA and DPP (12.9), the blend by EXEC.
#include "amdgpu/isa/valu.hpp"

#include <algorithm>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace amdgpu {

u64 collect(const u32* row) {
  u64 mask = 0;
#if defined(__AVX2__)
  for (unsigned i = 0; i < 8; ++i) {
    const __m256 eight = _mm256_load_ps(reinterpret_cast<const float*>(row + 8 * i));
    mask |= static_cast<u64>(static_cast<u32>(_mm256_movemask_ps(eight))) << (8 * i);
  }
#else
  for (unsigned l = 0; l < lanes; ++l) mask |= static_cast<u64>(row[l] >> 31) << l;
#endif
  return mask;
}

void expand(u64 mask, u32* row) {
  const u32 low = static_cast<u32>(mask), high = static_cast<u32>(mask >> 32);
  for (unsigned l = 0; l < 32; ++l) row[l] = 0 - (low >> l & 1);
  for (unsigned l = 0; l < 32; ++l) row[32 + l] = 0 - (high >> l & 1);
}

namespace {

constexpr u64 everyone = ~u64{0};

const u32* mask_row(wave& w) {
  const u64 exec = w.exec();
  if (exec != w.mask_of) {
    expand(exec, w.mask_row);
    w.mask_of = exec;
  }
  return w.mask_row;
}

void blend_by(const u32* mask, u32* d, const u32* r, unsigned rows) {
  for (unsigned k = 0; k < rows; ++k, d += lanes, r += lanes) {
    AMDGPU_LANES_APART
    for (unsigned l = 0; l < lanes; ++l) d[l] = (r[l] & mask[l]) | (d[l] & ~mask[l]);
  }
}

void fill(u32* row, u32 value) {
  for (unsigned l = 0; l < lanes; ++l) row[l] = value;
}

}  // namespace

void blend(wave& w, u32* d, const u32* r, unsigned rows) {
  if (w.exec() == w.everyone()) {
    std::memcpy(d, r, rows * lanes * 4);
  } else {
    blend_by(mask_row(w), d, r, rows);
  }
}

const u32* rows_of(const wave& w, const operand& o, u32* room) {
  if (o.where == place::vgpr) return w.v + o.index * lanes;
  if (o.type == 'q' || o.type == 'l' || o.type == 'd' || o.type == 'P') {
    const u64 value = scalar64(w, o);
    fill(room, static_cast<u32>(value));
    fill(room + lanes, static_cast<u32>(value >> 32));
  } else {
    fill(room, scalar32(w, o));
  }
  return room;
}

// ---- modifiers -----------------------------------------------------------------------------------------------------

namespace {

// The highest row of a value, and its sign bit there.
u32* sign_row(u32* rows, const operand& o) { return o.type == 'd' ? rows + lanes : rows; }
u32 sign_bit(const operand& o) { return o.type == 'h' || o.type == 'w' ? 0x8000 : 0x80000000; }

void pick_part(u32* row, part which, bool extend) {
  const unsigned n = static_cast<unsigned>(which);
  if (which == part::dword) return;
  const bool byte = which <= part::byte3;
  const unsigned shift = byte ? 8 * (n - 1) : 16 * (n - 5);
  const unsigned up = byte ? 24 : 16;
  for (unsigned l = 0; l < lanes; ++l) {
    const u32 high = row[l] >> shift << up;
    row[l] = extend ? static_cast<u32>(static_cast<i32>(high) >> up) : high >> up;
  }
}

// op_sel of 16-bit values, packed or not, and of pairs of floats.
void pick_halves(u32* rows, const operand& o, const modifiers& m, unsigned n) {
  const bool low = m.op_sel >> n & 1, high = m.op_sel_hi >> n & 1;
  if (o.type == 'h' || o.type == 'w') {
    if (low)
      for (unsigned l = 0; l < lanes; ++l) rows[l] >>= 16;
  } else if (o.type == 'p') {
    const u32 flip = (m.neg_lo >> n & 1 ? 0x8000u : 0u) | (m.neg_hi >> n & 1 ? 0x80000000u : 0u);
    for (unsigned l = 0; l < lanes; ++l)
      rows[l] = ((low ? rows[l] >> 16 : rows[l] & 0xffff) | (high ? rows[l] & 0xffff0000 : rows[l] << 16)) ^ flip;
  } else if (o.type == 'P') {
    const u32 flip_low = m.neg_lo >> n & 1 ? 0x80000000u : 0u, flip_high = m.neg_hi >> n & 1 ? 0x80000000u : 0u;
    for (unsigned l = 0; l < lanes; ++l) {
      const u32 a = rows[l], b = rows[lanes + l];
      rows[l] = (low ? b : a) ^ flip_low;
      rows[lanes + l] = (high ? b : a) ^ flip_high;
    }
  }
}

void flush_denormals(u32* row) {
  for (unsigned l = 0; l < lanes; ++l) row[l] = row[l] & 0x7f800000 ? row[l] : row[l] & 0x80000000;
}

bool flushes(const wave& w) { return (w.mode >> 4 & 3) != 3; }

// The lane that lane l reads by DPP_CTRL; -1: none.
int dpp_lane(unsigned control, int l) {
  const int row = l & ~15, in_row = l & 15;
  if (control < 0x100) return (l & ~3) | static_cast<int>(control >> (2 * (l & 3)) & 3);  // quad_perm
  const int by = static_cast<int>(control & 15);
  switch (control & ~15u) {
    case 0x100: return in_row + by < 16 ? l + by : -1;  // row_shl
    case 0x110: return in_row - by >= 0 ? l - by : -1;  // row_shr
    case 0x120: return row | ((in_row - by) & 15);      // row_ror
    case 0x150: return row | by;                        // row_newbcast, gfx1100's row_share
    case 0x160: return row | (in_row ^ by);             // gfx1100's row_xmask
    default: break;
  }
  switch (control) {
    case 0x130: return l + 1 < 64 ? l + 1 : -1;   // wave_shl
    case 0x134: return (l + 1) & 63;              // wave_rol
    case 0x138: return l - 1;                     // wave_shr
    case 0x13c: return (l - 1) & 63;              // wave_ror
    case 0x140: return row | (15 - in_row);       // row_mirror
    case 0x141: return (l & ~7) | (7 - (l & 7));  // row_half_mirror
    case 0x142: return row ? row - 1 : -1;        // row_bcast:15
    case 0x143: return l >= 32 ? 31 : -1;         // row_bcast:31
    default: return -1;
  }
}

// Moves lanes of source 0; returns the lanes that may be written.
u64 move_lanes(const wave& w, const modifiers& m, u32* rows, unsigned dwords) {
  const u64 exec = w.exec();
  u64 written = 0;
  u32 from[2 * lanes];
  std::memcpy(from, rows, dwords * lanes * 4);
  for (int l = 0; l < static_cast<int>(lanes); ++l) {
    int source = m.dpp8 ? (l & ~7) | static_cast<int>(m.dpp_ctrl >> (3 * (l & 7)) & 7) : dpp_lane(m.dpp_ctrl, l);
    if (source >= 0 && !(exec >> source & 1) && !m.fetch_inactive) source = -1;
    const bool allowed = (m.row_mask >> (l / 16) & 1) && (m.bank_mask >> (l % 16 / 4) & 1);
    if (allowed && (source >= 0 || m.bound_ctrl)) written |= u64{1} << l;
    for (unsigned k = 0; k < dwords; ++k)
      rows[k * lanes + static_cast<unsigned>(l)] = source < 0 ? 0 : from[k * lanes + static_cast<unsigned>(source)];
  }
  return written;
}

template <class T, class Bits>
void scale_and_clamp(u32* rows, const modifiers& m) {
  static constexpr float factors[] = {1, 2, 4, 0.5f};
  for (unsigned l = 0; l < lanes; ++l) {
    T x = lane<T>(rows, l) * static_cast<T>(factors[m.omod]);
    if (m.clamp) x = x > T(0) ? (x < T(1) ? x : T(1)) : T(0);  // a NaN becomes 0, as DX10_CLAMP has it
    put(rows, l, x);
  }
}

// Puts the result's low part into the destination's chosen part (SDWA), the rest as dst_unused tells.
void place_part(u32* r, const u32* d, const modifiers& m) {
  if (m.dst_sel == part::dword) return;
  const unsigned n = static_cast<unsigned>(m.dst_sel);
  const bool byte = m.dst_sel <= part::byte3;
  const unsigned shift = byte ? 8 * (n - 1) : 16 * (n - 5);
  const u32 ones = byte ? 0xff : 0xffff;
  for (unsigned l = 0; l < lanes; ++l) {
    const u32 value = r[l] & ones;
    if (m.rest == modifiers::unused::preserve) {
      r[l] = (d[l] & ~(ones << shift)) | value << shift;
    } else if (m.rest == modifiers::unused::sext) {
      const u32 up = byte ? 24 : 16;
      r[l] = static_cast<u32>(static_cast<i32>(value << up) >> up) << shift;
    } else {
      r[l] = value << shift;
    }
  }
}

// A VGPR number moved by M0, if the indexing mode asks for it: bit 0 to 2 for sources, 3 for the destination.
operand indexed(const wave& w, const operand& o, unsigned bit) {
  operand moved = o;
  const u32 m0 = w.s[reg::m0];
  if (w.index_on && o.where == place::vgpr && m0 >> (12 + bit) & 1)
    moved.index = static_cast<std::uint16_t>(std::min<u32>(o.index + (m0 & 0xff), 511 - o.dwords));
  return moved;
}

struct prepared {
  alignas(64) u32 room[3][2 * lanes];
  const u32* rows[3] = {nullptr, nullptr, nullptr};
  u64 mask = 0, written = everyone;
};

void prepare(wave& w, const operation& o, prepared& p) {
  const modifiers& m = o.mods;
  for (unsigned i = 0; i < o.n_src && i < 3; ++i) {
    if (o.src[i].type == 'm') {
      p.mask = scalar_mask(w, o.src[i]);
      continue;
    }
    const operand s = indexed(w, o.src[i], i);
    const unsigned dwords = std::strchr("qldP", s.type) ? 2 : 1;
    u32* const rows = p.room[i];
    const u32* const from = rows_of(w, s, rows);
    if (from != rows) std::memcpy(rows, from, dwords * lanes * 4);
    if (m.dpp && i == 0) p.written = move_lanes(w, m, rows, dwords);
    if (m.sdwa) pick_part(rows, s.which, s.extend);
    if (m.has_op_sel) pick_halves(rows, s, m, i);
    if (s.type == 'f' && flushes(w)) flush_denormals(rows);
    u32* const top = sign_row(rows, s);
    const u32 bit = sign_bit(s);
    if (s.absolute)
      for (unsigned l = 0; l < lanes; ++l) top[l] &= ~bit;
    if (s.negate)
      for (unsigned l = 0; l < lanes; ++l) top[l] ^= bit;
    p.rows[i] = rows;
  }
  if (o.src[3].type == 'm') p.mask = scalar_mask(w, o.src[3]);
}

void finish(wave& w, const operation& o, u32* r, u64 written) {
  const modifiers& m = o.mods;
  const operand dst = indexed(w, o.dst, 3);
  u32* const d = w.rows(dst.index);
  if (m.omod || m.clamp) {
    switch (o.dst.type) {
      case 'f': scale_and_clamp<float, u32>(r, m); break;
      case 'P': scale_and_clamp<float, u32>(r, m), scale_and_clamp<float, u32>(r + lanes, m); break;
      case 'd': scale_and_clamp<double, u64>(r, m); break;
      case 'h': scale_and_clamp<half, u16>(r, m); break;
      default: break;  // the decoder refuses others
    }
  }
  if (o.dst.type == 'f' && flushes(w)) flush_denormals(r);
  if (m.sdwa) place_part(r, d, m);
  if (m.has_op_sel && (o.dst.type == 'h' || o.dst.type == 'w'))
    for (unsigned l = 0; l < lanes; ++l)
      r[l] = m.op_sel >> 3 & 1 ? (d[l] & 0xffff) | r[l] << 16 : (d[l] & 0xffff0000) | (r[l] & 0xffff);
  alignas(64) u32 mask[lanes];
  expand(w.exec() & written, mask);
  blend_by(mask, d, r, o.dst.dwords);
}

bool needs_care(const wave& w, const operation& o) { return !o.plain || w.index_on || flushes(w); }

void vop_with_care(wave& w, const operation& o) {
  prepared p;
  prepare(w, o, p);
  alignas(64) u32 r[2 * lanes];
  o.lanes_do(r, p.rows[0], p.rows[1], p.rows[2], 0);
  finish(w, o, r, p.written);
}

}  // namespace

void vop(wave& w, const operation& o) {
  if (needs_care(w, o)) return vop_with_care(w, o);
  const u64 exec = w.exec();
  if (exec == 0) return;
  alignas(64) u32 room[3][2 * lanes];
  const u32* s[3];
  for (unsigned i = 0; i < 3; ++i) s[i] = i < o.n_src ? rows_of(w, o.src[i], room[i]) : nullptr;
  u32* const d = w.rows(o.dst.index);
  if (exec == w.everyone()) {
    o.lanes_do(d, s[0], s[1], s[2], 0);
    return;
  }
  alignas(64) u32 r[2 * lanes];
  o.lanes_do(r, s[0], s[1], s[2], 0);
  blend_by(mask_row(w), d, r, o.dst.dwords);
}

void vop_mask(wave& w, const operation& o) {
  prepared p;
  const u64 exec = w.exec();
  alignas(64) u32 r[2 * lanes];
  const bool care = needs_care(w, o);
  if (care) {
    prepare(w, o, p);
  } else {
    for (unsigned i = 0; i < o.n_src; ++i) {
      if (o.src[i].type == 'm') {
        p.mask = scalar_mask(w, o.src[i]);
      } else {
        p.rows[i] = rows_of(w, o.src[i], p.room[i]);
      }
    }
    if (o.src[3].type == 'm') p.mask = scalar_mask(w, o.src[3]);
  }
  const u64 out = o.lanes_do(r, p.rows[0], p.rows[1], p.rows[2], p.mask) & exec & p.written;
  if (o.dst.type == 'm') {
    w.set_mask(o.dst.index, out);
    return;
  }
  if (care) {
    finish(w, o, r, p.written);
  } else {
    blend(w, w.rows(o.dst.index), r, o.dst.dwords);
  }
  if (o.dst2.type == 'm' && o.dst2.where == place::sgpr) w.set_mask(o.dst2.index, out);
}

void vop_compare_exec(wave& w, const operation& o) {
  vop_mask(w, o);
  w.set_mask(reg::exec, w.mask(o.dst.index));
}

}  // namespace amdgpu
