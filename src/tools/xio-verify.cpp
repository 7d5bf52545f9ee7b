// SPDX-License-Identifier: MIT
// xio-verify: tries XIO on a machine that nobody has tried it on. Preflight, orders in every kind of memory, every
// engine with checked data, costs: each a stage in processes of its own, with a deadline. One report, as JSON and text.
//
// Exit status: 0 if every stage that ran has passed; 1 if one has not, or no GPU can be used (the report is written all
// the same); 2 for a wrong command line, and then nothing was done; 130 if a signal ended it (the report has what was
// found until then).

#include <cstdio>
#include <filesystem>

#include "base/error.hpp"
#include "tools/new_file.hpp"
#include "tools/refuse.hpp"
#include "tools/standard_streams.hpp"
#include "tools/words.hpp"
#include "tools/xio-verify/child.hpp"
#include "tools/xio-verify/code_object.hpp"
#include "tools/xio-verify/report.hpp"
#include "tools/xio-verify/stages.hpp"
#include "tools/xio-verify/worker.hpp"

namespace {

namespace fs = std::filesystem;
using xio::tools::new_file;
using xio::verify::settings;

constexpr int k_exit_failed = 1, k_exit_interrupted = 130;

struct places {
  std::string json, text;
};

// Refuses before anything runs, and replaces no file.
places find_places(const settings& s) {
  places p{s.out.empty() ? xio::tools::utc_now("xio-report-%Y%m%d-%H%M%S.json") : s.out, ""};
  fs::path text = p.json;
  p.text = text.extension() == ".json" ? text.replace_extension(".txt").string() : p.json + ".txt";
  for (const std::string& file : {p.json, p.text}) {
    std::error_code error;
    if (fs::exists(fs::symlink_status(file, error)))
      xio::fail(XIO_ERR_ARG, "--out: {} is there already, and is not replaced; give another name", file);
    const new_file probe("--out", file);
  }
  return p;
}

void write_file(const std::string& file, const std::string& content) {
  new_file out("--out", file);
  out.write(content.data(), content.size());
  out.keep();
}

int run_all(const settings& s) {
  const places to = find_places(s);
  const auto report = xio::verify::make_report(s);
  write_file(to.json, report.dump(1, ' ', false, xio::verify::json::error_handler_t::replace) + "\n");
  write_file(to.text, xio::verify::text_of_report(report));
  const std::string verdict = report["verdict"];
  std::printf("%s: the report is %s, and as text %s\n", verdict.c_str(), to.json.c_str(), to.text.c_str());
  if (report.contains("no_gpu"))
    std::fprintf(stderr, "xio-verify: no GPU can be used: %s; the report has what else was found\n",
                 report["no_gpu"].get<std::string>().c_str());
  if (xio::verify::interrupted() != 0) return k_exit_interrupted;
  return verdict == "passed" ? 0 : k_exit_failed;
}

int run(const settings& s) {
  if (s.list) {
    std::fputs(xio::verify::list_of_stages().c_str(), stdout);
    return 0;
  }
  if (!s.code_object.empty()) return xio::verify::say_which_lanes_are_lost(s.code_object);
  return s.worker.empty() ? run_all(s) : xio::verify::run_worker(s);
}

}  // namespace

int main(int argc, char** argv) {
  xio::tools::open_standard_streams();
  settings s;
  if (const auto status = xio::verify::parse_settings(argc, argv, s)) return *status;
  int status = k_exit_failed;
  const xio_status_t got = xio::guard([&] { status = run(s); });
  if (got != XIO_OK && s.worker.empty() && (got == XIO_ERR_ARG || got == XIO_ERR_IO))
    return xio::tools::refuse("xio-verify", xio::last_error());
  if (got != XIO_OK) {
    std::fprintf(stderr, "xio-verify: %s\n", xio::last_error());
    return k_exit_failed;
  }
  return xio::tools::ended("xio-verify", status);
}
