// SPDX-License-Identifier: MIT
#include "config.h"
#include "model/nvme/file_engine.hpp"

#if HAVE_URING
#include <liburing.h>
#include <linux/falloc.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace xio::model::nvme {
namespace {

constexpr unsigned k_entries = 256;
constexpr std::size_t k_parts_at_once = 1024;
constexpr unsigned k_most_threads = 8;           // of the kernel's, for what is in files
constexpr unsigned k_register_max_workers = 19;  // IORING_REGISTER_IOWQ_MAX_WORKERS, linux/io_uring.h

class uring_engine : public file_engine {
 public:
  uring_engine(int fd, int direct, std::span<std::byte> fixed) : fd_(fd), direct_(direct) {
    usable_ = io_uring_queue_init(k_entries, &ring_, 0) == 0;
    // Four for each core otherwise. Kernels before 5.15 do not know it.
    unsigned most[] = {k_most_threads, 0};
    if (usable_) (void)syscall(SYS_io_uring_register, ring_.ring_fd, k_register_max_workers, most, 2);
    const iovec one{fixed.data(), fixed.size()};
    // Refused beyond RLIMIT_MEMLOCK, and then done without.
    if (usable_ && !fixed.empty() && io_uring_register_buffers(&ring_, &one, 1) == 0) fixed_ = fixed;
  }
  ~uring_engine() override {
    if (!usable_) return;
    std::vector<file_job*> done;
    while (in_flight_ != 0) {
      kick();
      io_uring_cqe* cqe = nullptr;
      // The kernel ends every job on a file; only a broken ring makes this fail.
      if (const int r = io_uring_wait_cqe(&ring_, &cqe); r < 0 && r != -EINTR) break;
      reap(done);
    }
    io_uring_queue_exit(&ring_);
  }
  uring_engine& operator=(uring_engine&&) = delete;

  bool usable() const { return usable_; }
  const char* name() const override { return fixed_.empty() ? "io_uring" : "io_uring with registered buffers"; }
  std::size_t room() const override { return k_entries - in_flight_; }

  void start(file_job& job) override {
    ++in_flight_;
    if (direct_ >= 0 && is_whole_pages(job)) job.by = file_job::way::direct;
    prepare(job);
  }

  void kick() override {
    if (io_uring_sq_ready(&ring_) != 0) io_uring_submit(&ring_);
  }

  void reap(std::vector<file_job*>& done) override {
    io_uring_cqe* cqe = nullptr;
    bool again = false;
    while (io_uring_peek_cqe(&ring_, &cqe) == 0) {
      auto* job = static_cast<file_job*>(io_uring_cqe_get_data(cqe));
      const long result = cqe->res;
      io_uring_cqe_seen(&ring_, cqe);
      if (job->apply_result(result)) {
        --in_flight_;
        done.push_back(job);
      } else {
        prepare(*job);
        again = true;
      }
    }
    if (again) kick();
  }

 private:
  // There is always an entry: no more jobs are in flight than the ring holds.
  void prepare(file_job& job) {
    io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
    if (sqe == nullptr) {
      kick();
      sqe = io_uring_get_sqe(&ring_);
    }
    const int fd = job.by == file_job::way::direct ? direct_ : fd_;
    const iovec* parts = job.parts.data() + job.part;
    const unsigned count = static_cast<unsigned>(std::min(job.parts.size() - job.part, k_parts_at_once));
    const bool fixed = count == 1 && is_fixed(*parts);
    if (job.what == file_job::kind::sync)
      io_uring_prep_fsync(sqe, fd_, IORING_FSYNC_DATASYNC);
    else if (job.what == file_job::kind::zero)
      io_uring_prep_fallocate(sqe, fd_, FALLOC_FL_ZERO_RANGE, static_cast<off_t>(job.offset),
                              static_cast<off_t>(job.bytes));
    else if (fixed && job.what == file_job::kind::read)
      io_uring_prep_read_fixed(sqe, fd, parts->iov_base, static_cast<unsigned>(parts->iov_len), job.offset, 0);
    else if (fixed)
      io_uring_prep_write_fixed(sqe, fd, parts->iov_base, static_cast<unsigned>(parts->iov_len), job.offset, 0);
    else if (job.what == file_job::kind::read)
      io_uring_prep_readv(sqe, fd, parts, count, job.offset);
    else
      io_uring_prep_writev2(sqe, fd, parts, count, job.offset, job.durable ? RWF_DSYNC : 0);
    if (fixed && job.durable) sqe->rw_flags = RWF_DSYNC;
    if (job.apart) io_uring_sqe_set_flags(sqe, IOSQE_ASYNC);
    io_uring_sqe_set_data(sqe, &job);
  }

  bool is_fixed(const iovec& v) const {
    const auto* at = static_cast<const std::byte*>(v.iov_base);
    return at >= fixed_.data() && at + v.iov_len <= fixed_.data() + fixed_.size();
  }

  int fd_, direct_;
  std::span<std::byte> fixed_;
  io_uring ring_{};
  bool usable_ = false;
  unsigned in_flight_ = 0;
};

}  // namespace

std::unique_ptr<file_engine> make_uring_engine(int fd, int direct, std::span<std::byte> fixed) {
  auto engine = std::make_unique<uring_engine>(fd, direct, fixed);
  if (!engine->usable()) return nullptr;
  return engine;
}

}  // namespace xio::model::nvme

#else

namespace xio::model::nvme {
std::unique_ptr<file_engine> make_uring_engine(int, int, std::span<std::byte>) { return nullptr; }
}  // namespace xio::model::nvme

#endif
