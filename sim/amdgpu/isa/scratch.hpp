// SPDX-License-Identifier: MIT
// Private memory. Lanes' dwords are interleaved: dword k of lane l lies at base + (k * L + l) * 4 in a wave of L lanes
// (MI200 ISA 8.1.5.2, "Swizzled buffer addressing", with elements of 4 bytes and an index stride of 64; LLVM
// AMDGPUUsage, "Private address space"). BASE is the wave's, from FLAT_SCRATCH or from a buffer resource.
#pragma once
#include "amdgpu/isa/wave.hpp"

namespace amdgpu {

// Each active lane's `bytes` at its offset. False: the fault is written down.
bool scratch_load(wave& w, const operation& o, std::uint64_t base, const std::uint32_t* offset, std::uint64_t active,
                  unsigned bytes, std::uint32_t* data);
bool scratch_store(wave& w, const operation& o, std::uint64_t base, const std::uint32_t* offset, std::uint64_t active,
                   unsigned bytes, const std::uint32_t* data);

}  // namespace amdgpu
