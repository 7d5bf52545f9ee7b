// SPDX-License-Identifier: MIT
#include "tools/xio-info/job_report.hpp"

#include <fmt/core.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace xio::info {
namespace {

using json = nlohmann::ordered_json;

json json_of(std::uint64_t id, const seen_job& job) {
  json out{{"job", fmt::format("{:016x}", id)}, {"cause", cause_of(job)}, {"local_pes", job.local_pes}};
  for (const seen_pe& p : job.pes)
    out["pes"].push_back({{"process", p.pid}, {"state", p.state}, {"call", p.call}, {"call_s", p.call_s}});
  out["waits"] = json::array();
  for (const seen_wait& w : job.waits)
    out["waits"].push_back({{"pe", w.pe},
                            {"for_pe", w.for_pe == k_nobody ? json(nullptr) : json(w.for_pe)},
                            {"text", w.text},
                            {"seconds", w.seconds},
                            {"workgroup", w.workgroup},
                            {"what", static_cast<int>(w.what)},
                            {"shared", w.shared}});
  out["last"] = json::array();
  for (const seen_op& o : job.ops)
    out["last"].push_back({{"pe", o.pe},
                           {"text", o.text},
                           {"under_way", o.under_way},
                           {"seconds", o.seconds == k_unknown ? json(nullptr) : json(o.seconds)}});
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

std::map<std::uint64_t, seen_job> jobs_in(const std::string& text, std::vector<std::string>& remarks) {
  const json all = json::parse(text);
  std::map<std::uint64_t, seen_job> jobs;
  for (const json& from : all.at("jobs")) {
    const std::string name = from.at("job");
    std::uint64_t id = 0;
    std::from_chars(name.data(), name.data() + name.size(), id, 16);
    seen_job& job = jobs[id];
    job.local_pes = from.at("local_pes");
    for (const json& p : from.at("pes"))
      job.pes.push_back({p.at("state"), p.at("process"), p.at("call"), p.at("call_s")});
    // PEs are places of a list: none may be beyond its end.
    const auto pe_in = [&](const json& pe) {
      if (pe.is_null()) return k_nobody;
      if (pe.get<std::int64_t>() < 0 || pe.get<std::size_t>() >= job.pes.size()) throw std::out_of_range("PE");
      return pe.get<int>();
    };
    for (const json& w : from.at("waits"))
      if (w.at("what") != static_cast<int>(seen_wait::of::host))  // it is said again of all PEs together
        job.waits.push_back({static_cast<seen_wait::of>(w.at("what").get<int>()), pe_in(w.at("pe")),
                             pe_in(w.at("for_pe")), w.at("text"), w.at("seconds"), w.at("workgroup"), w.at("shared")});
    for (const json& o : from.at("last"))
      job.ops.push_back({pe_in(o.at("pe")), o.at("text"), o.at("under_way"),
                         o.at("seconds").is_null() ? k_unknown : o.at("seconds").get<double>()});
  }
  for (const json& r : all.at("remarks")) remarks.push_back(r);
  return jobs;
}

std::string job_report(const settings& s) {
  std::vector<std::string> remarks;
  const auto jobs = s.hosts.empty() ? look_at_jobs(s.job, remarks) : jobs_of_hosts(s, remarks);
  std::string text;
  json all = json::array();
  for (const auto& [id, job] : jobs) {
    if (s.json) all.push_back(json_of(id, job));
    text += s.graphviz ? graph_of(id, job) : (text.empty() ? "" : "\n") + text_of(job);
  }
  if (s.json)
    return json{{"jobs", all}, {"remarks", remarks}}.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
  for (const std::string& r : remarks) text += (s.graphviz ? "// " : "") + r + "\n";
  return text;
}

}  // namespace xio::info
