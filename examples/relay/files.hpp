// SPDX-License-Identifier: MIT
// The file that relay reads, and what both of its files have in common: relay opens each once and names it to the
// storage as /proc/self/fd/N, so that it is the same file to the end, and its own name may have any letters.
#pragma once
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "../check.hpp"

// The names that XIO has for drives: such a drive is relayed as a whole.
inline bool names_drive(const std::string& path) { return path.rfind("nvme:", 0) == 0 || path.rfind("kmod:", 0) == 0; }

inline std::string path_of(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

class input {
 public:
  explicit input(const std::string& path) : path_(path) {
    if (is_drive()) return;
    fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct stat s {};
    if (fd_ < 0 || fstat(fd_, &s) != 0)
      leave(1, "relay: cannot read '%s': %s; give an existing file with --in", path.c_str(), std::strerror(errno));
    if (S_ISDIR(s.st_mode)) leave(1, "relay: '%s' is a folder; give a file with --in", path.c_str());
    if (S_ISCHR(s.st_mode) && never_ends(s.st_rdev))
      leave(1, "relay: '%s' never ends; give a file with --in", path.c_str());
    // Pipes have no size, and files of /proc and /sys say a wrong one; these take no blocks of a disk.
    const bool size_is_true = S_ISBLK(s.st_mode) || (S_ISREG(s.st_mode) && (s.st_blocks > 0 || s.st_size > k_small));
    if (!size_is_true) copy_to_its_end();
    const off_t end = lseek(fd_, 0, SEEK_END);
    if (end < 0) leave(1, "relay: '%s' has no size: %s", path.c_str(), std::strerror(errno));
    bytes_ = static_cast<uint64_t>(end);
  }
  input& operator=(input&&) = delete;
  ~input() {
    if (fd_ >= 0) ::close(fd_);
  }

  bool is_drive() const { return names_drive(path_); }
  uint64_t bytes() const { return bytes_; }  // 0 of a drive, which says it when it is open
  std::string storage() const { return is_drive() ? path_ : "file:" + path_of(fd_); }

 private:
  static constexpr off_t k_small = 1 << 20;

  // /dev/zero, full, random and urandom, by the numbers that Linux gives them (devices.txt).
  static bool never_ends(dev_t device) {
    const unsigned n = minor(device);
    return major(device) == 1 && (n == 5 || n == 7 || n == 8 || n == 9);
  }

  // Into a file without a name, since a kernel wants to read at any place of it.
  void copy_to_its_end() {
    const char* set = std::getenv("TMPDIR");
    std::string name = std::string(set != nullptr && *set != 0 ? set : "/tmp") + "/relay-XXXXXX";
    const int copy = mkostemp(name.data(), O_CLOEXEC);
    if (copy < 0)
      leave(1, "relay: cannot make '%s' for what '%s' holds: %s; set TMPDIR", name.c_str(), path_.c_str(),
            std::strerror(errno));
    unlink(name.c_str());
    std::vector<char> piece(1 << 16);
    for (ssize_t got; (got = read(fd_, piece.data(), piece.size())) != 0;) {
      if (got < 0 && errno != EINTR) leave(1, "relay: cannot read '%s': %s", path_.c_str(), std::strerror(errno));
      for (ssize_t done = 0; done < got;) {
        const ssize_t put = write(copy, piece.data() + done, static_cast<size_t>(got - done));
        if (put < 0 && errno != EINTR)
          leave(1, "relay: cannot copy '%s' to '%s': %s; set TMPDIR", path_.c_str(), name.c_str(),
                std::strerror(errno));
        if (put > 0) done += put;
      }
    }
    ::close(fd_);
    fd_ = copy;
  }

  std::string path_;
  int fd_ = -1;
  uint64_t bytes_ = 0;
};
