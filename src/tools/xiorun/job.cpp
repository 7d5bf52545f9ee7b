// SPDX-License-Identifier: MIT
#include "tools/xiorun/job.hpp"

#include <fcntl.h>
#include <poll.h>
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

#include "tools/xiorun/apart.hpp"
#include "tools/xiorun/child.hpp"
#include "tools/xiorun/node.hpp"
#include "tools/xiorun/report.hpp"

namespace xio::run {
namespace {

using clock = std::chrono::steady_clock;

constexpr int k_exit_timeout = 124;  // as timeout(1) does
constexpr int k_exit_cannot_start = 1, k_exit_cannot_write = 1;
constexpr int k_same_moment_ms = 50;
constexpr int k_orphans_ms = 200;  // between looks whether what a PE left behind has ended, too

clock::duration seconds(double s) {
  return std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(s));
}

class job {
 public:
  explicit job(const job_settings& s)
      : s_(s),
        report_(s.root, s.world),
        links_(s.hosts.size()),
        pids_(s.hosts.empty() ? static_cast<std::size_t>(s.pes) : s.hosts.size(), -1),
        err_(same_file(STDOUT_FILENO, STDERR_FILENO) ? out_ : other_err_) {}

  int run() {
    become_reaper();
    signals_ = open_signals();
    if (s_.timeout_s > 0) timeout_at_ = end_at_ = clock::now() + seconds(s_.timeout_s);
    if (s_.hosts.empty() ? start_all() : start_hosts()) {
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

  bool start_all() {
    for (int pe = 0; pe < s_.pes; ++pe) {
      child_output output;
      if (signals_ < 0 || !open_pipes(pe, output)) return cannot_start(pe);
      pids_[static_cast<std::size_t>(pe)] = start_pe(s_, s_.first + pe, output, report_.path());
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
    say("%s could not be started: %s%s", s_.name_of(pe).c_str(), std::strerror(err), cure_of_start(err));
    status_ = k_exit_cannot_start;
    return false;
  }

  bool open_pipes(int pe, child_output& output) {
    // The reader goes away before the PEs do when a lease begins.
    if (!s_.tag_output && (s_.lifeline < 0 || s_.lease_s == 0)) return true;
    int out[2], err[2];
    if (pipe2(out, O_CLOEXEC) != 0) return false;
    const std::string tag = s_.tag_output ? "[" + std::to_string(s_.first + pe) + "] " : "";
    outputs_.emplace_back(tag, out[0], out_);
    output.out = out[1];
    if (pipe2(err, O_CLOEXEC) != 0) return false;
    outputs_.emplace_back(tag, err[0], err_);
    output.err = err[1];
    return true;
  }

  bool start_hosts() {
    connect_at_ = clock::now() + seconds(s_.connect_s);
    for (std::size_t i = 0; i < links_.size(); ++i)
      if (signals_ < 0 || !start_host(i)) return cannot_start(static_cast<int>(i));
    return true;
  }

  bool start_host(std::size_t i) {
    int out = -1, err = -1;
    pids_[i] = links_[i].start(agent_words(s_.agent, s_.hosts[i], s_.remote_xiorun), &out, &err);
    if (pids_[i] <= 0) return false;
    outputs_.emplace_back("", out, out_, [this, i](std::string_view line) { return take_line(i, line); });
    outputs_.emplace_back("", err, err_);
    ++running_;
    return true;
  }

  // Whether it is the node's own, and not a PE's.
  bool take_line(std::size_t i, std::string_view line) {
    std::string_view before;
    if (i >= links_.size()) return false;
    const bool was_ready = links_[i].port.has_value();
    if (!links_[i].take(line, &before)) return false;
    if (!before.empty()) out_.put(std::string(before) + '\n');
    if (!was_ready && std::ranges::all_of(links_, [](const auto& l) { return l.port.has_value(); })) send_orders();
    others_go_on();
    return true;
  }

  // PE 0 listens at the port that the first host keeps for it.
  void send_orders() {
    connect_at_.reset();
    const bool v6 = s_.address.find(':') != std::string::npos && s_.address.front() != '[';
    const std::string root = (v6 ? "[" + s_.address + "]" : s_.address) + ":" + std::to_string(*links_.front().port);
    int first = 0;
    for (std::size_t i = 0; i < links_.size(); ++i) {
      links_[i].to->put(make_order(s_, i, first, root));
      first += s_.hosts[i].pes;
    }
  }

  void look_for_late_hosts() {
    if (!connect_at_ || clock::now() < *connect_at_ || phase_ != phase::running) return;
    connect_at_.reset();
    for (std::size_t i = 0; i < links_.size(); ++i)
      if (!links_[i].port && pids_[i] > 0)
        say("host %s has not started xiorun within %g s; check that '%s' gets there without a question, or raise "
            "--connect-timeout",
            s_.hosts[i].name.c_str(), s_.connect_s, s_.agent.c_str());
    remember(k_exit_cannot_start);
    wait_then_terminate(0);
  }

  // The head has ended, or its way to this host has.
  void look_at_lifeline() {
    pollfd p{s_.lifeline, POLLIN, 0};
    char dropped[256];
    if (lifeline_ended_ || s_.lifeline < 0 || poll(&p, 1, 0) <= 0) return;
    if (const ssize_t n = read(s_.lifeline, dropped, sizeof dropped); n > 0 || (n < 0 && errno == EINTR)) return;
    lifeline_ended_ = true;
    if (begin_lease()) return;
    if (ended_by_ == 0) ended_by_ = 128 + SIGTERM;
    asked_to_end_ = true;
    if (phase_ != phase::running && phase_ != phase::ending) return;
    phase_ = phase::ending;
    next_phase();
  }

  // Nobody waits for the run any more. False: it ends at once.
  bool begin_lease() {
    if (s_.lease_s == 0 || phase_ != phase::running) return false;
    leased_ = true;
    const auto until = clock::now() + seconds(s_.lease_s);
    end_at_ = end_at_ ? std::min(*end_at_, until) : until;
    return true;
  }

  void step() {
    std::vector<pollfd> polled{{signals_, POLLIN, 0}};
    for (const sink* s : {&out_, &other_err_}) polled.push_back({s->waiting() > 0 ? s->fd() : -1, POLLOUT, 0});
    const std::size_t first = polled.size();
    for (const auto& o : outputs_) polled.push_back({o.may_pass_on() ? o.fd() : -1, POLLIN, 0});
    polled.push_back({lifeline_ended_ ? -1 : s_.lifeline, POLLIN, 0});
    for (const host_link& l : links_) {
      const bool more = l.to != nullptr && l.to->waiting() > 0;
      polled.push_back({more ? l.to->fd() : -1, POLLOUT, 0});
    }
    poll(polled.data(), polled.size(), poll_ms());
    for (sink* s : {&out_, &other_err_}) s->write_some();
    for (const host_link& l : links_)
      if (l.to != nullptr) l.to->write_some();
    pass_on(polled.data() + first);
    look_at_lifeline();
    look_for_late_hosts();
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
      return o.ended() || (o.reader_gone() && !is_lent());
    });
    if (gone && phase_ == phase::running && !is_lent()) {
      for (const sink* s : {&out_, &other_err_}) look_at_writing(*s);
      remember(128 + SIGPIPE);
      wait_then_terminate(0);
    }
  }

  int poll_ms() const {
    const int most = unreported_.empty() ? 1000000 : k_orphans_ms;
    auto next = end_at_;
    if (connect_at_ && (!next || *connect_at_ < *next)) next = connect_at_;
    if (!next) return unreported_.empty() ? -1 : most;
    const double left = std::chrono::duration<double, std::milli>(*next - clock::now()).count();
    return static_cast<int>(std::ceil(std::min(std::max(left, 0.0), static_cast<double>(most))));
  }

  void take_signals() {
    signalfd_siginfo info;
    while (read(signals_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      const int number = static_cast<int>(info.ssi_signo);
      if (number == k_front_gone) front_gone();
      if (number == SIGUSR1) show_waits();
      if (number == SIGCHLD || number == SIGUSR1 || number == k_front_gone) continue;
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

  // A node with a lease reads what its PEs write also where nobody takes it.
  bool is_lent() const { return s_.lifeline >= 0 && s_.lease_s != 0; }

  // Nobody is left to wait for the run: it ends with all that it has started.
  void front_gone() {
    if (getppid() == front_ || begin_lease()) return;
    kill_descendants();
    _exit(128 + SIGKILL);
  }

  // A program may go on in the background of a PE's first process that has ended; then it is an orphan, and whose is
  // not known. So PEs are reported as ended when no orphan is left.
  void report_ended() {
    if (unreported_.empty() || running_ == 0 || clock::now() < look_at_) return;
    look_at_ = clock::now() + std::chrono::milliseconds(k_orphans_ms);
    if (has_orphans(pids_)) return;
    for (const auto& [pe, status] : unreported_) report_.ended(s_.first + pe, status);
    unreported_.clear();
  }

  // waitpid does not say who died first, and a process that dies closes its sockets before it can be waited for: its
  // peers may see that, give up and be reaped earlier. So a first failure is looked at again a moment later, and among
  // those found dead then, one that a signal killed is the likelier cause.
  void reap() {
    std::vector<std::pair<int, int>> dead;  // PE, how
    sweep(dead);
    const bool failed = std::ranges::any_of(dead, [](const auto& d) { return d.second != 0; });
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
      for (int pe = 0; pe < static_cast<int>(pids_.size()); ++pe)
        if (pids_[static_cast<std::size_t>(pe)] == pid) dead.emplace_back(pe, how);
  }

  void ended(int pe, int how) {
    pids_[static_cast<std::size_t>(pe)] = -1;
    --running_;
    const int status = WIFSIGNALED(how) ? 128 + WTERMSIG(how) : WEXITSTATUS(how);
    if (s_.hosts.empty()) unreported_.emplace_back(pe, status);
    if (s_.survive && !s_.hosts.empty() && phase_ == phase::running && !asked_to_end_)
      if (host_of_survivors_ended(static_cast<std::size_t>(pe), status)) return;
    if (status == 0) return host_without_status(pe);
    // Not worth a line each when it ended because it was told to.
    if (phase_ == phase::terminated || phase_ == phase::killed || asked_to_end_) return remember(status);
    if (WIFSIGNALED(how))
      say("%s was killed by signal %d (%s)", s_.name_of(pe).c_str(), WTERMSIG(how), strsignal(WTERMSIG(how)));
    else if (s_.hosts.empty())
      say("%s ended with status %d", s_.name_of(pe).c_str(), status);
    else
      say_why_host_ended(static_cast<std::size_t>(pe), status);
    if (s_.survive && phase_ == phase::running && s_.hosts.empty()) return pe_of_survivors_ended(how, status);
    remember(status);
    if (phase_ == phase::running) wait_then_terminate(s_.grace_s);
  }

  // The status is that of PEs that end by themselves, or 1 where none does.
  void pe_of_survivors_ended(int how, int status) {
    if (!WIFSIGNALED(how)) return remember(status);
    ++lost_;
    if (s_.lifeline >= 0) out_.put(lost_line(lost_));
    others_go_on();
  }

  // False: xiorun never ran there.
  bool host_of_survivors_ended(std::size_t i, int status) {
    take_last_lines();
    host_link& l = links_[i];
    if (!l.port) return false;
    if (!l.status) {
      say_why_host_ended(i, status);
      l.lost = s_.hosts[i].pes;
    } else if (l.lost < s_.hosts[i].pes) {
      remember(*l.status);
    }
    others_go_on();
    return true;
  }

  // As long as enough are left.
  void others_go_on() {
    int left = s_.pes - lost_;
    for (const host_link& l : links_) left -= l.lost;
    if (left >= std::max(s_.min_alive, 1) || phase_ != phase::running) return;
    if (left > 0)
      say("%d of %d PEs are left, fewer than --min-alive %d", left, s_.pes, s_.min_alive);
    else if (s_.lifeline < 0)
      say("no PE is left");
    remember(1);
    wait_then_terminate(0);
  }

  void say_why_host_ended(std::size_t i, int status) {
    take_last_lines();
    const std::string why = links_[i].why_ended(s_.hosts[i], s_, status);
    if (!why.empty()) say("%s", why.c_str());
  }

  // The first and last line of a node that has ended may lie unread in its pipe, behind as much as a pipe holds, while
  // nobody reads our own output.
  void take_last_lines() {
    constexpr int k_most_reads = 64;  // of 16 KiB
    for (auto& o : outputs_) {
      pollfd p{o.fd(), POLLIN, 0};
      for (int i = 0; i < k_most_reads && !o.ended() && poll(&p, 1, 0) > 0; ++i) o.pass_on();
    }
  }

  // An agent that returns 0 has started nothing, or keeps statuses for itself: PEs did well where the node says so.
  void host_without_status(int member) {
    if (s_.hosts.empty() || phase_ != phase::running) return;
    const auto i = static_cast<std::size_t>(member);
    take_last_lines();
    const host_link& l = links_[i];
    if (l.status == 0) return;
    say_why_host_ended(i, 0);
    remember(l.status.value_or(k_exit_cannot_start));
    wait_then_terminate(l.status ? s_.grace_s : 0);
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
      case phase::running:  // only --timeout and the end of a lease come here
        say("%d of %zu %s still run after %g s%s; ending them", running_, pids_.size(), s_.kind(),
            leased_ ? s_.lease_s : s_.timeout_s, leased_ ? " without the xiorun that started them" : "");
        remember(ended_by_ = k_exit_timeout);
        show_waits();
        [[fallthrough]];
      case phase::ending:
        if (phase_ == phase::ending) say("ending the %d %s that still run", running_, s_.kind());
        phase_ = phase::terminated;
        for (host_link& l : links_) l.fd.reset();  // the node ends by this, also where its agent ignores signals
        links_.clear();
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

  // Which PE waits for which, by the xio-info beside this program.
  void show_waits() {
    if (const int err = print_waits(s_); err != 0)
      say("xio-info, which says which PE waits for which: %s", std::strerror(err));
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
  std::vector<host_link> links_;  // by host
  std::optional<clock::time_point> connect_at_;
  bool lifeline_ended_ = false, asked_to_end_ = false, leased_ = false;
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
  int signals_ = -1, running_ = 0;
  int lost_ = 0;                   // PEs of this host that signals have killed
  int status_ = 0, ended_by_ = 0;  // ended_by_: the status that says so, once --timeout or a signal has ended the run
};

}  // namespace

int run_job(const job_settings& settings, char* name) {
  const auto body = [&] {
    signal(SIGXFSZ, SIG_IGN);  // of ulimit -f: the report is a file, and a run goes on without it
    return job(settings).run();
  };
  return run_apart(body, name);
}

}  // namespace xio::run
