// SPDX-License-Identifier: MIT
// Versions of the GPU's runtime and driver, as the runtime says them, and of what this program was built with.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace xio::verify {

std::vector<std::pair<const char*, std::string>> runtime_versions();

}  // namespace xio::verify
