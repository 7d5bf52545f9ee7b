// SPDX-License-Identifier: MIT
// The hosts of a run, as the command line or a file lists them.
#pragma once
#include <string>
#include <vector>

namespace xio::run {

struct host {
  std::string name;  // as the agent knows it: "b", "user@b", "10.0.0.2"
  int pes = 1;
};

// "a:4,b:4"; a host without a number has one PE. Throws std::invalid_argument with a sentence.
std::vector<host> parse_hosts(const std::string& list);

// A line for each host: "a:4", "a slots=4" or "a"; empty lines and the rest behind a # do not count. Throws as
// parse_hosts.
std::vector<host> read_hostfile(const std::string& path);

// As many PEs as `wanted`, in the order of the hosts; those that get none are left out. 0: all places. Throws for more
// than there are places, and for a host that is there twice.
std::vector<host> place(std::vector<host> hosts, int wanted);

// "b" of "user@b".
std::string address_of(const host& h);

// The words that run others on a host: the agent's, with the host.
std::vector<std::string> agent_on(const std::string& agent, const host& h);

}  // namespace xio::run
