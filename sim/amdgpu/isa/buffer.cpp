// SPDX-License-Identifier: MIT
// MUBUF: buffers described by four SGPRs (MI200 ISA, chapter 8 and 12.14). Compiled code uses them for private memory,
// swizzled by lane; other buffers are linear. The cache instructions have the same encoding.

#include "amdgpu/isa/narrow.hpp"
#include "amdgpu/isa/scratch.hpp"
#include "amdgpu/isa/sites.hpp"
#include "amdgpu/isa/valu.hpp"

namespace amdgpu {
namespace {

// MI200 ISA 8.1.8, "Buffer Resource Descriptor".
struct resource {
  u64 base;
  u32 stride, records, soffset;
  bool swizzled, by_lane;
};

resource described(const wave& w, const operand& srsrc, const operand& soffset) {
  const u32* const s = &w.s[srsrc.index];
  return {s[0] | u64{s[1] & 0xffff} << 32, s[1] >> 16 & 0x3fff,  s[2], scalar32(w, soffset),
          (s[1] >> 31 & 1) != 0,           (s[3] >> 23 & 1) != 0};
}

// Offsets without the base: `index` is what idxen adds in records.
void offsets(const wave& w, const operation& o, const operand& vaddr, u32* offset, u32* index) {
  const u32* row = vaddr.where == place::vgpr ? w.v + vaddr.index * lanes : nullptr;
  for (unsigned l = 0; l < lanes; ++l) index[l] = o.idxen && row ? row[l] : 0;
  if (o.idxen && row) row += lanes;
  for (unsigned l = 0; l < lanes; ++l) offset[l] = static_cast<u32>(o.offset) + (o.offen && row ? row[l] : 0);
}

// Addresses of a linear buffer; returns the lanes that are in range. A lane out of range reads 0 and stores nothing.
u64 linear(const wave& w, const operation& o, const resource& r, const u32* offset, const u32* index, u64* out) {
  u64 inside = 0;
  for (unsigned l = 0; l < lanes; ++l) {
    const u64 record = u64{index[l]} + (r.by_lane ? l : 0);
    const u64 at = record * r.stride + offset[l];
    const bool fits = r.stride ? record < r.records : at + o.width <= r.records;
    inside |= static_cast<u64>(fits) << l;
    out[l] = r.base + r.soffset + at;
  }
  return inside & w.exec();
}

bool load_rows(wave& w, const operation& o, u32* data) {
  u32 offset[lanes], index[lanes];
  offsets(w, o, o.src[0], offset, index);
  const resource r = described(w, o.src[1], o.src[2]);
  if (r.swizzled && r.by_lane) return scratch_load(w, o, r.base + r.soffset, offset, w.exec(), o.width, data);
  u64 address[lanes];
  const u64 inside = linear(w, o, r, offset, index, address);
  for (const unsigned lane : active_lanes(w.exec() & ~inside))
    for (unsigned k = 0; k < (o.width + 3u) / 4; ++k) data[k * lanes + lane] = 0;
  refusal no;
  const access a{address, inside, o.width, access_kind::global, o.scope, w.of, w.number, w.issued, false, o.width >= 4};
  if (w.of->memory->load(a, data, no)) return true;
  stop(w, o, no, o.width);
  return false;
}

void load(wave& w, const operation& o) {
  if (w.exec() == 0) return;
  load_filled(w, o, [&](u32* d) { return load_rows(w, o, d); });
}

void store(wave& w, const operation& o) {
  if (w.exec() == 0) return;
  u32 offset[lanes], index[lanes], high[lanes];
  const u32* const data = stored_rows(w, o, o.src[0], high);
  offsets(w, o, o.src[1], offset, index);
  const resource r = described(w, o.src[2], o.src[3]);
  if (r.swizzled && r.by_lane) {
    scratch_store(w, o, r.base + r.soffset, offset, w.exec(), o.width, data);
    return;
  }
  u64 address[lanes];
  const u64 inside = linear(w, o, r, offset, index, address);
  refusal no;
  const access a{address, inside, o.width, access_kind::global, o.scope, w.of, w.number, w.issued, false, o.width >= 4};
  if (!w.of->memory->store(a, data, no)) stop(w, o, no, o.width);
}

void atomic(wave& w, const operation& o) {
  if (w.exec() == 0) return;
  u32 offset[lanes], index[lanes];
  offsets(w, o, o.src[1], offset, index);
  const resource r = described(w, o.src[2], o.src[3]);
  if (r.swizzled) {
    stop(w, o, fault::kind::memory, "an atomic on private memory");
    return;
  }
  u64 address[lanes];
  const u64 inside = linear(w, o, r, offset, index, address);
  const auto op = static_cast<atomic_op>(o.variant);
  u32* const data = w.rows(o.src[0].index);
  u32 old[2 * lanes] = {};
  refusal no;
  const access a{address, inside, o.width, access_kind::global, o.scope, w.of, w.number, w.issued, false, o.width >= 4};
  if (!w.of->memory->atomic(a, op, data, op == atomic_op::cmpswap ? data + o.width / 4 * lanes : nullptr, old, no))
    return stop(w, o, no, o.width);
  if (o.scope.glc) blend(w, data, old, o.width / 4);
}

// gfx942 names a scope in the bits sc0 and sc1: both are the system's, sc1 alone is the agent's, for which an L2 that
// is all of a GPU does nothing (LLVM AMDGPUUsage, "Memory Model GFX942").
bool has_sc0(const operation& o) { return (o.raw[0] >> 14 & 1) != 0; }
bool has_sc1(const operation& o) { return (o.raw[0] >> 15 & 1) != 0; }
bool beyond_l2(const wave& w, const operation& o) {
  return w.of->how.target != target::gfx942 || (has_sc1(o) && (has_sc0(o) || w.of->how.xccs > 1));
}
void writeback(wave& w, const operation& o) {
  if (!beyond_l2(w, o)) return;
  w.of->memory->writeback(w.number, o.variant == k_unwaited ? ~std::uint64_t{0} : w.issued);
}
void invalidate(wave& w, const operation&) { w.of->memory->invalidate(); }
// gfx1100's.
void invalidate_gl0(wave& w, const operation&) { w.of->memory->invalidate_l0(w.number); }
void invalidate_gl1(wave& w, const operation&) { w.of->memory->invalidate_l1(); }
void invalidate_l1(wave& w, const operation&) { w.of->memory->invalidate_vector_cache(); }
// gfx942's: the L1 from agent scope on, the L2 where it is not all of that scope.
void invalidate_by_scope(wave& w, const operation& o) {
  if (has_sc1(o)) w.of->memory->invalidate_vector_cache();
  if (beyond_l2(w, o)) w.of->memory->invalidate();
}

#define ATOMIC(name, op)                                                      \
  row("buffer_atomic_" name, "=iiii", atomic, nullptr, as(atomic_op::op), 4), \
      row("buffer_atomic_" name "_x2", "=iiii", atomic, nullptr, as(atomic_op::op), 8)

constexpr row rows[] = {
    AMDGPU_LOADS("buffer", "i=iii", load),
    AMDGPU_STORES("buffer", "=iiii", store),
    ATOMICS_OF_INTEGERS(ATOMIC),
    {"buffer_wbl2", "*", writeback},
    {"buffer_invl2", "*", invalidate},
    {"buffer_inv", "*", invalidate_by_scope},
    {"buffer_gl0_inv", "*", invalidate_gl0},
    {"buffer_gl1_inv", "*", invalidate_gl1},
    {"buffer_wbinvl1", "*", invalidate_l1},
    {"buffer_wbinvl1_vol", "*", invalidate_l1},
};

}  // namespace

table buffer_rows() { return rows; }

}  // namespace amdgpu
