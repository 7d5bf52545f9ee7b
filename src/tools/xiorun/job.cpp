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
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "tools/xiorun/apart.hpp"
#include "tools/xiorun/child.hpp"
#include "tools/xiorun/output.hpp"
#include "tools/xiorun/report.hpp"
#include "tools/xiorun/sink.hpp"

namespace xio::run {

namespace {

using clock = std::chrono::steady_clock;

constexpr int k_exit_timeout = 124;  // as timeout(1) does
constexpr int k_exit_cannot_start = 1;
constexpr int k_exit_cannot_write = 1;
constexpr int k_same_moment_ms = 50;
constexpr int k_orphans_ms = 200;  // between looks whether what a PE left behind has ended, too

clock::duration seconds(double s) {
  return std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(s));
}

const char* cure(int err) {
  switch (err) {
    case EMFILE: return "; raise the limit of open files (ulimit -n): --tag-output takes two for each PE";
    case ENFILE: return "; this machine has given out all files it may open: raise the sysctl fs.file-max";
    case EAGAIN: return "; raise the limit of processes (ulimit -u)";
    default: return "";
  }
}

class job {
 public:
  explicit job(const job_settings& s)
      : s_(s),
        report_(s.root, s.pes),
        pids_(static_cast<std::size_t>(s.pes), -1),
        err_(same_file(STDOUT_FILENO, STDERR_FILENO) ? out_ : other_err_) {}

  int run() {
    become_reaper();
    catch_signals();
    if (s_.timeout_s > 0) timeout_at_ = end_at_ = clock::now() + seconds(s_.timeout_s);
    if (start_all()) {
      while (running_ > 0) step();
    }
    kill_descendants();  // processes that the PEs have left behind
    flush();
    for (const sink* s : {&out_, &other_err_}) look_at_writing(*s);
    return status_;
  }

 private:
  enum class phase { running, ending, terminated, killed, flushing };

  // To standard error, without waiting for its reader.
  [[gnu::format(printf, 2, 3)]] void say(const char* format, ...) {
    char line[512];
    va_list args;
    va_start(args, format);
    std::vsnprintf(line, sizeof line, format, args);
    va_end(args);
    err_.put(std::string("xiorun: ") + line + "\n");
  }

