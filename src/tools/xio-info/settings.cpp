// SPDX-License-Identifier: MIT
#include "tools/xio-info/settings.hpp"

#include "config.h"
#include "tools/command_line.hpp"

namespace xio::info {

namespace {

// The first sentence that the options together deserve; empty if they go together.
std::string contradiction(const settings& s) {
  if (s.enable && s.device.empty()) return "--enable wants a device: --atomics BDF --enable";
  if (s.enable && !s.dump.empty()) return "--enable does not go with --dump: a file has no registers to write";
  if (!s.dump.empty() && !s.atomics) return "--dump goes with --atomics only";
  return "";
}

}  // namespace

std::optional<int> parse_settings(int argc, char** argv, settings& s) {
  CLI::App app("Prints what XIO would do on this machine, and why.", "xio-info");
  app.set_version_flag("--version", std::string("xio-info of XIO ") + PACKAGE_VERSION);
  const auto flag = [&](const char* name, bool& value, const char* text) {
    return app.add_flag(name, value, text)->disable_flag_override();
  };
  CLI::Option* env = flag("--env", s.env, "list the variables of the environment: type, default, meaning");
  flag("--json", s.json, "print JSON");
  CLI::Option* atomics = app.add_option("--atomics", s.device,
                                        "PCIe AtomicOps of the device at this address, or of every GPU and NIC: the "
                                        "ports on the way, what fails, and the cure")
                             ->type_name("[BDF]")
                             ->expected(0, 1)
                             ->excludes(env);
  flag("--enable", s.enable, "with --atomics BDF: let the device send AtomicOps, as root");
  app.add_option("--dump", s.dump, "with --atomics: judge the machine that this file of 'lspci -D -xxxx' is from")
      ->type_name("FILE");
  if (const auto status = tools::parse(app, argc, argv)) return status;
  s.atomics = atomics->count() > 0;
  if (const std::string why = contradiction(s); !why.empty()) return tools::refuse("xio-info", why);
  return {};
}

}  // namespace xio::info
