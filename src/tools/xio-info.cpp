// SPDX-License-Identifier: MIT
// xio-info: what XIO would do on this machine, and why. Without options: platform and GPU, memory kinds, the host data
// path, copy engines, NICs, drives, and what the machine lacks. Options ask for one subject instead; --json prints any
// of it for programs.
//
// Exit status: 0; 1 if the environment is wrong or the machine does not let it (the sentence says what); 2 for a wrong
// command line, files and devices that it names included; 3 if --preflight finds that something is missing.
#include <cstdio>
#include <iterator>

#include "tools/refuse.hpp"
#include "tools/standard_streams.hpp"
#include "tools/xio-info/job_report.hpp"
#include "tools/xio-info/section.hpp"
#include "transport/software.hpp"

namespace {

constexpr int k_exit_environment = 1, k_exit_missing = 3;

using xio::info::section;
using xio::info::settings;

void append(std::vector<section>& to, std::vector<section> more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

std::vector<section> overview(const settings& s) {
  const auto o = xio::options::from_environment();
  xio::software::check_backend(o.backend);
  bool gpu_ready = false;
  std::vector<section> sections{xio::info::platform_section(&gpu_ready)};
  if (gpu_ready) append(sections, xio::info::gpu_sections());
  sections.push_back(xio::info::memory_section(o, gpu_ready));
  sections.push_back(xio::info::hdp_section(o, gpu_ready));
  sections.push_back(xio::info::sdma_section(o, gpu_ready));
  append(sections, xio::info::nic_sections(o));
  append(sections, xio::info::libfabric_sections(o));
  append(sections, xio::info::drive_sections(o, s.root));
  sections.push_back(xio::info::preflight_section(o, s.root, ""));
  return sections;
}

std::vector<section> sections_of(const settings& s) {
  if (s.version) return xio::info::version_sections();
  if (s.atomics) return xio::info::atomics_sections(s.dump, s.device);
  if (s.topology) return xio::info::topology_sections(s.xml);
  if (s.world) return xio::info::world_sections();
  if (s.preflight) return {xio::info::preflight_section(xio::options::from_environment(), s.root, s.dump)};
  return overview(s);
}

std::string report(const settings& s, int& exit_status) {
  if (s.env) return s.json ? xio::info::options_as_json() : xio::info::options_as_text();
  if (!s.job.empty()) return xio::info::job_report(s);
  if (!s.metrics.empty()) return xio::info::metrics_report(s.metrics);
  if (s.enable) return xio::info::enable_atomics(s.device);
  if (!s.bind.empty()) return xio::info::bind_drive(s.root, s.bind);
  if (!s.unbind.empty()) return xio::info::unbind_drive(s.root, s.unbind);
  const auto sections = sections_of(s);
  if (s.preflight && xio::info::lacks_something(sections[0])) exit_status = k_exit_missing;
  return s.json ? xio::info::as_json(sections) : xio::info::as_text(sections);
}

}  // namespace

int main(int argc, char** argv) {
  xio::tools::open_standard_streams();
  settings s;
  if (const auto status = xio::info::parse_settings(argc, argv, s)) return *status;
  std::string out;
  int exit_status = 0;
  if (const auto status = xio::guard([&] { out = report(s, exit_status); }); status != XIO_OK) {
    if (status == XIO_ERR_ARG) return xio::tools::refuse("xio-info", xio::last_error());
    std::fprintf(stderr, "xio-info: %s\n", xio::last_error());
    return k_exit_environment;
  }
  std::fwrite(out.data(), 1, out.size(), stdout);
  return xio::tools::ended("xio-info", exit_status);
}