  void catch_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD, k_front_gone}) sigaddset(&set, s);
    sigprocmask(SIG_BLOCK, &set, nullptr);
    // If the parent process ignored SIGCHLD, children would vanish unseen.
    signal(SIGCHLD, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    signals_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  }

  bool start_all() {
    for (int pe = 0; pe < s_.pes; ++pe) {
      child_output output;
      if (signals_ < 0 || !open_pipes(pe, output)) return cannot_start(pe);
      pids_[static_cast<std::size_t>(pe)] = start_pe(s_, pe, output, report_.path());
      const int err = errno;
      for (const int fd : {output.out, output.err})
        if (fd >= 0) close(fd);
      errno = err;
      if (pids_[static_cast<std::size_t>(pe)] < 0) return cannot_start(pe);
      ++running_;
    }
    return true;
  }

  bool cannot_start(int pe) {
    const int err = errno;
    say("PE %d could not be started: %s%s", pe, std::strerror(err), cure(err));
    status_ = k_exit_cannot_start;
    return false;
  }

  bool open_pipes(int pe, child_output& output) {
    if (!s_.tag_output) return true;
    int out[2], err[2];
    if (pipe2(out, O_CLOEXEC) != 0) return false;
    outputs_.emplace_back(pe, out[0], out_);
    output.out = out[1];
    if (pipe2(err, O_CLOEXEC) != 0) return false;
    outputs_.emplace_back(pe, err[0], err_);
    output.err = err[1];
    return true;
  }

  void step() {
    std::vector<pollfd> polled{{signals_, POLLIN, 0}};
    for (const sink* s : {&out_, &other_err_}) polled.push_back({s->waiting() > 0 ? s->fd() : -1, POLLOUT, 0});
    const std::size_t first = polled.size();
    for (const auto& o : outputs_) polled.push_back({o.may_pass_on() ? o.fd() : -1, POLLIN, 0});
    poll(polled.data(), polled.size(), poll_ms());
    for (sink* s : {&out_, &other_err_}) s->write_some();
    pass_on(polled.data() + first);
    take_signals();
    reap();
    if ((running_ > 0 || phase_ == phase::flushing) && end_at_ && clock::now() >= *end_at_) next_phase();
  }

  // Begins behind the PE that was served last: one that writes without end leaves the others their turn.
  void pass_on(const pollfd* polled) {
    for (std::size_t k = 0, from = turn_; k < outputs_.size(); ++k) {
      const std::size_t i = (from + k) % outputs_.size();
      if (polled[i].revents == 0 || !outputs_[i].may_pass_on()) continue;
      outputs_[i].pass_on();
      turn_ = i + 1;
    }
    bool gone = false;
    std::erase_if(outputs_, [&](const tagged_output& o) {
      gone = gone || o.reader_gone();
      return o.ended() || o.reader_gone();
    });
    if (gone && phase_ == phase::running) {
      for (const sink* s : {&out_, &other_err_}) look_at_writing(*s);
      remember(128 + SIGPIPE);
      wait_then_terminate(0);
    }
  }

  int poll_ms() const {
    const int most = unreported_.empty() ? 1000000 : k_orphans_ms;
    if (!end_at_) return unreported_.empty() ? -1 : most;
    const double left = std::chrono::duration<double, std::milli>(*end_at_ - clock::now()).count();
    return static_cast<int>(std::ceil(std::min(std::max(left, 0.0), static_cast<double>(most))));
  }

  void take_signals() {
    signalfd_siginfo info;
    while (read(signals_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      const int number = static_cast<int>(info.ssi_signo);
      if (number == k_front_gone) front_gone();
      if (number == SIGCHLD || number == k_front_gone) continue;
      // A key at the terminal reaches every process of the foreground group, the PEs among them.
      const bool they_have_it = info.ssi_code == SI_KERNEL;
      if (!they_have_it) signal_all(number);
      if (ended_by_ == 0) ended_by_ = 128 + number;
      if (phase_ == phase::running) {
        wait_then_terminate(s_.grace_s);
      } else if (phase_ == phase::flushing && !asked_to_end_) {
        end_at_ = clock::now() + seconds(s_.grace_s);
      } else if (asked_to_end_) {
        next_phase();  // asked again: do not wait
      }
      asked_to_end_ = true;
    }
  }

  // Nobody is left to wait for the run: it ends with all that it has started.
  void front_gone() {
    if (getppid() == front_) return;
    kill_descendants();
    _exit(128 + SIGKILL);
  }

  // A program may go on in the background of a PE's first process that has ended; then it is an orphan, and whose is
  // not known. So PEs are reported as ended when no orphan is left.
  void report_ended() {
    if (unreported_.empty() || running_ == 0 || clock::now() < look_at_) return;
    look_at_ = clock::now() + std::chrono::milliseconds(k_orphans_ms);
    if (has_orphans(pids_)) return;
    for (const auto& [pe, status] : unreported_) report_.ended(pe, status);
    unreported_.clear();
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
    report_ended();
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
    unreported_.emplace_back(pe, status);
    if (status == 0) return;
    // Not worth a line each when it ended because it was told to.
    if (phase_ == phase::terminated || phase_ == phase::killed || asked_to_end_) return remember(status);
    if (WIFSIGNALED(how))
      say("PE %d was killed by signal %d (%s)", pe, WTERMSIG(how), strsignal(WTERMSIG(how)));
    else
      say("PE %d ended with status %d", pe, status);
    remember(status);
    if (phase_ == phase::running) wait_then_terminate(s_.grace_s);
  }

  // A reader that goes away is no failure of a run that has ended; a disk without room is.
  void look_at_writing(const sink& s) {
    if (s.error() == 0 || s.error() == EPIPE || status_ != 0) return;
    say("what the PEs wrote could not be passed on: %s", std::strerror(s.error()));
    remember(k_exit_cannot_write);
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
        say("%d of %d PEs still run after %g s; ending them", running_, s_.pes, s_.timeout_s);
        remember(ended_by_ = k_exit_timeout);
        [[fallthrough]];
      case phase::ending:
        if (phase_ == phase::ending) say("ending the %d PEs that still run", running_);
        phase_ = phase::terminated;
        signal_all(SIGTERM);
        break;
      case phase::terminated:
      case phase::killed:
        phase_ = phase::killed;
        signal_all(SIGKILL);
        break;
      case phase::flushing:
        if (ended_by_ != 0) return drop_output();
        ended_by_ = k_exit_timeout;
        break;
    }
    end_at_ = clock::now() + std::max(seconds(s_.grace_s), clock::duration(std::chrono::milliseconds(100)));
  }

  void signal_all(int number) {
    for (const pid_t pid : pids_)
      if (pid > 0) kill(pid, number);
  }

  // The PEs are gone. The reader of our output may take its time, unless the run was asked to end.
  void flush() {
    phase_ = phase::flushing;
    end_at_ = ended_by_ != 0 ? clock::now() + seconds(s_.grace_s) : timeout_at_;
    while (output_left()) step();
  }

  // Looks at what is in the pipes, not whether they are closed: a PE may have handed its end to somebody else.
  bool output_left() const {
    std::vector<pollfd> polled;
    for (const auto& o : outputs_) polled.push_back({o.fd(), POLLIN, 0});
    return out_.waiting() > 0 || other_err_.waiting() > 0 || poll(polled.data(), polled.size(), 0) > 0;
  }

  void drop_output() {
    outputs_.clear();
    const std::size_t left = out_.waiting() + other_err_.waiting();
    for (sink* s : {&out_, &other_err_}) s->drop();
    say("nobody reads the output; %zu bytes of it, and what the PEs' pipes hold, are dropped", left);
    err_.drop();
    remember(ended_by_);
  }

  const job_settings& s_;
  report report_;
  std::vector<std::pair<int, int>> unreported_;  // PE and status of those that ended
  clock::time_point look_at_{};                  // next, whether orphans are left
  const pid_t front_ = getppid();
  std::vector<pid_t> pids_;  // by PE; -1 once reaped
  sink out_{STDOUT_FILENO}, other_err_{STDERR_FILENO};
  sink& err_;  // out_ where both are one file, so that neither breaks into a line of the other
  std::vector<tagged_output> outputs_;
  std::size_t turn_ = 0;
  std::optional<clock::time_point> end_at_, timeout_at_;
  phase phase_ = phase::running;
  int signals_ = -1;
  int running_ = 0;
  int status_ = 0;
  int ended_by_ = 0;  // the status that says so, once --timeout or a signal has ended the run
  bool asked_to_end_ = false;
};

}  // namespace

int run_job(const job_settings& settings, char* name) {
  return run_apart([&] { return job(settings).run(); }, name);
}

}  // namespace xio::run
