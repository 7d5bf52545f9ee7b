// SPDX-License-Identifier: MIT
#include "tools/xio-info/settings.hpp"

#include <filesystem>

#include "tools/command_line.hpp"

namespace xio::info {

namespace {

// The first sentence that the options together deserve; empty if they go together.
std::string contradiction(const settings& s) {
  if (s.enable && s.device.empty()) return "--enable wants a device: --atomics BDF --enable";
  if (s.enable && !s.dump.empty()) return "--enable does not go with --dump: a file has no registers to write";
  if (!s.dump.empty() && !s.atomics && !s.preflight) return "--dump goes with --atomics or --preflight only";
  if (!s.xml.empty() && !s.topology) return "--xml goes with --topology only";
  if (!s.root.empty() && (s.version || s.env || s.atomics || s.topology || s.world))
    return "--root goes with --preflight only, or with no other subject";
  std::error_code error;
  if (!s.root.empty() && !std::filesystem::is_directory(s.root, error))
    return "--root " + s.root + " is no folder; give one with sys, proc, dev and boot in it";
  if (s.version + s.env + s.atomics + s.topology + s.preflight + s.world > 1)
    return "--version, --env, --atomics, --topology, --preflight and --world are one subject each; ask for one at a "
           "time";
  return "";
}

}  // namespace

std::optional<int> parse_settings(int argc, char** argv, settings& s) {
  CLI::App app("Prints what XIO would do on this machine, and why.", "xio-info");
  const auto flag = [&](const char* name, bool& value, const char* text) {
    return app.add_flag(name, value, text)->disable_flag_override();
  };
  flag("--version", s.version, "what this build is: commit, platform, libraries and features");
  flag("--env", s.env, "list the variables of the environment: type, default, meaning");
  flag("--json", s.json, "print JSON");
  CLI::Option* atomics = app.add_option("--atomics", s.device,
                                        "PCIe AtomicOps of the device at this address, or of every GPU and NIC: the "
                                        "ports on the way, what fails, and the cure")
                             ->type_name("[BDF]")
                             ->expected(0, 1);
  flag("--enable", s.enable, "with --atomics BDF: let the device send AtomicOps, as root");
  flag("--topology", s.topology, "how far NICs and drives are from each GPU, and which are taken there");
  flag("--preflight", s.preflight, "what engines need of this machine, what of it is missing, and the cure");
  flag("--world", s.world, "the routes of a world: xiorun -n 2 xio-info --world");
  app.add_option("--dump", s.dump,
                 "with --atomics or --preflight: judge the machine that this file of 'lspci -D -xxxx' is from")
      ->type_name("FILE");
  app.add_option("--xml", s.xml, "with --topology: judge the machine that this file of 'lstopo --of xml' is from")
      ->type_name("FILE");
  app.add_option("--root", s.root, "look for /sys, /proc, /dev and /boot below this folder")->type_name("DIR");
  if (const auto status = tools::parse(app, argc, argv)) return status;
  s.atomics = atomics->count() > 0;
  if (const std::string why = contradiction(s); !why.empty()) return tools::refuse("xio-info", why);
  return {};
}

}  // namespace xio::info
