// SPDX-License-Identifier: MIT
#include "tools/xio-perf/drive.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/error.hpp"
#include "ctx/stripes.hpp"
#include "tools/size_text.hpp"
#include "tools/xio-perf/data.hpp"
#include "transport/nvme/file_name.hpp"

namespace xio::perf {
namespace {

constexpr std::uint64_t k_piece = std::uint64_t{1} << 20;

// Reads up to the file's end: the kernel moves no more than 2 GiB less a page at once. Returns -1 with errno if it
// failed.
std::int64_t read_all(int fd, unsigned char* to, std::uint64_t bytes, std::uint64_t offset) {
  std::uint64_t done = 0;
  while (done < bytes) {
    const ssize_t got = pread(fd, to + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += static_cast<std::uint64_t>(got);
  }
  return static_cast<std::int64_t>(done);
}

}  // namespace

// Holds the pattern of nobody (PE -1), so that what reads bring differs from all that is in the heap. Has no name, so
// that nothing stays of it however this program ends. Returns the path by which it is opened.
std::string drive::make_file(std::uint64_t bytes) {
  const char* folder = std::getenv("TMPDIR");
  std::string name = std::string(folder != nullptr && *folder != '\0' ? folder : "/tmp") + "/xio-perf-XXXXXX";
  own_.reset(mkostemp(name.data(), O_CLOEXEC));
  if (!own_)
    fail(XIO_ERR_IO, "cannot make a file {} to test: {}; set TMPDIR or give --storage", name, errno_text(errno));
  unlink(name.c_str());
  int failed = 0;
  std::vector<unsigned char> piece(std::min(bytes, k_piece));
  for (std::uint64_t at = 0; at < bytes && failed == 0; at += piece.size()) {
    const std::size_t n = static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), bytes - at));
    for (std::size_t i = 0; i < n; ++i) piece[i] = pattern(-1, at + i);
    const ssize_t put = pwrite(own_.get(), piece.data(), n, static_cast<off_t>(at));
    if (put != static_cast<ssize_t>(n)) failed = put < 0 ? errno : ENOSPC;
  }
  if (failed != 0)
    fail(XIO_ERR_IO, "cannot write {} bytes to {}: {}; set TMPDIR or give --storage", bytes, name, errno_text(failed));
  return fmt::format("/proc/self/fd/{}", own_.get());
}

drive::drive(session& s, const std::string& name, std::uint64_t bytes, std::uint32_t queues, bool writes, bool direct)
    : session_(s), name_(name), bytes_(bytes) {
  if (name_.empty()) {
    path_ = make_file(bytes);
    name_ = "file:" + path_;
  } else if (name_.starts_with("file:") && member_names(name_).size() == 1) {
    // A stripe's bytes lie here and there: those are read as any drive's.
    path_ = nvme::parse_file_name(name_.substr(5), name_).path;
  }
  xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
  attr.queues = queues;
  std::error_code none;
  const bool disk = name_.starts_with("block:") || std::filesystem::is_block_file(path_, none);
  if (!writes)
    attr.flags = XIO_STORAGE_READ_ONLY;
  else if (disk)
    attr.flags = XIO_STORAGE_CREATE;  // --i-know was said
  if (direct) attr.flags |= XIO_STORAGE_DIRECT;
  checked(xio_storage_open(s.world(), name_.c_str(), &attr, &storage_), "xio_storage_open");
  checked(xio_storage_size(s.world(), storage_, &size_, &block_), "xio_storage_size");
  if (size_ < bytes_)
    fail(XIO_ERR_ARG,
         "{} has {} bytes and the test wants {}; take fewer workgroups (-c), threads (-t) or smaller sizes (-e)", name_,
         size_, bytes_);
}

drive::~drive() { (void)xio_storage_close(session_.world(), storage_); }

xio_engine_stats_t drive::stats() const {
  xio_engine_stats_t now = XIO_ENGINE_STATS_INIT;
  checked(xio_storage_stats(session_.world(), storage_, &now), "xio_storage_stats");
  return now;
}

void drive::check_size(std::uint64_t bytes) const {
  if (bytes % block_ != 0)
    fail(XIO_ERR_ARG, "{} is no multiple of the {} bytes of a block of {}; choose other sizes (-b, -f)",
         tools::text_of_size(bytes), block_, name_);
}

std::vector<unsigned char> drive::content(std::uint64_t offset, std::uint64_t bytes, xio_route_t route) const {
  std::vector<unsigned char> all(bytes);
  if (!path_.empty()) {
    const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    const std::int64_t got = fd < 0 ? -1 : read_all(fd, all.data(), bytes, offset);
    const int why = errno;
    if (fd >= 0) ::close(fd);
    if (got != static_cast<std::int64_t>(bytes))
      fail(XIO_ERR_IO, "cannot read {} bytes of {} to compare: {}", bytes, path_,
           got < 0 ? errno_text(why) : "it is shorter");
    return all;
  }
  work w = session_.blank(route);
  w.storage = storage_;
  w.bytes = bytes;
  w.stored = bytes_;
  w.iterations = 1;
  w.first = offset / bytes;
  session_.results.prepare(w, 1, 1);
  launch_storage(scope::thread, false, dim3(1), dim3(1), w);
  session_.collect("reading the drive to compare", w);
  return copy_of(w.dst, bytes);
}

}  // namespace xio::perf
