// SPDX-License-Identifier: MIT
#include "tools/xio-verify/import.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "tools/xio-verify/redaction.hpp"
#include "tools/xio-verify/report.hpp"
#include "tools/xio-verify/stages.hpp"

namespace xio::verify {
namespace {

constexpr std::size_t k_most_bytes = std::size_t{32} << 20;
constexpr int k_most_depth = 16;
constexpr std::size_t k_most_stages = 64, k_most_rows = 20000, k_most_gpus = 64;
constexpr std::size_t k_most_text = 100;

[[noreturn]] void refuse(const std::string& why) { fail(XIO_ERR_ARG, "the report is not used: {}", why); }

// --- Reading -----------------------------------------------------------------------------------------

std::string content_of(const std::string& file) {
  // A FIFO would be waited for, a device read without end.
  const unique_fd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) fail(XIO_ERR_ARG, "the report {} cannot be read: {}", file, errno_text(errno));
  struct stat about {};
  if (fstat(fd.get(), &about) != 0 || !S_ISREG(about.st_mode))
    fail(XIO_ERR_ARG, "the report {} is no regular file; give the .json that xio-verify wrote", file);
  std::string text;
  char buffer[65536];
  for (ssize_t n = 0; (n = read(fd.get(), buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(n));
    if (text.size() > k_most_bytes) refuse(fmt::format("it has more than {} MiB", k_most_bytes >> 20));
  }
  return text;
}

json parse(const std::string& text) {
  bool too_deep = false;
  const json::parser_callback_t stop = [&](int depth, json::parse_event_t, json&) {
    too_deep = too_deep || depth > k_most_depth;
    return !too_deep;
  };
  try {
    json all = json::parse(text, stop);
    if (too_deep) refuse(fmt::format("its values are nested deeper than {}", k_most_depth));
    return all;
  } catch (const json::exception&) {
    refuse("it is no JSON; give the .json that xio-verify wrote, whole");
  }
}

// --- Checking ----------------------------------------------------------------------------------------

std::string word(const json& from, const char* key, const std::string& where) {
  const auto at = from.find(key);
  if (at == from.end() || !at->is_string()) refuse(fmt::format("{} has no text '{}'", where, key));
  return at->get<std::string>();
}

void check_commit(const std::string& commit) {
  const std::size_t hex = commit.find_first_not_of("0123456789abcdef");
  const std::string rest = hex == std::string::npos ? "" : commit.substr(hex);
  const std::size_t digits = hex == std::string::npos ? commit.size() : hex;
  if (commit != "unknown" && (digits < 7 || digits > 40 || (!rest.empty() && rest != "-dirty")))
    refuse("its commit is none: 7 to 40 hex digits are wanted");
}

void check_time(const std::string& made) {
  static constexpr std::string_view k_form = "dddd-dd-ddTdd:ddZ";
  bool good = made.size() == k_form.size();
  for (std::size_t i = 0; good && i < made.size(); ++i)
    good = k_form[i] == 'd' ? made[i] >= '0' && made[i] <= '9' : made[i] == k_form[i];
  if (!good) refuse("its time 'made' is not of the form 2026-11-26T03:00Z");
}

void check_one_of(const std::string& value, std::initializer_list<std::string_view> words, const std::string& where) {
  if (std::find(words.begin(), words.end(), value) == words.end())
    refuse(fmt::format("{} is a word that xio-verify does not write", where));
}

// Counts are what rows add up.
void check_row(const json& row, const std::string& where) {
  if (!row.is_object()) refuse(where + " is no object");
  for (const char* key : {"runs", "weak", "checks", "wrong", "bytes", "pe", "samples"}) {
    const auto at = row.find(key);
    if (at == row.end()) continue;
    if (!at->is_number_unsigned() || at->get<std::uint64_t>() > std::uint64_t{1} << 48)
      refuse(fmt::format("{}: '{}' is no count", where, key));
  }
  for (const char* key : {"median_us", "p99_us", "seconds"}) {
    const auto at = row.find(key);
    if (at != row.end() && (!at->is_number() || !(at->get<double>() >= 0) || at->get<double>() > 1e12))
      refuse(fmt::format("{}: '{}' is no time", where, key));
  }
  for (const char* key : {"test", "way", "agents", "data", "flags", "step", "scope", "op", "route", "weak_outcome"})
    if (row.contains(key) && !row[key].is_string()) refuse(fmt::format("{}: '{}' is no text", where, key));
  const std::uint64_t runs = row.value("runs", std::uint64_t{0}), weak = row.value("weak", std::uint64_t{0});
  if (row.contains("weak") && weak > runs) refuse(where + " has more weak outcomes than runs");
}

void check_stage(const json& one, std::set<std::string>& seen) {
  if (!one.is_object()) refuse("a stage of it is no object");
  const std::string name = word(one, "name", "a stage");
  if (find_stage(name) == nullptr) refuse("it has a stage that this xio-verify does not know; use one of its version");
  if (!seen.insert(name).second) refuse(fmt::format("it has the stage {} twice", name));
  check_one_of(word(one, "status", name), {"passed", "failed", "timed out", "crashed", "skipped"}, name + "'s status");
  if (one.contains("facts") && !one["facts"].is_object()) refuse(name + "'s facts are no object");
  if (!one.contains("rows")) return;
  const json& rows = one["rows"];
  if (!rows.is_array() || rows.size() > k_most_rows)
    refuse(fmt::format("{}'s rows are no list of at most {}", name, k_most_rows));
  for (std::size_t i = 0; i < rows.size(); ++i) check_row(rows[i], fmt::format("{}, row {}", name, i));
}

// --- Rows --------------------------------------------------------------------------------------------

// ASCII, on one line, short, and no mark of Markdown or HTML.
std::string plain(const std::string& from) {
  static const redactor hide({});
  std::string out;
  for (const char c : hide.text(from.substr(0, 4 * k_most_text))) {
    if (out.size() >= k_most_text) break;
    if (c < 32 || c > 126) {
      if (!out.empty() && out.back() != ' ') out += ' ';
    } else if (std::strchr("|<>`*_[]\\#&!~$", c) != nullptr) {
      out += std::string("\\") + c;
    } else {
      out += c;
    }
  }
  return out;
}

std::uint64_t count_of(const json& row, const char* key) { return row.value(key, std::uint64_t{0}); }
std::string text_of(const json& row, const char* key) { return row.value(key, std::string()); }

const json* stage_of(const json& report, const std::string& name) {
  for (const json& one : report["stages"])
    if (one["name"] == name) return &one;
  return nullptr;
}

std::string gpus_of(const json& report) {
  if (text_of(report, "platform") == "host") return "host platform, no GPU";
  std::string gpus;
  for (const json& gpu : report["gpus"]) {
    const std::string one = plain(text_of(gpu, "name") + " (" + text_of(gpu, "arch") + ")");
    if (gpus.find(one) == std::string::npos) gpus += (gpus.empty() ? "" : ", ") + one;
  }
  return fmt::format("{}{} {}", report.value("simulated", false) ? "simulated, not silicon: " : "",
                     report["gpus"].size(), gpus.empty() ? "GPUs" : gpus);
}

std::string machine_of(const json& report) {
  std::string text = gpus_of(report);
  const json* machine = stage_of(report, "machine");
  if (machine == nullptr || !machine->contains("rows")) return text;
  for (const json& row : (*machine)["rows"])
    if (row.contains("kernel") && row["kernel"].is_string()) text += ", Linux " + plain(text_of(row, "kernel"));
  return text;
}

std::string result_of_orders(const json& rows) {
  std::uint64_t runs = 0, forbidden = 0, places = 0, allowed = 0;
  std::set<std::string> kinds;
  for (const json& row : rows) {
    if (!row.contains("runs")) continue;
    ++places;
    runs += count_of(row, "runs");
    (text_of(row, "weak_outcome") == "forbidden" ? forbidden : allowed) += count_of(row, "weak");
    kinds.insert(text_of(row, "data"));
  }
  return fmt::format(
      "{} forbidden outcomes in {} runs of {} tests in {} places of memory; weak outcomes seen where allowed: {}",
      forbidden, runs, places, kinds.size(), allowed);
}

std::string result_of_engine(const json& rows) {
  std::uint64_t checks = 0, wrong = 0;
  std::string carriers;
  for (const json& row : rows) {
    checks += count_of(row, "checks");
    wrong += count_of(row, "wrong");
    if (text_of(row, "step") != "carrier" || count_of(row, "pe") != 0) continue;
    for (const auto& [key, value] : row.items())
      if (key.starts_with("backend_") && value.is_string())
        carriers += fmt::format("; {}: {}", plain(key.substr(8)), plain(value.get<std::string>()));
  }
  return fmt::format("{} checks, {} wrong{}", checks, wrong, carriers);
}

std::string result_of_costs(const json& rows) {
  std::string text;
  int shown = 0;
  for (const json& row : rows) {
    if (!row.contains("median_us") || text_of(row, "test").ends_with("_bw") || ++shown > 12) continue;
    text += fmt::format("{}{} {} {} B {:.2f} us", text.empty() ? "" : ", ", plain(text_of(row, "test")),
                        plain(text_of(row, "scope")), count_of(row, "bytes"), row["median_us"].get<double>());
    if (!text_of(row, "emulated").empty()) text += " (emulated)";
  }
  return text.empty() ? fmt::format("{} measurements", rows.size()) : text;
}

bool has_row_with(const json& rows, const char* key) {
  return std::any_of(rows.begin(), rows.end(), [&](const json& row) { return row.contains(key); });
}

std::string result_of(const json& one, bool simulated) {
  const std::string status = text_of(one, "status");
  const json rows = one.value("rows", json::array());
  std::string text = status;
  if (has_row_with(rows, "weak_outcome"))
    text += ": " + result_of_orders(rows);
  else if (has_row_with(rows, "step"))
    text += ": " + result_of_engine(rows);
  else if (has_row_with(rows, "median_us"))
    // A simulation's times are not those of anything.
    text += ": " +
            (simulated ? fmt::format("{} measurements, whose data were checked", rows.size()) : result_of_costs(rows));
  if (status != "passed" && one.contains("why") && one["why"].is_string()) text += "; " + plain(text_of(one, "why"));
  return text;
}

}  // namespace

json check_report(const std::string& text) {
  json report = parse(text);
  if (!report.is_object() || word(report, "format", "it") != k_report_format)
    refuse("it is JSON, but no report of xio-verify");
  if (report.value("format_version", json(0)) != k_report_version)
    refuse(fmt::format("its format_version is not {}; use the xio-verify that wrote it", k_report_version));
  check_commit(word(report, "commit", "it"));
  check_time(word(report, "made", "it"));
  check_one_of(word(report, "verdict", "it"), {"passed", "failed", "incomplete"}, "its verdict");
  check_one_of(word(report, "platform", "it"), {"host", "hip", "cuda"}, "its platform");
  if (report.contains("simulated") && !report["simulated"].is_boolean())
    refuse("'simulated' is neither true nor false");
  const json gpus = report.value("gpus", json::array());
  if (!gpus.is_array() || gpus.size() > k_most_gpus) refuse("its gpus are no list");
  for (const json& gpu : gpus) {
    if (!gpu.is_object()) refuse("a GPU of it is no object");
    (void)word(gpu, "name", "a GPU");
    (void)word(gpu, "arch", "a GPU");
  }
  report["gpus"] = gpus;
  if (!report.contains("stages") || !report["stages"].is_array() || report["stages"].size() > k_most_stages)
    refuse("its stages are no list");
  std::set<std::string> seen;
  for (const json& one : report["stages"]) check_stage(one, seen);
  return report;
}

json read_report(const std::string& file) { return check_report(content_of(file)); }

std::string rows_of_report(const json& report) {
  std::string text;
  const std::string machine = machine_of(report), commit = plain(text_of(report, "commit")),
                    day = text_of(report, "made").substr(0, 10);
  for (const json& one : report["stages"]) {
    const stage& what = *find_stage(text_of(one, "name"));
    if (!what.needs_gpu || text_of(one, "status") == "skipped") continue;
    text += fmt::format("| {} | {}: {} | {}, {} | {} | `xio-verify`, a report that was sent |\n", machine, what.name,
                        what.title, commit, day, result_of(one, report.value("simulated", false)));
  }
  if (text.empty()) refuse("no stage with kernels ran, so it makes no row");
  return text;
}

}  // namespace xio::verify
