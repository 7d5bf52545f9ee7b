// SPDX-License-Identifier: MIT
// xiorun -n N program args...   starts N PEs on this host that connect over TCP on the loopback interface.
// xiorun -H a:4,b:4 program ... starts PEs on several hosts, by an agent such as ssh; see src/tools/xiorun/node.hpp.
//
// Every PE gets XIO_TCP_ROOT, XIO_TCP_RANK, XIO_TCP_SIZE and a fresh XIO_TCP_KEY, and XIO_RUN_PE, by which
// XIO_BOOTSTRAP=auto knows who started it; XIO_RUN_REPORT names a file that says which PEs have ended. xiorun keeps the
// port for PE 0, which listens there by itself. PE 0 alone reads standard input.
//
// Exit status: 0 if every PE ended with 0, else that of the first PE that did not (128 + signal if one killed it; of
// PEs that end at the same moment, one that a signal killed counts first); 2 for a wrong command line, 124 after
// --timeout. With --survive PEs that a signal killed do not count, unless none is left or fewer than --min-alive: 1.
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tools/command_line.hpp"
#include "tools/standard_streams.hpp"
#include "tools/xiorun/loopback.hpp"
#include "tools/xiorun/node.hpp"
#include "tools/xiorun/program.hpp"

namespace {

using xio::run::job_settings;
using xio::tools::command;
using xio::tools::command_line;
using xio::tools::wrong_word;

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

// An option whose argument is a number of seconds in 0 .. most.
void add_seconds(command& app, const std::string& flag, double& value, const std::string& text, int most) {
  const auto take = [&value, flag, most](const std::string& word) {
    char* end = nullptr;
    const double seconds = std::strtod(word.c_str(), &end);
    if (word.empty() || *end != '\0' || !(seconds >= 0 && seconds <= most))
      throw wrong_word(flag, "'" + word + "' is not a number of seconds in 0 .. " + std::to_string(most));
    value = seconds;
  };
  char given[32];
  std::snprintf(given, sizeof given, "%g", value);
  app.call(flag, take, text).type("SECONDS").default_text(value == 0 ? "" : given);
}

// As mpirun has it; CLI11 would take it for -n with the value p.
std::vector<std::string> with_np(int argc, char** argv) {
  std::vector<std::string> args(argv + 1, argv + argc);
  for (std::size_t i = 0; i < args.size() && args[i].size() > 1 && args[i].front() == '-' && args[i] != "--"; ++i) {
    if (args[i] == "-np" || args[i].starts_with("-np=")) args[i].insert(0, "-");
    const bool has_value = args[i] == "-n" || args[i] == "--np" || args[i] == "--timeout" || args[i] == "--grace" ||
                           args[i] == "-H" || args[i] == "--host" || args[i] == "--hostfile" || args[i] == "-x" ||
                           args[i] == "--agent" || args[i] == "--address" || args[i] == "--min-alive" ||
                           args[i] == "--connect-timeout" || args[i] == "--lease" || args[i] == "--remote-xiorun";
    if (has_value) ++i;
  }
  return args;
}

// Hosts get XIO's variables without being asked, and no key.
std::vector<std::string> environment_for_hosts(const std::vector<std::string>& named) {
  std::vector<std::string> all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view one(*entry);
    const bool own = one.starts_with("XIO_TCP_") || one.starts_with("XIO_RUN_") || one.starts_with("XIO_BOOTSTRAP=") ||
                     one.starts_with("XIO_MACHINE=");
    if (one.starts_with("XIO_") && !own) all.emplace_back(one);
  }
  for (const std::string& name : named) {
    const char* value = std::getenv(name.c_str());
    if (name.empty() || name.front() == '=') usage("-x '" + name + "' names no variable");
    if (name.find('=') == std::string::npos && value == nullptr)
      usage("-x " + name + ": the variable is not set; set it, or give -x " + name + "=VALUE");
    all.push_back(name.find('=') != std::string::npos ? name : name + "=" + value);
  }
  return all;
}

std::string path_of_this_program() {
  char path[4096];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  return n > 0 ? std::string(path, static_cast<std::size_t>(n)) : "xiorun";
}

struct host_options {
  std::string list, file;
  std::vector<std::string> variables;
};

void add_host_options(command& app, job_settings& s, host_options& h) {
  app.word("-H,--host", h.list, "hosts, each once, and the number of PEs of each, as a:4,[fd00::1]:4");
  app.word("--hostfile", h.file, "file with a host on each line, as a:4 or as a slots=4; # begins a comment");
  app.word("--agent", s.agent, "what starts xiorun on a host: ssh, srun, or a command that takes the host behind it")
      .default_text(s.agent);
  app.words("-x", h.variables, "pass this variable on, or set it by NAME=VALUE; can be given again").once_each();
  app.word("--address", s.address, "address of the first host for the others, if it is not its name");
  app.word("--remote-xiorun", s.remote_xiorun, "path of xiorun on the hosts, if it is not the same as here");
  add_seconds(app, "--connect-timeout", s.connect_s, "seconds until every host has to have started xiorun", 86400);
}

