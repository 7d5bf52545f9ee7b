// SPDX-License-Identifier: MIT
// A file system of 1.25 MiB that only one process sees, for tests that need it full.
#pragma once
#include "../gtest.hpp"

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

namespace xio::test::full_disk {

constexpr int k_cannot = 77;

// Mounted at `place`; false where the system does not let that be.
inline bool mount_at(const std::string& place) {
  if (unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  return mount("xio", place.c_str(), "tmpfs", 0, "size=1280k") == 0;
}

// Writes until nothing fits any more.
inline void fill_up(int fd) {
  const std::vector<unsigned char> page(4096, 1);
  while (write(fd, page.data(), page.size()) == static_cast<ssize_t>(page.size())) {
  }
  EXPECT_EQ(errno, ENOSPC);
}

// Runs a test in a process of its own, for the file system is the process's. `instead`: the tests that see some of it
// where no file system can be mounted.
inline void run_in_a_child(const std::function<void(const std::string& place)>& test, const char* instead = "") {
  std::string place = testing::TempDir() + "/xio_full_XXXXXX";
  ASSERT_NE(mkdtemp(place.data()), nullptr);
  const pid_t child = fork();
  if (child == 0) {
    if (!mount_at(place)) _exit(k_cannot);
    test(place);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(rmdir(place.c_str()), 0) << place;
  if (WIFEXITED(status) && WEXITSTATUS(status) == k_cannot)
    GTEST_SKIP() << "no file system can be mounted here" << instead;
  EXPECT_EQ(status, 0);
}

// While it lives no file of this process may grow beyond `bytes`. To try it is a signal, which `handler` takes.
class file_limit {
 public:
  explicit file_limit(rlim_t bytes, void (*handler)(int) = SIG_IGN) : handler_(std::signal(SIGXFSZ, handler)) {
    getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit small{bytes, old_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~file_limit() {
    setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, handler_);
  }
  file_limit& operator=(file_limit&&) = delete;

 private:
  rlimit old_{};
  void (*const handler_)(int);
};

}  // namespace xio::test::full_disk
