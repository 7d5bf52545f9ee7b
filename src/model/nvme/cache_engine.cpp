// SPDX-License-Identifier: MIT
#include <errno.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <utility>

#include "model/nvme/file_engine.hpp"

namespace xio::model::nvme {
namespace {

// More reads than this go through io_uring, which takes them all in one call and does at once what it can.
constexpr std::size_t k_few = 8;

// Local file systems that know no RWF_NOWAIT for some calls (ext4: for writes that go to the page cache; tmpfs: for
// any), though those seldom wait. io_uring hands each such job to a kernel thread, which costs many times the copy. On
// others, as network file systems, a call without RWF_NOWAIT may wait for ever, and the thread has other devices.
bool seldom_waits(int fd) {
  struct statfs fs {};
  return fstatfs(fd, &fs) == 0 && (fs.f_type == EXT4_SUPER_MAGIC || fs.f_type == TMPFS_MAGIC);
}

class cache_engine : public file_engine {
 public:
  cache_engine(int fd, std::unique_ptr<file_engine> patient, trying how)
      : fd_(fd), how_(how), tries_(seldom_waits(fd)), patient_(std::move(patient)) {}

  const char* name() const override { return patient_->name(); }
  std::size_t room() const override { return patient_->room() - started_.size(); }
  void start(file_job& job) override { started_.push_back(&job); }

  void kick() override {
    const bool few = started_.size() <= k_few;
    for (file_job* job : started_) {
      if (fit(*job, few) && at_once(*job))
        done_.push_back(job);
      else
        patient_->start(*job);
    }
    started_.clear();
    patient_->kick();
  }

  void reap(std::vector<file_job*>& done) override {
    patient_->reap(done);
    done.insert(done.end(), done_.begin(), done_.end());
    done_.clear();
  }

 private:
  using clock = std::chrono::steady_clock;

  bool fit(const file_job& job, bool few) const {
    if (job.what == file_job::kind::read) return few || !reads_know_nowait_;
    return job.what == file_job::kind::write && !job.durable;
  }

  // True: the job is over.
  bool at_once(file_job& job) {
    bool& knows_nowait = job.what == file_job::kind::read ? reads_know_nowait_ : writes_know_nowait_;
    if (knows_nowait) {
      const long result = call(fd_, job, RWF_NOWAIT);
      if (result != -EOPNOTSUPP) return job.take(result);
      knows_nowait = false;
    }
    return tries_ && timed(job);
  }

  bool timed(file_job& job) {
    const auto start = clock::now();
    if (start < rests_until_) return false;
    const long result = call(fd_, job, 0);
    const auto end = clock::now();
    if (end - start > how_.prompt) rests_until_ = end + how_.rest * (end - start);
    return job.take(result);
  }

  int fd_;
  trying how_;
  bool tries_;
  bool reads_know_nowait_ = true;
  bool writes_know_nowait_ = true;
  clock::time_point rests_until_{};
  std::unique_ptr<file_engine> patient_;
  std::vector<file_job*> started_;
  std::vector<file_job*> done_;
};

}  // namespace

std::unique_ptr<file_engine> make_cache_engine(int fd, std::unique_ptr<file_engine> patient, trying how) {
  return std::make_unique<cache_engine>(fd, std::move(patient), how);
}

}  // namespace xio::model::nvme
