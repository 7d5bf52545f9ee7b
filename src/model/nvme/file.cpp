// SPDX-License-Identifier: MIT
#include "model/nvme/file.hpp"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/log.hpp"

namespace xio::model::nvme {

// Delegates, so that the destructor runs for what is thrown here.
file::file(const std::string& path, const xio_storage_attr_t& attr) : file(path) {
  read_only_ = (attr.flags & XIO_STORAGE_READ_ONLY) != 0;
  const bool shapes = (attr.flags & (XIO_STORAGE_CREATE | XIO_STORAGE_TRUNCATE)) != 0;
  if (read_only_ && shapes)
    fail(XIO_ERR_ARG, "cannot open {}: READ_ONLY goes with neither CREATE nor TRUNCATE; drop one of them", path);
  if (attr.block_bytes != 0) block_bytes_ = attr.block_bytes;
  if (block_bytes_ < 512 || block_bytes_ > 65536 || (block_bytes_ & (block_bytes_ - 1)) != 0)
    fail(XIO_ERR_ARG, "cannot open {} with blocks of {} bytes; use a power of two from 512 to 65536", path,
         block_bytes_);
  open_file(attr.flags);
  asks_direct_ = (attr.flags & XIO_STORAGE_DIRECT) != 0;
  if (direct_if_asked() < 0 && asks_direct_)
    log::warn("{} is used through the page cache, although XIO_STORAGE_DIRECT asks for O_DIRECT: {}", path,
              errno_text(errno));
  const std::uint64_t there = measure();
  empties_ = (attr.flags & XIO_STORAGE_TRUNCATE) != 0 && !block_device_;
  grows_ = attr.bytes > there;
  if (grows_ && (read_only_ || block_device_))
    fail(XIO_ERR_IO, "{} is too short: it has {} bytes and {} were asked for{}", path, there, attr.bytes,
         block_device_ ? "" : "; open it without READ_ONLY to let it grow");
  if (attr.bytes > (empties_ ? 0 : there)) check_growth(attr.bytes);
  bytes_ = grows_ || empties_ ? attr.bytes : there;
}

file::~file() {
  if (!committed_ && (made_ || grown_)) undo();
}

// Asked without doing it: beyond its limit the caller's thread would get SIGXFSZ, which ends the program, and no file
// is longer than what its offset can be set to.
void file::check_growth(std::uint64_t bytes) {
  rlimit most{};
  if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < bytes)
    fail(XIO_ERR_IO, "cannot grow {} to {} bytes: this process may make files of {} at most; raise that with ulimit -f",
         path_, bytes, most.rlim_cur);
  if (lseek(fd_.get(), static_cast<off_t>(bytes), SEEK_SET) < 0)
    fail(XIO_ERR_IO, "cannot grow {} to {} bytes: its file system has no files of that size; ask for less", path_,
         bytes);
}

void file::grow() {
  const std::uint64_t there = measure();
  if (!grows_ || there >= bytes_) return;
  resize(bytes_);
  struct stat now {};
  if (fstat(fd_.get(), &now) == 0) grown_ = growth{there, now.st_mtim};
}

// Grows first: where that fails after all, what is there stays.
void file::commit() {
  grow();
  if (empties_) {
    resize(0);
    resize(bytes_);
  }
  committed_ = true;
}

void file::resize(std::uint64_t bytes) {
  if (ftruncate(fd_.get(), static_cast<off_t>(bytes)) != 0)
    fail(XIO_ERR_IO, "cannot make {} {} bytes long: {}; make room or ask for less", path_, bytes, errno_text(errno));
}

// Not where somebody else has the file open, who has kept his shared lock, or has written to it since.
void file::undo() {
  struct stat now {};
  if (flock(fd_.get(), LOCK_EX | LOCK_NB) != 0 || fstat(fd_.get(), &now) != 0) return;
  const auto bytes = static_cast<std::uint64_t>(now.st_size);
  if (grown_ && bytes == bytes_ && now.st_mtim.tv_sec == grown_->at.tv_sec &&
      now.st_mtim.tv_nsec == grown_->at.tv_nsec && ftruncate(fd_.get(), static_cast<off_t>(grown_->from)) != 0)
    log::warn("cannot cut {} to the {} bytes that it had before a drive that is refused: {}", path_, grown_->from,
              errno_text(errno));
  if (made_) unmake();
}

// Empty, under its name and nobody else's still: somebody may have put another in its place.
void file::unmake() {
  struct stat mine {};
  struct stat named {};
  if (fstat(fd_.get(), &mine) != 0 || mine.st_size != 0 || lstat(path_.c_str(), &named) != 0) return;
  if (mine.st_dev == named.st_dev && mine.st_ino == named.st_ino && unlink(path_.c_str()) != 0)
    log::warn("cannot remove {}, which was made for a drive that is refused: {}", path_, errno_text(errno));
}

