// SPDX-License-Identifier: MIT
// One picture of several hosts: xio-info prints its own there as JSON, started by the agent that xiorun would take.

#include <filesystem>
#include <iterator>
#include <stdexcept>
#include <thread>

#include "base/error.hpp"
#include "tools/xio-info/job_report.hpp"
#include "tools/xio-verify/child.hpp"
#include "tools/xiorun/hosts.hpp"
#include "tools/xiorun/program.hpp"
#include "xio/xio.h"

namespace xio::info {
namespace {

constexpr double k_patience_s = 20;  // of ssh to a host that is not there

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

// The pictures of a host, or why there is none.
struct reply {
  std::map<std::uint64_t, seen_job> jobs;
  std::vector<std::string> remarks;
};
reply ask(const settings& s, const run::host& on, const std::string& program) {
  verify::command c{run::agent_on(s.agent, on), {}};
  for (const char* word : {program.c_str(), "--job", "all", "--json"}) c.words.emplace_back(word);
  reply r;
  try {
    c.words[0] = run::find_program(c.words[0]);
    const auto said = verify::run_child(c, k_patience_s);
    if (said.how == verify::ending::late)
      r.remarks.push_back(
          fmt::format("host {}: '{}' has said nothing within {} s; check that it gets there without a "
                      "question",
                      on.name, s.agent, k_patience_s));
    else if (said.how != verify::ending::exited || said.code != 0)
      r.remarks.push_back(
          fmt::format("host {}: '{}' ended with status {}: {}", on.name, s.agent, said.code, last_line(said.err)));
    else  // a greeting may stand before it
      r.jobs = jobs_in(said.out.substr(std::min(said.out.find('{'), said.out.size())), r.remarks);
  } catch (const std::invalid_argument& e) {
    r.remarks.push_back(fmt::format("host {}: {}", on.name, e.what()));
  } catch (const std::exception&) {
    r = {{},
         {fmt::format("host {}: what came is no picture of this version of xio-info; give the path of the same one by "
                      "--remote-xio-info",
                      on.name)}};
  }
  return r;
}

// A PE counts once, also where two names are of one machine.
void add_to(seen_job& job, const seen_job& more) {
  job.pes.resize(std::max(job.pes.size(), more.pes.size()));
  std::vector<bool> taken(job.pes.size());
  std::uint32_t unseen_there = 0;
  for (std::size_t i = 0; i < more.pes.size(); ++i) {
    unseen_there += more.pes[i].state == "unseen" ? 1 : 0;
    if (job.pes[i].state != "unseen" || more.pes[i].state == "unseen") continue;
    taken[i] = true;
    job.pes[i] = more.pes[i];
  }
  if (std::ranges::find(taken, true) != taken.end()) job.local_pes += more.local_pes;
  const auto is_taken = [&](const auto& one) { return taken[static_cast<std::size_t>(one.pe)]; };
  std::ranges::copy_if(more.waits, std::back_inserter(job.waits), is_taken);
  std::ranges::copy_if(more.ops, std::back_inserter(job.ops), is_taken);
}

}  // namespace

std::map<std::uint64_t, seen_job> jobs_of_hosts(const settings& s, std::vector<std::string>& remarks) {
  std::vector<run::host> hosts;
  try {
    hosts = run::place(run::parse_hosts(s.hosts), 0);
  } catch (const std::invalid_argument& e) {
    fail(XIO_ERR_ARG, "--host: {}", e.what());
  }
  std::map<std::uint64_t, seen_job> jobs;
  if (s.job != "all") jobs = look_at_jobs(s.job, remarks);
  std::error_code none;
  const std::string program =
      !s.remote.empty() ? s.remote : std::filesystem::read_symlink("/proc/self/exe", none).string();
  std::vector<reply> replies(hosts.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < hosts.size(); ++i)
    threads.emplace_back([&, i] { replies[i] = ask(s, hosts[i], program); });
  for (std::thread& t : threads) t.join();
  for (const reply& r : replies) {
    for (const auto& [id, job] : r.jobs)
      if (s.job == "all" || jobs.count(id) != 0) add_to(jobs[id], job);
    remarks.insert(remarks.end(), r.remarks.begin(), r.remarks.end());
  }
  for (auto& [id, job] : jobs) gather_waits(job);
  if (jobs.empty())
    fail(XIO_ERR_STATE, "{}", remarks.empty() ? "no PE of this user runs on these hosts" : remarks.front());
  return jobs;
}

}  // namespace xio::info
