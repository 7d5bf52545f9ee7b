// SPDX-License-Identifier: MIT
#include "tools/xio-verify/report.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "base/error.hpp"
#include "build_commit.h"
#include "gpu/gpu.hpp"
#include "tools/words.hpp"
#include "tools/xio-verify/child.hpp"
#include "tools/xio-verify/redaction.hpp"
#include "tools/xio-verify/stages.hpp"

namespace xio::verify {
namespace {

namespace fs = std::filesystem;

constexpr int k_pes_most = 8;

std::string beside(const fs::path& folder, const char* name) {
  const std::string path = folder / name;
  return access(path.c_str(), X_OK) == 0 ? path : "";
}

std::vector<std::string> split(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// The facts of this machine and installation that stages need.
struct surroundings {
  std::string folder;                      // for what stages write; removed in the end
  std::string self, info, perf, launcher;  // programs; empty: not there
  int gpus = 0;
  bool gpu_usable = false;
  std::string platform;  // "hip"; "" before it is known
  std::string no_gpu;    // why it is not usable
};

int pes_of(const stage& what, const surroundings& around) {
  return what.gpus == stage_gpus::many ? std::min(around.gpus, k_pes_most) : 2;
}

// Why the stage says nothing here, or "".
std::string reason_to_skip(const stage& what, const settings& s, const surroundings& around) {
  if (what.needs_drive && s.drive.empty()) return "no drive was given; --drive nvme:BDF/NSID reads one";
  if (what.needs_gpu && !around.gpu_usable) return "no GPU can be used";
  const bool starts_pes =
      what.kind == stage_kind::pes || (what.kind == stage_kind::perf && what.gpus != stage_gpus::any);
  if (starts_pes && around.launcher.empty()) return "there is no xiorun beside xio-verify; --launcher names another";
  if (what.kind == stage_kind::perf && around.perf.empty()) return "there is no xio-perf beside xio-verify";
  if (what.kind == stage_kind::sections && around.info.empty()) return "there is no xio-info beside xio-verify";
  if (what.gpus == stage_gpus::many && around.gpus < 3) return "there are no more than two GPUs";
  if (what.gpus == stage_gpus::one && around.gpus < 2) return "there is one GPU, which the stages of two PEs share";
  return "";
}

void add_perf_amount(std::vector<std::string>& words, const stage& what, const settings& s,
                     const surroundings& around) {
  const bool storage = what.gpus == stage_gpus::any;
  // Kernels of the software platforms take a thousand times as long.
  const bool quick = s.quick || around.platform == "host";
  if (storage) {
    if (quick) words.insert(words.end(), {"-n", "8", "-w", "1", "-c", "1", "-t", "1", "-e", "4k"});
    return;
  }
  words.insert(words.end(), {"-b", "8", "-e", quick ? "4k" : "1M", "-f", quick ? "512" : "16"});
  if (quick) words.insert(words.end(), {"-n", "5", "-w", "1", "-r", "2", "-c", "2", "-t", "64"});
  // A NIC in software takes more than half a minute for all repetitions of the largest streams, and a PE that does not
  // send waits no longer than that.
  if (!quick && std::string_view(what.route) == "rdma") words.insert(words.end(), {"-r", "3"});
}

std::vector<std::string> program_of(const stage& what, const settings& s, const surroundings& around,
                                    const std::string& rows) {
  if (what.kind == stage_kind::sections) {
    std::vector<std::string> words{around.info, "--json"};
    if (*what.what != '\0') words.emplace_back(what.what);
    if (*what.what == '\0' && !s.root.empty()) words.insert(words.end(), {"--root", s.root});
    return words;
  }
  if (what.kind == stage_kind::perf) {
    std::vector<std::string> words{around.perf};
    for (const std::string& word : split(what.what)) words.push_back(word);
    words.insert(words.end(), {"--format", "json"});
    if (what.needs_drive) words.insert(words.end(), {"--storage", s.drive});
    add_perf_amount(words, what, s, around);
    return words;
  }
  std::vector<std::string> words{around.self, "--pe", what.what, "--rows", rows};
  if (s.quick) words.emplace_back("--quick");
  if (!s.root.empty()) words.insert(words.end(), {"--root", s.root});
  return words;
}

command command_of(const stage& what, const settings& s, const surroundings& around, const std::string& rows) {
  command c;
  const bool starts_pes =
      what.kind == stage_kind::pes || (what.kind == stage_kind::perf && what.gpus != stage_gpus::any);
  if (starts_pes) c.words = {around.launcher, "-n", std::to_string(pes_of(what, around))};
  for (std::string& word : program_of(what, s, around, rows)) c.words.push_back(std::move(word));
  if (*what.route != '\0') c.variables.emplace_back("XIO_ROUTE", what.route);
  // Without it a single AMD GPU on PCIe has no memory for symmetric heaps. It is for these processes alone.
  constexpr const char* k_fine_grain = "HSA_FORCE_FINE_GRAIN_PCIE";
  if (std::string(gpu::name()) == "hip" && std::getenv(k_fine_grain) == nullptr)
    c.variables.emplace_back(k_fine_grain, "1");
  if (what.gpus == stage_gpus::one) {
    if (around.platform == "hip") c.variables.emplace_back("HIP_VISIBLE_DEVICES", "0");
    if (around.platform == "cuda") c.variables.emplace_back("CUDA_VISIBLE_DEVICES", "0");
  }
  c.variables.emplace_back("TMPDIR", around.folder);
  return c;
}

// Without folders, which are the user's.
std::string text_of(const command& c) {
  std::string text;
  for (const auto& [name, value] : c.variables)
    if (name != "TMPDIR") text += name + "=" + value + " ";
  for (std::size_t i = 0; i < c.words.size(); ++i) {
    if (c.words[i] == "--rows" || (i != 0 && c.words[i - 1] == "--rows")) continue;
    text += (c.words[i].front() == '/' ? fs::path(c.words[i]).filename().string() : c.words[i]) + " ";
  }
  text.pop_back();
  return text;
}

// The beginning and the end of what it said, on one line.
std::string last_words(const std::string& err) {
  constexpr std::size_t most = 300;
  std::string text = err.size() > 2 * most ? err.substr(0, most) + " .. " + err.substr(err.size() - most) : err;
  text.erase(text.find_last_not_of(" \n") + 1);
  std::ranges::replace_if(
      text, [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return text.empty() ? "it said nothing" : text;
}

void judge(json& result, const child_result& r, double deadline) {
  switch (r.how) {
    case ending::exited:
      result["status"] = r.code == 0 ? "passed" : "failed";
      if (r.code != 0) result["why"] = fmt::format("exit status {}: {}", r.code, last_words(r.err));
      return;
    case ending::killed:
      result["status"] = "crashed";
      result["why"] = fmt::format("ended by signal {} ({}): {}", r.code, strsignal(r.code), last_words(r.err));
      return;
    case ending::late:
    case ending::stuck:
      result["status"] = "timed out";
      result["why"] = fmt::format("it was not over after {:.0f} s{}: {}", deadline,
                                  r.how == ending::stuck ? ", and could not be killed" : "", last_words(r.err));
      return;
    case ending::interrupted:
      result["status"] = "skipped";
      result["why"] = "xio-verify was interrupted";
      return;
    case ending::not_started:
      result["status"] = "failed";
      result["why"] = "its program could not be started: " + errno_text(r.code);
  }
}

// A PE that a signal ended: xiorun's status is 128 and more.
void judge_pes(json& result, const child_result& r) {
  if (r.how != ending::exited || r.code <= 128 || r.code > 128 + 64) return;
  result["status"] = "crashed";
  result["why"] =
      fmt::format("a PE was ended by signal {} ({}): {}", r.code - 128, strsignal(r.code - 128), last_words(r.err));
}

std::string title_of(const json& row) {
  std::string title;
  for (const char* key : {"test", "way", "agents", "step", "caller", "data", "flags", "why"})
    if (const auto at = row.find(key); at != row.end() && at->is_string())
      title += (title.empty() ? "" : ", ") + at->get<std::string>();
  return title;
}

// The rows that failed say more than an exit status, and the last one tells how far a stage came.
void name_rows(json& result) {
  const json& rows = result["rows"];
  std::string why;
  if (result["status"] == "timed out" || result["status"] == "crashed")
    why = rows.empty() ? "it had not found anything"
                       : fmt::format("{} rows were done, the last: {}", rows.size(), title_of(rows.back()));
  const auto is_bad = [](const json& row) { return row.value("status", json("")) == "failed"; };
  if (const auto bad = std::ranges::find_if(rows, is_bad); bad != rows.end())
    why += fmt::format("{}{} of {} rows failed, the first: {}", why.empty() ? "" : "; ",
                       std::ranges::count_if(rows, is_bad), rows.size(), title_of(*bad));
  if (why.empty()) return;
  result["why"] = result["status"] == "failed" ? why : result.value("why", std::string()) + "; " + why;
}

void take_output(json& result, const stage& what, const child_result& r, const std::string& rows) {
  if (what.kind == stage_kind::worker || what.kind == stage_kind::pes) {
    result["rows"] = read_rows(rows);
    if (result["status"] == "passed" && result["rows"].empty()) {
      result["status"] = "failed";
      result["why"] = "it ended without a result";
    }
    name_rows(result);
    return;
  }
  json found = json::parse(r.out, nullptr, false);
  if (!found.is_object()) {
    if (result["status"] != "passed") return;
    result["status"] = "failed";
    result["why"] = "what it printed is no JSON";
    return;
  }
  if (what.kind == stage_kind::perf && found.contains("results")) {
    result["rows"] = found["results"];
    found.erase("results");
  }
  result["facts"] = std::move(found);
}

std::string make_rows_file(const surroundings& around, const stage& what) {
  const std::string path = around.folder + "/" + what.name;
  const unique_fd fd(open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600));
  if (!fd) fail(XIO_ERR_IO, "{} cannot be made: {}", path, errno_text(errno));
  return path;
}

// The programs beside this one. Those that are not there stay empty.
surroundings find_programs(const settings& s) {
  surroundings around;
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  around.self = self;
  fs::path folder = self.parent_path();
  // libtool's programs of a build folder.
  if (folder.filename() == ".libs") folder = folder.parent_path();
  around.info = beside(folder, "xio-info");
  around.perf = beside(folder, "xio-perf");
  around.launcher = s.launcher.empty() ? beside(folder, "xiorun") : fs::absolute(s.launcher, error).string();
  return around;
}

// A JSON object: name, title, status (passed, failed, timed out, crashed, skipped), why, seconds, deadline_seconds,
// command, and what was found as "rows" or "facts". Never throws for what a stage does.
json run_stage(const stage& what, const settings& s, const surroundings& around, double seconds_left) {
  json result{{"name", what.name}, {"title", what.title}, {"status", "skipped"}};
  std::string why = reason_to_skip(what, s, around);
  double deadline = s.deadline_s != 0 ? std::min(what.seconds, s.deadline_s) : what.seconds;
  if (interrupted() != 0) why = "xio-verify was interrupted";
  if (why.empty() && seconds_left < 1) why = "the time of all stages is over";
  if (!why.empty()) {
    result["why"] = why;
    return result;
  }
  deadline = std::min(deadline, seconds_left);
  const std::string rows = make_rows_file(around, what);
  const command c = command_of(what, s, around, rows);
  const child_result r = run_child(c, deadline);
  judge(result, r, deadline);
  judge_pes(result, r);
  result["seconds"] = r.seconds;
  result["deadline_seconds"] = deadline;
  result["command"] = text_of(c);
  take_output(result, what, r, rows);
  return result;
}

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
