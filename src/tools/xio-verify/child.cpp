// SPDX-License-Identifier: MIT
#include "tools/xio-verify/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/unique_fd.hpp"
#include "tools/words.hpp"

namespace xio::verify {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t k_out_bytes = std::size_t{8} << 20;
constexpr std::size_t k_err_bytes = std::size_t{16} << 10;
constexpr int k_exit_not_started = 127;
// From SIGTERM to SIGKILL, and from there to giving up: xiorun ends its PEs in the first.
constexpr double k_grace_s = 3, k_patience_s = 5;

volatile sig_atomic_t signal_seen = 0;

double since(clock::time_point begin) { return std::chrono::duration<double>(clock::now() - begin).count(); }

struct pipe_ends {
  unique_fd reader, writer;
};
pipe_ends make_pipe() {
  int both[2];
  if (pipe2(both, O_CLOEXEC) != 0) return {};
  return {unique_fd(both[0]), unique_fd(both[1])};
}

// A world that xio-verify itself was started in, as a PE of xiorun's or by hand, is none of its stages'. The networks
// and ports to use are theirs, too.
bool names_a_world(const std::string& variable) {
  return variable.starts_with("XIO_TCP_") && variable != "XIO_TCP_INTERFACE" && variable != "XIO_TCP_PORTS";
}

std::vector<std::string> environment_of(const command& c) {
  std::vector<std::string> all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string name(*entry, std::strcspn(*entry, "="));
    bool replaced = names_a_world(name);
    for (const auto& [own, value] : c.variables) replaced = replaced || own == name;
    if (!replaced) all.emplace_back(*entry);
  }
  for (const auto& [name, value] : c.variables) all.push_back(name + "=" + value);
  return all;
}

[[noreturn]] void become(const std::vector<char*>& words, const std::vector<char*>& environment, int out, int err,
                         pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(k_exit_not_started);
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) signal(s, SIG_DFL);
  execve(words[0], words.data(), environment.data());
  _exit(k_exit_not_started);
}

// Reads a child's output, and keeps as much as there is room for. An end that is closed is forgotten.
class listener {
 public:
  listener(unique_fd out, unique_fd err, child_result& to) : out_(std::move(out)), err_(std::move(err)), to_(to) {}
  bool open() const { return out_ || err_; }

  void wait(int ms) {
    pollfd fds[2] = {{out_.get(), POLLIN, 0}, {err_.get(), POLLIN, 0}};  // -1 is left out
    if (poll(fds, 2, ms) <= 0) return;
    if (fds[0].revents != 0) read_into(out_, to_.out, false);
    if (fds[1].revents != 0) read_into(err_, to_.err, true);
  }

 private:
  static void read_into(unique_fd& from, std::string& to, bool keeps_end) {
    char buffer[65536];
    const ssize_t n = read(from.get(), buffer, sizeof buffer);
    if (n <= 0) {
      if (n == 0 || errno != EINTR) from.reset();
      return;
    }
    to.append(buffer, static_cast<std::size_t>(n));
    if (keeps_end && to.size() > k_err_bytes) to.erase(0, to.size() - k_err_bytes);
    if (!keeps_end && to.size() > k_out_bytes) to.resize(k_out_bytes);
  }

  unique_fd out_, err_;
  child_result& to_;
};

// Listens for at most so long; true once the child has ended.
bool wait_for(pid_t pid, listener& from, double seconds, int& status, bool until_interrupt) {
  const clock::time_point begin = clock::now();
  while (since(begin) < seconds) {
    if (waitpid(pid, &status, WNOHANG) == pid) return true;
    if (until_interrupt && signal_seen != 0) return false;
    if (from.open()) {
      from.wait(50);
    } else {
      usleep(20000);
    }
  }
  return false;
}

void finish(pid_t pid, listener& from, child_result& r, int status) {
  // Of the group nobody stays, not even what the child started and left behind.
  kill(-pid, SIGKILL);
  const clock::time_point begin = clock::now();
  while (from.open() && since(begin) < 1) from.wait(100);
  if (r.how == ending::late || r.how == ending::interrupted) return;
  r.how = WIFSIGNALED(status) ? ending::killed : ending::exited;
  r.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int number) { signal_seen = number; };
  for (const int s : {SIGINT, SIGTERM, SIGHUP}) sigaction(s, &action, nullptr);
}

int interrupted() { return signal_seen; }

child_result run_child(const command& what, double seconds) {
  child_result r;
  pipe_ends out = make_pipe(), err = make_pipe();
  if (!out.reader || !err.reader || access(what.words[0].c_str(), X_OK) != 0) {
    r.code = errno;
    return r;
  }
  const auto environment = environment_of(what);
  const auto words = tools::pointers_to(what.words), variables = tools::pointers_to(environment);
  const pid_t parent = getpid();
  const clock::time_point begin = clock::now();
  const pid_t pid = fork();
  if (pid == 0) become(words, variables, out.writer.get(), err.writer.get(), parent);
  if (pid < 0) {
    r.code = errno;
    return r;
  }
  setpgid(pid, pid);
  out.writer.reset();
  err.writer.reset();
  listener from(std::move(out.reader), std::move(err.reader), r);
  int status = 0;
  bool ended = wait_for(pid, from, seconds, status, true);
  if (!ended) {
    r.how = signal_seen != 0 ? ending::interrupted : ending::late;
    kill(-pid, SIGTERM);
    ended = wait_for(pid, from, k_grace_s, status, false);
    if (!ended) kill(-pid, SIGKILL);
    ended = ended || wait_for(pid, from, k_patience_s, status, false);
    if (!ended) r.how = ending::stuck;
  } else {
    r.how = ending::exited;
  }
  if (ended) finish(pid, from, r, status);
  r.seconds = since(begin);
  return r;
}

}  // namespace xio::verify
