// SPDX-License-Identifier: MIT
#include "tools/xio-verify/report.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "base/error.hpp"
#include "build_commit.h"
#include "tools/words.hpp"
#include "tools/xio-verify/child.hpp"
#include "tools/xio-verify/redaction.hpp"
#include "tools/xio-verify/trial.hpp"

namespace xio::verify {
namespace {

namespace fs = std::filesystem;
using clock = std::chrono::steady_clock;

// A folder that nobody else reads, gone in the end.
class private_folder {
 public:
  private_folder() {
    std::error_code error;
    std::string path = fs::temp_directory_path(error) / "xio-verify.XXXXXX";
    if (error || mkdtemp(path.data()) == nullptr)
      fail(XIO_ERR_IO, "no folder for results can be made as {}: {}; set TMPDIR to a folder that can be written", path,
           errno_text(errno));
    path_ = path;
  }
  ~private_folder() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  private_folder& operator=(private_folder&&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Stages that the others depend on, and every report has.
bool is_always_run(const std::string& name) { return name == "build" || name == "machine" || name == "preflight"; }

bool is_wanted(const std::string& name, const settings& s) {
  const auto has = [&](const std::vector<std::string>& list) { return std::ranges::find(list, name) != list.end(); };
  return is_always_run(name) || (s.only.empty() ? !has(s.skip) : has(s.only));
}

const json& part_of(const json& from, const char* key) {
  static const json nothing = json::object();
  const auto at = from.find(key);
  return at == from.end() ? nothing : *at;
}

std::string word_of(const json& from, const char* key) {
  const auto at = from.find(key);
  return at != from.end() && at->is_string() ? at->get<std::string>() : "";
}

// The preflight's result decides which stages can follow.
void learn(const json& result, surroundings& around) {
  if (result["name"] != "preflight") return;
  const json& facts = part_of(result, "facts");
  const json& platform = part_of(facts, "platform");
  around.platform = word_of(platform, "platform");
  around.gpu_usable = platform.value("gpu_usable", json(false)) == true;
  around.no_gpu = word_of(platform, "gpu_usable_note");
  if (around.no_gpu.empty()) around.no_gpu = word_of(result, "why");
  while (facts.contains(fmt::format("gpu{}", around.gpus))) ++around.gpus;
}

void add_head(json& report, const json& stages, const surroundings& around) {
  for (const json& one : stages) {
    const json& facts = part_of(one, "facts");
    if (one["name"] == "build")
      for (const char* name : {"version", "platform", "gpu_targets", "compiler"})
        if (const std::string word = word_of(part_of(facts, "build"), name); !word.empty()) report[name] = word;
    if (one["name"] == "machine" && one.contains("rows"))
      for (const json& row : one["rows"])
        if (row.contains("simulated")) report["simulated"] = row["simulated"];
  }
  report["gpus"] = json::array();
  for (const json& one : stages)
    for (int i = 0; one["name"] == "preflight" && i < around.gpus; ++i) {
      const json& gpu = part_of(part_of(one, "facts"), fmt::format("gpu{}", i).c_str());
      report["gpus"].push_back({{"name", word_of(gpu, "name")}, {"arch", word_of(gpu, "arch")}});
    }
}

// passed, failed, or incomplete where nothing failed and a stage ran out of time, or not even one with kernels ran.
std::string verdict_of(const json& stages) {
  bool tried = false, late = false;
  for (const json& one : stages) {
    const std::string status = word_of(one, "status");
    if (status == "failed" || status == "crashed") return "failed";
    late = late || status == "timed out";
    tried = tried || (status == "passed" && find_stage(word_of(one, "name"))->needs_gpu);
  }
  return tried && !late && interrupted() == 0 ? "passed" : "incomplete";
}

json run_stages(const settings& s, surroundings& around) {
  json results = json::array();
  const clock::time_point begin = clock::now();
  for (const stage& one : stages()) {
    if (!is_wanted(one.name, s)) continue;
    const double left = s.limit_s - std::chrono::duration<double>(clock::now() - begin).count();
    std::fprintf(stderr, "xio-verify: %s: %s, %u s at most\n", one.name, one.title, one.seconds);
    json result = run_stage(one, s, around, left);
    const std::string why = word_of(result, "why");
    std::fprintf(stderr, "xio-verify: %s: %s%s%s\n", one.name, word_of(result, "status").c_str(),
                 why.empty() ? "" : ": ", why.c_str());
    learn(result, around);
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace

json make_report(const settings& s) {
  catch_interrupts();
  const private_folder folder;
  surroundings around = find_programs(s);
  around.folder = folder.path();
  json report{{"format", k_report_format},
              {"format_version", k_report_version},
              {"made", tools::utc_now("%Y-%m-%dT%H:%MZ")},
              {"commit", XIO_COMMIT}};
  json stages = run_stages(s, around);
  report["verdict"] = verdict_of(stages);
  add_head(report, stages, around);
  if (!around.gpu_usable) report["no_gpu"] = around.no_gpu;
  // A build has versions that look like addresses, and nothing of a user.
  const redactor hide(names_here());
  for (json& one : stages)
    if (one["name"] != "build") one = hide.all(one);
  if (report.contains("no_gpu")) report["no_gpu"] = hide.text(word_of(report, "no_gpu"));
  report["taken_out"] = "names of hosts and users, IP and hardware addresses, GUIDs, serial numbers";
  report["stages"] = std::move(stages);
  return report;
}

}  // namespace xio::verify
