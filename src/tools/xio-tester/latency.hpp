// SPDX-License-Identifier: MIT
// Latencies as people read them: quantiles and a histogram, from stamps of every op or from counts by powers of two.
#pragma once
#include <string>

#include "tools/statistics.hpp"
#include "tools/xio-tester/recorder.hpp"

namespace xio::tester {

// Microseconds, of those of `count` stamps that are not 0.
tools::statistics summarize(const u64* stamps, std::uint64_t count, double us_per_tick);
// Of sums: without median and percentiles.
tools::statistics summarize(const std::vector<const lane_record*>& lanes, double us_per_tick);

// Rows "  8.2 .. 16.4 us  120  ########" from the first to the last that is not empty.
std::string histogram(const std::vector<const lane_record*>& lanes, double us_per_tick);

}  // namespace xio::tester
