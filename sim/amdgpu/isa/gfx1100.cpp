// SPDX-License-Identifier: MIT
// Instructions that gfx1100 has and gfx90a has not (RDNA3 ISA, chapter 16 "Instructions"). The other tables have those
// of both.

#include "amdgpu/isa/clock.hpp"
#include "amdgpu/isa/lds.hpp"
#include "amdgpu/isa/valu.hpp"

namespace amdgpu {
namespace {

// ---- scalar --------------------------------------------------------------------------------------------------------

void nothing(wave&, const operation&) {}

void pack_high_low(wave& w, const operation& o) {
  w.s[o.dst.index] = scalar32(w, o.src[0]) >> 16 | scalar32(w, o.src[1]) << 16;
}

// A message whose reply comes into SGPRs; its number stands in the encoding where a source would be (RDNA3 ISA,
// "S_SENDMSG_RTN_B32"; the numbers are LLVM AMDGPUUsage's).
void message_with_reply(wave& w, const operation& o) {
  constexpr u32 get_realtime = 131;
  if ((o.raw[0] & 0xff) != get_realtime) {
    stop(w, o, fault::kind::unknown, "of messages with a reply, MSG_RTN_GET_REALTIME alone is interpreted");
    return;
  }
  const u64 now = realtime_ticks();
  o.variant ? w.set64(o.dst.index, now) : void(w.s[o.dst.index] = static_cast<u32>(now));
}

// ---- lanes ---------------------------------------------------------------------------------------------------------

// Each lane reads one of its row of 16, or of the other row of its 32 lanes; two SGPRs hold a number for each of 16
// lanes. op_sel has FI, which reads lanes that are off too, and BC, by which no lane reads as 0.
template <bool other_row>
void permlane16(wave& w, const operation& o) {
  const u64 exec = w.exec();
  const u32* const from = w.rows(o.src[0].index);
  const u64 picks = scalar32(w, o.src[1]) | u64{scalar32(w, o.src[2])} << 32;
  const bool inactive_too = o.mods.op_sel & 1, zero = o.mods.op_sel >> 1 & 1;
  u32* const d = w.rows(o.dst.index);
  alignas(64) u32 r[lanes];
  for (unsigned l = 0; l < lanes; ++l) {
    const unsigned row = (l & ~15u) ^ (other_row ? 16 : 0);
    const unsigned source = row | (picks >> (4 * (l & 15)) & 15);
    r[l] = inactive_too || exec >> source & 1 ? from[source] : zero ? 0 : d[l];
  }
  blend(w, d, r, 1);
}

// The halves of a wave of 64 change places; a wave of 32 has none.
void permlane64(wave& w, const operation& o) {
  const u32* const from = w.rows(o.src[0].index);
  alignas(64) u32 r[lanes];
  for (unsigned l = 0; l < lanes; ++l) r[l] = from[w.wave32 ? l : l ^ 32];
  blend(w, w.rows(o.dst.index), r, 1);
}

// M0 is added to the number of a VGPR (RDNA3 ISA, "V_MOVRELD_B32"); one past those that there are is refused.
bool moved(wave& w, const operation& o, operand& which) {
  const u64 n = u64{which.index} + w.s[reg::m0];
  if (n < reg::agpr0) {
    which.index = static_cast<std::uint16_t>(n);
    return true;
  }
  stop(w, o, fault::kind::illegal, "M0 leads past the last VGPR");
  return false;
}

template <bool source, bool destination>
void move_by_m0(wave& w, const operation& o) {
  operand from = o.src[0], to = o.dst;
  alignas(64) u32 room[lanes];
  if ((source && !moved(w, o, from)) || (destination && !moved(w, o, to))) return;
  blend(w, w.rows(to.index), rows_of(w, from, room), 1);
}

// ---- vector --------------------------------------------------------------------------------------------------------

u64 selected_half(u32* d, const u32* a, const u32* b, const u32*, u64 mask) {
  for (unsigned l = 0; l < lanes; ++l) d[l] = (mask >> l & 1 ? b[l] : a[l]) & 0xffff;
  return 0;
}

float lesser(float a, float b) { return std::fmin(a, b); }
float greater(float a, float b) { return std::fmax(a, b); }
template <class T>
T lesser(T a, T b) {
  return a < b ? a : b;
}
template <class T>
T greater(T a, T b) {
  return a < b ? b : a;
}

#define W2(name, f) row(name, "w=ww", vop, each<u16, u16, [](u16 a, u16 b) -> u16 { return static_cast<u16>(f); }>)
#define T3(name, form, T, f) row(name, form, vop, each<T, T, T, [](T a, T b, T c) -> T { return (f); }>)

// ---- LDS -----------------------------------------------------------------------------------------------------------

// ds_cmpstore address, new, compared: gfx90a's ds_cmpst has them the other way round.
void compare_store(wave& w, const operation& o) {
  u32 at[lanes], room[2 * lanes];
  const u32* const row = w.rows(o.src[0].index);
  for (unsigned l = 0; l < lanes; ++l) at[l] = row[l] + o.immediate;
  u32* const old = o.dst.where == place::vgpr ? w.rows(o.dst.index) : nullptr;
  if (lds_atomic(w, o, atomic_op::cmpswap, at, w.exec(), o.width, w.rows(o.src[1].index), w.rows(o.src[2].index),
                 old ? room : nullptr) &&
      old)
    blend(w, old, room, o.width / 4);
}

constexpr row rows[] = {
    {"s_delay_alu", "*", nothing},
    {"s_clause", "*", nothing},
    {"s_waitcnt_depctr", "*", nothing},
    {"s_wait_idle", "*", nothing},
    {"s_version", "*", nothing},
    {"s_denorm_mode", "*", nothing},
    {"s_gl1_inv", "*", nothing},
    {"s_pack_hl_b32_b16", "s=ss", pack_high_low},
    {"s_sendmsg_rtn_b32", "s=x", message_with_reply, nullptr, 0},
    {"s_sendmsg_rtn_b64", "S=x", message_with_reply, nullptr, 1},

    {"v_permlane16_b32", "i=iss", permlane16<false>},
    {"v_permlanex16_b32", "i=iss", permlane16<true>},
    {"v_permlane64_b32", "i=i", permlane64},
    {"v_movreld_b32", "i=i", move_by_m0<false, true>},
    {"v_movrels_b32", "i=i", move_by_m0<true, false>},
    {"v_movrelsd_b32", "i=i", move_by_m0<true, true>},

    {"v_xor3_b32", "i=iii", vop, each<u32, u32, u32, [](u32 a, u32 b, u32 c) -> u32 { return a ^ b ^ c; }>},
    {"v_cvt_i32_i16", "i=w", vop, each<i16, [](i16 a) -> i32 { return a; }>},
    {"v_cvt_u32_u16", "i=w", vop, each<u16, [](u16 a) -> u32 { return a; }>},
    {"v_mov_b16", "w=w", vop, each<u16, [](u16 a) -> u16 { return a; }>},
    {"v_not_b16", "w=w", vop, each<u16, [](u16 a) -> u16 { return static_cast<u16>(~a); }>},
    {"v_cndmask_b16", "w=wwm", vop_mask, selected_half},
    W2("v_and_b16", a& b),
    W2("v_or_b16", a | b),
    W2("v_xor_b16", a ^ b),
    {"v_fma_dx9_zero_f32", "f=fff", vop,
     each<float, float, float, [](float a, float b, float c) { return a == 0 || b == 0 ? c : std::fma(a, b, c); }>},
    T3("v_minmax_f32", "f=fff", float, greater(lesser(a, b), c)),
    T3("v_maxmin_f32", "f=fff", float, lesser(greater(a, b), c)),
    T3("v_minmax_i32", "i=iii", i32, greater(lesser(a, b), c)),
    T3("v_maxmin_i32", "i=iii", i32, lesser(greater(a, b), c)),
    T3("v_minmax_u32", "i=iii", u32, greater(lesser(a, b), c)),
    T3("v_maxmin_u32", "i=iii", u32, lesser(greater(a, b), c)),

    {"ds_cmpstore_b32", "=iii", compare_store, nullptr, 0, 4},
    {"ds_cmpstore_b64", "=iii", compare_store, nullptr, 0, 8},
    {"ds_cmpstore_rtn_b32", "i=iii", compare_store, nullptr, 0, 4},
    {"ds_cmpstore_rtn_b64", "i=iii", compare_store, nullptr, 0, 8},
};

}  // namespace

table gfx1100_rows() { return rows; }

}  // namespace amdgpu
