// SPDX-License-Identifier: MIT
// Whether the runtime has fine-grained memory on an AMD GPU. The symmetric heap needs it: in other memory, what peers
// write while a kernel runs is seen only after the kernel.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace xio::gpu {

struct fine_grain_facts {
  std::string arch;                   // "gfx1100"
  bool integrated = false;            // an APU
  std::optional<std::uint64_t> hive;  // of GPUs linked by xGMI, 0: of none; nothing: not known
  bool allocates = true;              // the runtime gave some when it was asked
  std::string forced;                 // HSA_FORCE_FINE_GRAIN_PCIE, empty if not set
};

// Why there is none and what to do, or nothing.
std::optional<std::string> fine_grain_obstacle(const fine_grain_facts& facts);

}  // namespace xio::gpu
