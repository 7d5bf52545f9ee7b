// SPDX-License-Identifier: MIT
#include "base/edit_distance.hpp"

#include <algorithm>
#include <vector>

namespace xio {

// Three rows of the usual table: a swap looks two rows back.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::size_t likely_word(std::string_view given, std::span<const std::string_view> known) {
  std::size_t best = known.size(), least = SIZE_MAX;
  for (std::size_t i = 0; i < known.size() && !given.empty(); ++i) {
    const bool begins = given.size() >= 3 && known[i].starts_with(given);
    const std::size_t d = begins ? 1 : edit_distance(given, known[i]);
    const std::size_t most = std::min<std::size_t>(3, (std::max(given.size(), known[i].size()) + 2) / 3);
    if (d <= most && d < least) least = d, best = i;
  }
  return best;
}

}  // namespace xio
