// SPDX-License-Identifier: MIT
// The files of relay. Each is opened once and named to the storage as /proc/self/fd/N: so it is the same file to the
// end, and its own name may have any letters.
#pragma once
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <random>
#include <string>

#include "../check.hpp"

inline std::string path_of(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

inline int open_input(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  struct stat s {};
  if (fd < 0 || fstat(fd, &s) != 0)
    leave(1, "relay: cannot read '%s': %s; give an existing file with --in", path.c_str(), std::strerror(errno));
  if (S_ISDIR(s.st_mode)) leave(1, "relay: '%s' is a folder; give a file with --in", path.c_str());
  if (S_ISCHR(s.st_mode) && s.st_rdev != makedev(1, 3))  // /dev/null
    leave(1, "relay: '%s' is a device that perhaps never ends; give a file with --in", path.c_str());
  // Pipes have no size, and files of /proc and /sys say a wrong one; these take no blocks of a disk.
  if (S_ISBLK(s.st_mode) || (S_ISREG(s.st_mode) && (s.st_blocks > 0 || s.st_size > 1 << 20))) return fd;
  const int copy = memfd_create("relay", MFD_CLOEXEC);
  char piece[1 << 16];
  ssize_t got = 0;
  while ((got = read(fd, piece, sizeof piece)) > 0 && write(copy, piece, static_cast<size_t>(got)) == got) continue;
  if (got != 0) leave(1, "relay: cannot read '%s' into memory: %s", path.c_str(), std::strerror(errno));
  return copy;
}

// The file that relay writes. It has no name until it is whole and synced, so nothing of it stays if relay is killed,
// and it takes the place of a regular file alone, whose mode and owner it takes. A link stays and leads to the new one.
class output {
 public:
  // Leaves the program, and everything as it was, where such a file cannot be made.
  explicit output(const std::string& path) : path_(path), place_(path) {
    exists_ = stat(path_.c_str(), &old_) == 0;
    if (!exists_ && errno != ENOENT) refuse(std::strerror(errno));
    if (S_ISDIR(old_.st_mode)) refuse("it is a folder; give --out the name of a file in it");
    if (exists_ && !S_ISREG(old_.st_mode)) refuse("it is a device, pipe or socket; relay writes regular files");
    if (exists_ && access(path_.c_str(), W_OK) != 0) refuse(std::strerror(errno));
    if (!exists_ && std::filesystem::is_symlink(path)) refuse("it is a link to what is not there; remove the link");
    if (!place_.has_filename()) refuse("that is the name of a folder");
    std::error_code lost;
    if (exists_) place_ = std::filesystem::canonical(path, lost);
    if (lost) refuse("that file has no name any more; give another");
    const std::filesystem::path folder = place_.parent_path() / "";
    std::random_device random;
    name_ = folder.string() + ".relay-" + std::to_string(random()) + '-' + std::to_string(random());
    // No other file has this name, so it may be removed at any time.
    std::atexit([] { unlink(name_.c_str()); });
    for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGXCPU})
      if (signal(number, [](int n) { unlink(name_.c_str()), _exit(128 + n); }) == SIG_IGN) signal(number, SIG_IGN);
    const int flags = O_RDWR | O_CLOEXEC, mode = exists_ ? 0600 : 0666;
    fd = open((folder / ".").c_str(), flags | O_TMPFILE, mode);
    named_ = fd < 0;  // as on NFS, where files have names
    if (named_) fd = open(name_.c_str(), flags | O_CREAT | O_EXCL, mode);
    if (fd < 0) refuse(std::strerror(errno));
    constexpr const char* k_list = "system.posix_acl_access";
    if (exists_) (void)fremovexattr(fd, k_list);  // what a new file has of its folder
    if (exists_ && (fchown(fd, old_.st_uid, old_.st_gid) != 0 || getxattr(place_.c_str(), k_list, nullptr, 0) > 0))
      refuse("its owner or access list would be lost; remove it first, or give another name");
  }

  // The file is whole. False, after a sentence, if it could not get its name.
  bool take_name() const {
    const bool ready = (!exists_ || fchmod(fd, old_.st_mode & 07777) == 0) && fsync(fd) == 0;
    const bool named =
        ready && (named_ || linkat(AT_FDCWD, path_of(fd).c_str(), AT_FDCWD, name_.c_str(), AT_SYMLINK_FOLLOW) == 0);
    if (named && rename(name_.c_str(), place_.c_str()) == 0) return true;
    std::fprintf(stderr, "relay: '%s' was not written: %s\n", path_.c_str(), std::strerror(errno));
    return false;
  }

  int fd = -1;

 private:
  [[noreturn]] void refuse(const char* why) const { leave(1, "relay: cannot write '%s': %s", path_.c_str(), why); }

  inline static std::string name_;  // which the file may have before its own
  std::string path_;
  std::filesystem::path place_;  // the path without links
  struct stat old_ {};
  bool exists_ = false, named_ = false;
};
