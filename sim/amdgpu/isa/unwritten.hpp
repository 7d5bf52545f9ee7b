// SPDX-License-Identifier: MIT
// Registers that nothing has written, as valgrind's memcheck follows memory: a value that depends on one may be moved
// and computed with, as compilers do, and is reported where it decides something: an address, what a store writes to
// memory, EXEC, or a branch. VGPRs are followed by lane, and SGPRs by bit, since lane masks are put together from
// parts. Loads from memory and the LDS give what counts as written.
#pragma once
#include <cstdint>
#include <map>

namespace amdgpu {

struct wave;
struct operation;

// A bit is 1 where something was written.
struct written_registers {
  std::uint64_t v[512] = {};  // by lane; AGPRs behind the VGPRs
  std::uint32_t s[128] = {};
  bool scc = false;
  // Of a lane that is not written as a whole the bits that are, by register * 64 + lane: compilers save SGPRs in lanes.
  std::map<unsigned, std::uint32_t> parts;
};

// A wave that starts: `sgprs` registers from s0 on and v0 are set up for it. `in` outlives the wave.
void start_watching(wave& w, unsigned sgprs, written_registers& in);

// Before an instruction runs: follows what it writes. False: it depends on what was never written, and the wave is
// stopped.
bool reads_written(wave& w, const operation& o);

}  // namespace amdgpu
