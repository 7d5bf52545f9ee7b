// SPDX-License-Identifier: MIT
// The vector L1 cache of the compute unit that runs a workgroup: write-through, and coherent with nobody. A line holds
// what memory had when it was read, until an invalidate (LLVM AMDGPUUsage, "Memory Model GFX90A": buffer_wbinvl1_vol is
// required between wavefronts of different workgroups, as their CUs may differ), or until it makes room, which a seed
// chooses. A load with glc reads past it, as do atomics. A workgroup starts with an empty one: the command processor
// invalidates L1 at each kernel's start.
// gfx1100 has two in a row: an L0 of the compute unit and the L1 of its shader array, from which the L0 is filled (LLVM
// AMDGPUUsage, "Memory Model GFX10-GFX11"). Workgroups share the latter (shader_arrays.hpp), so each cache has a lock.
#pragma once
#include "amdgpu/memory/l2_port.hpp"

namespace amdgpu {

class vector_cache {
 public:
  static constexpr std::uint64_t line_bytes = 64;  // AMD CDNA 2 white paper; 16 KiB in all
  static constexpr std::size_t lines_at_most = 256;

  vector_cache(const address_space& of, l2_port& behind, std::mt19937_64& random)
      : space(of), memory(behind), random(random), keeps(random() % 2 != 0) {}

  bool load(const access& of, std::uint32_t* data, refusal& no);
  bool store(const access& of, const std::uint32_t* data, refusal& no);
  // An atomic is done behind the cache: its lines leave.
  void drop(const access& of);
  void invalidate() {
    const std::lock_guard hold(guard);
    lines.clear();
  }
  // Another cache lies between this one and memory.
  void put_before(vector_cache& other) { next = &other; }

 private:
  using line = std::array<std::uint8_t, line_bytes>;

  bool passes(const access& of) const { return of.kind == access_kind::scratch || of.scope.glc; }
  void forget_unmapped();
  void drop_line(const access& of);
  void forget(const access& of);
  const line* filled(std::uint64_t base);

  std::mutex guard;
  const address_space& space;
  l2_port& memory;
  vector_cache* next = nullptr;
  std::mt19937_64& random;
  const bool keeps;  // no line makes room by itself, so that who polls a stale one does so for ever
  std::unordered_map<std::uint64_t, line> lines;  // by address
  std::uint64_t seen = 0;                         // generation of what the lines hold
};

}  // namespace amdgpu
