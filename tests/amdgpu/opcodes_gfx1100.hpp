// SPDX-License-Identifier: MIT
// A wave of gfx1100 for tests of its instructions: 32 lanes, halves of registers.
#pragma once
#include "amdgpu/opcodes.hpp"

namespace amdgpu::test {

constexpr unsigned narrow = 32;

inline void use(machine& m, bool wave32 = true) {
  m.shared.how.target = amdgpu::target::gfx1100;
  m.wave32(wave32);
}

struct gfx1100 : testing::Test {
  gfx1100() { use(m); }
  machine m;
};

// A half of a register whose other half was poison.
inline u32 low(u32 x) { return (machine::poison & 0xffff0000) | (x & 0xffff); }
inline u32 high(u32 x) { return (machine::poison & 0xffff) | x << 16; }
inline i32 s(u32 x) { return static_cast<i32>(x); }

}  // namespace amdgpu::test
