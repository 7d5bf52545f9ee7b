// SPDX-License-Identifier: MIT
// Instructions that order memory: s_waitcnt, buffer_wbl2, buffer_invl2, buffer_wbinvl1 and the glc of a load. Some of
// them can be ignored, without another compilation, so that a script finds out which test notices that it is missing.
// A site is where it stands in its code object, as llvm-objdump prints it.
#pragma once
#include "amdgpu/isa/wave.hpp"

namespace amdgpu {

// A write-back may also be one that nobody waits for, as where a compiler has dropped the wait behind it.
enum class ignoring : std::uint8_t { all, wait };

// Said before a program's first instruction. IGNORED are sites; LIST is a file that gets a line for each site
// that a program's kernel comes to, or empty.
void watch_sites(const std::map<std::uint64_t, ignoring>& ignored, const std::string& list);

// operation::variant of a buffer_wbl2 that no s_waitcnt covers.
constexpr std::uint8_t k_unwaited = 1;

// Called once for each instruction at its first run, before it: does away with its effect if it is the one to ignore.
void look_at_site(operation& made, const wave& w);

}  // namespace amdgpu
