// SPDX-License-Identifier: MIT
#include "model/nvme/file_engine.hpp"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace xio::model::nvme {
namespace {

// Zeros are written in pieces of this size where a file system cannot zero a range by itself.
constexpr std::size_t k_zero_bytes = 64 << 10;
const std::byte k_zeroes[k_zero_bytes] = {};

}  // namespace

bool is_whole_pages(const file_job& job) {
  if (job.what != file_job::kind::read && job.what != file_job::kind::write) return false;
  std::uint64_t bytes = 0;
  for (std::size_t i = job.part; i < job.parts.size(); ++i) bytes += job.parts[i].iov_len;
  return job.offset % k_whole_page == 0 && bytes % k_whole_page == 0;
}

bool file_job::advance(std::size_t bytes) {
  offset += bytes;
  for (; part < parts.size(); ++part) {
    iovec& v = parts[part];
    const std::size_t n = std::min(bytes, v.iov_len);
    v.iov_base = static_cast<char*>(v.iov_base) + n;
    v.iov_len -= n;
    bytes -= n;
    if (v.iov_len != 0) return false;
  }
  return true;
}

bool file_job::apply_result(long result) {
  if (result == -EINTR || result == -EAGAIN) return false;
  // Memory or a rest that lies badly for the disk.
  if (std::exchange(by, way::cache) == way::direct && result == -EINVAL) return false;
  if (what == kind::zero) return apply_zeroing(result);
  if (result < 0) {
    error = static_cast<int>(-result);
    return true;
  }
  if (what == kind::sync) return true;
  if (result > 0) return advance(static_cast<std::size_t>(result));
  error = what == kind::write ? ENOSPC : EIO;  // EIO: somebody made the file shorter
  return true;
}

bool file_job::apply_zeroing(long result) {
  if (result == -EOPNOTSUPP || result == -ENOSYS || result == -EINVAL || result == -ENODEV) {
    what = kind::write;
    for (std::uint64_t at = 0; at < bytes; at += k_zero_bytes)
      parts.push_back(iovec{const_cast<std::byte*>(k_zeroes), std::min<std::uint64_t>(k_zero_bytes, bytes - at)});
    return false;
  }
  if (result < 0) {
    error = static_cast<int>(-result);
    return true;
  }
  what = kind::sync;  // there is no zeroing with a flag
  return !durable;
}

// readv and writev take this many parts at once.
constexpr std::size_t k_parts_at_once = 1024;

long call(int fd, const file_job& job, int flags) {
  const iovec* parts = job.parts.data() + job.part;
  const int count = static_cast<int>(std::min(job.parts.size() - job.part, k_parts_at_once));
  const off_t offset = static_cast<off_t>(job.offset);
  long result = 0;
  if (job.what == file_job::kind::sync)
    result = fdatasync(fd);
  else if (job.what == file_job::kind::zero)
    result = fallocate(fd, FALLOC_FL_ZERO_RANGE, offset, static_cast<off_t>(job.bytes));
  else if (count == 1 && flags == 0 && !job.durable)  // one part needs no list
    result = job.what == file_job::kind::read ? pread(fd, parts->iov_base, parts->iov_len, offset)
                                              : pwrite(fd, parts->iov_base, parts->iov_len, offset);
  else if (job.what == file_job::kind::read)
    result = preadv2(fd, parts, count, offset, flags);
  else
    result = pwritev2(fd, parts, count, offset, flags | (job.durable ? RWF_DSYNC : 0));
  return result < 0 ? -errno : result;
}

namespace {

constexpr std::size_t k_at_once = 16;

class plain_engine : public file_engine {
 public:
  plain_engine(int fd, int direct) : fd_(fd), direct_(direct) {}
  const char* name() const override { return "plain"; }
  std::size_t room() const override { return done_.size() < k_at_once ? k_at_once - done_.size() : 0; }
  void kick() override {}

  void start(file_job& job) override {
    if (direct_ >= 0 && is_whole_pages(job)) job.by = file_job::way::direct;
    while (!job.apply_result(call(job.by == file_job::way::direct ? direct_ : fd_, job, 0))) {
    }
    done_.push_back(&job);
  }

  void reap(std::vector<file_job*>& done) override {
    done.insert(done.end(), done_.begin(), done_.end());
    done_.clear();
  }

 private:
  int fd_, direct_;
  std::vector<file_job*> done_;
};

}  // namespace

std::unique_ptr<file_engine> make_plain_engine(int fd, int direct) {
  return std::make_unique<plain_engine>(fd, direct);
}

std::unique_ptr<file_engine> make_file_engine(int fd, int direct, std::span<std::byte> fixed) {
  auto engine = make_uring_engine(fd, direct, fixed);
  return engine != nullptr ? make_cache_engine(fd, std::move(engine), {}, direct >= 0) : make_plain_engine(fd, direct);
}

}  // namespace xio::model::nvme
