// SPDX-License-Identifier: MIT
#include "tools/xio-tester/latency.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

namespace xio::tester {
namespace {

constexpr std::uint64_t k_bar = 50;

}  // namespace

tools::statistics summarize(const u64* stamps, std::uint64_t count, double us_per_tick) {
  std::vector<double> us;
  us.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i)
    if (stamps[i] != 0) us.push_back(static_cast<double>(stamps[i]) * us_per_tick);
  return tools::statistics_of(std::move(us));
}

tools::statistics summarize(const std::vector<const lane_record*>& lanes, double us_per_tick) {
  tools::statistics l;
  std::uint64_t least = ~std::uint64_t{0}, most = 0;
  double sum = 0;
  for (const lane_record* r : lanes) {
    for (const u64 n : r->buckets) l.count += n;
    if (r->most == 0) continue;  // a lane that only helps another one
    least = std::min(least, r->least);
    most = std::max(most, r->most);
    sum += static_cast<double>(r->sum);
  }
  if (l.count == 0) return l;
  l.min = static_cast<double>(least) * us_per_tick;
  l.max = static_cast<double>(most) * us_per_tick;
  l.mean = sum / static_cast<double>(l.count) * us_per_tick;
  return l;
}

std::string histogram(const std::vector<const lane_record*>& lanes, double us_per_tick) {
  std::array<std::uint64_t, k_buckets> counts{};
  for (const lane_record* r : lanes)
    for (u32 b = 0; b < k_buckets; ++b) counts[b] += r->buckets[b];
  const std::uint64_t tallest = *std::ranges::max_element(counts);
  if (tallest == 0) return "";
  u32 first = 0, last = k_buckets - 1;
  while (counts[first] == 0) ++first;
  while (counts[last] == 0) --last;
  std::string text;
  for (u32 b = first; b <= last; ++b) {
    const double low = b == 0 ? 0 : static_cast<double>(std::uint64_t{1} << b) * us_per_tick;
    const double high = static_cast<double>(std::uint64_t{2} << b) * us_per_tick;
    // A bucket that has any sample has a mark.
    const std::uint64_t bar = (counts[b] * k_bar + tallest - 1) / tallest;
    text += fmt::format("  {:>12.3f} .. {:<12.3f} us {:>10}  {}\n", low, high, counts[b], std::string(bar, '#'));
  }
  return text;
}

}  // namespace xio::tester
