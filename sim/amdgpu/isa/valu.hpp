// SPDX-License-Identifier: MIT
// How VALU instructions are written down: as an expression per lane, which the compiler turns into loops over rows.
// EXEC, modifiers, SDWA and DPP are not the expression's concern: `vop` prepares its sources and blends its result.
#pragma once

#include "amdgpu/isa/wave.hpp"
#include "amdgpu/memory/half.hpp"

// Before a loop over lanes: no lane reads what another writes.
#if defined(__clang__)
#define AMDGPU_LANES_APART _Pragma("clang loop vectorize(assume_safety)")
#else
#define AMDGPU_LANES_APART _Pragma("GCC ivdep")
#endif

namespace amdgpu {

using u16 = std::uint16_t;
using i16 = std::int16_t;

void vop(wave& w, const operation& o);               // no lane mask goes in or out
void vop_mask(wave& w, const operation& o);          // carry, select, compare
void vop_compare_exec(wave& w, const operation& o);  // v_cmpx: the mask also goes to EXEC

// A bit per lane whose dword in ROW has its highest bit set.
u64 collect(const u32* row);
// A row of 0 and ~0.
void expand(u64 mask, u32* row);
// Rows of a source as it is, for handlers of their own: the register's, or ROOM (of two rows) filled.
const u32* rows_of(const wave& w, const operand& o, u32* room);
// Writes rows where EXEC allows.
void blend(wave& w, u32* d, const u32* r, unsigned rows);

inline u64 wide(const u32* rows, unsigned l) { return rows[l] | u64{rows[lanes + l]} << 32; }
inline void put(u32* d, unsigned l, u32 x) { d[l] = x; }
inline void put(u32* d, unsigned l, i32 x) { d[l] = static_cast<u32>(x); }
inline void put(u32* d, unsigned l, float x) { d[l] = std::bit_cast<u32>(x); }
inline void put(u32* d, unsigned l, u16 x) { d[l] = x; }
inline void put(u32* d, unsigned l, i16 x) { d[l] = static_cast<u16>(x); }
inline void put(u32* d, unsigned l, half x) { d[l] = x.bits; }
inline void put(u32* d, unsigned l, u64 x) {
  d[l] = static_cast<u32>(x);
  d[lanes + l] = static_cast<u32>(x >> 32);
}
inline void put(u32* d, unsigned l, i64 x) { put(d, l, static_cast<u64>(x)); }
inline void put(u32* d, unsigned l, double x) { put(d, l, std::bit_cast<u64>(x)); }

template <class T>
T lane(const u32* rows, unsigned l) {
  if constexpr (sizeof(T) == 8) {
    return std::bit_cast<T>(wide(rows, l));
  } else if constexpr (sizeof(T) == 4) {
    return std::bit_cast<T>(rows[l]);
  } else {
    return std::bit_cast<T>(static_cast<u16>(rows[l]));
  }
}

// Lane functions of one, two and three sources: f gives the result, whose type tells how many rows it has.
template <class A, auto f>
u64 each(u32* d, const u32* a, const u32*, const u32*, u64) {
  AMDGPU_LANES_APART
  for (unsigned l = 0; l < lanes; ++l) put(d, l, f(lane<A>(a, l)));
  return 0;
}
template <class A, class B, auto f>
u64 each(u32* d, const u32* a, const u32* b, const u32*, u64) {
  AMDGPU_LANES_APART
  for (unsigned l = 0; l < lanes; ++l) put(d, l, f(lane<A>(a, l), lane<B>(b, l)));
  return 0;
}
template <class A, class B, class C, auto f>
u64 each(u32* d, const u32* a, const u32* b, const u32* c, u64) {
  AMDGPU_LANES_APART
  for (unsigned l = 0; l < lanes; ++l) put(d, l, f(lane<A>(a, l), lane<B>(b, l), lane<C>(c, l)));
  return 0;
}
// A comparison: its mask.
template <class A, class B, auto f>
u64 compared(u32*, const u32* a, const u32* b, const u32*, u64) {
  alignas(64) u32 row[lanes];
  AMDGPU_LANES_APART
  for (unsigned l = 0; l < lanes; ++l) row[l] = f(lane<A>(a, l), lane<B>(b, l)) ? ~u32{0} : 0;
  return collect(row);
}

}  // namespace amdgpu
