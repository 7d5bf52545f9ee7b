// SPDX-License-Identifier: MIT
// Latencies as people read them: quantiles and a histogram, from stamps of every op or from counts by powers of two.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tools/xio-tester/recorder.hpp"

namespace xio::tester {

struct latencies {
  std::uint64_t count = 0;
  double least = 0, median = 0, p99 = 0, most = 0, mean = 0;  // microseconds
  bool has_quantiles = false;                                 // of stamps only
};

latencies summarize(const std::vector<std::uint64_t>& stamps, double us_per_tick);
latencies summarize(const std::vector<const lane_record*>& lanes, double us_per_tick);

// Rows "  8.2 .. 16.4 us  120  ########" from the first to the last that is not empty.
std::string histogram(const std::vector<const lane_record*>& lanes, double us_per_tick);

}  // namespace xio::tester
