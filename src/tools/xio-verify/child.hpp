// SPDX-License-Identifier: MIT
// A program that runs to its end or to a deadline, in a process group of its own that is gone afterwards.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace xio::verify {

struct command {
  std::vector<std::string> words;  // the first is the program's path
  std::vector<std::pair<std::string, std::string>> variables;
};

enum class ending { exited, killed, late, interrupted, stuck, not_started };

struct child_result {
  ending how = ending::not_started;
  int code = 0;  // exit status, signal, or errno of not_started
  double seconds = 0;
  std::string out, err;  // the beginning of one, the end of the other
};

// stuck: it was killed at the deadline and is still there, as processes that wait within a driver are.
child_result run_child(const command& what, double seconds);

// SIGINT, SIGTERM and SIGHUP end the child that runs, and every later one at once. The number, or 0.
void catch_interrupts();
int interrupted();

}  // namespace xio::verify
