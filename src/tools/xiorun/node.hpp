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
#include <optional>
#include <string_view>

#include "tools/xiorun/job.hpp"

namespace xio::run {

// The port in a line of a node that is ready; none: another line.
std::optional<int> port_in_ready_line(std::string_view line);

// The status in the last line of a node; none: another line. *before: what a PE has written in front without an end of
// line.
std::optional<int> status_in_last_line(std::string_view line, std::string_view* before);

// The line that N PEs are lost, and N in such a line.
std::string lost_line(int pes);
std::optional<int> pes_in_lost_line(std::string_view line, std::string_view* before);

// The order for host number `at` of s.hosts, the PEs of which begin with `first`.
std::string make_order(const job_settings& s, std::size_t at, int first, const std::string& root);

// xiorun --node [PORTS]. Exit status. `name` is argv[0]; `ports` is XIO_TCP_PORTS of the xiorun that asks, or null.
int run_node(char* name, const char* ports);

// The words that run `xiorun --node` on a host: the agent's, with the host.
std::vector<std::string> agent_words(const std::string& agent, const host& h, const std::string& xiorun);

}  // namespace xio::run
