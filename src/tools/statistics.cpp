// SPDX-License-Identifier: MIT
#include "tools/statistics.hpp"

#include <algorithm>
#include <numeric>

namespace xio::tools {

statistics statistics_of(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  const std::size_t n = samples.size();
  statistics s;
  s.count = n;
  s.min = samples.front();
  s.max = samples.back();
  s.median = n % 2 == 1 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
  s.p99 = samples[(n * 99 + 99) / 100 - 1];
  s.mean = std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(n);
  return s;
}

}  // namespace xio::tools
