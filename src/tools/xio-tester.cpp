// SPDX-License-Identifier: MIT
// xio-tester: tries one engine at a time by the device API and checks what came of it.
//
//   xio-tester [FLAGS] test-ep|nvme-ep|rdma-ep|sdma-ep [FLAGS]
//
// Exit status: 0; 1 if data or an engine was wrong (the sentence says which); 2 for a wrong command line, and then
// nothing was touched; 130 if a signal ended what has an end.
#include <unistd.h>

#include <filesystem>

#include "bootstrap/launcher.hpp"
#include "config.h"
#include "tools/command_line.hpp"
#include "tools/overwrite.hpp"
#include "tools/result_table.hpp"
#include "tools/standard_streams.hpp"
#include "tools/xio-tester/settings.hpp"

namespace {

using namespace xio::tester;
namespace tools = xio::tools;

struct settings {
  shared_settings shared;
  dump_settings dump;
  echo_settings echo;
  nvme_settings nvme;
  rdma_settings rdma;
  sdma_settings sdma;
};

void add_shared(tools::command& app, settings& all) {
  shared_settings& s = all.shared;
  dump_settings& d = all.dump;
  app.flag("-i,--info", s.info, "print what devices are here");
  app.flag("-l,--list-endpoints", s.list, "list the endpoints");
  app.number("-t,--threads", s.threads, "of the GPU and of the host, for test-ep, 1 to 32", 1, 32);
  app.number("--delay", s.delay_ns, "nanoseconds before a reply, for test-ep; negative: fixed, positive: random");
  app.number("-m,--memory-mode", s.memory_mode,
             "what lies in GPU memory: 1 submission queues, 2 completions, 4 doorbells, 8 data; a sum", 0, 15);
  app.flag("-v,--verbose", s.verbose, "say more");
  app.flag("--histogram", s.histogram, "print a histogram of latencies");
  app.flag("--less-timing", s.less_timing, "keep sums, and not the time of each op");
  app.flag("--substep-timing", s.substep_timing, "print where the time of an op goes");
  app.flag("--json", s.wants_json, "print results for programs, and all else on standard error");
  app.flag("--pci-mmio-bridge", s.mmio_bridge, "send the doorbells of an emulated drive through QEMU's bridge");
  app.word("--dump-pattern", d.path, "write the test pattern to this file, and end");
  app.number("--dump-pattern-seed", d.seed, "its seed");
  app.flag("--i-know", d.i_know, "it may replace a file's data that no test wrote");
  app.size("--dump-pattern-size", d.bytes, "its bytes (needed)", 1, std::uint64_t{1} << 44);
  app.size("--dump-pattern-block-size", d.block_bytes, "bytes of its blocks", 8, std::uint64_t{1} << 30);
  app.size("--dump-pattern-offset", d.offset, "where it begins", 0, std::uint64_t{1} << 60);
}

int refuse(const std::string& sentence) { return xio::tools::refuse("xio-tester", sentence); }

// Everything but the endpoints.
int run_alone(const tools::command& app, const settings& s) {
  if (!s.dump.path.empty()) {
    if (s.dump.bytes == 0) return refuse("--dump-pattern wants --dump-pattern-size");
    if (s.dump.block_bytes % 8 != 0) return refuse("--dump-pattern-block-size is no multiple of 8");
    std::error_code none;
    const bool holds_data =
        std::filesystem::is_regular_file(s.dump.path, none) || std::filesystem::is_block_file(s.dump.path, none);
    if (const std::string lost = s.dump.i_know || !holds_data ? "" : xio::tools::lost_by_writing(s.dump.path);
        !lost.empty())
      return refuse("--dump-pattern: " + lost + "; add --i-know if that is meant");
    return run_dump(s.dump);
  }
  if (s.shared.wants_json) return refuse("--json goes with an endpoint");
  for (const char* flag :
       {"--dump-pattern-seed", "--dump-pattern-size", "--dump-pattern-block-size", "--dump-pattern-offset", "--i-know"})
    if (app.given(flag)) return refuse(std::string(flag) + " goes with --dump-pattern");
  if (s.shared.list) run_list();
  if (s.shared.info) run_info(s.shared);
  if (s.shared.list || s.shared.info) return 0;
  return refuse("give an endpoint: test-ep, nvme-ep, rdma-ep or sdma-ep");
}

// Names an option that is for one endpoint and was given to another.
std::string misplaced(const std::string& endpoint, const tools::command& app, const shared_settings& s) {
  if (endpoint != "test-ep" && s.delay_ns != 0) return "--delay is for test-ep";
  if (endpoint != "nvme-ep" && s.mmio_bridge) return "--pci-mmio-bridge is for nvme-ep";
  if (endpoint != "nvme-ep" && app.given("--i-know")) return "--i-know is for nvme-ep and --dump-pattern";
  for (const char* flag : {"--info", "--list-endpoints", "--dump-pattern"})
    if (app.given(flag)) return std::string(flag) + " goes without an endpoint";
  return "";
}

int run(const tools::command& app, settings& s) {
  const auto endpoints = app.given_subcommands();
  if (endpoints.empty()) return run_alone(app, s);
  if (endpoints.size() > 1) return refuse("one endpoint at a time");
  const tools::command& at = endpoints.front();
  const std::string name = at.name();
  s.shared.memory_mode_given = app.given("--memory-mode");
  std::string wrong = misplaced(name, app, s.shared);
  if (wrong.empty() && name == "test-ep") wrong = wrong_echo(at, s.shared, s.echo);
  if (wrong.empty() && name == "nvme-ep") wrong = wrong_nvme(s.shared, s.nvme);
  if (wrong.empty() && name == "rdma-ep") wrong = wrong_rdma(at, s.shared, s.rdma);
  if (wrong.empty() && name == "sdma-ep") wrong = wrong_sdma(at, s.shared, s.sdma);
  if (!wrong.empty()) return xio::tools::refuse("xio-tester " + name, wrong);
  if (name == "test-ep") return run_echo(s.shared, s.echo);
  if (name == "nvme-ep") return run_nvme(s.shared, s.nvme);
  if (name == "rdma-ep") return run_rdma(s.shared, s.rdma);
  const std::string test = at.given_subcommands().front().name();
  return run_sdma(s.shared, s.sdma,
                  test == "p2p"         ? sdma_test::p2p
                  : test == "ping-pong" ? sdma_test::ping_pong
                                        : sdma_test::buffer_reuse);
}

// A job of several PEs is one document: PE 0 has the rows of all. False on the others, which print none.
bool gather(tools::result_table& json, bool launched) {
  if (!launched) return true;
  constexpr std::size_t k_most = std::size_t{1} << 20;
  const auto all = xio::bootstrap::connect(xio::options::from_environment());
  const std::string mine = json.rows();
  const auto cells = xio::bootstrap::allgather_unequal(*all, std::as_bytes(std::span(mine)), k_most);
  if (all->rank() != 0) return false;
  std::vector<std::string> rows;
  for (std::size_t pe = 0; pe < cells.count(); ++pe)
    rows.emplace_back(reinterpret_cast<const char*>(cells[pe].data()), cells[pe].size());
  if (rows.size() > 1) json.replace_rows(rows);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  xio::tools::open_standard_streams();
  settings s;
  tools::command_line app("Tries one engine at a time by the device API and checks what came of it.", "xio-tester");
  app.version(std::string("xio-tester of XIO ") + PACKAGE_VERSION);
  add_shared(app, s);
  for (tools::command at : {add_echo(app, s.echo), add_nvme(app, s.nvme), add_rdma(app, s.rdma), add_sdma(app, s.sdma)})
    at.take_flags_of_parent();
  if (const auto status = app.parse(argc, argv)) return *status;
  std::optional<tools::result_table> json;
  if (s.shared.wants_json) {
    // All text goes to standard error, and standard output is the table's alone.
    std::FILE* out = fdopen(dup(STDOUT_FILENO), "w");
    if (out == nullptr || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return refuse("--json: no file descriptor is left");
    json.emplace(tools::table_format::json, tools::facts{{"program", "xio-tester"}, {"version", PACKAGE_VERSION}}, out);
    s.shared.json = &*json;
  }
  int status = k_exit_failed;
  if (xio::guard([&] { status = run(app, s); }) != XIO_OK) {
    std::fprintf(stderr, "xio-tester: %s\n", xio::last_error());
    status = k_exit_failed;
  }
  bool prints = json && status != tools::k_exit_usage;
  if (prints && xio::guard([&] { prints = gather(*json, is_launched(s.rdma)); }) != XIO_OK) {
    std::fprintf(stderr, "xio-tester: --json: the results of the other PEs are not there: %s\n", xio::last_error());
    status = k_exit_failed;
  }
  if (prints && !json->finish()) {
    std::fprintf(stderr, "xio-tester: the results cannot be written\n");
    status = k_exit_failed;
  }
  return xio::tools::ended("xio-tester", status);
}
