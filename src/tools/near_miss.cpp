// SPDX-License-Identifier: MIT
#include "tools/near_miss.hpp"
#include "base/edit_distance.hpp"

namespace xio::tools {
namespace {

std::string_view without_dashes(std::string_view word) {
  const std::size_t first = word.find_first_not_of('-');
  return first == std::string_view::npos ? std::string_view() : word.substr(first);
}

}  // namespace

std::string near_miss(const std::string& given, const std::vector<std::string>& known) {
  std::vector<std::string_view> bare;
  for (const std::string& word : known) bare.push_back(without_dashes(word));
  const std::size_t at = likely_word(without_dashes(std::string_view(given).substr(0, given.find('='))), bare);
  return at == known.size() ? "" : known[at];
}

std::string did_you_mean(const std::string& given, const std::vector<std::string>& known) {
  const std::string word = near_miss(given, known);
  return word.empty() ? "" : "; did you mean " + word + "?";
}

}  // namespace xio::tools
