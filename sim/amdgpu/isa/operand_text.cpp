// SPDX-License-Identifier: MIT
#include "amdgpu/isa/operand_text.hpp"

#include <cmath>
#include <cstdlib>

#include "amdgpu/isa/wave.hpp"

namespace amdgpu {
namespace {

// The end of a word that starts at FROM: the first space, or comma if it ends an operand, outside of brackets.
std::size_t word_end(std::string_view text, std::size_t from) {
  int depth = 0;
  for (std::size_t i = from; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '[' || c == '(') ++depth;
    if (c == ']' || c == ')') --depth;
    if (depth == 0 && (c == ' ' || c == ',')) return i;
  }
  return text.size();
}

std::int64_t number(std::string_view text) {
  const std::string copy(text);
  const bool negative = copy[0] == '-';
  const std::uint64_t value = std::strtoull(copy.c_str() + negative, nullptr, 0);
  return negative ? -static_cast<std::int64_t>(value) : static_cast<std::int64_t>(value);
}

bool is_wide(char type) { return std::strchr("qldPmS", type) != nullptr; }

std::uint16_t half_of(double value) {
  // Only the inline constants come here: 0.5, 1, 2, 4, their negatives, 1/(2 pi).
  const struct {
    double value;
    std::uint16_t bits;
  } known[] = {{0.5, 0x3800}, {1, 0x3c00}, {2, 0x4000}, {4, 0x4400}};
  for (const auto& k : known)
    if (std::fabs(value) == k.value) return k.bits | (value < 0 ? 0x8000 : 0);
  return 0x3118;
}

// Inline constants and literals (MI200 ISA 3.1 and 6.2): a 32-bit literal is the high half of a double.
bool parse_constant(std::string_view text, operand& o) {
  // LLVM marks literals whose value would also fit an inline constant.
  for (std::string_view mark : {"lit(", "lit64("})
    if (starts(text, mark) && text.back() == ')') text = text.substr(mark.size(), text.size() - mark.size() - 1);
  if (text.empty()) return false;
  const char first = text[text[0] == '-' ? 1 : 0];
  if (first < '0' || first > '9') return false;
  o.where = place::constant;
  const bool hex = text.find('x') != std::string_view::npos;
  if (!hex && text.find('.') != std::string_view::npos) {
    const double value = std::strtod(std::string(text).c_str(), nullptr);
    if (o.type == 'h' || o.type == 'w' || o.type == 'p')
      o.value = half_of(value);
    else if (is_wide(o.type) && o.type != 'P' && o.type != 'm')
      o.value = first == '0' && text.size() > 6 ? 0x3fc45f306dc9c882u : std::bit_cast<std::uint64_t>(value);
    else
      o.value = first == '0' && text.size() > 6 ? 0x3e22f983u : std::bit_cast<std::uint32_t>(static_cast<float>(value));
    return true;
  }
  o.value = static_cast<std::uint64_t>(number(text));
  if (hex && o.type == 'd' && o.value <= 0xffffffffu) o.value <<= 32;
  if (hex && o.type == 'l' && o.value <= 0xffffffffu)
    o.value = static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(o.value)));
  return true;
}

// Two SGPRs have halves, whose names end in _lo and _hi.
struct named {
  const char* name;
  unsigned index, dwords;
  bool special;
};

constexpr named names[] = {{"vcc", reg::vcc, 2, false},
                           {"exec", reg::exec, 2, false},
                           {"m0", reg::m0, 1, false},
                           {"null", reg::nowhere, 1, false},
                           {"flat_scratch", reg::flat_scratch, 2, false},
                           {"xnack_mask", reg::xnack, 2, false},
                           {"src_shared_base", reg::shared_base, 2, true},
                           {"src_shared_limit", reg::shared_limit, 2, true},
                           {"src_private_base", reg::private_base, 2, true},
                           {"src_private_limit", reg::private_limit, 2, true},
                           {"src_pops_exiting_wave_id", reg::pops, 1, true},
                           {"src_vccz", reg::vccz, 1, true},
                           {"src_execz", reg::execz, 1, true},
                           {"src_scc", reg::scc, 1, true},
                           {"vccz", reg::vccz, 1, true},
                           {"execz", reg::execz, 1, true},
                           {"scc", reg::scc, 1, true}};

