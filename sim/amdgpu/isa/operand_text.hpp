// SPDX-License-Identifier: MIT
// The parts of an instruction's text, and an operand of one.
#pragma once
#include <vector>

#include "amdgpu/isa/operation.hpp"

namespace amdgpu {

// An instruction's text in pieces: operands, and the modifiers that stand behind them.
struct pieces {
  std::string_view name;
  std::vector<std::string_view> operands;
  std::vector<std::string_view> mods;
};
pieces split(std::string_view text);

inline bool starts(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }

// False if the text is no operand of that type, one of the letters of a row's form. reads: a source.
bool parse_operand(std::string_view text, char type, operand& o, bool reads = true);

}  // namespace amdgpu
