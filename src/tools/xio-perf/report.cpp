// SPDX-License-Identifier: MIT
#include "tools/xio-perf/report.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <fstream>
#include <set>

#include "base/error.hpp"
#include "config.h"
#include "tools/backends.hpp"
#include "tools/gpus.hpp"

namespace xio::perf {
namespace {

std::string host_name() {
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) != 0) return "unknown";
  return name;
}

// "AMD EPYC 7B13, 2 cores", as far as the system tells.
std::string cpu_name() {
  std::ifstream about("/proc/cpuinfo");
  std::string model = "unknown";
  for (std::string line; std::getline(about, line);)
    if (const auto colon = line.find(": "); line.starts_with("model name") && colon != std::string::npos) {
      model = line.substr(colon + 2);
      break;
    }
  return fmt::format("{}, {} cores", model, sysconf(_SC_NPROCESSORS_ONLN));
}

std::string now() {
  const std::time_t t = std::time(nullptr);
  std::tm utc{};
  char text[32] = "";
  if (gmtime_r(&t, &utc) != nullptr) std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

std::string gpu_name() {
  int device = 0;
  hipDeviceProp_t about{};
  if (hipGetDevice(&device) != hipSuccess || hipGetDeviceProperties(&about, device) != hipSuccess) return "unknown";
  return about.name;
}

bool is_atomic(const plan& p) { return p.what->id == test_id::atomic_lat || p.what->id == test_id::atomic_bw; }

std::string op_of(const plan& p) {
  if (p.what->reduces()) return name_of(p.reduction);
  return is_atomic(p) ? name_of(p.op) : "";
}

tools::cell cell_of(const std::optional<double>& v) { return v ? tools::cell(*v) : tools::cell(); }

}  // namespace

tools::facts facts_of(const machine_shape& m, int n_pes) {
  return {{"version", PACKAGE_VERSION},
          {"machine", host_name()},
          {"cpu", cpu_name()},
          {"platform", tools::platform()},
          {"gpu", m.host ? "none: kernels run on CPU threads, emulated" : gpu_name()},
          {"pes", std::to_string(n_pes)},
          {"time", now()}};
}

carrier carrier_of(const std::string& route, const machine_shape& m) {
  carrier c{route == "direct" ? "load/store" : route, m.host && route != "host"};
  for (const auto& [engine, backend] : tools::opened_backends()) {
    const bool storage = route == "nvme" && engine.starts_with("storage ");
    if (engine != route && !storage) continue;
    c.backend = backend;
    c.emulated = c.emulated || tools::is_model(backend);
  }
  return c;
}

table_shape shape_of(const std::vector<plan>& all, bool message_rate) {
  table_shape t;
  t.message_rate = message_rate;
  for (const plan& p : all) {
    t.test_width = std::max(t.test_width, std::strlen(p.what->name));
    if (!p.sizes.empty()) t.bytes_width = std::max(t.bytes_width, std::to_string(p.sizes.back()).size());
    t.op_width = std::max(t.op_width, op_of(p).size());
    t.teams = t.teams || p.team != 0;
    t.collectives = t.collectives || p.what->how == shape::collective || p.what->how == shape::host;
  }
  return t;
}

std::vector<tools::field> row_of(const plan& p, const result& r, const machine_shape& m, const table_shape& t) {
  const carrier by = carrier_of(r.route, m);
  std::vector<tools::field> row{{"test", std::string(p.what->name), true, t.test_width}};
  row.push_back({"op", op_of(p), t.op_width != 0, t.op_width});
  row.push_back({"scope", std::string(p.what->how == shape::host ? "host"
                                      : p.what->scoped           ? name_of(p.who)
                                                                 : "thread")});
  row.push_back({"bytes", r.bytes, true, t.bytes_width});
  row.push_back({"ctas", std::uint64_t{p.ctas}, false});
  row.push_back({"threads", std::uint64_t{p.threads}, false});
  row.push_back({"iterations", std::uint64_t{p.iterations}, false});
  row.push_back({"samples", std::uint64_t{r.us.count}, false});
  // Of collectives people compare least, mean and most.
  const bool all = t.collectives;
  row.push_back({"min_us", r.us.min, true, 0, all ? 6u : 2u});
  row.push_back({"median_us", r.us.median, true, 0, all ? 3u : 0u});
  row.push_back({"p99_us", r.us.p99, true, 0, all ? 2u : 4u});
  row.push_back({"p999_us", r.us.p999, true, 0, all ? 1u : 3u});
  row.push_back({"max_us", r.us.max, true, 0, all ? 7u : 1u});
  row.push_back({"mean_us", r.us.mean, all});
  row.push_back({"GB_per_s", cell_of(r.gb_per_s), true, all ? 0u : 9u});
  row.push_back({"Mmsg_per_s", cell_of(r.million_per_s), t.message_rate});
  row.push_back({"doorbells_per_op", cell_of(r.doorbells), false});
  row.push_back({"bus_GB_per_s", cell_of(r.bus_gb_per_s), all, 0, 8});
  row.push_back({"team", r.team != 0 ? tools::cell(std::uint64_t{r.team}) : tools::cell(), t.teams});
  row.push_back({"route", r.route, true, 0, all ? 5u : 6u});
  row.push_back({"emulated", std::string(by.emulated ? "emulated" : ""), true, 0, all ? 4u : 5u});
  row.push_back({"backend", by.backend, false});
  return row;
}

void plotter::add(const plan& p, const result& r) {
  std::string name = p.what->name;
  if (!op_of(p).empty()) name += " " + op_of(p);
  if (p.what->scoped) name += std::string(" ") + name_of(p.who);
  if (p.team != 0) name += fmt::format(" of {}", p.team);
  if (lines_.empty() || lines_.back().name != name)
    lines_.push_back({name, p.what->how == shape::bandwidth || p.what->how == shape::storage, {}});
  lines_.back().results.push_back(r);
}

void plotter::draw(const std::string& file, const tools::facts& about, bool emulated) const {
  const bool rates = std::all_of(lines_.begin(), lines_.end(), [](const line& l) { return l.bandwidth; });
  picture p{"xio-perf", rates ? "bandwidth, GB/s" : "us", {}};
  for (const auto& [name, is] : about)
    if (name == "version" || name == "machine" || name == "platform") p.title += (name == "version" ? " " : ", ") + is;
  if (emulated) p.title += ", emulated";
  std::uint64_t least = UINT64_MAX, most = 0;
  for (const line& l : lines_)
    for (const result& r : l.results)
      if (r.bytes != 0) least = std::min(least, r.bytes), most = std::max(most, r.bytes);
  for (const line& l : lines_) {
    curve values{rates ? l.name : l.name + ", median", {}};
    curve tail{l.name + ", p99", {}, true};
    for (const result& r : l.results) {
      // Logarithmic axes have no 0: what has no size is a level line below all sizes.
      const double value = rates ? r.gb_per_s.value_or(0) : r.us.median;
      for (const std::uint64_t bytes : r.bytes != 0 ? std::set{r.bytes} : std::set{least, most}) {
        if (value > 0) values.points.emplace_back(bytes, value);
        if (r.us.p99 > 0) tail.points.emplace_back(bytes, r.us.p99);
      }
    }
    if (values.points.empty()) continue;
    p.curves.push_back(std::move(values));
    if (!rates) p.curves.push_back(std::move(tail));
  }
  if (p.curves.empty()) fail(XIO_ERR_IO, "--plot {}: nothing measured has a value to draw", file);
  perf::draw(p, file);
}

}  // namespace xio::perf
