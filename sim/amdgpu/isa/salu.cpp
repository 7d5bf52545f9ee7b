// SPDX-License-Identifier: MIT
// Scalar arithmetic: SOP1, SOP2, SOPK, SOPC (MI200 ISA, chapters 5 and 12.1 to 12.4).
#include "amdgpu/isa/clock.hpp"
#include "amdgpu/isa/wave.hpp"

namespace amdgpu {
namespace {

template <class T>
T source(const wave& w, const operand& o) {
  if constexpr (sizeof(T) == 8) {
    return static_cast<T>(scalar64(w, o));
  } else {
    return static_cast<T>(scalar32(w, o));
  }
}

template <class T>
void result(wave& w, const operand& o, T value) {
  if constexpr (sizeof(T) == 8) {
    w.set64(o.index, static_cast<u64>(value));
  } else {
    w.s[o.index] = static_cast<u32>(value);
  }
}

// d = f(a, b, scc), SCC as f leaves it. D, A and B are the types of destination and sources.
template <class D, class A, class B, auto f>
void two(wave& w, const operation& o) {
  const D d = f(source<A>(w, o.src[0]), source<B>(w, o.src[1]), w.scc);
  result(w, o.dst, d);
}

// The same, and SCC tells whether the result is not zero.
template <class D, class A, class B, auto f>
void two_nz(wave& w, const operation& o) {
  const D d = f(source<A>(w, o.src[0]), source<B>(w, o.src[1]));
  result(w, o.dst, d);
  w.scc = d != 0;
}

template <class D, class A, auto f>
void one(wave& w, const operation& o) {
  result(w, o.dst, static_cast<D>(f(source<A>(w, o.src[0]))));
}

template <class D, class A, auto f>
void one_nz(wave& w, const operation& o) {
  const D d = f(source<A>(w, o.src[0]));
  result(w, o.dst, d);
  w.scc = d != 0;
}

template <class A, class B, auto f>
void compare(wave& w, const operation& o) {
  w.scc = f(source<A>(w, o.src[0]), source<B>(w, o.src[1]));
}

// ---- bits --------------------------------------------------------------------------------------------------------

template <class T>
T field(T value, u32 how) {  // s_bfe: offset in the low bits, width in 22:16
  constexpr u32 bits = sizeof(T) * 8;
  const u32 offset = how & (bits - 1);
  const u32 width = how >> 16 & 0x7f;
  if (width == 0) return 0;
  using U = std::make_unsigned_t<T>;
  if (offset + width >= bits) return static_cast<T>(value >> offset);
  const U up = static_cast<U>(value) << (bits - offset - width);
  return static_cast<T>(static_cast<T>(up) >> (bits - width));
}

u64 quads_any(u64 a) {
  u64 d = 0;
  for (unsigned i = 0; i < 16; ++i)
    if (a >> (4 * i) & 0xf) d |= u64{1} << i;
  return d;
}

u64 whole_quads(u64 a) {
  u64 d = 0;
  for (unsigned i = 0; i < 16; ++i)
    if (a >> (4 * i) & 0xf) d |= u64{0xf} << (4 * i);
  return d;
}

u64 twice_each(u32 a) {
  u64 d = 0;
  for (unsigned i = 0; i < 32; ++i)
    if (a >> i & 1) d |= u64{3} << (2 * i);
  return d;
}

template <class T>
T reversed(T a) {
  T d = 0;
  for (unsigned i = 0; i < sizeof(T) * 8; ++i) d |= (a >> i & 1) << (sizeof(T) * 8 - 1 - i);
  return d;
}

template <class T>
i32 leading_zeros(T a) {
  return a ? std::countl_zero(a) : -1;
}

template <class S>
i32 leading_sign(S a) {
  using U = std::make_unsigned_t<S>;
  const U u = static_cast<U>(a < 0 ? ~a : a);
  return u ? std::countl_zero(u) : -1;
}

// ---- EXEC --------------------------------------------------------------------------------------------------------

// T is as wide as a mask: u32 for waves of 32 lanes.
template <class T, auto f>
void saveexec(wave& w, const operation& o) {
  const T source_mask = source<T>(w, o.src[0]);
  const T was = static_cast<T>(w.get64(reg::exec));
  const T now = static_cast<T>(f(source_mask, was));
  result(w, o.dst, was);
  result(w, operand{place::sgpr, 's', 1, reg::exec}, now);
  w.scc = now != 0;
}

template <class T, auto f>
void wrexec(wave& w, const operation& o) {
  const T now = static_cast<T>(f(source<T>(w, o.src[0]), static_cast<T>(w.get64(reg::exec))));
  result(w, o.dst, now);
  result(w, operand{place::sgpr, 's', 1, reg::exec}, now);
  w.scc = now != 0;
}

// ---- constants in the instruction ----------------------------------------------------------------------------------

i32 simm(const operation& o) { return static_cast<std::int16_t>(o.immediate); }

void movk(wave& w, const operation& o) { w.s[o.dst.index] = static_cast<u32>(simm(o)); }

void cmovk(wave& w, const operation& o) {
  if (w.scc) movk(w, o);
}

void addk(wave& w, const operation& o) {
  i32 d = 0;
  w.scc = __builtin_add_overflow(static_cast<i32>(w.s[o.dst.index]), simm(o), &d);
  w.s[o.dst.index] = static_cast<u32>(d);
}

void mulk(wave& w, const operation& o) { w.s[o.dst.index] *= static_cast<u32>(simm(o)); }

template <class T, auto f>
void cmpk(wave& w, const operation& o) {
  const T k = sizeof(T) && static_cast<T>(-1) < 0 ? static_cast<T>(simm(o)) : static_cast<T>(o.immediate);
  w.scc = f(static_cast<T>(scalar32(w, o.src[0])), k);
}

void cmov32(wave& w, const operation& o) {
  if (w.scc) w.s[o.dst.index] = scalar32(w, o.src[0]);
}

void cmov64(wave& w, const operation& o) {
  if (w.scc) w.set64(o.dst.index, scalar64(w, o.src[0]));
}

// ---- hardware registers (MI200 ISA 3.4 to 3.8; numbers as in LLVM AMDGPUUsage "hwreg") -----------------------------

u32 hardware_register(const wave& w, u32 id) {
  const launch& how = w.of->how;
  const bool rdna = how.target == target::gfx1100;
  switch (id) {
    // gfx1100's: FLAT_SCR_LO and FLAT_SCR_HI, HW_ID1 and SHADER_CYCLES of 20 bits (RDNA3 ISA, "Hardware Registers")
    case 20: return rdna ? static_cast<u32>(w.scratch) : 0;
    case 21: return rdna ? static_cast<u32>(w.scratch >> 32) : 0;
    case 23: return rdna ? w.hw_id : 0;
    case 29: return rdna ? static_cast<u32>(realtime_ticks() * 10 & 0xfffff) : 0;
    case 1: return w.mode;
    case 2: return static_cast<u32>(w.scc) | (w.exec() == 0 ? 1u << 9 : 0) | (w.mask(reg::vcc) == 0 ? 1u << 10 : 0);
    case 4: return w.hw_id;
    case 6: return static_cast<u32>((w.of->lds.size() + 511) / 512) << 12;
    case 15: return static_cast<u32>(how.private_aperture >> 48) | static_cast<u32>(how.lds_aperture >> 48) << 16;
    default: return 0;
  }
}

void getreg(wave& w, const operation& o) {
  const u32 offset = o.immediate >> 6 & 31, size = (o.immediate >> 11 & 31) + 1;
  const u64 value = hardware_register(w, o.immediate & 63);
  w.s[o.dst.index] = static_cast<u32>(value >> offset & ((u64{1} << size) - 1));
}

void setreg(wave& w, const operation& o) {
  const u32 offset = o.immediate >> 6 & 31, size = (o.immediate >> 11 & 31) + 1;
  const u32 mask = static_cast<u32>(((u64{1} << size) - 1) << offset);
  if ((o.immediate & 63) != 1) return;
  w.mode = (w.mode & ~mask) | (scalar32(w, o.src[1]) << offset & mask);
  if (w.mode & 0xf) stop(w, o, fault::kind::unknown, "only rounding to nearest is interpreted");
}

// ---- indexed registers ---------------------------------------------------------------------------------------------

unsigned moved(wave& w, const operation& o, unsigned index, unsigned dwords) {
  const u64 n = u64{index} + w.s[reg::m0];
  if (n + dwords <= reg::ttmp0) return static_cast<unsigned>(n);
  stop(w, o, fault::kind::illegal, "M0 leads past the last SGPR");
  return index;
}

void movrels32(wave& w, const operation& o) { w.s[o.dst.index] = w.s[moved(w, o, o.src[0].index, 1)]; }
void movrels64(wave& w, const operation& o) { w.set64(o.dst.index, w.get64(moved(w, o, o.src[0].index, 2))); }
void movreld32(wave& w, const operation& o) { w.s[moved(w, o, o.dst.index, 1)] = scalar32(w, o.src[0]); }
void movreld64(wave& w, const operation& o) { w.set64(moved(w, o, o.dst.index, 2), scalar64(w, o.src[0])); }

void index_on(wave& w, const operation& o) {
  w.index_on = true;
  w.s[reg::m0] = (w.s[reg::m0] & 0xffff0f00) | (scalar32(w, o.src[0]) & 0xff) | (o.raw[0] >> 8 & 0xf) << 12;
}

void index_off(wave& w, const operation&) { w.index_on = false; }

void index_index(wave& w, const operation& o) {
  w.s[reg::m0] = (w.s[reg::m0] & 0xffffff00) | (scalar32(w, o.src[0]) & 0xff);
}

void index_mode(wave& w, const operation& o) { w.s[reg::m0] = (w.s[reg::m0] & 0xffff0fff) | (o.immediate & 0xf) << 12; }

template <class T>
bool flows_over_add(T a, T b, T carry, T& d) {
  T half = 0;
  const bool first = __builtin_add_overflow(a, b, &half);
  return __builtin_add_overflow(half, carry, &d) || first;
}

template <unsigned shift>
u32 shift_add(u32 a, u32 b, bool& scc) {
  const u64 sum = (u64{a} << shift) + b;
  scc = sum >> 32;
  return static_cast<u32>(sum);
}

#define TWO(name, form, D, A, B, ...) \
  row(name, form, two<D, A, B, [](A a, B b, [[maybe_unused]] bool& scc) -> D { __VA_ARGS__ }>)
#define BITS2(name, op)                                                                    \
  row(name "_b32", "s=ss", two_nz<u32, u32, u32, [](u32 a, u32 b) -> u32 { return op; }>), \
      row(name "_b64", "S=SS", two_nz<u64, u64, u64, [](u64 a, u64 b) -> u64 { return op; }>)
#define SAVE(name, op)                                                                             \
  row("s_" name "_saveexec_b64", "S=S", saveexec<u64, [](u64 a, u64 exec) -> u64 { return op; }>), \
      row("s_" name "_saveexec_b32", "s=s", saveexec<u32, [](u32 a, u32 exec) -> u32 { return op; }>)
#define WRITE(name, op)                                                                        \
  row("s_" name "_wrexec_b64", "S=S", wrexec<u64, [](u64 a, u64 exec) -> u64 { return op; }>), \
      row("s_" name "_wrexec_b32", "s=s", wrexec<u32, [](u32 a, u32 exec) -> u32 { return op; }>)
#define COMPARE(name, op)                                                                         \
  row("s_cmp_" name "_i32", "=ss", compare<i32, i32, [](i32 a, i32 b) { return (a op b); }>),     \
      row("s_cmp_" name "_u32", "=ss", compare<u32, u32, [](u32 a, u32 b) { return (a op b); }>), \
      row("s_cmpk_" name "_i32", "=sx", cmpk<i32, [](i32 a, i32 b) { return (a op b); }>),        \
      row("s_cmpk_" name "_u32", "=sx", cmpk<u32, [](u32 a, u32 b) { return (a op b); }>)

constexpr row rows[] = {
    TWO("s_add_u32", "s=ss", u32, u32, u32, u32 d; scc = __builtin_add_overflow(a, b, &d); return d;),
    TWO("s_sub_u32", "s=ss", u32, u32, u32, scc = (b > a); return a - b;),
    TWO("s_add_i32", "s=ss", i32, i32, i32, i32 d; scc = __builtin_add_overflow(a, b, &d); return d;),
    TWO("s_sub_i32", "s=ss", i32, i32, i32, i32 d; scc = __builtin_sub_overflow(a, b, &d); return d;),
    TWO("s_addc_u32", "s=ss", u32, u32, u32, u32 d; scc = flows_over_add<u32>(a, b, scc, d); return d;),
    TWO("s_subb_u32", "s=ss", u32, u32, u32, const u32 d = a - b - scc; scc = (u64{b} + scc > a); return d;),
    TWO("s_min_i32", "s=ss", i32, i32, i32, scc = a < b; return scc ? a : b;),
    TWO("s_min_u32", "s=ss", u32, u32, u32, scc = a < b; return scc ? a : b;),
    TWO("s_max_i32", "s=ss", i32, i32, i32, scc = (a > b); return scc ? a : b;),
    TWO("s_max_u32", "s=ss", u32, u32, u32, scc = (a > b); return scc ? a : b;),
    TWO("s_cselect_b32", "s=ss", u32, u32, u32, return scc ? a : b;),
    TWO("s_cselect_b64", "S=SS", u64, u64, u64, return scc ? a : b;),
    BITS2("s_and", a& b),
    BITS2("s_or", a | b),
    BITS2("s_xor", a ^ b),
    BITS2("s_andn2", a & ~b),
    BITS2("s_orn2", a | ~b),
    BITS2("s_nand", ~(a& b)),
    BITS2("s_nor", ~(a | b)),
    BITS2("s_xnor", ~(a ^ b)),
    {"s_lshl_b32", "s=ss", two_nz<u32, u32, u32, [](u32 a, u32 b) -> u32 { return a << (b & 31); }>},
    {"s_lshl_b64", "S=Ss", two_nz<u64, u64, u32, [](u64 a, u32 b) -> u64 { return a << (b & 63); }>},
    {"s_lshr_b32", "s=ss", two_nz<u32, u32, u32, [](u32 a, u32 b) -> u32 { return (a >> (b & 31)); }>},
    {"s_lshr_b64", "S=Ss", two_nz<u64, u64, u32, [](u64 a, u32 b) -> u64 { return (a >> (b & 63)); }>},
    {"s_ashr_i32", "s=ss", two_nz<i32, i32, u32, [](i32 a, u32 b) -> i32 { return (a >> (b & 31)); }>},
    {"s_ashr_i64", "S=ls", two_nz<i64, i64, u32, [](i64 a, u32 b) -> i64 { return (a >> (b & 63)); }>},
    TWO("s_bfm_b32", "s=ss", u32, u32, u32, return ((1u << (a & 31)) - 1) << (b & 31);),
    TWO("s_bfm_b64", "S=ss", u64, u32, u32, return ((u64{1} << (a & 63)) - 1) << (b & 63);),
    TWO("s_mul_i32", "s=ss", u32, u32, u32, return a * b;),
    TWO("s_mul_hi_u32", "s=ss", u32, u32, u32, return static_cast<u32>((u64{a} * b >> 32));),
    TWO("s_mul_hi_i32", "s=ss", i32, i32, i32, return static_cast<i32>((i64{a} * b >> 32));),
    {"s_bfe_u32", "s=ss", two_nz<u32, u32, u32, [](u32 a, u32 b) { return field<u32>(a, b); }>},
    {"s_bfe_i32", "s=ss", two_nz<i32, i32, u32, [](i32 a, u32 b) { return field<i32>(a, b); }>},
    {"s_bfe_u64", "S=Ss", two_nz<u64, u64, u32, [](u64 a, u32 b) { return field<u64>(a, b); }>},
    {"s_bfe_i64", "S=ls", two_nz<i64, i64, u32, [](i64 a, u32 b) { return field<i64>(a, b); }>},
    {"s_absdiff_i32", "s=ss",
     two_nz<u32, u32, u32,
            [](u32 a, u32 b) -> u32 {
              const u32 d = a - b;
              return static_cast<i32>(d) < 0 ? 0 - d : d;
            }>},
    TWO("s_lshl1_add_u32", "s=ss", u32, u32, u32, return shift_add<1>(a, b, scc);),
    TWO("s_lshl2_add_u32", "s=ss", u32, u32, u32, return shift_add<2>(a, b, scc);),
    TWO("s_lshl3_add_u32", "s=ss", u32, u32, u32, return shift_add<3>(a, b, scc);),
    TWO("s_lshl4_add_u32", "s=ss", u32, u32, u32, return shift_add<4>(a, b, scc);),
    TWO("s_pack_ll_b32_b16", "s=ss", u32, u32, u32, return (a & 0xffff) | b << 16;),
    TWO("s_pack_lh_b32_b16", "s=ss", u32, u32, u32, return (a & 0xffff) | (b & 0xffff0000);),
    TWO("s_pack_hh_b32_b16", "s=ss", u32, u32, u32, return (a >> 16 | (b & 0xffff0000));),

    {"s_mov_b32", "s=s", one<u32, u32, [](u32 a) { return a; }>},
    {"s_mov_b64", "S=S", one<u64, u64, [](u64 a) { return a; }>},
    {"s_cmov_b32", "s=s", cmov32},
    {"s_cmov_b64", "S=S", cmov64},
    {"s_not_b32", "s=s", one_nz<u32, u32, [](u32 a) -> u32 { return ~a; }>},
    {"s_not_b64", "S=S", one_nz<u64, u64, [](u64 a) -> u64 { return ~a; }>},
    {"s_wqm_b32", "s=s", one_nz<u32, u32, [](u32 a) { return static_cast<u32>(whole_quads(a)); }>},
    {"s_wqm_b64", "S=S", one_nz<u64, u64, [](u64 a) { return whole_quads(a); }>},
    {"s_brev_b32", "s=s", one<u32, u32, [](u32 a) { return reversed(a); }>},
    {"s_brev_b64", "S=S", one<u64, u64, [](u64 a) { return reversed(a); }>},
    {"s_bcnt0_i32_b32", "s=s", one_nz<i32, u32, [](u32 a) { return std::popcount(~a); }>},
    {"s_bcnt0_i32_b64", "s=S", one_nz<i32, u64, [](u64 a) { return std::popcount(~a); }>},
    {"s_bcnt1_i32_b32", "s=s", one_nz<i32, u32, [](u32 a) { return std::popcount(a); }>},
    {"s_bcnt1_i32_b64", "s=S", one_nz<i32, u64, [](u64 a) { return std::popcount(a); }>},
    {"s_ff0_i32_b32", "s=s", one<i32, u32, [](u32 a) { return ~a ? std::countr_one(a) : -1; }>},
    {"s_ff0_i32_b64", "s=S", one<i32, u64, [](u64 a) { return ~a ? std::countr_one(a) : -1; }>},
    {"s_ff1_i32_b32", "s=s", one<i32, u32, [](u32 a) { return a ? std::countr_zero(a) : -1; }>},
    {"s_ff1_i32_b64", "s=S", one<i32, u64, [](u64 a) { return a ? std::countr_zero(a) : -1; }>},
    {"s_flbit_i32_b32", "s=s", one<i32, u32, [](u32 a) { return leading_zeros(a); }>},
    {"s_flbit_i32_b64", "s=S", one<i32, u64, [](u64 a) { return leading_zeros(a); }>},
    {"s_flbit_i32", "s=s", one<i32, i32, [](i32 a) { return leading_sign(a); }>},
    {"s_flbit_i32_i64", "s=S", one<i32, i64, [](i64 a) { return leading_sign(a); }>},
    {"s_sext_i32_i8", "s=s", one<i32, u32, [](u32 a) { return static_cast<std::int8_t>(a); }>},
    {"s_sext_i32_i16", "s=s", one<i32, u32, [](u32 a) { return static_cast<std::int16_t>(a); }>},
    {"s_abs_i32", "s=s", one_nz<u32, u32, [](u32 a) -> u32 { return static_cast<i32>(a) < 0 ? 0 - a : a; }>},
    {"s_quadmask_b32", "s=s", one_nz<u32, u32, [](u32 a) { return static_cast<u32>(quads_any(a)); }>},
    {"s_quadmask_b64", "S=S", one_nz<u64, u64, [](u64 a) { return quads_any(a); }>},
    {"s_bitreplicate_b64_b32", "S=s", one<u64, u32, [](u32 a) { return twice_each(a); }>},
    {"s_bitset0_b32", "s=s+", two<u32, u32, u32, [](u32 a, u32 d, bool&) -> u32 { return d & ~(1u << (a & 31)); }>},
    {"s_bitset1_b32", "s=s+", two<u32, u32, u32, [](u32 a, u32 d, bool&) -> u32 { return d | 1u << (a & 31); }>},
    {"s_bitset0_b64", "S=s+", two<u64, u32, u64, [](u32 a, u64 d, bool&) -> u64 { return d & ~(u64{1} << (a & 63)); }>},
    {"s_bitset1_b64", "S=s+", two<u64, u32, u64, [](u32 a, u64 d, bool&) -> u64 { return d | u64{1} << (a & 63); }>},

    SAVE("and", a& exec),
    SAVE("or", a | exec),
    SAVE("xor", a ^ exec),
    SAVE("andn2", a & ~exec),
    SAVE("orn2", a | ~exec),
    SAVE("nand", ~(a& exec)),
    SAVE("nor", ~(a | exec)),
    SAVE("xnor", ~(a ^ exec)),
    SAVE("andn1", ~a& exec),
    SAVE("orn1", ~a | exec),
    WRITE("andn1", ~a& exec),
    WRITE("andn2", a & ~exec),

    COMPARE("eq", ==),
    COMPARE("lg", !=),
    COMPARE("gt", >),
    COMPARE("ge", >=),
    COMPARE("lt", <),
    COMPARE("le", <=),
    {"s_cmp_eq_u64", "=SS", compare<u64, u64, [](u64 a, u64 b) { return a == b; }>},
    {"s_cmp_lg_u64", "=SS", compare<u64, u64, [](u64 a, u64 b) { return a != b; }>},
    {"s_bitcmp0_b32", "=ss", compare<u32, u32, [](u32 a, u32 b) { return !(a >> (b & 31) & 1); }>},
    {"s_bitcmp1_b32", "=ss", compare<u32, u32, [](u32 a, u32 b) { return ((a >> (b & 31) & 1) != 0); }>},
    {"s_bitcmp0_b64", "=Ss", compare<u64, u32, [](u64 a, u32 b) { return !(a >> (b & 63) & 1); }>},
    {"s_bitcmp1_b64", "=Ss", compare<u64, u32, [](u64 a, u32 b) { return (a >> (b & 63) & 1) != 0; }>},

    {"s_movk_i32", "s=x", movk},
    {"s_cmovk_i32", "s=x", cmovk},
    {"s_addk_i32", "s=x", addk},
    {"s_mulk_i32", "s=x", mulk},
    {"s_getreg_b32", "s=x", getreg},
    {"s_setreg_b32", "=xs", setreg},
    {"s_setreg_imm32_b32", "=xs", setreg},
    {"s_movrels_b32", "s=s", movrels32},
    {"s_movrels_b64", "S=S", movrels64},
    {"s_movreld_b32", "s=s", movreld32},
    {"s_movreld_b64", "S=S", movreld64},
    {"s_set_gpr_idx_on", "=sx", index_on},
    {"s_set_gpr_idx_off", "*", index_off},
    {"s_set_gpr_idx_idx", "=s", index_index},
    {"s_set_gpr_idx_mode", "*", index_mode},
};

}  // namespace

table salu_rows() { return rows; }

}  // namespace amdgpu
