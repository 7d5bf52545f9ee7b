// SPDX-License-Identifier: MIT
#pragma once
#include <string>

#include "amdgpu/driver/page_table.hpp"

namespace amdgpu {

// The name of the kernel with that descriptor: from the dynamic symbols of the code object around it, which a loader
// puts in front of the code; empty if there is none.
std::string kernel_name(const page_table& table, std::uint64_t kernel_object);

// Where that code object begins; 0 if there is none.
std::uint64_t start_of_code(const page_table& table, std::uint64_t kernel_object);

}  // namespace amdgpu
