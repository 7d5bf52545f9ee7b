// SPDX-License-Identifier: MIT
#include "tools/near_miss.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace xio::tools {

namespace {

// Letters to change, to add, to leave out, or neighbours to swap: what fingers do. Three rows of the usual table.
std::size_t distance(const std::string& a, const std::string& b) {
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

std::string without_dashes(const std::string& word) {
  const std::size_t first = word.find_first_not_of('-');
  return first == std::string::npos ? "" : word.substr(first);
}

}  // namespace

std::string near_miss(const std::string& given, const std::vector<std::string>& known) {
  const std::string bare = without_dashes(given.substr(0, given.find('=')));
  if (bare.empty()) return "";
  const std::string* best = nullptr;
  std::size_t least = SIZE_MAX;
  for (const std::string& word : known) {
    const std::string other = without_dashes(word);
    const bool begins = bare.size() >= 3 && other.compare(0, bare.size(), bare) == 0;
    const std::size_t d = begins ? 1 : distance(bare, other);
    const std::size_t most = std::min<std::size_t>(3, (std::max(bare.size(), other.size()) + 2) / 3);
    if (d <= most && d < least) least = d, best = &word;
  }
  return best == nullptr ? "" : *best;
}

std::string did_you_mean(const std::string& given, const std::vector<std::string>& known) {
  const std::string word = near_miss(given, known);
  return word.empty() ? "" : "; did you mean " + word + "?";
}

}  // namespace xio::tools
