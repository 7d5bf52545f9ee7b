// SPDX-License-Identifier: MIT
// What the command line asks of xio-info.
#pragma once
#include <optional>
#include <string>

namespace xio::info {

struct settings {
  bool env = false;
  bool json = false;
  bool atomics = false;
  std::string device;  // of --atomics; empty: every GPU and NIC
  bool enable = false;
  std::string dump;  // lspci -xxxx of another machine
};

// Answers an exit status, or nothing to go on.
std::optional<int> parse_settings(int argc, char** argv, settings& s);

}  // namespace xio::info
