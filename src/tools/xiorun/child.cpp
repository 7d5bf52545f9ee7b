// SPDX-License-Identifier: MIT
#include "tools/xiorun/child.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>

#include "base/unique_fd.hpp"
#include "tools/words.hpp"

namespace xio::run {
namespace {

constexpr int k_exit_cannot_execute = 126;  // as a shell does

// Makes the environment of a PE: this process's, and how to find the others.
std::vector<std::string> environment_of(const job_settings& s, int pe, const std::string& report) {
  const std::pair<std::string, std::string> own[] = {
      {"XIO_TCP_ROOT", s.root}, {"XIO_TCP_RANK", std::to_string(pe)}, {"XIO_TCP_SIZE", std::to_string(s.world)},
      {"XIO_TCP_KEY", s.key},   {"XIO_RUN_PE", std::to_string(pe)},   {"XIO_RUN_REPORT", report}};
  std::vector<std::string> all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string name(*entry, std::strcspn(*entry, "="));
    const bool replaced = std::ranges::any_of(own, [&](const auto& o) { return o.first == name; });
    // The key is given itself.
    if (!replaced && name != "XIO_TCP_KEY_FILE") all.emplace_back(*entry);
  }
  for (const auto& [name, value] : own) all.push_back(name + "=" + value);
  for (const std::string& given : s.environment) {
    const auto name = given.substr(0, given.find('=') + 1);
    std::erase_if(all, [&](const std::string& one) { return one.starts_with(name); });
    all.push_back(given);
  }
  return all;
}

void reset_signals() {
  for (const int s : {SIGINT, SIGTERM, SIGPIPE, SIGCHLD, SIGXFSZ, SIGUSR1}) signal(s, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void become_pe(const job_settings& s, int pe, const child_output& output, const std::string& report,
                            pid_t parent) {
  // SIGKILL, so that nothing a PE does with signals keeps it alive when xiorun is killed.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  if (pe != 0 || s.lifeline >= 0) {
    const int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0 && nothing != STDIN_FILENO) {
      dup2(nothing, STDIN_FILENO);
      close(nothing);
    }
  }
  if (output.out >= 0) dup2(output.out, STDOUT_FILENO);
  if (output.err >= 0) dup2(output.err, STDERR_FILENO);
  const auto environment = environment_of(s, pe, report);
  reset_signals();
  execve(s.program.c_str(), tools::pointers_to(s.command).data(), tools::pointers_to(environment).data());
  std::fprintf(stderr, "xiorun: PE %d cannot execute '%s': %s\n", pe, s.program.c_str(), std::strerror(errno));
  _exit(k_exit_cannot_execute);
}

// Parent of every process; /proc/PID/stat, see proc(5).
std::multimap<pid_t, pid_t> children_by_parent() {
  std::multimap<pid_t, pid_t> found;
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return found;
  while (const dirent* entry = readdir(proc)) {
    const pid_t pid = static_cast<pid_t>(std::atoi(entry->d_name));
    if (pid <= 0) continue;
    FILE* stat = std::fopen(("/proc/" + std::to_string(pid) + "/stat").c_str(), "re");
    if (stat == nullptr) continue;
    char line[512] = "";
    const bool read = std::fgets(line, sizeof line, stat) != nullptr;
    std::fclose(stat);
    // The name, in parentheses, may hold anything: parse after its last ')'.
    const char* after = read ? std::strrchr(line, ')') : nullptr;
    char state = '?';
    int parent = 0;
    if (after != nullptr && std::sscanf(after + 1, " %c %d", &state, &parent) == 2 && state != 'Z')
      found.emplace(parent, pid);
  }
  closedir(proc);
  return found;
}

std::vector<pid_t> descendants() {
  const auto tree = children_by_parent();
  std::vector<pid_t> found, open{getpid()};
  while (!open.empty()) {
    const pid_t parent = open.back();
    open.pop_back();
    for (auto [at, end] = tree.equal_range(parent); at != end; ++at) {
      found.push_back(at->second);
      open.push_back(at->second);
    }
  }
  return found;
}

}  // namespace

const char* cure_of_start(int err) {
  switch (err) {
    case EMFILE: return "; raise the limit of open files (ulimit -n): --tag-output takes two for each PE";
    case ENFILE: return "; this machine has given out all files it may open: raise the sysctl fs.file-max";
    case EAGAIN: return "; raise the limit of processes (ulimit -u)";
    default: return "";
  }
}

pid_t start_pe(const job_settings& settings, int pe, const child_output& output, const std::string& report) {
  const pid_t parent = getpid();
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid == 0) become_pe(settings, pe, output, report, parent);
  return pid;
}

pid_t start_agent(const std::vector<std::string>& words, const agent_streams& streams) {
  const pid_t parent = getpid();
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  dup2(streams.in, STDIN_FILENO);
  dup2(streams.out, STDOUT_FILENO);
  dup2(streams.err, STDERR_FILENO);
  reset_signals();
  execvp(words.front().c_str(), tools::pointers_to(words).data());
  std::fprintf(stderr, "xiorun: the agent '%s' cannot be executed: %s\n", words.front().c_str(), std::strerror(errno));
  _exit(k_exit_cannot_execute);
}

int print_waits(const job_settings& s) {
  std::error_code none;
  const auto info = std::filesystem::read_symlink("/proc/self/exe", none).replace_filename("xio-info");
  if (access(info.c_str(), X_OK) != 0) return errno;
  const unique_fd nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  std::vector<std::string> words{info.string(), "--job", s.hosts.empty() ? std::to_string(getpid()) : "all"};
  std::string hosts;
  for (const host& h : s.hosts) hosts += (hosts.empty() ? "" : ",") + h.name;
  const auto there = std::filesystem::path(s.remote_xiorun).replace_filename("xio-info").string();
  if (!s.hosts.empty()) words.insert(words.end(), {"--host", hosts, "--agent", s.agent, "--remote-xio-info", there});
  const pid_t pid = start_agent(words, {nothing.get(), STDERR_FILENO, STDERR_FILENO});
  if (pid < 0) return errno;
  for (int i = 0; i < (s.hosts.empty() ? 250 : 500); ++i) {
    if (waitpid(pid, nullptr, WNOHANG) != 0) return 0;
    usleep(20000);
  }
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  return ETIMEDOUT;
}

// Processes that lose their parent become children of this one, and not of init where nobody would find them.
void become_reaper() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

void kill_descendants() {
  // A process may fork while the tree is read, so it is read again until it is empty; bounded, because a process in an
  // uninterruptible wait cannot be killed.
  for (int round = 0; round < 200; ++round) {
    while (waitpid(-1, nullptr, WNOHANG) > 0) continue;
    const auto left = descendants();
    if (left.empty()) return;
    for (const pid_t pid : left) kill(pid, SIGKILL);
    usleep(round < 10 ? 1000 : 20000);
  }
}

bool has_orphans(const std::vector<pid_t>& own) {
  const auto tree = children_by_parent();
  const auto [first, last] = tree.equal_range(getpid());
  return std::any_of(first, last, [&](const auto& child) { return std::ranges::find(own, child.second) == own.end(); });
}

}  // namespace xio::run
