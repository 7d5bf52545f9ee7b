// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string_view>

namespace xio {

// What fingers do between two words: letters to change, to add, to leave out, or neighbours to swap, each counted as
// one (Damerau's distance, no letter edited twice). For "did you mean".
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace xio
