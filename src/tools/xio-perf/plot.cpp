// SPDX-License-Identifier: MIT
#include "tools/xio-perf/plot.hpp"

#include <fmt/core.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdio>

#include "base/error.hpp"
#include "tools/new_file.hpp"

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

std::string script_of(const picture& p, const std::string& file) {
  std::string s = "set terminal png size 1000,640\n";
  s += "set output " + quoted(file) + "\n";
  s += "set title " + quoted(p.title) + " noenhanced\nset key left top noenhanced\n";
  s += "set xlabel 'bytes'\nset ylabel " + quoted(p.value_axis) + " noenhanced\n";
  s += "set logscale x 2\nset logscale y 10\nset format x '%.0f'\nset xtics rotate by -45\nset grid\nplot ";
  for (std::size_t i = 0; i < p.curves.size(); ++i)
    s += fmt::format("{}'-' using 1:2 with linespoints title {}", i == 0 ? "" : ", ", quoted(p.curves[i].name));
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
