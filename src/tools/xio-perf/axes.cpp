// SPDX-License-Identifier: MIT
#include "tools/xio-perf/axes.hpp"

#include <algorithm>
#include <cmath>

#include "tools/size_text.hpp"

namespace xio::perf {
namespace {

constexpr int k_wide_decades = 3;  // beyond them, ticks at 2 and 5 would stand too close
constexpr double k_most_size_ticks = 20;

}  // namespace

std::vector<std::uint64_t> size_ticks(const std::vector<std::uint64_t>& sizes) {
  std::vector<std::uint64_t> ticks;
  const double span = std::log2(static_cast<double>(sizes.back()) / static_cast<double>(sizes.front()));
  for (const std::uint64_t bytes : sizes)
    if (ticks.empty() ||
        std::log2(static_cast<double>(bytes) / static_cast<double>(ticks.back())) >= span / k_most_size_ticks)
      ticks.push_back(bytes);
  return ticks;
}

std::string tick_text(std::uint64_t bytes) {
  std::string text = tools::text_of_size(bytes);
  if (text.back() == 'k') text.back() = 'K';
  return text;
}

std::vector<double> value_ticks(double least, double most) {
  const int low = static_cast<int>(std::floor(std::log10(least)));
  const int high = static_cast<int>(std::ceil(std::log10(most)));
  std::vector<double> all;
  for (int power = low; power <= high; ++power)
    for (const double times : {1.0, 2.0, 5.0})
      if (times == 1 || high - low <= k_wide_decades) all.push_back(times * std::pow(10.0, power));
  const auto above = std::ranges::upper_bound(all, least);
  const auto last = std::lower_bound(above, all.end(), most);
  return {above == all.begin() ? above : above - 1, last == all.end() ? last : last + 1};
}

}  // namespace xio::perf
