// SPDX-License-Identifier: MIT
// Instructions as text, by the disassembler of LLVM's C library. It is loaded at run time, so that building needs no
// LLVM, and stays apart from the LLVM that a HIP runtime may have loaded.
#pragma once
#include <cstddef>

#include "amdgpu/isa/launch.hpp"

namespace amdgpu {

class disassembler {
 public:
  // The process's only one for that GPU, and on gfx1100 for waves of so many lanes. Not for several threads at once:
  // the decoder's lock guards it.
  static disassembler& of(target gpu, bool wave32 = true);

  // Empty if it works; else why not, in one sentence.
  const std::string& broken() const { return problem; }
  // Bytes of the instruction at CODE, its text in TEXT; 0: it is none.
  std::size_t read(const std::uint32_t* code, std::size_t bytes, std::uint64_t pc, std::string& text);

 private:
  explicit disassembler(const char* cpu, const char* features = "");

  using instruction_call = std::size_t (*)(void*, std::uint8_t*, std::uint64_t, std::uint64_t, char*, std::size_t);
  void* context = nullptr;
  instruction_call instruction = nullptr;
  std::string problem;
};

}  // namespace amdgpu
