// SPDX-License-Identifier: MIT
#include "tools/xiorun/job.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "tools/xiorun/apart.hpp"
#include "tools/xiorun/child.hpp"
#include "tools/xiorun/output.hpp"

namespace xio::run {

namespace {

using clock = std::chrono::steady_clock;

constexpr int k_exit_timeout = 124;  // as timeout(1) does
constexpr int k_exit_cannot_start = 1;
constexpr int k_same_moment_ms = 50;

clock::duration seconds(double s) {
  return std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(s));
}

class job {
 public:
  explicit job(const job_settings& s) : s_(s), pids_(static_cast<std::size_t>(s.pes), -1) {}

  int run() {
    become_reaper();
    catch_signals();
    if (s_.timeout_s > 0) end_at_ = clock::now() + seconds(s_.timeout_s);
    if (start_all()) {
      while (running_ > 0) step();
    }
    kill_descendants();  // whatever the PEs have left behind
    for (auto& o : outputs_) drain(o);
    return status_;
  }

 private:
  enum class phase { running, ending, terminated, killed };

  void catch_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) sigaddset(&set, s);
    sigprocmask(SIG_BLOCK, &set, nullptr);
    // Ignored by whoever started us, SIGCHLD would let children vanish unseen.
    signal(SIGCHLD, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    signals_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  }

  bool start_all() {
    for (int pe = 0; pe < s_.pes; ++pe) {
      child_output output;
      if (signals_ < 0 || !open_pipes(pe, output)) return cannot_start(pe);
      pids_[static_cast<std::size_t>(pe)] = start_pe(s_, pe, output);
      const int err = errno;
      for (const int fd : {output.out, output.err})
        if (fd >= 0) close(fd);
      errno = err;
      if (pids_[static_cast<std::size_t>(pe)] < 0) return cannot_start(pe);
      ++running_;
    }
    close(s_.listen_fd);  // PE 0 alone holds the port from here on
    return true;
  }

  bool cannot_start(int pe) {
    std::fprintf(stderr, "xiorun: PE %d could not be started: %s\n", pe, std::strerror(errno));
    status_ = k_exit_cannot_start;
    return false;
  }

  bool open_pipes(int pe, child_output& output) {
    if (!s_.tag_output) return true;
    int out[2], err[2];
    if (pipe2(out, O_CLOEXEC) != 0) return false;
    outputs_.emplace_back(pe, out[0], STDOUT_FILENO);
    output.out = out[1];
    if (pipe2(err, O_CLOEXEC) != 0) return false;
    outputs_.emplace_back(pe, err[0], STDERR_FILENO);
    output.err = err[1];
    return true;
  }

  void step() {
    std::vector<pollfd> polled{{signals_, POLLIN, 0}};
    for (const auto& o : outputs_) polled.push_back({o.fd(), POLLIN, 0});
    poll(polled.data(), polled.size(), poll_ms());
    for (std::size_t i = polled.size() - 1; i > 0; --i)
      if (polled[i].revents != 0 && !outputs_[i - 1].pass_on()) close_output(i - 1);
    take_signals();
    reap();
    if (running_ > 0 && end_at_ && clock::now() >= *end_at_) next_phase();
  }

  int poll_ms() const {
    if (!end_at_) return -1;
    const double left = std::chrono::duration<double, std::milli>(*end_at_ - clock::now()).count();
    return static_cast<int>(std::ceil(std::min(std::max(left, 0.0), 1e6)));
  }

  void close_output(std::size_t i) {
    const bool gone = outputs_[i].reader_gone();
    std::vector<tagged_output> kept;
    for (std::size_t k = 0; k < outputs_.size(); ++k)
      if (k != i) kept.push_back(std::move(outputs_[k]));
    outputs_.swap(kept);
    if (gone && phase_ == phase::running) {
      remember(128 + SIGPIPE);
      wait_then_terminate(0);
    }
  }

