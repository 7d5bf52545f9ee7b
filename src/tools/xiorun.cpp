// SPDX-License-Identifier: MIT
// xiorun -n N program args...   starts N PEs on this host that connect over TCP on the loopback interface.
//
// Every PE gets XIO_TCP_ROOT, XIO_TCP_RANK, XIO_TCP_SIZE and a fresh XIO_TCP_KEY, and XIO_RUN_PE, by which
// XIO_BOOTSTRAP=auto knows who started it; XIO_RUN_REPORT names a file that says which PEs have ended. xiorun keeps the
// port for PE 0, which listens there by itself. PE 0 alone reads standard input.
//
// Exit status: 0 if every PE ended with 0, else that of the first PE that did not (128 + signal if one killed it; of
// PEs that end at the same moment, one that a signal killed counts first); 2 for a wrong command line, 124 after
// --timeout.
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tools/standard_streams.hpp"
#include "tools/xiorun/job.hpp"
#include "tools/xiorun/loopback.hpp"

namespace {

using xio::run::job_settings;

constexpr int k_exit_usage = 2;
constexpr int k_pes_max = 1024;

[[noreturn]] void usage(const std::string& sentence) {
  std::fprintf(stderr, "xiorun: %s\n", sentence.c_str());
  std::exit(k_exit_usage);
}

[[noreturn]] void refuse(const std::string& what) {
  std::fprintf(stderr, "xiorun: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

mode_t kind_of(const std::string& path) {
  struct stat s;
  return stat(path.c_str(), &s) == 0 ? s.st_mode & S_IFMT : 0;
}

// access(2) alone would take a folder, which may be searched, for a program.
bool can_run(const std::string& path) { return kind_of(path) == S_IFREG && access(path.c_str(), X_OK) == 0; }

// The program as execvp would find it, or empty. Looked up here so that a wrong name is one message, not N.
std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return can_run(name) ? name : "";
  const char* path = std::getenv("PATH");
  std::string rest = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  for (std::size_t from = 0; from <= rest.size();) {
    const auto colon = std::min(rest.find(':', from), rest.size());
    const auto folder = rest.substr(from, colon - from);
    const auto full = (folder.empty() ? "." : folder) + "/" + name;
    if (can_run(full)) return full;
    from = colon + 1;
  }
  return "";
}

[[noreturn]] void refuse_program(const std::string& name) {
  if (name.find('/') != std::string::npos && kind_of(name) == S_IFDIR)
    usage("the program '" + name + "' is a folder; give the path of a program in it");
  usage("the program '" + name + "' was not found or is not executable; give its path or extend PATH");
}

std::string fresh_key() {
  unsigned char bytes[32];
  for (std::size_t got = 0; got < sizeof bytes;) {
    const ssize_t n = getrandom(bytes + got, sizeof bytes - got, 0);
    if (n < 0 && errno != EINTR) refuse("cannot make a key");
    if (n > 0) got += static_cast<std::size_t>(n);
  }
  std::string hex;
  char two[3];
  for (const unsigned char b : bytes) {
    std::snprintf(two, sizeof two, "%02x", b);
    hex += two;
  }
  return hex;
}

// CLI11's range has room for what is no number at all.
CLI::Validator seconds_up_to(int most) {
  const auto wrong = [most](const std::string& text) -> std::string {
    char* end = nullptr;
    const double seconds = std::strtod(text.c_str(), &end);
    if (!text.empty() && *end == '\0' && seconds >= 0 && seconds <= most) return "";
    return "'" + text + "' is not a number of seconds in 0 .. " + std::to_string(most);
  };
  return {wrong, "0 .. " + std::to_string(most)};
}

// As mpirun has it; CLI11 would take it for -n with the value p.
std::vector<std::string> with_np(int argc, char** argv) {
  std::vector<std::string> args(argv + 1, argv + argc);
  for (std::size_t i = 0; i < args.size() && args[i].size() > 1 && args[i].front() == '-' && args[i] != "--"; ++i) {
    if (args[i] == "-np" || args[i].starts_with("-np=")) args[i].insert(0, "-");
    const bool has_value = args[i] == "-n" || args[i] == "--np" || args[i] == "--timeout" || args[i] == "--grace";
    if (has_value) ++i;
  }
  return {args.rbegin(), args.rend()};  // as CLI11 wants them
}

job_settings parse(int argc, char** argv) {
  job_settings s;
  CLI::App app("Starts N processes of a program on this host as the PEs of one XIO world.", "xiorun");
  app.footer("Usage: xiorun -n N [options] [--] program [args...]");
  app.prefix_command();
  app.set_version_flag("--version", std::string("xiorun of XIO ") + XIO_RUN_VERSION);
  app.add_option("-n,--np", s.pes, "number of PEs, 1.." + std::to_string(k_pes_max) + "; also as -np")
      ->required()
      ->check(CLI::Range(1, k_pes_max));
  app.add_flag("--tag-output", s.tag_output, "put [pe] before every line that a PE writes");
  app.add_option("--timeout", s.timeout_s, "end the run after this many seconds; 0: never")
      ->check(seconds_up_to(1000000000));
  app.add_option("--grace", s.grace_s,
                 "seconds that the other PEs have to end by themselves once one has failed, and again between SIGTERM "
                 "and SIGKILL")
      ->capture_default_str()
      ->check(seconds_up_to(3600));
  try {
    app.parse(with_np(argc, argv));
  } catch (const CLI::Success& e) {
    std::exit(xio::tools::ended("xiorun", app.exit(e)));
  } catch (const CLI::ParseError& e) {
    usage(std::string(e.what()) + "; see xiorun --help");
  }
  s.command = app.remaining();
  if (!s.command.empty() && s.command.front() == "--")
    s.command.erase(s.command.begin());
  else if (!s.command.empty() && s.command.front().starts_with('-'))
    usage("the option " + s.command.front() + " is not known; see xiorun --help");
  if (s.command.empty()) usage("no program was given; use: xiorun -n N program [args...]");
  s.program = find_program(s.command.front());
  if (s.program.empty()) refuse_program(s.command.front());
  return s;
}

}  // namespace

int main(int argc, char** argv) {
  xio::tools::open_standard_streams();
  auto settings = parse(argc, argv);
  const auto place = xio::run::find_rendezvous();
  if (place.root.empty()) {
    std::fprintf(stderr, "xiorun: %s\n", place.why.c_str());
    return 1;
  }
  settings.root = place.root;
  settings.key = fresh_key();
  return xio::run::run_job(settings, argv[0]);
}
