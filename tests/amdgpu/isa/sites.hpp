// SPDX-License-Identifier: MIT
// Instructions that order memory: s_waitcnt, buffer_wbl2, buffer_invl2, buffer_wbinvl1 and the glc of a load. Some of
// them can be ignored, without another compilation, so that a script finds out which test notices that it is missing.
// A site is where it stands in its code object, as llvm-objdump prints it.
#pragma once
#include <cstdint>
#include <set>
#include <string>

#include "amdgpu/isa/wave.hpp"

namespace amdgpu {

// Said before a program's first instruction. IGNORED are sites; LIST is a file that gets a line for each site
// that a program's kernel comes to, or empty.
void watch_sites(const std::set<std::uint64_t>& ignored, const std::string& list);

// Called once for each instruction at its first run, before it: does away with its effect if it is the one to ignore.
void look_at_site(operation& made, const wave& w);

}  // namespace amdgpu
