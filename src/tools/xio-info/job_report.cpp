// SPDX-License-Identifier: MIT
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "ctx/job_picture.hpp"

namespace xio::info {

namespace {

using json = nlohmann::ordered_json;

json json_of(std::uint64_t id, const seen_job& job) {
  json out{{"job", fmt::format("{:016x}", id)}, {"cause", cause_of(job)}};
  for (const seen_pe& p : job.pes) out["pes"].push_back({{"process", p.pid}, {"state", p.state}, {"call", p.call}});
  out["waits"] = json::array();
  for (const seen_wait& w : job.waits)
    out["waits"].push_back({{"pe", w.pe},
                            {"for_pe", w.for_pe == k_nobody ? json(nullptr) : json(w.for_pe)},
                            {"text", w.text},
                            {"seconds", w.seconds},
                            {"workgroup", w.workgroup}});
  return out;
}

std::string graph_of(std::uint64_t id, const seen_job& job) {
  std::string out = fmt::format("digraph job_{:016x} {{\n  label={};\n", id, json(cause_of(job)).dump());
  int words = 0;
  for (std::size_t i = 0; i < job.pes.size(); ++i)
    out += fmt::format("  pe{} [label=\"PE {} ({})\"];\n", i, i, job.pes[i].state);
  for (const seen_wait& w : job.waits) {
    const std::string to = w.for_pe == k_nobody ? fmt::format("what{}", words++) : fmt::format("pe{}", w.for_pe);
    out += fmt::format("  pe{} -> {} [label={}];\n", w.pe, to,
                       json(fmt::format("{}, {:.1f} s", w.text, w.seconds)).dump());
  }
  return out + "}\n";
}

}  // namespace

std::string job_report(const std::string& which, bool as_json, bool as_graph) {
  std::vector<std::string> remarks;
  const auto jobs = look_at_jobs(which, remarks);
  std::string text;
  json all = json::array();
  for (const auto& [id, job] : jobs) {
    if (as_json) all.push_back(json_of(id, job));
    text += as_graph ? graph_of(id, job) : (text.empty() ? "" : "\n") + text_of(job);
  }
  if (as_json) return json{{"jobs", all}, {"remarks", remarks}}.dump(2) + "\n";
  for (const std::string& r : remarks) text += (as_graph ? "// " : "") + r + "\n";
  return text;
}

}  // namespace xio::info
