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
  const bool job = !s.job.empty(), metrics = !s.metrics.empty();
  if (s.graphviz && (!job || s.json)) return "--graphviz goes with --job only, and not with --json";
  if (!s.root.empty() && (s.version || s.env || s.atomics || s.topology || s.world || job || metrics))
    return "--root goes with --preflight, --bind and --unbind, or with no subject";
  std::error_code error;
  if (!s.root.empty() && !std::filesystem::is_directory(s.root, error))
    return "--root " + s.root + " is no folder; give one with sys, proc, dev and boot in it";
  const bool bind = !s.bind.empty(), unbind = !s.unbind.empty();
  if (s.version + s.env + s.atomics + s.topology + s.preflight + s.world + job + metrics + bind + unbind > 1)
    return "--version, --env, --atomics, --topology, --preflight, --world, --job, --metrics, --bind and --unbind are "
           "one subject each; ask for one at a time";
  if (!s.hosts.empty() && !job) return "--host goes with --job only";
  if (s.json && metrics) return "--json does not go with --metrics, which prints OpenMetrics text";
  if (s.json && (bind || unbind)) return "--json does not go with --bind and --unbind, which print what they do";
  return "";
}

}  // namespace

std::optional<int> parse_settings(int argc, char** argv, settings& s) {
  tools::command_line app("Prints what XIO would do on this machine, and why.", "xio-info");
  app.flag("--version", s.version,
           "what this build is: commit, platform, libraries and features, and what a missing library costs");
  app.flag("--env", s.env, "list the variables of the environment: type, default, meaning");
  app.flag("--json", s.json, "print JSON");
  tools::option atomics = app.word("--atomics", s.device,
                                   "PCIe AtomicOps of the device at this address, or of every GPU and NIC: the "
                                   "ports on the way, what fails, and the cure")
                              .type("[BDF]")
                              .may_stand_alone();
  app.flag("--enable", s.enable, "with --atomics BDF: let the device send AtomicOps, as root");
  app.flag("--topology", s.topology, "how far NICs and drives are from each GPU, and which are taken there");
  app.flag("--preflight", s.preflight, "what engines need of this machine, what of it is missing, and the cure");
  app.flag("--world", s.world, "the routes of a world: xiorun -n 2 xio-info --world");
  app.word("--job", s.job,
           "which PE waits for which in a job that runs here, and why it stands still; PID: of a PE, xiorun or mpirun, "
           "or all")
      .type("PID");
  app.word("--host", s.hosts, "with --job: ask on these hosts, as a,b, and draw one picture; all: their jobs")
      .type("HOSTS");
  app.word("--agent", s.agent, "what starts xio-info on a host, as xiorun's: ssh, srun, or a command")
      .default_text("ssh");
  app.word("--remote-xio-info", s.remote, "path of xio-info on the hosts, if it is not the same as here").type("FILE");
  app.word("--metrics", s.metrics,
           "the counts of contexts and drives of live PEs, as OpenMetrics text; PID as for --job")
      .type("PID");
  app.flag("--graphviz", s.graphviz, "with --job: print the graph for Graphviz' dot");
  app.word("--bind", s.bind,
           "gives this drive to vfio-pci, as root: unless it is mounted or otherwise in use; prints each step first")
      .type("BDF");
  app.word("--unbind", s.unbind, "gives a drive of vfio-pci back to Linux, as root").type("BDF");
  app.word("--dump", s.dump,
           "with --atomics or --preflight: judge the machine that this file of 'lspci -D -xxxx', as root, is from")
      .type("FILE");
  app.word("--xml", s.xml, "with --topology: judge the machine that this file of 'lstopo --of xml' is from")
      .type("FILE");
  app.word("--root", s.root, "look for /sys, /proc, /dev and /boot below this folder").type("DIR");
  if (const auto status = app.parse(argc, argv)) return status;
  s.atomics = atomics.given();
  if (const std::string why = contradiction(s); !why.empty()) return tools::refuse("xio-info", why);
  return {};
}

}  // namespace xio::info
