// SPDX-License-Identifier: MIT
// The PEs of one xiorun: started, watched, and gone when run_job() returns.
#pragma once
#include "config.h"
#include "tools/xiorun/hosts.hpp"

namespace xio::run {

struct job_settings {
  int pes = 0;    // on this host, or in the head of several hosts in all
  int first = 0;  // number of the first of them
  int world = 0;  // PEs of all hosts
  bool tag_output = false;
  double timeout_s = 0;  // 0: never
  double grace_s = 3;
  bool survive = false;              // the others go on where PEs have died,
  int min_alive = 1;                 // as long as so many run or have ended by themselves,
  double lease_s = 0;                // and for so long once xiorun is gone or cut off
  std::string program;               // path to execute
  std::vector<std::string> command;  // argv of the program
  std::string root;                  // host:port where PE 0 is to listen
  std::string key;
  std::vector<std::string> environment;  // NAME=VALUE that PEs get beside or instead of this process's
  int lifeline = -1;                     // a descriptor the end of which ends the run; PEs have no standard input then
  // Of the head:
  std::vector<host> hosts;
  std::string agent = "ssh";
  std::string remote_xiorun;  // path on the hosts
  std::string address;        // the first host's, for the others
  std::string folder;         // in which the PEs start
  double connect_s = 60;      // until every host has to be there

  // The names of its members: "PE 3", or "host b".
  std::string name_of(int member) const {
    return hosts.empty() ? "PE " + std::to_string(first + member)
                         : "host " + hosts[static_cast<std::size_t>(member)].name;
  }
  const char* kind() const { return hosts.empty() ? "PEs" : "hosts"; }
};

// Exit status for xiorun. `name` is argv[0].
int run_job(const job_settings& settings, char* name);

}  // namespace xio::run
