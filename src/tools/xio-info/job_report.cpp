// SPDX-License-Identifier: MIT
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "tools/xio-info/job.hpp"

namespace xio::info {

namespace {

using json = nlohmann::ordered_json;

const char* name_of(life l) {
  switch (l) {
    case life::running: return "running";
    case life::stopped: return "stopped";
    case life::ended: return "ended";
    case life::unseen: break;
  }
  return "unseen";
}

std::string as_text(const seen_job& job) {
  std::string out = cause_of(job) + "\n";
  for (const seen_wait& w : job.waits)
    out += fmt::format("  PE {} waits {}, for {:.1f} s{}\n", w.pe, w.text, w.seconds,
                       w.what == seen_wait::of::host ? "" : fmt::format(" (workgroup {})", w.workgroup));
  for (std::size_t i = 0; i < job.pes.size(); ++i)
    if (!job.waits_in(i))
      out += fmt::format("  PE {} does not wait ({}{})\n", i, name_of(job.pes[i].state),
                         job.pes[i].pid == 0 ? "" : fmt::format(", process {}", job.pes[i].pid));
  return out;
}

json as_json(std::uint64_t id, const seen_job& job) {
  json out{{"job", fmt::format("{:016x}", id)}, {"cause", cause_of(job)}};
  for (std::size_t i = 0; i < job.pes.size(); ++i) {
    const seen_pe& p = job.pes[i];
    out["pes"].push_back({{"pe", i}, {"process", p.pid}, {"state", name_of(p.state)}, {"call", p.call}});
  }
  out["waits"] = json::array();
  for (const seen_wait& w : job.waits)
    out["waits"].push_back({{"pe", w.pe},
                            {"for_pe", w.for_pe == k_nobody ? json(nullptr) : json(w.for_pe)},
                            {"text", w.text},
                            {"seconds", w.seconds},
                            {"workgroup", w.workgroup}});
  return out;
}

// Text of waits has no quotes but those of drives' names.
std::string quoted(std::string text) {
  for (char& c : text)
    if (c == '"' || c == '\\') c = '\'';
  return '"' + text + '"';
}

std::string as_graph(std::uint64_t id, const seen_job& job) {
  std::string out = fmt::format("digraph job_{:016x} {{\n  label={};\n", id, quoted(cause_of(job)));
  int words = 0;
  for (std::size_t i = 0; i < job.pes.size(); ++i)
    out += fmt::format("  pe{} [label=\"PE {} ({})\"];\n", i, i, name_of(job.pes[i].state));
  for (const seen_wait& w : job.waits) {
    const std::string to = w.for_pe == k_nobody ? fmt::format("what{}", words++) : fmt::format("pe{}", w.for_pe);
    if (w.for_pe == k_nobody) out += fmt::format("  {} [shape=box, label=\"?\"];\n", to);
    out += fmt::format("  pe{} -> {} [label={}];\n", w.pe, to, quoted(fmt::format("{}, {:.1f} s", w.text, w.seconds)));
  }
  return out + "}\n";
}

}  // namespace

std::string job_report(const std::string& which, job_form form) {
  std::vector<std::string> remarks;
  const auto jobs = look_at_jobs(which, remarks);
  std::string text;
  json all = json::array();
  for (const auto& [id, job] : jobs) {
    if (form == job_form::json) all.push_back(as_json(id, job));
    if (form == job_form::graphviz) text += as_graph(id, job);
    if (form == job_form::text) text += (text.empty() ? "" : "\n") + as_text(job);
  }
  if (form == job_form::json) return json{{"jobs", all}, {"remarks", remarks}}.dump(2) + "\n";
  for (const std::string& r : remarks) text += (form == job_form::graphviz ? "// " : "") + r + "\n";
  return text;
}

}  // namespace xio::info
