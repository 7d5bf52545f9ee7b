// SPDX-License-Identifier: MIT
// A report for people. It is made of the JSON, so that it has nothing that the JSON has not.
#include <fmt/format.h>

#include <map>

#include "tools/xio-verify/report.hpp"

namespace xio::verify {
namespace {

std::string text_of(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{:.3f}", value.get<double>());
  return value.is_null() ? "" : value.dump(-1, ' ', false, json::error_handler_t::replace);
}
std::string cell(const json& row, const char* key) {
  const auto at = row.find(key);
  return at == row.end() ? "" : text_of(*at);
}
std::uint64_t number(const json& row, const char* key) {
  const auto at = row.find(key);
  return at != row.end() && at->is_number_unsigned() ? at->get<std::uint64_t>() : 0;
}

std::string head_of(const json& report) {
  std::string text = fmt::format("xio-verify, {}: {}\n", cell(report, "made"), cell(report, "verdict"));
  if (report.value("simulated", json(false)) == true)
    text += "Machine code on a simulated driver and GPU; not on silicon.\n";
  for (const char* name : {"version", "commit", "platform", "gpu_targets", "compiler", "no_gpu"})
    if (const std::string value = cell(report, name); !value.empty()) text += fmt::format("  {:<12} {}\n", name, value);
  for (const json& gpu : report.value("gpus", json::array()))
    text += fmt::format("  {:<12} {}, {}\n", "gpu", cell(gpu, "name"), cell(gpu, "arch"));
  return text;
}

std::string stages_of(const json& stages) {
  std::string text = "\nStages\n";
  for (const json& one : stages) {
    text += fmt::format("  {:<14} {:<10} {:>8} s  {}\n", cell(one, "name"), cell(one, "status"), cell(one, "seconds"),
                        cell(one, "title"));
    if (const std::string why = cell(one, "why"); !why.empty()) text += fmt::format("                 {}\n", why);
  }
  return text;
}

// Sections of xio-info, and the machine's parts.
std::string facts_of_stage(const json& one) {
  std::string text;
  for (const json& row : one.value("rows", json::array())) {
    text += "  " + cell(row, "part") + "\n";
    for (const auto& [key, value] : row.items())
      if (key != "part") text += fmt::format("    {:<28} {}\n", key, text_of(value));
  }
  const json facts = one.value("facts", json::object());
  for (const auto& [section, rows] : facts.items()) {
    if (!rows.is_object()) continue;
    text += "  " + section + "\n";
    for (const auto& [key, value] : rows.items())
      if (!key.ends_with("_note")) text += fmt::format("    {:<28} {}\n", key, text_of(value));
  }
  return text;
}

// One line for each test in one place, with the counts of weak outcomes, forbidden or allowed.
std::string orders_of_stage(const json& one) {
  std::string text, place;
  for (const json& row : one.value("rows", json::array())) {
    if (cell(row, "status") == "skipped") {
      text += fmt::format("  skipped: {}{}\n", cell(row, "why"),
                          cell(row, "agents").empty() ? "" : ", " + cell(row, "agents"));
      continue;
    }
    const std::string here =
        fmt::format("{}; data in {}, flags in {}", cell(row, "agents"), cell(row, "data"), cell(row, "flags"));
    if (here != place) text += "  " + here + "\n";
    place = here;
    text += fmt::format("    {:<8} {:<16} {:<42} weak outcome {}: {} of {}{}\n", cell(row, "status"), cell(row, "test"),
                        cell(row, "way"), cell(row, "weak_outcome"), number(row, "weak"), number(row, "runs"),
                        cell(row, "why").empty() ? "" : "; " + cell(row, "why"));
  }
  return text;
}

// By step, over all PEs.
std::string engine_of_stage(const json& one) {
  struct sum {
    std::uint64_t checks = 0, wrong = 0;
    std::string why;
  };
  std::map<std::string, sum> steps;
  std::string text;
  for (const json& row : one.value("rows", json::array())) {
    if (cell(row, "step") == "carrier") {
      if (number(row, "pe") != 0) continue;
      for (const auto& [key, value] : row.items())
        if (key != "step" && key != "pe" && key != "status")
          text += fmt::format("    {:<28} {}\n", key, text_of(value));
      continue;
    }
    sum& s = steps[cell(row, "step")];
    s.checks += number(row, "checks");
    s.wrong += number(row, "wrong");
    if (s.why.empty()) s.why = cell(row, "why");
  }
  for (const auto& [step, s] : steps)
    text +=
        fmt::format("    {:<28} {} checks, {} wrong{}\n", step, s.checks, s.wrong, s.why.empty() ? "" : ": " + s.why);
  return text;
}

std::string costs_of_stage(const json& one) {
  std::string text = fmt::format("    {:<20} {:<8} {:<8} {:>9} {:>10} {:>10} {:>9} {:>10}  {}\n", "test", "op", "scope",
                                 "bytes", "median us", "p99 us", "GB/s", "Mmsg/s", "by");
  for (const json& row : one.value("rows", json::array()))
    text += fmt::format("    {:<20} {:<8} {:<8} {:>9} {:>10} {:>10} {:>9} {:>10}  {} {}\n", cell(row, "test"),
                        cell(row, "op"), cell(row, "scope"), cell(row, "bytes"), cell(row, "median_us"),
                        cell(row, "p99_us"), cell(row, "GB_per_s"), cell(row, "Mmsg_per_s"), cell(row, "route"),
                        cell(row, "emulated"));
  return text;
}

std::string body_of_stage(const json& one) {
  const json& rows = one.value("rows", json::array());
  if (rows.empty()) return facts_of_stage(one);
  if (rows[0].contains("median_us")) return costs_of_stage(one);
  if (rows[0].contains("step")) return engine_of_stage(one);
  return rows[0].contains("test") ? orders_of_stage(one) : facts_of_stage(one);
}

}  // namespace

std::string text_of_report(const json& report) {
  const json& stages = report["stages"];
  std::string text = head_of(report) + stages_of(stages);
  for (const json& one : stages)
    if (const std::string body = body_of_stage(one); !body.empty())
      text += fmt::format("\n{}: {}\n{}", cell(one, "name"), cell(one, "title"), body);
  return text + fmt::format("\nTaken out: {}.\n", cell(report, "taken_out"));
}

}  // namespace xio::verify
