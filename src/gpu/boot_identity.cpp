// SPDX-License-Identifier: MIT
#include <fstream>

#include "gpu/gpu.hpp"

namespace xio::gpu {

std::string boot_identity() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return boot;
}

}  // namespace xio::gpu
