// SPDX-License-Identifier: MIT
#include "base/option_words.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/edit_distance.hpp"
#include "base/error.hpp"

namespace xio::option {

std::size_t number_of_word(std::string_view text, std::span<const word> all, const std::string& variable) {
  const auto at = std::ranges::find(all, text);
  if (at != all.end()) return static_cast<std::size_t>(at - all.begin());
  const std::size_t meant = likely_word(text, all);
  fail(XIO_ERR_CONFIG, "{}='{}' is not known; use one of {}{}", variable, text, fmt::join(all, "|"),
       meant == all.size() ? "" : fmt::format("; did you mean {}?", all[meant]));
}

}  // namespace xio::option
