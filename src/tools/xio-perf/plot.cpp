// SPDX-License-Identifier: MIT
#include "tools/xio-perf/plot.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <iterator>
#include <limits>
#include <set>

#include "base/error.hpp"
#include "tools/new_file.hpp"
#include "tools/xio-perf/axes.hpp"

namespace xio::perf {
namespace {

// In single quotes gnuplot takes all as it stands, but for the quote.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') out += '\'';
    out += c == '\n' ? ' ' : c;
  }
  return out + "'";
}

constexpr double k_margin = 1.3;  // so that no point lies on the frame, a single one least of all

std::string x_axis_of(const std::vector<std::uint64_t>& sizes) {
  std::string ticks;
  for (const std::uint64_t bytes : size_ticks(sizes))
    ticks += fmt::format("{}{} {}", ticks.empty() ? "" : ", ", quoted(tick_text(bytes)), bytes);
  return fmt::format("set logscale x 2\nset xrange [{:.6g}:{:.6g}]\nset xtics ({})\n",
                     static_cast<double>(sizes.front()) / k_margin, static_cast<double>(sizes.back()) * k_margin,
                     ticks);
}

std::string y_axis_of(double least, double most) {
  const std::vector<double> all = value_ticks(least, most);
  std::string ticks;
  for (const double at : all) ticks += fmt::format("{}'{:g}' {:g}", ticks.empty() ? "" : ", ", at, at);
  return fmt::format("set logscale y 10\nset yrange [{:.6g}:{:.6g}]\nset ytics ({})\n", all.front() / k_margin,
                     all.back() * k_margin, ticks);
}

std::string axes_of(const picture& p) {
  std::set<std::uint64_t> sizes;
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const curve& c : p.curves)
    for (const auto& [bytes, value] : c.points) {
      sizes.insert(bytes);
      least = std::min(least, value);
      most = std::max(most, value);
    }
  return x_axis_of({sizes.begin(), sizes.end()}) + y_axis_of(least, most);
}

// gnuplot has eight colours; the next eight series have other points. It has open ones before the full ones.
constexpr unsigned k_colours = 8;
int points_of(unsigned series) {
  constexpr int k_full[] = {7, 5, 9, 11, 13, 15};
  return k_full[series / k_colours % std::size(k_full)];
}

std::string script_of(const picture& p, const std::string& file) {
  // Each curve has a line of the legend. pngcairo, where gnuplot has it, smooths lines.
  const std::string size = fmt::format("1200,{}", std::max<std::size_t>(700, 100 + 26 * p.curves.size()));
  std::string s = fmt::format(
      "if (strstrt(GPVAL_TERMINALS, 'pngcairo')) set terminal pngcairo size {0}; else set terminal png size {0}\n",
      size);
  s += "set output " + quoted(file) + "\n";
  s += "set title " + quoted(p.title) + " noenhanced\nset key outside right top spacing 1.3 noenhanced\n";
  s += "set xlabel 'bytes'\nset ylabel " + quoted(p.value_axis) + " noenhanced\n";
  s += axes_of(p) + "set grid\nplot ";
  unsigned series = 0;
  for (std::size_t i = 0; i < p.curves.size(); ++i) {
    const curve& c = p.curves[i];
    if (i != 0 && !c.open) ++series;
    s += fmt::format("{}'-' using 1:2 with linespoints linecolor {} linewidth 2 pointtype {}{} title {}",
                     i == 0 ? "" : ", ", series % k_colours + 1, points_of(series) - c.open,
                     c.open ? " dashtype 2" : "", quoted(c.name));
  }
  s += "\n";
  for (const curve& c : p.curves) {
    for (const auto& [bytes, value] : c.points) s += fmt::format("{} {:.6g}\n", bytes, value);
    s += "e\n";
  }
  return s + "unset output\n";
}

}  // namespace

void draw(const picture& p, const std::string& file) {
  tools::new_file drawn("--plot", file);
  // A gnuplot that ends early is an error to report, not the end of this process.
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  std::FILE* pipe = popen("gnuplot", "w");
  if (pipe == nullptr) fail(XIO_ERR_IO, "--plot {}: gnuplot could not be started", file);
  const std::string script = script_of(p, drawn.link());
  const bool written = std::fwrite(script.data(), 1, script.size(), pipe) == script.size();
  const int status = pclose(pipe);
  std::signal(SIGPIPE, before);
  if (!written || !WIFEXITED(status) || WEXITSTATUS(status) != 0 || drawn.bytes() == 0)
    fail(XIO_ERR_IO, "--plot {}: gnuplot did not draw it; what it says stands above", file);
  drawn.keep();
}

}  // namespace xio::perf
