// SPDX-License-Identifier: MIT
// What the command line asks of xio-info.
#pragma once
#include <optional>
#include <string>

namespace xio::info {

struct settings {
  bool version = false, env = false, json = false, atomics = false;
  std::string device;  // of --atomics; empty: every GPU and NIC
  bool enable = false, topology = false, preflight = false;
  std::string bind, unbind;  // a drive to give to vfio-pci, or back
  bool world = false;
  std::string job, metrics;  // a PID, or all
  std::string hosts;         // of job, with commas
  std::string agent = "ssh";
  std::string remote;  // path of xio-info there
  bool graphviz = false;
  std::string dump;  // lspci -xxxx of another machine
  std::string xml;   // lstopo --of xml of another machine
  std::string root;  // /sys, /proc, /dev and /boot of another machine lie below it
};

// Returns an exit status, or nothing if the tool is to go on.
std::optional<int> parse_settings(int argc, char** argv, settings& s);

}  // namespace xio::info
