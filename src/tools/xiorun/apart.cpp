// SPDX-License-Identifier: MIT
#include "tools/xiorun/apart.hpp"

#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tools/xiorun/child.hpp"

namespace xio::run {
namespace {

// Before the fork, so that none is lost between the two.
sigset_t block_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGCHLD}) sigaddset(&set, s);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signal(SIGCHLD, SIG_DFL);
  return set;
}

bool has_children() {
  siginfo_t info;
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

int status_of(int how) { return WIFSIGNALED(how) ? 128 + WTERMSIG(how) : WEXITSTATUS(how); }

// Only the run's process itself died: what it leaves is killed here, unless it cannot be distinguished from older
// children.
int clean_up_after(int how, bool alone) {
  if (!WIFSIGNALED(how)) return WEXITSTATUS(how);
  std::fprintf(stderr, "xiorun: the process that watches the PEs was killed by signal %d (%s); ending them\n",
               WTERMSIG(how), strsignal(WTERMSIG(how)));
  if (alone) kill_descendants();
  return status_of(how);
}

int wait_for(pid_t run, const sigset_t& set, bool alone) {
  for (;;) {
    int how = 0;
    if (waitpid(run, &how, WNOHANG) == run) return clean_up_after(how, alone);
    siginfo_t info;
    const int number = sigwaitinfo(&set, &info);
    // A key at the terminal has reached the run too: it is in the same group.
    if (number > 0 && number != SIGCHLD && info.si_code != SI_KERNEL) kill(run, number);
  }
}

void rename_to(const char* new_name, char* name) {
  prctl(PR_SET_NAME, new_name);
  const std::size_t room = std::strlen(name);  // at least "xiorun"
  if (std::strlen(new_name) > room) return;
  std::memset(name, 0, room);
  std::memcpy(name, new_name, std::strlen(new_name));
}

}  // namespace

int run_apart(const std::function<int()>& body, char* name) {
  const sigset_t set = block_signals();
  const bool alone = !has_children();
  if (alone) become_reaper();
  const pid_t parent = getpid();
  std::fflush(nullptr);
  sigset_t with_front_gone = set;
  sigaddset(&with_front_gone, k_front_gone);
  const pid_t run = fork();
  if (run < 0) {
    std::fprintf(stderr, "xiorun: the run could not be started: %s; raise the limit of processes (ulimit -u)\n",
                 std::strerror(errno));
    return 1;
  }
  if (run > 0) return wait_for(run, set, alone);
  sigprocmask(SIG_BLOCK, &with_front_gone, nullptr);
  prctl(PR_SET_PDEATHSIG, k_front_gone);
  rename_to("pe-run", name);
  return getppid() == parent ? body() : 1;
}

int open_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGCHLD, k_front_gone}) sigaddset(&set, s);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  // If the parent process ignored SIGCHLD, children would vanish unseen.
  signal(SIGCHLD, SIG_DFL);
  signal(SIGPIPE, SIG_IGN);
  return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

}  // namespace xio::run
