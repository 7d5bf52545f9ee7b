// SPDX-License-Identifier: MIT
// xio-info: what XIO would do on this machine, and why: platform and GPU, memory kinds, the host data path, copy
// engines. --env lists the variables of the environment instead, --json prints either for programs.
//
// Exit status: 0; 1 if the environment is wrong (the sentence says which variable); 2 for a wrong command line.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/options.hpp"
#include "config.h"
#include "tools/xio-info/section.hpp"

namespace {

constexpr int k_exit_environment = 1;
constexpr int k_exit_usage = 2;

// Letters to change, add or leave out.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row[b.size()];
}

// "; did you mean --json?", or nothing if nothing is near.
std::string suggestion(const std::string& given) {
  const std::string bare = given.substr(0, given.find('='));
  std::string best;
  std::size_t least = 4;
  for (const char* flag : {"--env", "--json", "--help", "--version"})
    if (const std::size_t d = distance(bare, flag); d < least) least = d, best = flag;
  return best.empty() ? "" : "; did you mean " + best + "?";
}

struct settings {
  bool env = false;
  bool json = false;
};

int refuse(const std::string& sentence) {
  std::fprintf(stderr, "xio-info: %s; see xio-info --help\n", sentence.c_str());
  return k_exit_usage;
}

// Answers an exit status, or -1 to go on.
int parse(int argc, char** argv, settings& s) {
  CLI::App app("Prints what XIO would do on this machine, and why.", "xio-info");
  app.set_version_flag("--version", std::string("xio-info of XIO ") + PACKAGE_VERSION);
  app.add_flag("--env", s.env, "list the variables of the environment: type, default, meaning")
      ->disable_flag_override();
  app.add_flag("--json", s.json, "print JSON")->disable_flag_override();
  app.allow_extras();
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    return refuse(e.what());
  }
  const auto rest = app.remaining();
  if (rest.empty()) return -1;
  if (rest.front().rfind('-', 0) == 0)
    return refuse("the option " + rest.front() + " is not known" + suggestion(rest.front()));
  return refuse("'" + rest.front() + "' is not expected: xio-info takes options only");
}

std::string report(const settings& s) {
  if (s.env) return s.json ? xio::info::options_as_json() : xio::info::options_as_text();
  const auto o = xio::options::from_environment();
  bool gpu_ready = false;
  std::vector<xio::info::section> sections{xio::info::platform_section(&gpu_ready)};
  sections.push_back(xio::info::memory_section(gpu_ready));
  sections.push_back(xio::info::hdp_section(o, gpu_ready));
  sections.push_back(xio::info::sdma_section(o, gpu_ready));
  return s.json ? xio::info::as_json(sections) : xio::info::as_text(sections);
}

}  // namespace

int main(int argc, char** argv) {
  settings s;
  if (const int status = parse(argc, argv, s); status >= 0) return status;
  std::string out;
  if (xio::guard([&] { out = report(s); }) != XIO_OK) {
    std::fprintf(stderr, "xio-info: %s\n", xio::last_error());
    return k_exit_environment;
  }
  const bool written = std::fwrite(out.data(), 1, out.size(), stdout) == out.size() && std::fflush(stdout) == 0;
  return written ? 0 : k_exit_environment;
}
