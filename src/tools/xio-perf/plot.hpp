// SPDX-License-Identifier: MIT
// A picture of the results, drawn by gnuplot.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace xio::perf {

// One line of the picture.
struct curve {
  std::string name;
  std::vector<std::pair<std::uint64_t, double>> points;  // bytes, value
  bool open = false;  // its points: it belongs to the curve before it, whose colour it has
};

struct picture {
  std::string title;
  std::string value_axis;  // "median, us"
  std::vector<curve> curves;
};

// Throws xio::error if gnuplot does not make the file.
void draw(const picture& p, const std::string& file);

}  // namespace xio::perf
