// SPDX-License-Identifier: MIT
// A file system of 1.25 MiB that only one process sees, for tests that need it full.
#pragma once
#include "../gtest.hpp"

#include <sched.h>
#include <sys/mount.h>

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

// In a process of its own, for the file system is the process's: k_cannot, 0, or 1 for a test that failed there.
inline int in_a_child(const std::function<void(const std::string& place)>& test) {
  std::string place = testing::TempDir() + "/xio_full_XXXXXX";
  if (mkdtemp(place.data()) == nullptr) return k_cannot;
  const pid_t child = fork();
  if (child == 0) {
    if (!mount_at(place)) _exit(k_cannot);
    test(place);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(rmdir(place.c_str()), 0) << place;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace xio::test::full_disk
