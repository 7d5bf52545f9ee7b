// SPDX-License-Identifier: MIT
// One host of a run on several. The xiorun that the user started, the head, starts `xiorun --node` there by an agent
// such as ssh, and speaks with it over the agent's standard input and output:
//
//   node -> head   a line: "\1xiorun-node 3 PORT\n", once it runs and has a port for PE 0
//   head -> node   the order: its parts, each as "LENGTH:bytes,", the number of parts first
//
//   node -> head   with --survive, when a signal has killed a PE: "\1xiorun-node lost N\n", how many have been so far
//   node -> head   behind all that its PEs write: "\1xiorun-node ended STATUS\n", for an agent may keep the status for
//   itself
//
// Between these the node's output is what its PEs write. The head keeps the node's input open as long as the run lasts:
// its end ends the PEs, after the lease if there is one. So the key is on no command line and in no environment on its
// way.
#pragma once
#include <memory>
#include <optional>

#include "tools/xiorun/job.hpp"
#include "tools/xiorun/output.hpp"

namespace xio::run {

// The head's way to a host: what goes to the agent's standard input, and what the node there has said.
struct host_link {
  unique_fd fd;
  std::unique_ptr<sink> to;
  std::optional<int> port;    // once the node is ready
  std::optional<int> status;  // once it has ended
  int lost = 0;               // PEs that signals have killed, or that are gone with their host

  // Starts the agent; -1: errno says why. *out and *err: what it writes.
  pid_t start(const std::vector<std::string>& words, int* out, int* err);
  // Takes a line of the node's own; false: it is a PE's. *before: what stands in front without an end of line.
  bool take(std::string_view line, std::string_view* before);
  // Why it ended, with the agent's status; "" where the node has said so itself.
  std::string why_ended(const host& h, const job_settings& s, int agents_status) const;
};

// The line that N PEs are lost.
std::string lost_line(int pes);

// The order for host number `at` of s.hosts, the PEs of which begin with `first`.
std::string make_order(const job_settings& s, std::size_t at, int first, const std::string& root);

// xiorun --node [PORTS]. Exit status. `name` is argv[0]; `ports` is XIO_TCP_PORTS of the xiorun that asks, or null.
int run_node(char* name, const char* ports);

// The words that run `xiorun --node` on a host: the agent's, with the host.
std::vector<std::string> agent_words(const std::string& agent, const host& h, const std::string& xiorun);

}  // namespace xio::run
