// SPDX-License-Identifier: MIT
// Which registers of a wave wait for a load, and which waits bring them (MI200 ISA 4.4). A register that is used before
// is a fault of the program: the GPU has no interlock for it.
#pragma once
#include "amdgpu/isa/wave.hpp"

namespace amdgpu {

// Called before an instruction runs: counts what it issues. False: it uses a register that is still under way, which
// is written down as a fault.
bool in_time(wave& w, const operation& o);

// s_waitcnt with so many accesses left.
void wait_for_vector(wave& w, const operation& o, unsigned left);
void wait_for_lgkm(wave& w, unsigned left);
// gfx1100's s_waitcnt_vscnt.
void wait_for_stores(wave& w, const operation& o, unsigned left);
// All accesses to memory, as at a wave's end.
void wait_for_all(wave& w, const operation& o);

}  // namespace amdgpu