// Two that extend one file at the same time must not cut each other's: a last byte that is allocated makes a file
// longer and never shorter. Where a file system cannot do that, the later one counts.
std::uint64_t file::extend(std::uint64_t bytes) {
  const std::uint64_t there = measure();
  if (cut_ || there < this->bytes())
    fail(XIO_ERR_STATE, "cannot grow {}: it was made shorter, from {} to {} bytes, while it was open; open it again",
         path_, this->bytes(), there);
  if (bytes > there) {
    if (read_only_ || block_device_)
      fail(XIO_ERR_ARG, "cannot grow {} from {} to {} bytes: {}", path_, there, bytes,
           read_only_ ? "open it without READ_ONLY" : "a block device keeps its size; use a file");
    check_growth(bytes);
    if (fallocate(fd_.get(), 0, static_cast<off_t>(bytes - 1), 1) != 0) {
      if (errno != EOPNOTSUPP)
        fail(XIO_ERR_IO, "cannot make {} {} bytes long: {}; make room or ask for less", path_, bytes,
             errno_text(errno));
      resize(bytes);
    }
  }
  const std::uint64_t now = measure();
  bytes_ = now;
  return now;
}

void file::open_file(std::uint32_t flags) {
  struct stat info {};
  const bool there = stat(path_.c_str(), &info) == 0;
  if (there && !S_ISREG(info.st_mode) && !S_ISBLK(info.st_mode))
    fail(XIO_ERR_IO, "cannot use {} as storage: it is neither a file nor a block device", path_);
  block_device_ = there && S_ISBLK(info.st_mode);
  int how = (read_only_ ? O_RDONLY : O_RDWR) | O_CLOEXEC;
  // Exclusive on a block device: refused while it is mounted or held by another driver.
  if (block_device_ && !read_only_) how |= O_EXCL;
  if ((flags & XIO_STORAGE_CREATE) != 0 && !block_device_)
    open_or_make(how);
  else
    fd_.reset(open(path_.c_str(), how));
  refuse_the_kernels_own();
  // The lock is held as long as the file is open: a drive that made the file or let it grow, and is then refused,
  // leaves it to others that hold the lock.
  if (fd_ && !block_device_) (void)flock(fd_.get(), LOCK_SH | LOCK_NB);
  if (fd_) return;
  const int err = errno;
  if (err == ENOENT)
    fail(XIO_ERR_IO, "cannot open {}: {}; {}", path_, errno_text(err),
         (flags & XIO_STORAGE_CREATE) != 0 ? "make its folder first, or check the path"
                                           : "check the path, or make the file first (XIO_STORAGE_CREATE does)");
  if (err == EACCES || err == EPERM || err == EROFS)
    fail(XIO_ERR_IO, "cannot open {} for {}: {}; change its permissions{}", path_,
         read_only_ ? "reading" : "reading and writing", errno_text(err),
         read_only_ ? "" : " or open it with READ_ONLY");
  if (err == EBUSY) fail(XIO_ERR_IO, "cannot open {}: it is mounted or in use; unmount it first", path_);
  fail(XIO_ERR_IO, "cannot open {}: {}; check the path", path_, errno_text(err));
}

// A file there is the kernel's state, or another process (/proc/PID/mem).
void file::refuse_the_kernels_own() const {
  struct statfs where {};
  if (!fd_ || block_device_ || fstatfs(fd_.get(), &where) != 0) return;
  const auto type = static_cast<std::uint64_t>(where.f_type) & 0xffffffffu;
  for (const std::uint64_t kernels :
       {PROC_SUPER_MAGIC, SYSFS_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC, CGROUP2_SUPER_MAGIC, CGROUP_SUPER_MAGIC})
    if (type == (kernels & 0xffffffffu))
      fail(XIO_ERR_ARG,
           "cannot use {} as storage: it is the kernel's, and no file with data; give a file of a disk or of tmpfs",
           path_);
}

int file::direct() {
  if (!direct_) {
    const std::string mine = "/proc/self/fd/" + std::to_string(fd_.get());
    direct_.reset(open(mine.c_str(), (read_only_ ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_DIRECT));
  }
  return direct_.get();
}

void file::open_or_make(int how) {
  fd_.reset(open(path_.c_str(), how));
  if (fd_ || errno != ENOENT) return;
  fd_.reset(open(path_.c_str(), how | O_CREAT | O_EXCL, 0666));
  made_ = static_cast<bool>(fd_);
  // Somebody has just made it, or it is a link to what is not there yet: not this opening's to remove.
  if (!fd_ && errno == EEXIST) fd_.reset(open(path_.c_str(), how | O_CREAT, 0666));
}

bool file::whole() {
  if (block_device_ || cut_) return !cut_;
  // Before the look: extend() makes the file longer before bytes() says so.
  const std::uint64_t least = bytes();
  struct stat now {};
  if (fstat(fd_.get(), &now) != 0) return true;
  if (now.st_nlink == 0 && !removed_) {
    removed_ = true;
    log::warn("{} was removed while it is in use as a drive; its data are gone when it is closed", path_);
  }
  if (static_cast<std::uint64_t>(now.st_size) >= least) return true;
  cut_ = true;
  log::warn(
      "{} was made shorter, from {} to {} bytes, while it is in use as a drive; nothing is written to it any more",
      path_, least, now.st_size);
  return false;
}

std::uint64_t file::measure() {
  struct stat info {};
  if (fstat(fd_.get(), &info) != 0) fail(XIO_ERR_IO, "cannot ask for the size of {}: {}", path_, errno_text(errno));
  removed_ = info.st_nlink == 0;
  if (!block_device_) return static_cast<std::uint64_t>(info.st_size);
  std::uint64_t bytes = 0;
  if (ioctl(fd_.get(), BLKGETSIZE64, &bytes) != 0)
    fail(XIO_ERR_IO, "cannot ask for the size of {}: {}", path_, errno_text(errno));
  return bytes;
}

}  // namespace xio::model::nvme
