// SPDX-License-Identifier: MIT
#include <errno.h>
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/vfs.h>

#include <utility>

#include "model/nvme/shared_calls.hpp"

namespace xio::model::nvme {
namespace {

// More jobs than this are worth a second thread, or a call for many of them.
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
  cache_engine(int fd, std::unique_ptr<file_engine> patient, trying how, bool direct)
      : fd_(fd), how_(how), direct_(direct), tries_(seldom_waits(fd)), shared_(fd), patient_(std::move(patient)) {}

  const char* name() const override { return patient_->name(); }
  std::size_t room() const override { return patient_->room() - started_.size() - shared_.with_helper(); }
  void start(file_job& job) override { started_.push_back(&job); }
  bool assist() override { return shared_.help(); }

  void kick() override {
    now_ = {};
    // Not mapped before there is a job: a file that is being opened is not as long yet as it will be.
    if (tries_ && pages_ == nullptr && !started_.empty()) pages_ = std::make_unique<mapped_file>(fd_);
    hand_over_long_reads();
    const bool many = started_.size() > k_few;
    for (file_job* job : started_) {
      if (direct_ && is_whole_pages(*job))
        be_patient(*job);
      else if (many && job->what == file_job::kind::read)
        reads_.push_back(job);
      else if (many && pages_ != nullptr && !writes_know_nowait_ && pages_->fits(*job))
        writes_.push_back(job);
      else
        make(*job);
    }
    started_.clear();
    if (!writes_.empty()) make_writes();
    if (!reads_.empty()) make_reads();
    patient_->kick();
  }

  void reap(std::vector<file_job*>& done) override {
    if (shared_.with_helper() != 0) {
      shared_.collect(results_);
      now_ = {};
      poll_results();
      patient_->kick();
    }
    const std::size_t before = done.size();
    patient_->reap(done);
    for (std::size_t i = before; i < done.size(); ++i) changes_ -= done[i]->what != file_job::kind::read;
    done.insert(done.end(), done_.begin(), done_.end());
    done_.clear();
  }

 private:
  using clock = std::chrono::steady_clock;

  static bool fit(const file_job& job) {
    return job.what == file_job::kind::read || (job.what == file_job::kind::write && !job.durable);
  }

  // All but the first, and before this thread makes that.
  void hand_over_long_reads() {
    bool another = false;
    const auto others = [&](file_job* job) {
      job->apart = !direct_ && how_.cores >= k_cores_for_others && job->what == file_job::kind::read &&
                   job->parts[job->part].iov_len >= k_long_read && std::exchange(another, true);
      if (job->apart) be_patient(*job);
      return job->apart;
    };
    if (std::erase_if(started_, others) != 0) patient_->kick();
  }

  void be_patient(file_job& job) {
    changes_ += job.what != file_job::kind::read;
    patient_->start(job);
  }

  void make(file_job& job) {
    const std::uint64_t from = job.offset;
    if (!fit(job) || !at_once(job)) {
      be_patient(job);
      return;
    }
    done_.push_back(&job);
    if (pages_ != nullptr && job.what == file_job::kind::write) pages_->written(from, job.offset - from);
  }

  // Many writes. No other thread takes part: two writes of one block must not mix, which calls see to themselves. So
  // while the kernel's threads may be writing, calls it is.
  void make_writes() {
    std::size_t moved = 0;
    if (changes_ == 0) timed([&] { moved = pages_->move(writes_); });
    for (std::size_t i = 0; i < writes_.size(); ++i) {
      file_job& job = *writes_[i];
      if (i < moved && job.apply_result(static_cast<long>(job.parts[job.part].iov_len)))
        done_.push_back(&job);
      else
        make(job);
    }
    writes_.clear();
  }

  // True: the job is over.
  bool at_once(file_job& job) {
    bool& knows_nowait = job.what == file_job::kind::read ? reads_know_nowait_ : writes_know_nowait_;
    if (knows_nowait) {
      const long result = call(fd_, job, RWF_NOWAIT);
      if (result != -EOPNOTSUPP) return job.apply_result(result);
      knows_nowait = false;
    }
    bool over = false;
    timed([&] { over = job.apply_result(call(fd_, job, 0)); });
    return over;
  }

  // Makes many reads, with any thread that helps. Writes of one file exclude each other: no thread could help there.
  void make_reads() {
    if (reads_know_nowait_)
      shared_.make(reads_, RWF_NOWAIT, nullptr, results_);
    else if (!timed([&] { shared_.make(reads_, 0, pages_.get(), results_); }))
      for (file_job* job : reads_) be_patient(*job);
    reads_.clear();
    poll_results();
  }

  void poll_results() {
    for (const shared_calls::result& r : results_) {
      if (r.value == -EOPNOTSUPP && r.flags == RWF_NOWAIT) {
        reads_know_nowait_ = false;
        make(*r.job);
      } else if (r.job->apply_result(r.value)) {
        done_.push_back(r.job);
      } else {
        be_patient(*r.job);
      }
    }
    results_.clear();
  }

  // Calls without RWF_NOWAIT, unless they would wait now as others did. True: it has been called.
  template <class Calls>
  bool timed(Calls&& calls) {
    if (!tries_) return false;
    // In a kick one call's end is the next one's start.
    const auto start = now_ == clock::time_point{} ? clock::now() : now_;
    if (start < rests_until_) return false;
    const bool watched = start < watched_until_;
    const long slept = watched ? how_.sleeps() : 0;
    calls();
    const auto end = now_ = clock::now();
    if (end - start <= how_.prompt) return true;
    const bool waited = watched && how_.sleeps() != slept;
    (waited ? rests_until_ : watched_until_) = end + how_.rest * (end - start);
    if (waited && pages_ != nullptr) pages_->forget();  // it may have been for pages that were dropped
    return true;
  }

  int fd_;
  trying how_;
  bool direct_, tries_, reads_know_nowait_ = true, writes_know_nowait_ = true;
  clock::time_point now_{};  // the end of this kick's last timed call
  clock::time_point watched_until_{};
  clock::time_point rests_until_{};
  shared_calls shared_;
  std::unique_ptr<mapped_file> pages_;  // null before the first job, and where calls say whether they would wait
  std::unique_ptr<file_engine> patient_;
  std::size_t changes_ = 0;  // jobs of patient_ that are not reads
  std::vector<file_job*> started_;
  std::vector<file_job*> reads_;
  std::vector<file_job*> writes_;
  std::vector<shared_calls::result> results_;
  std::vector<file_job*> done_;
};

}  // namespace

long sleeps() {
  rusage used{};
  getrusage(RUSAGE_THREAD, &used);
  return used.ru_nvcsw;
}

std::unique_ptr<file_engine> make_cache_engine(int fd, std::unique_ptr<file_engine> patient, trying how, bool direct) {
  return std::make_unique<cache_engine>(fd, std::move(patient), how, direct);
}

}  // namespace xio::model::nvme
