// SPDX-License-Identifier: MIT
// Which GPU a number means where the environment shows some of them only.
#pragma once
#include <functional>
#include <optional>
#include <string>

namespace xio::tools {

struct visible_gpu {
  std::string variable;  // that the runtime looks at
  std::string entry;     // which that variable is to hold, so that only this GPU is seen
};

// The number-th of those that CUDA_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES show, from 0 on; of all where neither is set.
// platform: "hip" or "cuda". value_of: a variable, or none. None if fewer are shown.
std::optional<visible_gpu> find_visible_gpu(
    const std::string& platform, int number,
    const std::function<std::optional<std::string>(const std::string& variable)>& value_of);

}  // namespace xio::tools
