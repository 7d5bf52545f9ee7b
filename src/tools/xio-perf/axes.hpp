// SPDX-License-Identifier: MIT
// Where the ticks of a picture's logarithmic axes stand, so that they can be read.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace xio::perf {

// The ticks of an axis of sizes: the sizes themselves, but for those that would stand in another's place.
std::vector<std::uint64_t> size_ticks(const std::vector<std::uint64_t>& sizes);
// "8", "4K", "1M"
std::string tick_text(std::uint64_t bytes);
// The ticks of a logarithmic axis of values, all of which lie between its first and its last: 1, 2 and 5 times powers
// of ten, or powers of ten where these would be many.
std::vector<double> value_ticks(double least, double most);

}  // namespace xio::perf