void complete(job_settings& s, const host_options& h) {
  try {
    if (!h.list.empty() && !h.file.empty()) usage("--host and --hostfile are both given; give one of them");
    if (!h.list.empty()) s.hosts = xio::run::place(xio::run::parse_hosts(h.list), s.pes);
    if (!h.file.empty()) s.hosts = xio::run::place(xio::run::read_hostfile(h.file), s.pes);
    if (s.hosts.empty()) {
      if (s.pes == 0) usage("--np is required; see xiorun --help");
      for (const std::string& name : h.variables)
        if (name.find('=') != std::string::npos) s.environment.push_back(name);
      s.program = xio::run::find_program(s.command.front());
    }
  } catch (const std::invalid_argument& e) {
    usage(e.what());
  }
  if (!s.hosts.empty()) {
    s.pes = 0;
    for (const auto& one : s.hosts) s.pes += one.pes;
    if (s.pes > k_pes_max)
      usage("the hosts have " + std::to_string(s.pes) + " PEs, more than " + std::to_string(k_pes_max));
    if (s.agent.find_first_not_of(' ') == std::string::npos) usage("--agent is empty; give ssh, srun or a command");
    if (s.address.empty()) s.address = address_of(s.hosts.front());
    if (s.remote_xiorun.empty()) s.remote_xiorun = path_of_this_program();
    s.environment = environment_for_hosts(h.variables);
    char folder[4096];
    s.folder = getcwd(folder, sizeof folder) != nullptr ? folder : "/";
  }
  s.world = s.pes;
}

job_settings parse(int argc, char** argv) {
  job_settings s;
  command_line app("Starts N processes of a program, on this host or several, as the PEs of one XIO world.", "xiorun");
  app.footer(
      "Usage: xiorun -n N [options] [--] program [args...]\n"
      "   or: xiorun -H host:N,... [options] [--] program [args...]");
  app.version(std::string("xiorun of XIO ") + PACKAGE_VERSION);
  app.number("-n,--np", s.pes,
             "number of PEs, 1.." + std::to_string(k_pes_max) + "; also as -np; of hosts the first places", 1,
             k_pes_max)
      .default_text("");
  app.flag("--tag-output", s.tag_output,
           "put [pe] before every line that a PE writes; lines of up to 64 MiB stay whole");
  add_seconds(app, "--timeout", s.timeout_s, "end the run after this many seconds, with status 124; 0: never",
              1000000000);
  add_seconds(app, "--grace", s.grace_s,
              "seconds that the other PEs have to end by themselves once one has failed, and again between SIGTERM and "
              "SIGKILL",
              3600);
  app.flag(
      "--survive", s.survive,
      "let the other PEs go on where some, or a host, have died, in worlds that outlive their PEs (XIO_SURVIVE=1)");
  int min_alive = 0;
  app.number("--min-alive", min_alive, "with --survive: end the run when fewer PEs are left", 1, k_pes_max)
      .default_text("");
  add_seconds(app, "--lease", s.lease_s,
              "with --survive: so long the PEs go on when xiorun was killed, and those of a host that is cut off",
              1000000000);
  host_options hosts;
  add_host_options(app, s, hosts);
  if (const auto status = app.parse_before_program(with_np(argc, argv), s.command)) std::exit(*status);
  if (!s.command.empty() && s.command.front() == "--")
    s.command.erase(s.command.begin());
  else if (!s.command.empty() && s.command.front().starts_with('-'))
    usage("the option " + s.command.front() + " is not known; see xiorun --help");
  if (s.command.empty()) usage("no program was given; use: xiorun -n N program [args...]");
  complete(s, hosts);
  if (min_alive != 0 && !s.survive) usage("--min-alive is for --survive; give both");
  if (min_alive > s.pes) usage("--min-alive " + std::to_string(min_alive) + " is more than there are PEs");
  if (s.lease_s != 0 && !s.survive) usage("--lease is for --survive; give both");
  if (min_alive != 0) s.min_alive = min_alive;
  if (s.survive) s.environment.emplace_back("XIO_SURVIVE=1");
  return s;
}

}  // namespace

int main(int argc, char** argv) {
  xio::tools::open_standard_streams();
  if ((argc == 2 || argc == 3) && std::strcmp(argv[1], "--node") == 0) return xio::run::run_node(argv[0], argv[2]);
  auto settings = parse(argc, argv);
  settings.key = fresh_key();
  if (!settings.hosts.empty()) return xio::run::run_job(settings, argv[0]);
  const auto place = xio::run::find_rendezvous();
  if (place.root.empty()) {
    std::fprintf(stderr, "xiorun: %s\n", place.why.c_str());
    return 1;
  }
  settings.root = place.root;
  return xio::run::run_job(settings, argv[0]);
}
