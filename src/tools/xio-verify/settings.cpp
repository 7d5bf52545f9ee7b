// SPDX-License-Identifier: MIT
#include "tools/xio-verify/settings.hpp"

#include <fmt/format.h>

#include "config.h"
#include "tools/command_line.hpp"
#include "tools/near_miss.hpp"
#include "tools/words.hpp"
#include "tools/xio-verify/stages.hpp"

namespace xio::verify {
namespace {

// The first sentence that the options together deserve; empty if they go together.
std::string contradiction(const settings& s, bool has_run_options) {
  for (const auto* list : {&s.only, &s.skip})
    for (const std::string& name : *list)
      if (find_stage(name) == nullptr)
        return fmt::format("there is no stage '{}'{}; xio-verify --list names them", name,
                           tools::did_you_mean(name, stage_names()));
  if (!s.only.empty() && !s.skip.empty()) return "--only and --skip do not go together";
  if (!s.code_object.empty() && has_run_options) return "--code-object reads a file, and goes with no other option";
  if (!s.drive.empty() && !s.drive.starts_with("nvme:"))
    return "--drive " + s.drive + " is no drive by vfio; give nvme:BDF/NSID, as nvme:0000:0a:00.0/1";
  if (!s.worker.empty() && s.rows.empty()) return "--pe is for the processes that xio-verify starts itself";
  return "";
}

}  // namespace

std::optional<int> parse_settings(int argc, char** argv, settings& s) {
  tools::command_line app("Tries XIO on this machine, stage by stage, and writes one report as JSON and as text.",
                          "xio-verify");
  app.footer(
      "It takes 20 minutes at most, needs no root, and writes to files that it makes. Names of hosts and users and\n"
      "addresses are taken out of the report. The manual is xio-verify(1).");
  app.version(std::string("xio-verify of XIO ") + PACKAGE_VERSION);
  std::string only, skip;
  app.word("-o,--out", s.out, "the report, a new file; the text stands beside it as .txt").type("FILE.json");
  app.flag("--quick", s.quick, "a tenth of the runs, and small messages");
  app.word("--only", only, "these stages alone, with commas between").type("STAGE,..");
  app.word("--skip", skip, "all but these stages").type("STAGE,..");
  app.number("--limit", s.limit_s, "seconds for all stages together", 10, 1200);
  app.number("--deadline", s.deadline_s, "seconds for each stage at most; otherwise its own", 1, 600).default_text("");
  app.word("--drive", s.drive, "a drive that is bound to vfio-pci; it is read, and never written")
      .type("nvme:BDF/NSID");
  app.word("--launcher", s.launcher, "starts PEs, as xiorun does; otherwise the xiorun beside this program")
      .type("PROGRAM");
  app.word("--root", s.root, "/sys, /proc, /etc and /opt of the machine lie below this folder").type("DIR");
  app.flag("--list", s.list, "list the stages with their deadlines");
  app.word("--code-object", s.code_object,
           "look whether a compiler lost lanes in this program, library or code object for AMD GPUs, or in what it "
           "prints with -S")
      .type("FILE");
  app.word("--pe", s.worker, "do this stage as a PE; xio-verify starts such processes itself").type("STAGE");
  app.word("--rows", s.rows, "").hidden();
  if (const auto status = app.parse(argc, argv)) return status;
  if (!only.empty()) s.only = tools::split(only);
  if (!skip.empty()) s.skip = tools::split(skip);
  const bool has_run_options = !s.out.empty() || s.quick || !only.empty() || !skip.empty() || !s.drive.empty() ||
                               !s.launcher.empty() || s.deadline_s != 0 || s.list || !s.worker.empty();
  if (const std::string why = contradiction(s, has_run_options); !why.empty()) return tools::refuse("xio-verify", why);
  return std::nullopt;
}

}  // namespace xio::verify
