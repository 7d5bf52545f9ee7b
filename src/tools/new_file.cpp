// SPDX-License-Identifier: MIT
#include "tools/new_file.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "base/error.hpp"

namespace xio::tools {
namespace {

constexpr int k_tries = 100;

// A name that the file has before its own, or "": where a signal handler finds it.
char passing_name[4096] = "";

void remove_name() {
  if (passing_name[0] != '\0') unlink(passing_name);
  passing_name[0] = '\0';
}

bool choose_name(const std::string& folder) {
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number) return false;
  const std::string name = fmt::format("{}/.xio-{:016x}", folder, number);
  if (name.size() >= sizeof passing_name) {
    errno = ENAMETOOLONG;
    return false;
  }
  name.copy(passing_name, name.size());
  passing_name[name.size()] = '\0';
  return true;
}

void remove_on_signals() {
  static const bool at_exit = std::atexit(remove_name) == 0;
  (void)at_exit;
  struct sigaction action {};
  struct sigaction before {};
  // May run in two threads at once, of which neither ends the program before the name is gone.
  action.sa_handler = [](int number) {
    if (passing_name[0] != '\0') unlink(passing_name);
    signal(number, SIG_DFL);
    raise(number);
  };
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGXCPU})
    if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
}

}  // namespace

new_file::new_file(std::string what, std::string path) : what_(std::move(what)), path_(std::move(path)) {
  find_place();
  if (stream_) {
    open_stream();
  } else {
    make();
    keep_owner();
  }
}

new_file::~new_file() { remove_name(); }

void new_file::refuse(const std::string& why) const {
  fail(XIO_ERR_IO, "{}: {} cannot be written: {}", what_, path_, why);
}

void new_file::find_place() {
  place_ = path_;
  if (stat(path_.c_str(), &old_) == 0) {
    if (S_ISDIR(old_.st_mode)) refuse("it is a folder; give the name of a file in it");
    stream_ = !S_ISREG(old_.st_mode);
    if (stream_) return;
    if (access(path_.c_str(), W_OK) != 0) refuse(errno_text(errno));
    exists_ = true;
    struct stat found {};
    char* real = realpath(path_.c_str(), nullptr);
    place_ = real != nullptr ? real : "";
    std::free(real);
    if (stat(place_.c_str(), &found) != 0 || found.st_dev != old_.st_dev || found.st_ino != old_.st_ino)
      refuse("that file has no name any more; give another");
  } else if (errno != ENOENT) {
    refuse(errno_text(errno));
  } else if (struct stat link{}; lstat(path_.c_str(), &link) == 0) {
    refuse("it is a link to what is not there; make that, or remove the link");
  }
  const std::size_t slash = place_.rfind('/');
  if (place_.empty() || slash + 1 == place_.size()) refuse("that is the name of no file");
  folder_ = slash == std::string::npos ? "." : place_.substr(0, slash + 1);
}

// Exclusive where it is a disk: refused while that is mounted.
void new_file::open_stream() {
  fd_.reset(open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | (S_ISBLK(old_.st_mode) ? O_EXCL : 0)));
  if (!fd_) refuse(errno_text(errno));
}

void new_file::make() {
  const mode_t at_first = exists_ ? 0600 : 0666;
  fd_.reset(open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, at_first));
  // File systems and kernels that have no such files fail with one of these.
  if (!fd_ && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
    remove_on_signals();
    for (int tries = 0; !fd_ && tries < k_tries; ++tries) {
      if (!choose_name(folder_)) refuse(errno_text(errno));
      fd_.reset(open(passing_name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, at_first));
      if (!fd_) passing_name[0] = '\0';
      if (!fd_ && errno != EEXIST) break;
    }
  }
  struct stat made {};
  if (!fd_ || fstat(fd_.get(), &made) != 0) refuse(errno_text(errno));
  mode_ = (exists_ ? old_.st_mode : made.st_mode) & 07777;
  if (fchmod(fd_.get(), (exists_ ? 0 : mode_) | 0600) != 0) refuse(errno_text(errno));
}

void new_file::keep_owner() {
  struct stat made {};
  if (!exists_ || fstat(fd_.get(), &made) != 0) return;
  const uid_t user = made.st_uid == old_.st_uid ? static_cast<uid_t>(-1) : old_.st_uid;
  const gid_t group = made.st_gid == old_.st_gid ? static_cast<gid_t>(-1) : old_.st_gid;
  if (fchown(fd_.get(), user, group) != 0)
    refuse("its owner and group could not be kept; remove it first, or give another name");
  // The mode alone would give the group what an access list gives somebody else.
  constexpr const char* k_list = "system.posix_acl_access";
  char list[4096];
  const ssize_t bytes = getxattr(place_.c_str(), k_list, list, sizeof list);
  if (bytes > 0 && fsetxattr(fd_.get(), k_list, list, static_cast<std::size_t>(bytes), 0) != 0)
    refuse("its access list could not be kept; remove it first, or give another name");
  if (bytes < 0 && errno == ERANGE) refuse("its access list is too long; remove it first, or give another name");
  if (bytes < 0) (void)fremovexattr(fd_.get(), k_list);  // what a new file has of its folder
}

void new_file::write(const void* data, std::size_t bytes) {
  for (const char* at = static_cast<const char*>(data); bytes != 0;) {
    const ssize_t put = ::write(fd_.get(), at, bytes);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) refuse(put < 0 ? errno_text(errno) : "no room");
    at += put;
    bytes -= static_cast<std::size_t>(put);
  }
}

std::size_t new_file::bytes() const {
  struct stat now {};
  return fstat(fd_.get(), &now) == 0 ? static_cast<std::size_t>(now.st_size) : 0;
}

std::string new_file::link() const { return fmt::format("/proc/{}/fd/{}", getpid(), fd_.get()); }

void new_file::keep() {
  if (stream_) {
    // Pipes and terminals have nothing to sync.
    if (fsync(fd_.get()) != 0 && errno != EINVAL && errno != EROFS) refuse(errno_text(errno));
    return;
  }
  if (fchmod(fd_.get(), mode_) != 0 || fsync(fd_.get()) != 0) refuse(errno_text(errno));
  if (!put_in_place()) {
    const int why = errno;
    remove_name();
    refuse(errno_text(why));
  }
  // The name, too, outlives a crash of the machine.
  const unique_fd folder(open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder && fsync(folder.get()) != 0 && errno != EINVAL) refuse(errno_text(errno));
}

bool new_file::put_in_place() {
  const std::string self = fmt::format("/proc/self/fd/{}", fd_.get());
  if (passing_name[0] == '\0') {
    if (!exists_ && linkat(AT_FDCWD, self.c_str(), AT_FDCWD, place_.c_str(), AT_SYMLINK_FOLLOW) == 0) return true;
    if (!exists_ && errno != EEXIST) return false;
    remove_on_signals();
    for (int tries = 0;; ++tries) {
      if (!choose_name(folder_)) return false;
      if (linkat(AT_FDCWD, self.c_str(), AT_FDCWD, passing_name, AT_SYMLINK_FOLLOW) == 0) break;
      passing_name[0] = '\0';
      if (errno != EEXIST || tries == k_tries) return false;
    }
  }
  struct stat now {};
  if (lstat(place_.c_str(), &now) == 0 && !S_ISREG(now.st_mode)) {
    errno = EEXIST;  // something else has come there since
    return false;
  }
  if (rename(passing_name, place_.c_str()) != 0) return false;
  passing_name[0] = '\0';
  return true;
}

}  // namespace xio::tools
