// SPDX-License-Identifier: MIT
#include "model/nvme/mapped_file.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>

namespace xio::model::nvme {
namespace {

std::uint64_t left_of(const file_job& job) { return job.parts[job.part].iov_len; }

}  // namespace

mapped_file::mapped_file(int fd) : fd_(fd), page_(static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE))) {
  struct stat now {};
  const int how = fcntl(fd, F_GETFL);
  if (how < 0 || (how & O_ACCMODE) == O_WRONLY || fstat(fd, &now) != 0 || !S_ISREG(now.st_mode)) return;
  writable_ = (how & O_ACCMODE) == O_RDWR;
  // A store behind the end of a file, in its last page, is lost.
  bytes_ = std::min(static_cast<std::uint64_t>(now.st_size) / page_ * page_, k_most_mapped);
  if (bytes_ == 0) return;
  forget();
  if (regions_ == nullptr) return;
  void* at = mmap(nullptr, bytes_, writable_ ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return;
  base_ = static_cast<std::byte*>(at);
  for (const int advice : {MADV_RANDOM, MADV_DONTFORK, MADV_DONTDUMP}) madvise(at, bytes_, advice);
  useful_.store(true, std::memory_order_relaxed);
}

mapped_file::~mapped_file() {
  if (base_ != nullptr) munmap(base_, bytes_);
}

bool mapped_file::fits(const file_job& job) {
  if (!useful_.load(std::memory_order_relaxed) || job.durable || job.parts.size() != job.part + 1) return false;
  if (job.what != file_job::kind::read && (job.what != file_job::kind::write || !writable_)) return false;
  const std::uint64_t bytes = left_of(job);
  if (bytes == 0 || bytes > k_most_bytes || job.offset >= bytes_ || bytes > bytes_ - job.offset) return false;
  for (std::uint64_t page = job.offset / page_; page <= (job.offset + bytes - 1) / page_; ++page)
    if (!cached(page)) return false;
  return true;
}

bool mapped_file::cached(std::uint64_t page) {
  region& r = regions_[page / k_region_pages];
  if (!r.asked) {
    r.asked = true;
    const std::uint64_t at = page / k_region_pages * k_region_pages * page_;
    unsigned char there[k_region_pages] = {};
    if (mincore(base_ + at, std::min(k_region_pages * page_, bytes_ - at), there) == 0)
      for (std::uint64_t i = 0; i < k_region_pages; ++i) r.cached |= std::uint64_t{there[i] & 1u} << i;
  }
  return (r.cached >> page % k_region_pages & 1) != 0;
}

void mapped_file::written(std::uint64_t offset, std::uint64_t bytes) {
  if (bytes == 0 || !useful_.load(std::memory_order_relaxed)) return;
  // A region that nobody has asked about will tell.
  for (std::uint64_t page = offset / page_; page * page_ < std::min(offset + bytes, bytes_); ++page)
    if (region& r = regions_[page / k_region_pages]; r.asked) r.cached |= std::uint64_t{1} << page % k_region_pages;
}

// calloc gives memory that costs nothing before it is used.
void mapped_file::forget() {
  const std::uint64_t region_bytes = k_region_pages * page_;
  regions_.reset();
  regions_.reset(static_cast<region*>(std::calloc((bytes_ + region_bytes - 1) / region_bytes, sizeof(region))));
  if (regions_ == nullptr) give_up();
}

std::size_t mapped_file::move(std::span<file_job* const> jobs) {
  if (jobs.empty() || !useful_.load(std::memory_order_relaxed)) return 0;
  const bool writes = jobs[0]->what == file_job::kind::write;
  if (writes && !may_be_written()) {
    give_up();
    return 0;
  }
  std::size_t moved = 0;
  while (moved < jobs.size()) {
    const auto some = jobs.subspan(moved, std::min(jobs.size() - moved, k_at_once));
    const std::size_t n = move_some(some, writes);
    moved += n;
    if (n != some.size()) break;
  }
  if (!still_long()) {
    give_up();
    return 0;
  }
  return moved;
}

std::size_t mapped_file::move_some(std::span<file_job* const> jobs, bool writes) {
  iovec in_file[k_at_once], in_payload[k_at_once];
  const std::size_t count = jobs.size();
  for (std::size_t i = 0; i < count; ++i) {
    in_payload[i] = jobs[i]->parts[jobs[i]->part];
    in_file[i] = iovec{base_ + jobs[i]->offset, in_payload[i].iov_len};
  }
  // The file is the local side both times: its pages are then touched as by a load or store, and marked as written.
  const ssize_t result = writes ? process_vm_readv(getpid(), in_file, count, in_payload, count, 0)
                                : process_vm_writev(getpid(), in_file, count, in_payload, count, 0);
  // Any other error: this kernel lacks the call, or a guard of this process (seccomp) forbids it.
  if (result < 0 && errno != EFAULT && errno != ENOMEM && errno != EINTR) give_up();
  std::uint64_t left = result < 0 ? 0 : static_cast<std::uint64_t>(result);
  std::size_t moved = 0;
  for (; moved < count && in_payload[moved].iov_len <= left; ++moved) left -= in_payload[moved].iov_len;
  if (moved == count) {
    // Read first: two threads may be here.
    if (shorts_.load(std::memory_order_relaxed) != 0) shorts_.store(0, std::memory_order_relaxed);
  } else if (shorts_.fetch_add(1, std::memory_order_relaxed) + 1 >= k_most_shorts) {
    give_up();
  }
  return moved;
}

// The limit of file size holds for calls alone, but this is the same drive.
bool mapped_file::may_be_written() const {
  rlimit most{};
  return getrlimit(RLIMIT_FSIZE, &most) != 0 || most.rlim_cur >= bytes_;
}

// Asked after the copy: none of it went behind the end, where the last page takes what nobody will see.
bool mapped_file::still_long() const {
  struct stat now {};
  return fstat(fd_, &now) == 0 && static_cast<std::uint64_t>(now.st_size) >= bytes_;
}

}  // namespace xio::model::nvme
