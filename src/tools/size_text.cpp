// SPDX-License-Identifier: MIT
#include "tools/size_text.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdio>

namespace xio::tools {

namespace {

constexpr const char k_units[] = "KMGT";

// Digits without a leading zero, few enough for 64 bits, and letters. CLI11 alone reads -1 as the largest number, 010
// as 8 and k as 1024, and cuts what is too large.
bool is_size(const std::string& text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const bool number = digits != 0 && digits < 20 && (text[0] != '0' || digits == 1);
  return number && std::all_of(text.begin() + static_cast<std::ptrdiff_t>(digits), text.end(),
                               [](unsigned char c) { return std::isalpha(c) != 0; });
}

}  // namespace

std::optional<std::uint64_t> size_of_text(const std::string& text) {
  static const CLI::AsSizeValue to_bytes(false);
  if (!is_size(text)) return std::nullopt;
  std::string bytes = text;
  try {
    if (!to_bytes(bytes).empty()) return std::nullopt;
  } catch (const CLI::ValidationError&) {
    return std::nullopt;
  }
  return std::stoull(bytes);
}

std::string text_of_size(std::uint64_t bytes) {
  int unit = 0;
  while (bytes != 0 && unit < 4 && bytes % 1024 == 0) bytes /= 1024, ++unit;
  std::string text = std::to_string(bytes);
  if (unit > 0) text += unit == 1 ? 'k' : k_units[unit - 1];
  return text;
}

std::string rounded_size(double bytes) {
  int unit = 0;
  while (bytes >= 1024 && unit < 4) bytes /= 1024, ++unit;
  char text[48];
  if (unit == 0)
    std::snprintf(text, sizeof text, "%.0f B", bytes);
  else
    std::snprintf(text, sizeof text, "%.1f %ciB", bytes, k_units[unit - 1]);
  return text;
}

}  // namespace xio::tools
