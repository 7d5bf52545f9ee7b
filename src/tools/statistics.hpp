// SPDX-License-Identifier: MIT
// What many measurements of one thing come to.
#pragma once
#include <cstddef>
#include <vector>

namespace xio::tools {

struct statistics {
  std::size_t count = 0;
  double min = 0, median = 0, p95 = 0, p99 = 0, p999 = 0, p9999 = 0, max = 0, mean = 0;
};

// The median of an even number is the mean of the two in the middle; p99 is the smallest sample that at least 99 % of
// all do not exceed (nearest rank), p999 the one for 99.9 %: of fewer than a thousand samples that is the largest;
// p95 and p9999 likewise. All zero without samples.
statistics statistics_of(std::vector<double> samples);

}  // namespace xio::tools
