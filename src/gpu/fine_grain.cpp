// SPDX-License-Identifier: MIT
#include "gpu/fine_grain.hpp"

#include <fmt/core.h>

namespace xio::gpu {

namespace {

// Radeon GPUs: gfx10xx, gfx11xx, gfx12xx. They have no xGMI.
bool is_radeon(const std::string& name) {
  return name.size() == 7 && name.rfind("gfx1", 0) == 0 && name[3] == '1' && name[4] >= '0' && name[4] <= '2';
}

}  // namespace

// ROCR shows a GPU's fine-grained pool if the GPU is in an xGMI hive or this variable is exactly "1" (runtime/
// hsa-runtime/core/runtime/amd_gpu_agent.cpp, InitRegionList; core/util/flag.h). It looks when the program first uses
// the GPU, so setting it later is too late.
std::optional<std::string> fine_grain_obstacle(const fine_grain_facts& f) {
  if (f.integrated) return {};
  const std::string name = f.arch.substr(0, f.arch.find(':'));
  const bool forced = f.forced == "1";
  const bool alone = is_radeon(name) || (f.hive && *f.hive == 0);
  const bool hidden = is_radeon(name) && !forced;
  if (!hidden && f.allocates) return {};
  if (alone && !forced)
    return fmt::format(
        "{} is on PCIe alone, where the runtime has no fine-grained memory for the symmetric heap unless it is asked "
        "to{}; set HSA_FORCE_FINE_GRAIN_PCIE=1 in the environment of every PE before it starts",
        name, f.forced.empty() ? "" : fmt::format(" (HSA_FORCE_FINE_GRAIN_PCIE='{}' is not 1)", f.forced));
  return fmt::format(
      "{} gives no fine-grained memory for the symmetric heap{}; use a newer ROCm, another GPU, or a build with "
      "--with-gpu=host",
      name, forced ? " although HSA_FORCE_FINE_GRAIN_PCIE is 1" : ", and HSA_FORCE_FINE_GRAIN_PCIE is not 1");
}

}  // namespace xio::gpu
