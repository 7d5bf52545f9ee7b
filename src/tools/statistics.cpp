// SPDX-License-Identifier: MIT
#include "tools/statistics.hpp"

#include <algorithm>
#include <numeric>

namespace xio::tools {

namespace {

// Nearest rank, from 0 on: the least number of sorted samples that are at least `per_mille` of `n`.
std::size_t rank(std::size_t n, std::size_t per_mille) {
  return n / 1000 * per_mille + (n % 1000 * per_mille + 999) / 1000 - 1;
}

}  // namespace

statistics statistics_of(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  const std::size_t n = samples.size();
  statistics s;
  s.count = n;
  s.min = samples.front();
  s.max = samples.back();
  s.median = n % 2 == 1 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
  s.p99 = samples[rank(n, 990)];
  s.p999 = samples[rank(n, 999)];
  s.mean = std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(n);
  return s;
}

}  // namespace xio::tools
