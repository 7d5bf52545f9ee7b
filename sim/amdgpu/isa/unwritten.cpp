// SPDX-License-Identifier: MIT
#include "amdgpu/isa/unwritten.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "amdgpu/isa/wave.hpp"

namespace amdgpu {
namespace {

constexpr u64 everyone = ~u64{0};

bool begins(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }

// ---- what is known of operands
// ---------------------------------------------------------------------------------------

// Of a scalar source, by bit.
u64 bits_known(const wave& w, const operand& o) {
  if (o.where != place::sgpr) return everyone;
  const u32* const s = w.written->s + o.index;
  return o.dwords < 2 ? s[0] | everyone << 32 : s[0] | u64{s[1]} << 32;
}

bool all_known(const wave& w, const operand& o) {
  if (o.where != place::sgpr) return true;
  const u32* const s = w.written->s + o.index;
  return std::all_of(s, s + o.dwords, [](u32 word) { return word == ~u32{0}; });
}

// Of a source of a vector instruction, by lane.
u64 lanes_known(const wave& w, const operand& o) {
  if (o.where == place::vgpr) {
    u64 known = everyone;
    for (unsigned k = 0; k < o.dwords; ++k) known &= w.written->v[o.index + k];
    return known;
  }
  if (o.type == 'm') return bits_known(w, o);
  return all_known(w, o) ? everyone : 0;
}

void know_scalar(wave& w, const operand& o, u64 known) {
  if (o.where != place::sgpr) return;
  for (unsigned k = 0; k < o.dwords && o.index + k < std::size(w.written->s); ++k)
    w.written->s[o.index + k] = k == 0 ? static_cast<u32>(known) : static_cast<u32>(known >> 32);
}

// Lanes of a VGPR get something new.
void forget_parts(written_registers& k, unsigned vgpr, u64 of) {
  if (k.parts.empty()) return;
  auto part = k.parts.lower_bound(vgpr * lanes);
  while (part != k.parts.end() && part->first < (vgpr + 1) * lanes)
    part = of >> part->first % lanes & 1 ? k.parts.erase(part) : std::next(part);
}

void know_lanes(wave& w, const operand& o, unsigned dwords, u64 known) {
  if (o.where != place::vgpr) return;
  for (unsigned k = 0; k < dwords && o.index + k < std::size(w.written->v); ++k) {
    w.written->v[o.index + k] = (w.written->v[o.index + k] & ~w.exec()) | (known & w.exec());
    forget_parts(*w.written, o.index + k, w.exec());
  }
}

// ---- the report
// ------------------------------------------------------------------------------------------------------

std::string name_of(const operand& o) {
  const bool agpr = o.where == place::vgpr && o.index >= reg::agpr0;
  if (o.where == place::sgpr && o.index >= reg::exec) return "exec";
  if (o.where == place::sgpr && (o.index & ~1u) == reg::vcc) return "vcc";
  const char* const kind = o.where == place::sgpr ? "s" : agpr ? "a" : "v";
  const unsigned first = agpr ? o.index - reg::agpr0 : o.index;
  if (o.dwords < 2) return kind + std::to_string(first);
  return std::string(kind) + "[" + std::to_string(first) + ":" + std::to_string(first + o.dwords - 1) + "]";
}

bool refuse(wave& w, const operation& o, const std::string& what, u64 unknown, const char* use) {
  fault& f = stop(w, o, fault::kind::unwritten, "");
  if (unknown) f.lane = std::countr_zero(unknown);
  f.why = what + " depends on a register that was never written, and is " + use;
  return false;
}

// A vector instruction needs this operand in all lanes that are active.
bool needs(wave& w, const operation& o, const operand& of, u64 active, const char* use) {
  const u64 unknown = ~lanes_known(w, of) & active;
  return unknown == 0 || refuse(w, o, name_of(of), unknown, use);
}

bool needs_scalar(wave& w, const operation& o, const operand& of, const char* use) {
  return all_known(w, of) || refuse(w, o, name_of(of), 0, use);
}

// ---- memory
// ----------------------------------------------------------------------------------------------------------

// Lanes of a FLAT access that are private memory: a compiler may save what was never written there.
u64 private_lanes(const wave& w, const operation& o) {
  if (!begins(o.name, "flat_") || o.src[0].dwords != 2) return 0;
  const u32 high = static_cast<u32>(w.of->how.private_aperture >> 32);
  const u32* const rows = w.v + (o.src[0].index + 1u) * lanes;
  u64 found = 0;
  for (unsigned l = 0; l < lanes; ++l) found |= u64{high != 0 && rows[l] == high} << l;
  return found;
}

bool by_address(wave& w, const operation& o) {
  const u64 active = w.exec();
  if (active == 0) return true;
  const bool loads = o.name.find("_load_") != std::string_view::npos;
  const bool scratch = begins(o.name, "scratch_");
  const unsigned base = loads ? 1 : 2;
  if (o.src[0].where == place::vgpr && !needs(w, o, o.src[0], active, "an address")) return false;
  if (o.n_src > base && !needs_scalar(w, o, o.src[base], "an address")) return false;
  if (!loads && !scratch && !needs(w, o, o.src[1], active & ~private_lanes(w, o), "stored to memory")) return false;
  if (loads || o.scope.glc) know_lanes(w, o.dst, std::max<unsigned>(o.dst.dwords, (o.width + 3u) / 4), everyone);
  return true;
}

// MUBUF: data, address, resource, offset; a load shows its data as the destination.
bool by_buffer(wave& w, const operation& o) {
  const u64 active = w.exec();
  if (active == 0) return true;
  const bool loads = o.name.find("_load_") != std::string_view::npos;
  const operand& address = o.src[loads ? 0 : 1];
  const operand& resource = o.src[loads ? 1 : 2];
  if (address.where == place::vgpr && !needs(w, o, address, active, "an address")) return false;
  if (!needs_scalar(w, o, resource, "a buffer's description") ||
      !needs_scalar(w, o, o.src[loads ? 2 : 3], "an address"))
    return false;
  const bool swizzled = w.s[resource.index + 1] >> 31 & 1;
  if (!loads && !swizzled && !needs(w, o, o.src[0], active, "stored to memory")) return false;
  if (loads)
    know_lanes(w, o.dst, std::max<unsigned>(o.dst.dwords, (o.width + 3u) / 4), everyone);
  else if (o.scope.glc)
    know_lanes(w, o.src[0], (o.width + 3u) / 4, everyone);
  return true;
}

bool by_lds(wave& w, const operation& o) {
  const bool permutes = o.name.find("permute") != std::string_view::npos || begins(o.name, "ds_swizzle");
  if (!permutes && o.n_src && !needs(w, o, o.src[0], w.exec(), "an address in the LDS")) return false;
  know_lanes(w, o.dst, std::max<unsigned>(o.dst.dwords, 1), everyone);
  return true;
}

bool by_scalar_address(wave& w, const operation& o) {
  for (unsigned i = 0; i < o.n_src; ++i)
    if (!needs_scalar(w, o, o.src[i], "an address")) return false;
  const unsigned dwords = std::max<unsigned>(o.dst.dwords, o.width / 4u);
  for (unsigned k = 0; o.dst.where == place::sgpr && k < dwords && o.dst.index + k < std::size(w.written->s); ++k)
    w.written->s[o.dst.index + k] = ~u32{0};
  return true;
}

// ---- vector arithmetic
// -----------------------------------------------------------------------------------------------

// Of a lane of a vector instruction's source, by bit.
u64 lane_bits(const wave& w, const operand& o, unsigned lane) {
  if (lanes_known(w, o) >> lane & 1) return everyone;
  const auto part = w.written->parts.find(o.index * lanes + lane);
  return part == w.written->parts.end() ? 0 : part->second | everyone << 32;
}

// True if the instruction moves values between lanes, and is followed here.
bool between_lanes(wave& w, const operation& o) {
  written_registers& k = *w.written;
  if (o.name == "v_readfirstlane_b32" || o.name == "v_readlane_b32") {
    const u64 exec = w.exec();
    const unsigned lane = o.name == "v_readlane_b32" ? scalar32(w, o.src[1]) & (w.width() - 1)
                          : exec                     ? static_cast<unsigned>(std::countr_zero(exec))
                                                     : 0;
    know_scalar(w, o.dst, all_known(w, o.src[1]) ? lane_bits(w, o.src[0], lane) : 0);
    return true;
  }
  if (o.name == "v_writelane_b32") {
    const unsigned lane = scalar32(w, o.src[1]) & (w.width() - 1);
    const u64 bit = u64{1} << lane;
    forget_parts(k, o.dst.index, bit);
    const auto known = static_cast<u32>(bits_known(w, o.src[0]));
    k.v[o.dst.index] = (k.v[o.dst.index] & ~bit) | (known == ~u32{0} ? bit : 0);
    if (known != ~u32{0}) k.parts[o.dst.index * lanes + lane] = known;
    return true;
  }
  if (o.name == "v_swap_b32") {
    const u64 differ = (k.v[o.dst.index] ^ k.v[o.src[0].index]) & w.exec();
    k.v[o.dst.index] ^= differ;
    k.v[o.src[0].index] ^= differ;
    forget_parts(k, o.dst.index, w.exec());
    forget_parts(k, o.src[0].index, w.exec());
    return true;
  }
  return false;
}

u64 result_known(const wave& w, const operation& o) {
  // Where lanes or register numbers move, all of it counts as written.
  if (o.mods.dpp || w.index_on || begins(o.name, "v_permlane") || begins(o.name, "v_movrel")) return everyone;
  if (o.name == "v_cndmask_b32") {
    const operand& mask = o.src[3].type == 'm' ? o.src[3] : o.src[2];
    const u64 chosen = scalar_mask(w, mask);
    return bits_known(w, mask) & ((chosen & lanes_known(w, o.src[1])) | (~chosen & lanes_known(w, o.src[0])));
  }
  u64 known = everyone;
  for (unsigned i = 0; i < o.n_src; ++i) known &= lanes_known(w, o.src[i]);
  if (o.src[3].type == 'm') known &= lanes_known(w, o.src[3]);
  return known;
}

// Of one dword of a source, by lane.
u64 half_known(const wave& w, const operand& o, bool high) {
  const unsigned at = o.index + (high && o.dwords > 1 ? 1 : 0);
  if (o.where == place::vgpr) return w.written->v[at];
  if (o.where == place::sgpr) return w.written->s[at] == ~u32{0} ? everyone : 0;
  return everyone;
}

// Of results of two dwords compilers often use one, of which not all halves of the sources are part. False: the
// instruction is none of these.
bool by_halves(const wave& w, const operation& o, u64& low, u64& high) {
  if (o.mods.dpp || w.index_on) return false;
  low = high = everyone;
  if (o.name == "v_pk_mov_b32") {
    low = half_known(w, o.src[0], o.mods.op_sel & 1);
    high = half_known(w, o.src[1], o.mods.op_sel >> 1 & 1);
  } else if (o.dst.type == 'P') {
    for (unsigned i = 0; i < o.n_src; ++i) {
      low &= half_known(w, o.src[i], o.mods.op_sel >> i & 1);
      high &= half_known(w, o.src[i], o.mods.op_sel_hi >> i & 1);
    }
  } else if (o.name == "v_lshrrev_b64" || o.name == "v_ashrrev_i64") {
    high = lanes_known(w, o.src[0]) & half_known(w, o.src[1], true);
    low = high & half_known(w, o.src[1], false);
  } else if (o.name == "v_mov_b64") {
    low = half_known(w, o.src[0], false);
    high = half_known(w, o.src[0], true);
  } else if (begins(o.name, "v_mad_u64") || begins(o.name, "v_mad_i64") || o.name == "v_lshl_add_u64" ||
             o.name == "v_lshlrev_b64") {
    for (unsigned i = 0; i < o.n_src; ++i) {
      low &= half_known(w, o.src[i], false);
      high &= lanes_known(w, o.src[i]);
    }
  } else {
    return false;
  }
  return true;
}

// Registers that hold SGPRs are moved whole, into AGPRs above all.
void move_parts(wave& w, const operation& o) {
  if (o.src[0].where != place::vgpr || (o.name != "v_mov_b32" && !begins(o.name, "v_accvgpr_"))) return;
  std::map<unsigned, u32>& parts = w.written->parts;
  for (unsigned lane = 0; lane < lanes && !parts.empty(); ++lane)
    if (const auto part = parts.find(o.src[0].index * lanes + lane); part != parts.end() && w.exec() >> lane & 1)
      parts[o.dst.index * lanes + lane] = part->second;
}

bool vector(wave& w, const operation& o) {
  if (o.both) return vector(w, o.both->first) && vector(w, o.both->second);
  if (between_lanes(w, o)) return true;
  u64 low = 0, high = 0;
  if (by_halves(w, o, low, high)) {
    operand half = o.dst;
    know_lanes(w, half, 1, low);
    ++half.index;
    know_lanes(w, half, 1, high);
    if (o.dst2.type == 'm') know_scalar(w, o.dst2, high | ~w.exec());
    return true;
  }
  const u64 known = result_known(w, o);
  const u64 mask = known | ~w.exec();  // a lane that is not active has a 0 in a mask
  if (o.dst.type == 'm') {
    know_scalar(w, o.dst, mask);
    if (begins(o.name, "v_cmpx") && mask != everyone) return refuse(w, o, "a lane's bit", ~mask, "put into EXEC");
    return true;
  }
  operand to = o.dst;
  if (w.index_on && w.s[reg::m0] >> 15 & 1)
    to.index = static_cast<std::uint16_t>(std::min<u32>(to.index + (w.s[reg::m0] & 0xff), 511 - to.dwords));
  know_lanes(w, to, to.dwords, known);
  if (!o.mods.dpp && !w.index_on) move_parts(w, o);
  if (o.dst2.type == 'm') know_scalar(w, o.dst2, mask);
  return true;
}

// ---- scalar arithmetic
// -----------------------------------------------------------------------------------------------

struct bits {
  u64 value, known;
};

bits operator~(bits a) { return {~a.value, a.known}; }
// A known 0 makes a 0 of anything.
bits operator&(bits a, bits b) {
  return {a.value & b.value, (a.known & b.known) | (a.known & ~a.value) | (b.known & ~b.value)};
}
bits operator|(bits a, bits b) { return ~(~a & ~b); }
bits operator^(bits a, bits b) { return {a.value ^ b.value, a.known & b.known}; }

// The logical instructions by their names' middle; false if it is none.
bool logical(std::string_view what, bits a, bits b, bits& out) {
  if (what == "and")
    out = a & b;
  else if (what == "or")
    out = a | b;
  else if (what == "xor")
    out = a ^ b;
  else if (what == "andn2")
    out = a & ~b;
  else if (what == "orn2")
    out = a | ~b;
  else if (what == "nand")
    out = ~(a & b);
  else if (what == "nor")
    out = ~(a | b);
  else if (what == "xnor")
    out = ~(a ^ b);
  else if (what == "andn1")
    out = ~a & b;
  else if (what == "orn1")
    out = ~a | b;
  else
    return false;
  return true;
}

bits bits_of(const wave& w, const operand& o) {
  return {o.dwords < 2 && o.where != place::constant ? scalar32(w, o) : scalar64(w, o), bits_known(w, o)};
}

bool leaves_scc(std::string_view name) {
  for (std::string_view other : {"s_mov", "s_cmov", "s_mul", "s_bfm", "s_brev", "s_ff", "s_flbit", "s_sext", "s_get",
                                 "s_set", "s_bitset", "s_pack", "s_cselect", "s_bitrep"})
    if (begins(name, other)) return true;
  return false;
}

bool zero_is_known(bits d, u64 range) { return (d.known & range) == range || (d.value & d.known & range) != 0; }

// EXEC must be known where it may be changed.
bool exec_is_known(wave& w, const operation& o, u64 known) {
  know_scalar(w, operand{place::sgpr, 'm', 2, reg::exec}, everyone);
  return known == everyone || refuse(w, o, "a lane's bit", ~known, "put into EXEC");
}

bool logic(wave& w, const operation& o, bool& is) {
  const std::string_view name = o.name;
  const std::size_t end = name.find('_', 2);
  bits d{};
  const bool saves = name.find("_saveexec_") != std::string_view::npos,
             replaces = name.find("_wrexec_") != std::string_view::npos;
  const bits exec{w.exec(), everyone};
  is = end != std::string_view::npos &&
       logical(name.substr(2, end - 2), bits_of(w, o.src[0]), saves || replaces ? exec : bits_of(w, o.src[1]), d);
  if (!is && !begins(name, "s_not_")) return true;
  if (!is) d = ~bits_of(w, o.src[0]);
  is = true;
  w.written->scc = zero_is_known(d, o.dst.dwords < 2 ? ~u32{0} : everyone);
  if (saves || replaces) {
    know_scalar(w, o.dst, saves ? everyone : d.known);
    return exec_is_known(w, o, d.known);
  }
  know_scalar(w, o.dst, d.known);
  const bool to_exec = o.dst.where == place::sgpr && o.dst.index == reg::exec;
  return !to_exec || exec_is_known(w, o, o.dst.dwords < 2 ? d.known | everyone << 32 : d.known);
}

bool scalar(wave& w, const operation& o) {
  bool is_logic = false;
  if (!logic(w, o, is_logic)) return false;
  if (is_logic) return true;
  written_registers& k = *w.written;
  const std::string_view name = o.name;
  u64 known = everyone;
  if (begins(name, "s_mov_")) {
    known = bits_known(w, o.src[0]);
  } else if ((begins(name, "s_lshl_b") || begins(name, "s_lshr_b")) && all_known(w, o.src[1])) {
    // Zeroes come in.
    const unsigned width = o.dst.dwords < 2 ? 32 : 64, by = scalar32(w, o.src[1]) & (width - 1);
    const u64 was = bits_known(w, o.src[0]);
    known = name[5] == 'l' ? was << by | ((u64{1} << by) - 1) : by == 0 ? was : was >> by | everyone << (width - by);
    if (width == 32) known |= everyone << 32;
  } else if (begins(name, "s_cselect")) {
    known = k.scc && all_known(w, o.src[w.scc ? 0 : 1]) ? everyone : 0;
  } else if (begins(name, "s_cmov")) {
    if (k.scc && !w.scc) return true;
    known = k.scc && all_known(w, o.src[0]) ? everyone : 0;
  } else if (!begins(name, "s_movrel")) {
    for (unsigned i = 0; i < o.n_src; ++i)
      if (!all_known(w, o.src[i])) known = 0;
    if ((begins(name, "s_addc") || begins(name, "s_subb")) && !k.scc) known = 0;
    // These change their destination.
    if ((begins(name, "s_addk") || begins(name, "s_mulk")) && !all_known(w, o.dst)) known = 0;
  }
  if (!leaves_scc(name)) k.scc = known == everyone;
  const bool compares = begins(name, "s_cmp") || begins(name, "s_bitcmp");
  if (compares || o.dst.where != place::sgpr) return true;
  know_scalar(w, o.dst, known);
  return o.dst.index != reg::exec || exec_is_known(w, o, o.dst.dwords < 2 ? known | everyone << 32 : known);
}

bool branch(wave& w, const operation& o) {
  const std::string_view name = o.name;
  if (begins(name, "s_cbranch_scc")) return w.written->scc || refuse(w, o, "SCC", 0, "what a branch goes by");
  if (begins(name, "s_cbranch_vcc")) {
    const operand vcc{place::sgpr, 'm', static_cast<std::uint8_t>(w.wave32 ? 1 : 2), reg::vcc};
    const bits mask{w.mask(reg::vcc), bits_known(w, vcc)};
    return zero_is_known(mask, w.everyone()) || refuse(w, o, "vcc", 0, "what a branch goes by");
  }
  if (name == "s_setpc_b64" || name == "s_swappc_b64")
    if (!needs_scalar(w, o, o.src[0], "where the program goes")) return false;
  know_scalar(w, o.dst, everyone);
  return true;
}

}  // namespace

void start_watching(wave& w, unsigned sgprs, written_registers& in) {
  w.written = &in;
  written_registers& k = in;
  k = {};
  std::fill_n(k.s, std::min<std::size_t>(sgprs, reg::flat_scratch), ~u32{0});
  std::fill_n(k.s + reg::xnack, 2, ~u32{0});
  std::fill(k.s + reg::ttmp0, k.s + reg::m0, ~u32{0});
  std::fill_n(k.s + reg::exec, 2, ~u32{0});
  k.v[0] = everyone;
}

bool reads_written(wave& w, const operation& o) {
  switch (o.kind) {
    case count::valu: return vector(w, o);
    case count::salu: return scalar(w, o);
    case count::smem: return by_scalar_address(w, o);
    case count::lds: return by_lds(w, o);
    case count::scratch: return begins(o.name, "buffer_") ? by_buffer(w, o) : by_address(w, o);
    case count::flat:
    case count::atomic: return by_address(w, o);
    case count::branch: return branch(w, o);
    default: return true;
  }
}

}  // namespace amdgpu
