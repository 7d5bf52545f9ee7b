// SPDX-License-Identifier: MIT
// Bytes as people write them: 4096, 4k, 1M, 2G; powers of 1024. command_line.hpp reads them.
#pragma once
#include <cstdint>
#include <string>

namespace xio::tools {

// The shortest text that means exactly this: 4096 -> "4k", 4097 -> "4097".
std::string text_of_size(std::uint64_t bytes);

// For reading: "4.0 KiB", "1.5 GiB", "17 B".
std::string rounded_size(double bytes);

}  // namespace xio::tools
