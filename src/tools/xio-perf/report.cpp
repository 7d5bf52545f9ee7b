// SPDX-License-Identifier: MIT
#include "tools/xio-perf/report.hpp"
#include "tools/words.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>

#include "base/error.hpp"
#include "config.h"
#include "tools/backends.hpp"
#include "tools/gpus.hpp"
#include "tools/new_file.hpp"
#include "tools/xio-perf/axes.hpp"

namespace xio::perf {
namespace {

// --- The picture, drawn by gnuplot ---

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

// Throws xio::error if gnuplot does not make the file.
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

// --- The report ---

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
          {"time", tools::utc_now("%Y-%m-%dT%H:%M:%SZ")}};
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
  const bool rates = std::ranges::all_of(lines_, [](const line& l) { return l.bandwidth; });
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
