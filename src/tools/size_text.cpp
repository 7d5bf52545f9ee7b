// SPDX-License-Identifier: MIT
#include "tools/size_text.hpp"

#include <cctype>
#include <charconv>
#include <cstdio>

namespace xio::tools {

namespace {

constexpr const char k_units[] = "KMGT";

// The shift that a unit stands for, or -1.
int shift_of(const std::string& unit) {
  if (unit.empty() || unit == "B") return 0;
  const std::string rest = unit.substr(1);
  if (!rest.empty() && rest != "B" && rest != "iB") return -1;
  const int letter = std::toupper(static_cast<unsigned char>(unit[0]));
  for (int i = 0; i < 4; ++i)
    if (k_units[i] == letter) return 10 * (i + 1);
  return -1;
}

}  // namespace

std::optional<std::uint64_t> size_of_text(const std::string& text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, wrong] = std::from_chars(text.data(), end, value);
  if (wrong != std::errc{}) return std::nullopt;
  const int shift = shift_of(std::string(rest, end));
  if (shift < 0 || (shift > 0 && value >> (64 - shift) != 0)) return std::nullopt;
  return value << shift;
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