// v7, v[4:5], a3, s[0:3], ttmp4, ttmp[6:7]; v7.l and v7.h are halves.
bool parse_register(std::string_view text, operand& o) {
  unsigned base = 0, limit = 256;
  if (starts(text, "ttmp")) {
    text.remove_prefix(4);
    o.where = place::sgpr;
    base = reg::ttmp0;
    limit = 16;
  } else if (text[0] == 'v' || text[0] == 'a') {
    o.where = place::vgpr;
    base = text[0] == 'a' ? reg::agpr0 : 0;
    text.remove_prefix(1);
  } else if (text[0] == 's') {
    o.where = place::sgpr;
    limit = 106;  // gfx90a's are fewer, and have other names above
    text.remove_prefix(1);
  } else {
    return false;
  }
  if (text.empty()) return false;
  const bool range = text[0] == '[';
  if (range) text.remove_prefix(1);
  if (text[0] < '0' || text[0] > '9') return false;
  char* end = nullptr;
  const std::string copy(text);
  const unsigned long low = std::strtoul(copy.c_str(), &end, 10);
  unsigned long high = low;
  if (range && *end == ':') high = std::strtoul(end + 1, &end, 10);
  if (high < low || high >= limit) return false;
  const std::string_view rest(end);
  if (range ? rest != "]" : !rest.empty() && rest != ".l" && rest != ".h") return false;
  o.high = rest == ".h";
  if (o.high && o.type != 'h' && o.type != 'w') return false;
  o.index = static_cast<std::uint16_t>(base + low);
  o.dwords = static_cast<std::uint8_t>(high - low + 1);
  return true;
}

// Takes "-", "neg(", "|", "abs(" and "sext(" off.
std::string_view strip_modifiers(std::string_view text, operand& o) {
  for (bool more = true; more && !text.empty();) {
    more = false;
    const auto call = [&](const char* name, bool& flag) {
      if (!starts(text, name)) return;
      flag = more = true;
      text.remove_prefix(std::strlen(name));
      if (!text.empty() && text.back() == ')') text.remove_suffix(1);
    };
    call("neg(", o.negate);
    call("abs(", o.absolute);
    call("sext(", o.extend);
    if (text.size() > 1 && text[0] == '-' && (text[1] < '0' || text[1] > '9')) {
      o.negate = more = true;
      text.remove_prefix(1);
    }
    if (text.size() > 1 && text[0] == '|') {
      o.absolute = more = true;
      text.remove_prefix(1);
      if (text.back() == '|') text.remove_suffix(1);
    }
  }
  return text;
}

}  // namespace

pieces split(std::string_view text) {
  pieces p;
  std::size_t i = word_end(text, 0);
  p.name = text.substr(0, i);
  bool operand_next = true;
  while (i < text.size()) {
    if (text[i] == ' ') {
      ++i;
      continue;
    }
    if (text[i] == ',') {
      operand_next = true;
      ++i;
      continue;
    }
    const std::size_t end = word_end(text, i);
    (operand_next ? p.operands : p.mods).push_back(text.substr(i, end - i));
    operand_next = false;
    i = end;
  }
  return p;
}

bool parse_operand(std::string_view text, char type, operand& o, bool reads) {
  o = operand{};
  o.type = type;
  o.dwords = is_wide(type) ? 2 : 1;
  if (type == 'x') return true;
  text = strip_modifiers(text, o);
  if (text.empty()) return false;
  if (text == "off") {
    o.where = place::none;
    return true;
  }
  if (parse_constant(text, o)) return true;
  if (text == "null" && reads) {
    o.where = place::constant;
    return true;
  }
  const bool high = text.ends_with("_hi"), half = high || text.ends_with("_lo");
  const std::string_view whole = text.substr(0, text.size() - (half ? 3 : 0));
  for (const named& n : names)
    if (whole == n.name && (!half || (n.dwords == 2 && !n.special))) {
      o.where = n.special ? place::special : place::sgpr;
      o.index = static_cast<std::uint16_t>(n.index + high);
      o.dwords = static_cast<std::uint8_t>(half ? 1 : n.dwords);
      return true;
    }
  return parse_register(text, o);
}

}  // namespace amdgpu
