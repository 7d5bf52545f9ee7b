// SPDX-License-Identifier: MIT
// The L2s of one GPU: one, or on gfx942 one for each XCC, of which no one looks into another. A kernel's workgroups go
// to them in turn, as to the XCDs of an MI300X.
#pragma once
#include <memory>
#include <vector>

#include "amdgpu/memory/l2_cache.hpp"

namespace amdgpu {

class l2_caches {
 public:
  l2_caches(std::uint64_t seed, bool hdp, l2_rules by) : several(by.of_gpu > 1) {
    for (unsigned i = 0; i < by.of_gpu; ++i)
      each.push_back(std::make_unique<l2_cache>(seed + std::uint64_t{64} * i, hdp, by, &path));
  }

  // Whether kernels of the GPU do not see each other's stores without a write-back.
  bool are_several() const { return several; }
  l2_cache& of_workgroup(std::uint64_t number) { return *each[number % each.size()]; }
  void write_back() {
    for (auto& l2 : each) l2->write_back();
  }
  void invalidate() {
    for (auto& l2 : each) l2->invalidate();
  }
  void forget(std::uint64_t at, std::uint64_t bytes) {
    for (auto& l2 : each) l2->forget(at, bytes);
  }
  void flush_register(std::uint32_t* at) { path.flush_word = at; }
  void flush_host_path() {
    for (auto& l2 : each) l2->flush_host_path();
  }

 private:
  const bool several;
  host_path path;
  std::vector<std::unique_ptr<l2_cache>> each;
};

}  // namespace amdgpu
