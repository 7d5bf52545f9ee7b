// SPDX-License-Identifier: MIT
// What a kernel's waves executed, counted by kind.
#pragma once
#include <array>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>

namespace amdgpu {

// Kinds of instructions, as the ISA manual's chapters divide them.
enum class count : unsigned {
  salu,
  valu,
  smem,
  lds,
  flat,        // FLAT and GLOBAL loads and stores
  scratch,     // SCRATCH and MUBUF accesses: spills, arrays and frames
  atomic,      // atomics on memory
  wait,        // s_waitcnt and its kin
  writeback,   // buffer_wbl2
  invalidate,  // buffer_invl2, buffer_wbinvl1
  branch,
  barrier,
  other,
  kinds
};

struct counters {
  std::array<std::uint64_t, static_cast<unsigned>(count::kinds)> executed{};
  std::uint64_t instructions = 0, waves = 0;
  unsigned registers = 0;                   // VGPRs and AGPRs that a lane of a wave takes
  std::unordered_set<std::uint64_t> lines;  // of 64 bytes that code was run from; kept where launch::counts_lines
  std::unordered_map<std::uint64_t, std::uint64_t> times;  // of each instruction, by address; where launch::counts_each

  std::uint64_t of(count which) const { return executed[static_cast<unsigned>(which)]; }
  counters& operator+=(const counters& more) {
    for (unsigned i = 0; i < executed.size(); ++i) executed[i] += more.executed[i];
    instructions += more.instructions;
    waves += more.waves;
    registers = more.registers;
    lines.insert(more.lines.begin(), more.lines.end());
    for (const auto& [address, ran] : more.times) times[address] += ran;
    return *this;
  }
};

// "salu", "valu", ...
const char* name_of(count which);

}  // namespace amdgpu
