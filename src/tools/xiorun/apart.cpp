// SPDX-License-Identifier: MIT
#include "tools/xiorun/apart.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace xio::run {

namespace {

// Before the fork, so that none is lost between the two.
sigset_t block_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) sigaddset(&set, s);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signal(SIGCHLD, SIG_DFL);
  return set;
}

int wait_for(pid_t run, const sigset_t& set) {
  for (;;) {
    int how = 0;
    if (waitpid(run, &how, WNOHANG) == run) return WIFSIGNALED(how) ? 128 + WTERMSIG(how) : WEXITSTATUS(how);
    siginfo_t info;
    const int number = sigwaitinfo(&set, &info);
    // A key at the terminal has reached the run too: it is in the same group.
    if (number > 0 && number != SIGCHLD && info.si_code != SI_KERNEL) kill(run, number);
  }
}

}  // namespace

bool has_children() {
  siginfo_t info;
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

int run_apart(const std::function<int()>& body, int listener) {
  const sigset_t set = block_signals();
  const pid_t parent = getpid();
  std::fflush(nullptr);
  const pid_t run = fork();
  if (run < 0) {
    std::fprintf(stderr, "xiorun: the run could not be started: %s; raise the limit of processes (ulimit -u)\n",
                 std::strerror(errno));
    return 1;
  }
  if (run > 0) {
    close(listener);
    return wait_for(run, set);
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  return getppid() == parent ? body() : 1;
}

}  // namespace xio::run
