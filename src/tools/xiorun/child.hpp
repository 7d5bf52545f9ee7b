// SPDX-License-Identifier: MIT
// One PE as a child process, and the ways to be rid of processes.
#pragma once
#include <sys/types.h>

#include "tools/xiorun/job.hpp"

namespace xio::run {

struct child_output {
  int out = -1, err = -1;  // pipes to write to, or -1 to share xiorun's
};

// Forks and executes the program as PE `pe`, which dies with this process. Returns -1 with errno.
pid_t start_pe(const job_settings& settings, int pe, const child_output& output, const std::string& report);

// Forks and executes `words`, found by PATH, which dies with this process. Returns -1 with errno.
struct agent_streams {
  int in = -1, out = -1, err = -1;
};
pid_t start_agent(const std::vector<std::string>& words, const agent_streams& streams);

// Lets the xio-info beside this program print to standard error which PE waits for which among this process's
// descendants, or on the run's hosts, of all jobs there; five or ten seconds at most. Returns 0 or why it could not.
int print_waits(const job_settings& s);

// Says how to get a process started after that failed, to follow the text of the error; empty where nothing is known.
const char* cure_of_start(int err);

// Kills every descendant of this process, orphans included, and reaps it. Needs become_reaper().
void become_reaper();
void kill_descendants();

// Whether this process has other children than `own`: what was left behind by one that ended.
bool has_orphans(const std::vector<pid_t>& own);

}  // namespace xio::run
