// SPDX-License-Identifier: MIT
// gfx1100 has other names for most of what gfx90a has too. The tables are by gfx90a's.
#pragma once
#include <string>
#include <string_view>

namespace amdgpu {

// The name that the tables have; the same one where nothing is known of it.
std::string name_in_tables(std::string_view gfx1100);

}  // namespace amdgpu
