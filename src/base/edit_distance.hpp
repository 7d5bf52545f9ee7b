// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace xio {

// The number of typing errors between two words: letters changed, added or left out, or neighbours swapped, each
// counted as one (Damerau's distance, no letter edited twice). For "did you mean".
std::size_t edit_distance(std::string_view a, std::string_view b);

// Number of the word that was probably meant: one that begins with what was given, or is one to three edits away,
// shorter words fewer. `known.size()` if there is none.
std::size_t likely_word(std::string_view given, std::span<const std::string_view> known);

}  // namespace xio
