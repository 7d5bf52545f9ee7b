// SPDX-License-Identifier: MIT
#include "tools/near_miss.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/edit_distance.hpp"

namespace xio::tools {

namespace {

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
    const std::size_t d = begins ? 1 : edit_distance(bare, other);
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
