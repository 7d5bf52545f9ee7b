// SPDX-License-Identifier: MIT
// The file that relay writes. It has no name until it is whole and synced, so nothing of it stays if relay is killed,
// and it takes the place of a regular file alone. The old file's mode and owner stay; a link stays and leads to the new
// one.
#pragma once
#include <signal.h>
#include <sys/random.h>
#include <sys/xattr.h>

#include "files.hpp"

class output {
 public:
  // Leaves the program, and everything as it was, where such a file cannot be made.
  explicit output(const std::string& path) : path_(path) {
    find_place();
    make();
    keep_owner();
  }
  output& operator=(output&&) = delete;
  ~output() {
    ::close(fd_);
    remove_name();
  }

  std::string storage() const { return "file:" + path_of(fd_); }

  // The file is whole. False, after a sentence, if it could not get its name.
  bool take_name() {
    if (fchmod(fd_, mode_) != 0 || fsync(fd_) != 0) return failed();
    if (!put_in_place()) {
      const int why = errno;
      remove_name();
      errno = why;
      return failed();
    }
    // The name, too, outlives a crash of the machine.
    const int folder = open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool synced = folder < 0 || fsync(folder) == 0 || errno == EINVAL;
    if (folder >= 0) ::close(folder);
    return synced || failed();
  }

 private:
  [[noreturn]] void refuse(const char* why) const { leave(1, "relay: cannot write '%s': %s", path_.c_str(), why); }
  bool failed() const {
    std::fprintf(stderr, "relay: '%s' was not written: %s\n", path_.c_str(), std::strerror(errno));
    return false;
  }

  void find_place() {
    place_ = path_;
    if (stat(path_.c_str(), &old_) == 0) {
      if (S_ISDIR(old_.st_mode)) refuse("it is a folder; give --out the name of a file in it");
      if (!S_ISREG(old_.st_mode)) refuse("it is a device, pipe or socket; relay writes regular files");
      if (access(path_.c_str(), W_OK) != 0) refuse(std::strerror(errno));
      exists_ = true;
      struct stat found {};
      char* real = realpath(path_.c_str(), nullptr);
      place_ = real != nullptr ? real : "";
      std::free(real);
      if (stat(place_.c_str(), &found) != 0 || found.st_dev != old_.st_dev || found.st_ino != old_.st_ino)
        refuse("that file has no name any more; give another");
    } else if (errno != ENOENT) {
      refuse(std::strerror(errno));
    } else if (struct stat link{}; lstat(path_.c_str(), &link) == 0) {
      refuse("it is a link to what is not there; make that, or remove the link");
    }
    const size_t slash = place_.rfind('/');
    if (slash + 1 == place_.size()) refuse("that is the name of a folder");
    folder_ = slash == std::string::npos ? "." : place_.substr(0, slash + 1);
  }

  void make() {
    const mode_t at_first = exists_ ? 0600 : 0666;
    fd_ = open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, at_first);
    // File systems and kernels without nameless files (O_TMPFILE) return these errors: make one with a name.
    if (fd_ < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
      remove_on_signals();
      for (int tries = 0; fd_ < 0 && tries < 100; ++tries) {
        choose_name();
        fd_ = open(name(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, at_first);
        if (fd_ < 0) *name() = 0;
        if (fd_ < 0 && errno != EEXIST) break;
      }
    }
    struct stat made {};
    if (fd_ < 0 || fstat(fd_, &made) != 0) refuse(std::strerror(errno));
    mode_ = exists_ ? old_.st_mode & 07777 : made.st_mode & 07777;
    // The storage opens it once more, for reading and writing.
    if (fchmod(fd_, (exists_ ? 0 : mode_) | 0600) != 0) refuse(std::strerror(errno));
  }

  void keep_owner() {
    struct stat made {};
    if (!exists_ || fstat(fd_, &made) != 0) return;
    const uid_t user = made.st_uid == old_.st_uid ? static_cast<uid_t>(-1) : old_.st_uid;
    const gid_t group = made.st_gid == old_.st_gid ? static_cast<gid_t>(-1) : old_.st_gid;
    if (fchown(fd_, user, group) != 0)
      refuse("its owner and group could not be kept; remove it first, or give another name");
    // The mode alone would give the group what an access list gives somebody else.
    constexpr const char* k_list = "system.posix_acl_access";
    char list[4096];
    const ssize_t bytes = getxattr(place_.c_str(), k_list, list, sizeof list);
    if (bytes > 0 && fsetxattr(fd_, k_list, list, static_cast<size_t>(bytes), 0) != 0)
      refuse("its access list could not be kept; remove it first, or give another name");
    if (bytes < 0 && errno == ERANGE) refuse("its access list is too long; remove it first, or give another name");
    if (bytes < 0) (void)fremovexattr(fd_, k_list);  // what a new file has of its folder
  }

  bool put_in_place() {
    const std::string self = path_of(fd_);
    if (*name() == 0) {
      if (!exists_ && linkat(AT_FDCWD, self.c_str(), AT_FDCWD, place_.c_str(), AT_SYMLINK_FOLLOW) == 0) return true;
      if (!exists_ && errno != EEXIST) return false;
      remove_on_signals();
      for (int tries = 0;; ++tries) {
        choose_name();
        if (linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name(), AT_SYMLINK_FOLLOW) == 0) break;
        *name() = 0;
        if (errno != EEXIST || tries == 100) return false;
      }
    }
    struct stat now {};
    if (lstat(place_.c_str(), &now) == 0 && !S_ISREG(now.st_mode)) {
      errno = EEXIST;  // something else has come there since
      return false;
    }
    if (rename(name(), place_.c_str()) != 0) return false;
    *name() = 0;
    return true;
  }

  // The name that the file has before its own, or "": where a signal handler finds it.
  static char* name() {
    static char text[4096] = "";
    return text;
  }
  void choose_name() const {
    uint64_t number = 0;
    if (getrandom(&number, sizeof number, 0) != sizeof number) refuse(std::strerror(errno));
    const int length =
        std::snprintf(name(), 4096, "%s/.relay-%016llx", folder_.c_str(), static_cast<unsigned long long>(number));
    if (length >= 4096) refuse(std::strerror(ENAMETOOLONG));
  }
  static void remove_name() {
    if (*name() != 0) unlink(name());
    *name() = 0;
  }

  static void remove_on_signals() {
    name();
    std::atexit(remove_name);
    struct sigaction action {};
    struct sigaction before {};
    // May run in two threads at once, of which neither ends the program before the name is gone.
    action.sa_handler = [](int number) {
      if (*name() != 0) unlink(name());
      signal(number, SIG_DFL);
      raise(number);
    };
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGXCPU})
      if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }

  std::string path_, place_, folder_;  // as it was given; without links; where it is
  struct stat old_ {};
  bool exists_ = false;
  mode_t mode_ = 0;
  int fd_ = -1;
};
