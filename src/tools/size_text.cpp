// SPDX-License-Identifier: MIT
#include "tools/size_text.hpp"

#include <cstdio>

namespace xio::tools {
namespace {

constexpr const char k_units[] = "KMGT";

}  // namespace

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