  void take_signals() {
    signalfd_siginfo info;
    while (read(signals_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      const int number = static_cast<int>(info.ssi_signo);
      if (number == SIGCHLD) continue;
      // A key at the terminal reaches every process of the foreground group, the PEs among them.
      const bool they_have_it = info.ssi_code == SI_KERNEL;
      if (!they_have_it) signal_all(number);
      if (phase_ == phase::running) {
        wait_then_terminate(s_.grace_s);
      } else if (asked_to_end_) {
        next_phase();  // asked again: do not wait
      }
      asked_to_end_ = true;
    }
  }

  // waitpid does not say who died first, and a process that dies closes its sockets before it can be waited for: its
  // peers may see that, give up and be reaped earlier. So a first failure is looked at again a moment later, and among
  // those found dead then, one that a signal killed is the likelier cause.
  void reap() {
    std::vector<std::pair<int, int>> dead;  // PE, how
    sweep(dead);
    const bool failed = std::any_of(dead.begin(), dead.end(), [](const auto& d) { return d.second != 0; });
    if (failed && status_ == 0 && dead.size() < static_cast<std::size_t>(running_)) {
      poll(nullptr, 0, k_same_moment_ms);
      sweep(dead);
    }
    std::stable_partition(dead.begin(), dead.end(), [](const auto& d) { return WIFSIGNALED(d.second); });
    for (const auto& [pe, status] : dead) ended(pe, status);
  }

  void sweep(std::vector<std::pair<int, int>>& dead) {
    int how = 0;
    for (pid_t pid = 0; (pid = waitpid(-1, &how, WNOHANG)) > 0;)
      for (int pe = 0; pe < s_.pes; ++pe)
        if (pids_[static_cast<std::size_t>(pe)] == pid) dead.emplace_back(pe, how);
  }

  void ended(int pe, int how) {
    pids_[static_cast<std::size_t>(pe)] = -1;
    --running_;
    const int status = WIFSIGNALED(how) ? 128 + WTERMSIG(how) : WEXITSTATUS(how);
    if (status == 0) return;
    // Not worth a line each when it ended because it was told to.
    if (phase_ == phase::terminated || phase_ == phase::killed || asked_to_end_) return remember(status);
    if (WIFSIGNALED(how))
      std::fprintf(stderr, "xiorun: PE %d was killed by signal %d (%s)\n", pe, WTERMSIG(how), strsignal(WTERMSIG(how)));
    else
      std::fprintf(stderr, "xiorun: PE %d ended with status %d\n", pe, status);
    remember(status);
    if (phase_ == phase::running) wait_then_terminate(s_.grace_s);
  }

  void remember(int status) {
    if (status_ == 0) status_ = status;
  }

  void wait_then_terminate(double grace_s) {
    phase_ = phase::ending;
    end_at_ = clock::now() + seconds(grace_s);
  }

  void next_phase() {
    switch (phase_) {
      case phase::running:  // only --timeout comes here
        std::fprintf(stderr, "xiorun: %d of %d PEs still run after %g s; ending them\n", running_, s_.pes,
                     s_.timeout_s);
        remember(k_exit_timeout);
        [[fallthrough]];
      case phase::ending:
        if (phase_ == phase::ending) std::fprintf(stderr, "xiorun: ending the %d PEs that still run\n", running_);
        phase_ = phase::terminated;
        signal_all(SIGTERM);
        break;
      case phase::terminated:
      case phase::killed:
        phase_ = phase::killed;
        signal_all(SIGKILL);
        break;
    }
    end_at_ = clock::now() + std::max(seconds(s_.grace_s), clock::duration(std::chrono::milliseconds(100)));
  }

  void signal_all(int number) {
    for (const pid_t pid : pids_)
      if (pid > 0) kill(pid, number);
  }

  static void drain(tagged_output& o) {
    fcntl(o.fd(), F_SETFL, O_NONBLOCK);
    pollfd p{o.fd(), POLLIN, 0};
    while (poll(&p, 1, 0) > 0 && o.pass_on()) continue;
  }

  const job_settings& s_;
  std::vector<pid_t> pids_;  // by PE; -1 once reaped
  std::vector<tagged_output> outputs_;
  std::optional<clock::time_point> end_at_;
  phase phase_ = phase::running;
  int signals_ = -1;
  int running_ = 0;
  int status_ = 0;
  bool asked_to_end_ = false;
};

}  // namespace

int run_job(const job_settings& settings) {
  const auto run = [&] { return job(settings).run(); };
  return has_children() ? run_apart(run, settings.listen_fd) : run();
}

}  // namespace xio::run
