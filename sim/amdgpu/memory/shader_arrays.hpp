// SPDX-License-Identifier: MIT
// The L1s of a gfx1100's shader arrays. The compute units of an array have one between their L0s and the L2, so that a
// workgroup may find a line in it that another workgroup has read (LLVM AMDGPUUsage, "Memory Model GFX10-GFX11"). A
// kernel's workgroups go to them in turn.
#pragma once
#include <memory>
#include <vector>

#include "amdgpu/memory/vector_cache.hpp"

namespace amdgpu {

class shader_arrays {
 public:
  static constexpr unsigned count = 2;

  shader_arrays(const address_space& of, l2_cache& l2, std::uint64_t seed) {
    for (unsigned i = 0; i < count; ++i) each.push_back(std::make_unique<array>(of, l2, seed + std::uint64_t{128} * i));
  }

  vector_cache& of_workgroup(std::uint64_t number) { return each[number % count]->l1; }
  void invalidate() {
    for (auto& one : each) one->l1.invalidate();
  }

 private:
  struct array {
    array(const address_space& of, l2_cache& l2, std::uint64_t seed)
        : behind(of, &l2), random(seed), l1(of, behind, random) {}
    l2_port behind;
    std::mt19937_64 random;
    vector_cache l1;
  };
  std::vector<std::unique_ptr<array>> each;
};

}  // namespace amdgpu
