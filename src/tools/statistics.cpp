// SPDX-License-Identifier: MIT
#include "tools/statistics.hpp"

#include <algorithm>
#include <numeric>

namespace xio::tools {
namespace {

// Nearest rank, from 0 on: the least number of sorted samples that are at least so many of 10000 of `n`.
std::size_t rank(std::size_t n, std::size_t of_10000) {
  return n / 10000 * of_10000 + (n % 10000 * of_10000 + 9999) / 10000 - 1;
}

}  // namespace

statistics statistics_of(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::ranges::sort(samples);
  const std::size_t n = samples.size();
  statistics s;
  s.count = n;
  s.min = samples.front();
  s.max = samples.back();
  s.median = n % 2 == 1 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
  s.p95 = samples[rank(n, 9500)];
  s.p99 = samples[rank(n, 9900)];
  s.p999 = samples[rank(n, 9990)];
  s.p9999 = samples[rank(n, 9999)];
  s.mean = std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(n);
  return s;
}

}  // namespace xio::tools
