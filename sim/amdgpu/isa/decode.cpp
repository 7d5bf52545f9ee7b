// SPDX-License-Identifier: MIT
#include "amdgpu/isa/decode.hpp"

#include <algorithm>

#include "amdgpu/isa/gfx1100_names.hpp"
#include "amdgpu/isa/operand_text.hpp"
#include "amdgpu/isa/wave.hpp"

namespace amdgpu {
namespace {

void refuse_unknown(wave& w, const operation& o) {
  stop(w, o, fault::kind::unknown, "the interpreter does not know this instruction, or not in this form");
}

// ---- modifiers ---------------------------------------------------------------------------------------------------

std::uint8_t bit_list(std::string_view text) {
  std::uint8_t bits = 0;
  unsigned n = 0;
  for (char c : text)
    if (c == '0' || c == '1') bits |= static_cast<std::uint8_t>((c - '0') << n++);
  return bits;
}

part part_of(std::string_view text) {
  static constexpr std::string_view in_order[] = {"DWORD", "BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1"};
  for (unsigned i = 0; i < std::size(in_order); ++i)
    if (text == in_order[i]) return static_cast<part>(i);
  return part::dword;
}

// DPP_CTRL from the instruction's last dword (MI200 ISA 12.9.2). gfx1100's has FI, and another form in which each of
// eight lanes names one of them, or reads 0 where that is off (RDNA3 ISA, "DPP8").
void read_dpp(operation& o) {
  const std::uint32_t word = o.raw[o.bytes / 4 - 1];
  o.mods.dpp = true;
  o.mods.dpp8 = o.text.find(" dpp8:[") != std::string::npos;
  o.mods.fetch_inactive = o.text.find(" fi:1") != std::string::npos;
  o.mods.bound_ctrl = o.mods.dpp8 || (word >> 19 & 1);
  o.mods.dpp_ctrl = o.mods.dpp8 ? word >> 8 : word >> 8 & 0x1ff;
  if (o.mods.dpp8) return;
  o.mods.bank_mask = static_cast<std::uint8_t>(word >> 24 & 0xf);
  o.mods.row_mask = static_cast<std::uint8_t>(word >> 28);
}

bool read_modifier(operation& o, std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view key = text.substr(0, colon);
  const std::string_view value = colon == std::string_view::npos ? std::string_view{} : text.substr(colon + 1);
  modifiers& m = o.mods;
  if (key == "glc") return o.scope.glc = true;
  if (key == "slc") return o.scope.slc = true;
  if (key == "scc") return o.scope.scc = true;
  // The same bits of gfx942's encodings.
  if (key == "sc0") return o.scope.glc = true;
  if (key == "sc1") return o.scope.scc = true;
  if (key == "nt") return o.scope.slc = true;
  // gfx1100's asks the memory-side cache for nothing that a program sees.
  if (key == "dlc") return true;
  if (key == "offen") return o.offen = true;
  if (key == "idxen") return o.idxen = true;
  if (key == "lds") return o.lds = true;
  if (key == "gds") return o.gds = true;
  if (key == "clamp") return m.clamp = true;
  if (key == "mul") m.omod = value == "2" ? 1 : 2;
  if (key == "div") m.omod = 3;
  if (key == "op_sel") m.op_sel = bit_list(value), m.has_op_sel = true;
  if (key == "op_sel_hi") m.op_sel_hi = bit_list(value), m.has_op_sel = true;
  if (key == "neg_lo") m.neg_lo = bit_list(value), m.has_op_sel = true;
  if (key == "neg_hi") m.neg_hi = bit_list(value), m.has_op_sel = true;
  if (key == "dst_sel") m.dst_sel = part_of(value);
  if (key == "src0_sel") o.src[0].which = part_of(value);
  if (key == "src1_sel") o.src[1].which = part_of(value);
  if (key == "dst_unused")
    m.rest = value == "UNUSED_PAD"    ? modifiers::unused::pad
             : value == "UNUSED_SEXT" ? modifiers::unused::sext
                                      : modifiers::unused::preserve;
  static constexpr std::string_view others[] = {
      "mul", "div", "op_sel", "op_sel_hi", "neg_lo", "neg_hi", "dst_sel", "src0_sel", "src1_sel", "dst_unused",
      // these are read from the encoding
      "offset", "offset0", "offset1", "quad_perm", "row_shl", "row_shr", "row_ror", "wave_shl", "wave_rol", "wave_shr",
      "wave_ror", "row_mirror", "row_half_mirror", "row_bcast", "row_newbcast", "row_mask", "bank_mask", "bound_ctrl",
      "row_share", "row_xmask", "dpp8", "fi"};
  return std::ranges::find(others, key) != std::end(others);
}

// ---- from text to operation --------------------------------------------------------------------------------------

std::string_view without_suffix(std::string_view name, operation& o) {
  for (std::string_view suffix : {"_e64_dpp", "_e32", "_e64", "_sdwa", "_dpp"})
    if (name.size() > suffix.size() && name.substr(name.size() - suffix.size()) == suffix) {
      if (suffix == "_sdwa") o.mods.sdwa = true;
      if (suffix == "_dpp" || suffix == "_e64_dpp") read_dpp(o);
      return name.substr(0, name.size() - suffix.size());
    }
  return name;
}

// Fills operands as the row's form tells; false if the text does not fit it.
bool fill_operands(operation& o, std::string_view form, const pieces& p) {
  bool tied = false, vcc_in = false, returns_if_glc = false;
  while (!form.empty() && std::strchr("+<?", form.back())) {
    tied |= form.back() == '+';
    vcc_in |= form.back() == '<';
    returns_if_glc |= form.back() == '?';
    form.remove_suffix(1);
  }
  const std::size_t equals = form.find('=');
  std::string_view outs = form.substr(0, equals), ins = form.substr(equals + 1);
  if (returns_if_glc && !o.scope.glc) outs = {};
  if (p.operands.size() != outs.size() + ins.size()) return false;
  std::size_t at = 0;
  for (unsigned i = 0; i < outs.size(); ++i)
    if (!parse_operand(p.operands[at++], outs[i], i ? o.dst2 : o.dst, false)) return false;
  for (char type : ins) {
    const part which = o.src[o.n_src].which;
    if (!parse_operand(p.operands[at++], type, o.src[o.n_src])) return false;
    o.src[o.n_src++].which = which;
  }
  if (tied) o.src[o.n_src++] = o.dst;
  if (vcc_in) {
    o.src[3] = operand{};
    o.src[3].where = place::sgpr;
    o.src[3].index = reg::vcc;
    o.src[3].dwords = 2;
    o.src[3].type = 'm';
  }
  return true;
}

bool has_modifiers(const operation& o) {
  const modifiers& m = o.mods;
  bool any = m.clamp || m.omod || m.has_op_sel || m.sdwa || m.dpp;
  for (const operand& s : o.src) any |= s.negate || s.absolute || s.extend;
  return any;
}

count kind_of(const operation& o) {
  const std::string_view n = o.name;
  const auto has = [&](const char* word) { return n.find(word) != std::string_view::npos; };
  if (starts(n, "buffer_wbl2")) return count::writeback;
  if (starts(n, "buffer_gl")) return count::invalidate;
  if (starts(n, "buffer_inv") || starts(n, "buffer_wbinv")) return count::invalidate;
  if (starts(n, "buffer_") || starts(n, "scratch_")) return count::scratch;
  if (starts(n, "flat_") || starts(n, "global_")) return has("_atomic_") ? count::atomic : count::flat;
  if (starts(n, "ds_")) return count::lds;
  if (starts(n, "v_")) return count::valu;
  if (starts(n, "s_waitcnt")) return count::wait;
  if (starts(n, "s_load") || starts(n, "s_mem") || starts(n, "s_dcache") || starts(n, "s_buffer") ||
      starts(n, "s_sendmsg_rtn"))
    return count::smem;
  if (starts(n, "s_cbranch") || starts(n, "s_branch") || has("setpc") || has("swappc") || starts(n, "s_call"))
    return count::branch;
  if (starts(n, "s_barrier")) return count::barrier;
  if (starts(n, "s_nop") || starts(n, "s_sleep") || starts(n, "s_endpgm") || starts(n, "s_icache") ||
      starts(n, "s_delay_alu") || starts(n, "s_clause"))
    return count::other;
  return starts(n, "s_") ? count::salu : count::other;
}

void read_offsets(operation& o, target gpu) {
  const std::uint32_t low = o.raw[0];
  const unsigned segment = gpu == target::gfx1100 ? low >> 16 & 3 : low >> 14 & 3;
  if (gpu == target::gfx1100 && low >> 26 == 0x3d) {  // SMEM (RDNA3 ISA, "SMEM")
    o.offset = static_cast<std::int32_t>(o.raw[1] << 11) >> 11;
    return;
  }
  switch (low >> 26) {
    case 0x36:  // DS
      o.offset = static_cast<std::int32_t>(low & 0xff);
      o.offset2 = static_cast<std::int32_t>(low >> 8 & 0xff);
      o.immediate = low & 0xffff;
      break;
    case 0x37:  // FLAT has 12 unsigned bits, GLOBAL and SCRATCH 13 signed ones (MI200 ISA 9.3)
      o.offset = segment == 0 ? static_cast<std::int32_t>(low & 0xfff) : static_cast<std::int32_t>(low << 19) >> 19;
      break;
    case 0x38:  // MUBUF
      o.offset = static_cast<std::int32_t>(low & 0xfff);
      break;
    case 0x30:  // SMEM: 21 signed bits
      o.offset = low >> 17 & 1 ? static_cast<std::int32_t>(o.raw[1] << 11) >> 11 : 0;
      break;
    default: o.immediate = low & 0xffff;
  }
}

}  // namespace

const row* find_row(std::string_view name) {
  static const auto* const all = [] {
    auto* const m = new std::unordered_map<std::string_view, const row*>;
    for (const table& t : {salu_rows(), flow_rows(), smem_rows(), valu_integer_rows(), valu_float_rows(),
                           valu_half_rows(), valu_compare_rows(), valu_convert_rows(), valu_packed_rows(),
                           valu_lane_rows(), lds_rows(), flat_rows(), buffer_rows(), gfx1100_rows()})
      for (const row& r : t) m->emplace(r.name, &r);
    return m;
  }();
  const auto found = all->find(name);
  return found == all->end() ? nullptr : found->second;
}

// ---- pairs ---------------------------------------------------------------------------------------------------------

namespace {

// A row that no instruction of gfx1100 names, as it has no AGPRs.
constexpr unsigned spare_row = 511;

bool reads(const operation& o, const operand& of) {
  return std::any_of(o.src, o.src + o.n_src, [&](const operand& s) {
    return s.where == place::vgpr && s.index < of.index + of.dwords && of.index < s.index + s.dwords;
  });
}

void run_both(wave& w, const operation& o) {
  const operation_pair& both = *o.both;
  if (both.saved) std::memcpy(w.rows(spare_row), w.rows(both.first.dst.index), lanes * 4);
  both.first.run(w, both.first);
  if (!w.stopped) both.second.run(w, both.second);
}

// One half of a pair's text, "v_dual_add_f32 v0, v1, v2".
operation half_of_pair(std::string text, const operation& whole) {
  text.erase(2, std::strlen("dual_"));
  // The mask is VCC, which the text does not show.
  if (starts(text, "v_cndmask_b32")) text += ", vcc_lo";
  operation made = make_operation(text, whole.raw, whole.bytes, target::gfx1100);
  made.text = whole.text;
  return made;
}

// RDNA3 ISA, "VOPD": both read before one writes.
operation make_pair(operation o) {
  const std::size_t middle = o.text.find(" :: ");
  auto both = std::make_shared<operation_pair>();
  both->first = half_of_pair(o.text.substr(0, middle), o);
  both->second = half_of_pair(o.text.substr(middle + 4), o);
  if (both->first.run == refuse_unknown || both->second.run == refuse_unknown) return o;
  if (reads(both->second, both->first.dst)) std::swap(both->first, both->second);
  if (reads(both->second, both->first.dst)) {
    both->saved = true;
    for (operand& s : both->second.src)
      if (s.where == place::vgpr && s.index == both->first.dst.index) s.index = spare_row;
  }
  o.name = "v_dual";
  o.kind = count::valu;
  o.run = run_both;
  o.both = std::move(both);
  return o;
}

// gfx1100 does some things otherwise than its text and the tables say.
void adapt_to_gfx1100(operation& o) {
  // The other half of a register stays when one is written (RDNA3 ISA, "16-bit Math and VGPRs").
  if (o.dst.type == 'h' || o.dst.type == 'w') o.mods.has_op_sel = true;
  const operand* const in_order[] = {&o.src[0], &o.src[1], &o.src[2], &o.dst};
  for (unsigned i = 0; i < 4; ++i)
    if (in_order[i]->high) {
      o.mods.has_op_sel = true;
      o.mods.op_sel |= static_cast<std::uint8_t>(1u << i);
    }
  const auto has = [&](const char* word) { return o.name.find(word) != std::string_view::npos; };
  const bool memory = starts(o.name, "flat_") || starts(o.name, "global_") || starts(o.name, "scratch_");
  o.counts_as_store = memory && (has("_store_") || (has("_atomic_") && !o.scope.glc));
}

// v_cmpx writes EXEC alone there, which the text does not show.
bool fill_for(target gpu, operation& o, const row& r, const pieces& p) {
  if (gpu != target::gfx1100 || !starts(r.name, "v_cmpx_")) return fill_operands(o, r.form, p);
  if (!fill_operands(o, std::string_view(r.form).substr(1), p)) return false;
  o.dst.where = place::sgpr;
  o.dst.type = 'm';
  o.dst.dwords = 2;
  o.dst.index = reg::exec;
  return true;
}

}  // namespace

operation make_operation(const std::string& text, const std::uint32_t* raw, unsigned bytes, target gpu) {
  operation o;
  o.text = text;
  o.bytes = static_cast<std::uint8_t>(bytes);
  o.raw[0] = raw[0];
  o.raw[1] = bytes > 4 ? raw[1] : 0;
  o.raw[2] = bytes > 8 ? raw[2] : 0;
  o.run = refuse_unknown;
  if (gpu == target::gfx1100 && starts(o.text, "v_dual_")) return make_pair(o);
  const pieces p = split(o.text);
  const std::string_view name = without_suffix(p.name, o);
  o.name = name;
  const std::string listed = gpu == target::gfx1100 ? name_in_tables(name) : std::string(name);
  const row* const r = find_row(listed);
  if (!r) return o;
  read_offsets(o, gpu);
  o.variant = r->variant;
  o.width = r->width;
  o.lanes_do = r->lanes_do;
  for (std::string_view m : p.mods)
    if (!read_modifier(o, m) && r->form[0] != '*') return o;
  // On gfx942 a load looks past the L1 from agent scope on, which is sc1; sc0 alone is workgroup scope, both are the
  // system's (LLVM AMDGPUUsage, "Memory Model GFX942").
  const auto written = [&](const char* key) { return std::ranges::find(p.mods, key) != p.mods.end(); };
  if (name.find("_load_") != std::string_view::npos && (written("sc0") || written("sc1"))) {
    const bool agent = o.scope.scc;
    o.scope.scc = agent && o.scope.glc;
    o.scope.glc = agent;
  }
  // Integers that saturate have rows of their own.
  if (o.mods.clamp)
    if (const row* const saturating = find_row(listed + " clamp")) {
      o.lanes_do = saturating->lanes_do;
      o.mods.clamp = false;
    }
  // The text's list has the sources' bits, then the destination's; the encoding of VOP3 has that as bit 3 always.
  const bool vop3 = raw[0] >> 26 == (gpu == target::gfx1100 ? 0x35 : 0x34) && raw[0] >> 23 != 0x1a7;  // not VOP3P
  if (o.mods.has_op_sel && vop3) o.mods.op_sel = static_cast<std::uint8_t>(raw[0] >> 11 & 15);
  // '*': the operands are bits of the encoding alone.
  if (r->form[0] != '*' && !fill_for(gpu, o, *r, p)) return o;
  // Known instructions in forms that are not: other integers that saturate, loads straight into LDS.
  if ((o.mods.clamp && std::strchr("iwqlp", o.dst.type)) || o.lds) return o;
  o.name = r->name;
  if (gpu == target::gfx1100) adapt_to_gfx1100(o);
  o.plain = !has_modifiers(o);
  o.kind = kind_of(o);
  o.run = r->run;
  return o;
}

}  // namespace amdgpu
