// SPDX-License-Identifier: MIT
// What the command line asks of xio-verify.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace xio::verify {

struct settings {
  std::string out;          // the report; empty: a name of its own in this folder
  std::string code_object;  // a file with machine code to look at
  std::vector<std::string> only, skip;
  std::string drive;     // "nvme:BDF/NSID"
  std::string launcher;  // empty: the xiorun beside this program
  std::string root;      // /sys, /proc, /etc and /opt of another machine lie below it
  std::uint32_t limit_s = 1200;
  std::uint32_t deadline_s = 0;  // of each stage at most; 0: its own
  bool quick = false, list = false;
  std::string worker;  // the stage that this process is to do
  std::string rows;    // where its results go
};

// Returns an exit status, or nothing if the tool is to go on.
std::optional<int> parse_settings(int argc, char** argv, settings& s);

}  // namespace xio::verify
