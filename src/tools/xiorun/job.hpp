// SPDX-License-Identifier: MIT
// The PEs of one xiorun: started, watched, and gone when run_job() returns.
#pragma once
#include <string>
#include <vector>

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#ifdef PACKAGE_VERSION
#define XIO_RUN_VERSION PACKAGE_VERSION
#else
#define XIO_RUN_VERSION "(unknown version)"
#endif

namespace xio::run {

struct job_settings {
  int pes = 0;
  bool tag_output = false;
  double timeout_s = 0;  // 0: never
  double grace_s = 3;
  std::string program;               // path to execute
  std::vector<std::string> command;  // argv of the program
  std::string root;                  // host:port where PE 0 is to listen
  std::string key;
};

// Exit status for xiorun. `name` is argv[0].
int run_job(const job_settings& settings, char* name);

}  // namespace xio::run
