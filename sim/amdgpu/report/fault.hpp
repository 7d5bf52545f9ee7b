// SPDX-License-Identifier: MIT
// Why a kernel was stopped: the values, and one sentence of them.
#pragma once
#include <cstdint>
#include <string>

namespace amdgpu {

struct fault {
  enum class kind {
    none,
    memory,     // no mapping, or a store to one that is read only
    alignment,  // an atomic or LDS access whose address is not a multiple of its size
    lds,        // outside of the workgroup's LDS
    unknown,    // an instruction that the interpreter does not know
    illegal,    // bytes that are no instruction, or an operand that does not exist
    trap,       // s_trap of the program itself
    early,      // a register was used before its load was waited for
    unwritten,  // a register that nothing wrote decides something
    launch      // a kernel descriptor that cannot be run
  };

  kind what = kind::none;
  std::string kernel;       // its name, empty where nobody told it
  std::uint64_t pc = 0;     // address of the instruction
  std::string instruction;  // its text
  std::uint32_t workgroup[3] = {0, 0, 0};
  unsigned wave = 0;          // in its workgroup
  int lane = -1;              // -1: the instruction has no lanes
  std::uint64_t address = 0;  // what was accessed; LDS: the offset in it
  unsigned bytes = 0;
  bool write = false;
  unsigned trap = 0;  // kind::trap: its number
  std::string why;    // the cause, in words

  explicit operator bool() const { return what != kind::none; }
  // One sentence: what, where, why.
  std::string sentence() const;
};

}  // namespace amdgpu
