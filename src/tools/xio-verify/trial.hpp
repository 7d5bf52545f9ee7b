// SPDX-License-Identifier: MIT
// One stage, run: what it found and how it ended.
#pragma once
#include "tools/xio-verify/rows.hpp"
#include "tools/xio-verify/settings.hpp"
#include "tools/xio-verify/stages.hpp"

namespace xio::verify {

// The facts of this machine and installation that stages need.
struct surroundings {
  std::string folder;                      // for what stages write; removed in the end
  std::string self, info, perf, launcher;  // programs; empty: not there
  int gpus = 0;
  bool gpu_usable = false;
  std::string platform;  // "hip"; "" before it is known
  std::string no_gpu;    // why it is not usable
};

// The programs beside this one. Those that are not there stay empty.
surroundings find_programs(const settings& s);

// A JSON object: name, title, status (passed, failed, timed out, crashed, skipped), why, seconds, deadline_seconds,
// command, and what was found as "rows" or "facts". Never throws for what a stage does.
json run_stage(const stage& what, const settings& s, const surroundings& around, double seconds_left);

}  // namespace xio::verify
