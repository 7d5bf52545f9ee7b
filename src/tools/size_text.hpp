// SPDX-License-Identifier: MIT
// Bytes as people write them: 4096, 4k, 1M, 2G; powers of 1024.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace xio::tools {

// As CLI11 reads sizes. Nothing for what is no size, does not fit 64 bits, or has 20 digits. Units: k, M, G, T, P, E,
// in either case, also as kB or KiB.
std::optional<std::uint64_t> size_of_text(const std::string& text);

// The shortest text that means exactly this: 4096 -> "4k", 4097 -> "4097".
std::string text_of_size(std::uint64_t bytes);

// For reading: "4.0 KiB", "1.5 GiB", "17 B".
std::string rounded_size(double bytes);

}  // namespace xio::tools
