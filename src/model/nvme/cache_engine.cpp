// SPDX-License-Identifier: MIT
#include <errno.h>
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <utility>

#include "model/nvme/mapped_file.hpp"

namespace xio::model::nvme {
namespace {

// How often the owner looks for the helper's last call, which takes as long as one of its own: some microseconds.
constexpr int k_polls = 200;
// One call for fewer costs more than it saves by having both threads at work.
constexpr std::size_t k_few_jobs = 8;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// System calls that two threads make side by side: the one that has jobs, and one that has nothing else to do. Jobs are
// in slots, one or a group that one call moves, and the thread that takes them out makes the call.
class shared_calls {
 public:
  struct result {
    file_job* job;
    long value;  // of call() with these flags
    int flags;
  };

  explicit shared_calls(int fd) : fd_(fd) {}

  // The owner's. On return every job has been called, or the helper has begun with it. pages: null, or what may move
  // those that fit.
  void make(const std::vector<file_job*>& jobs, int flags, mapped_file* pages, std::vector<result>& out) {
    for (std::size_t at = 0; at < jobs.size();) {
      const std::size_t next = offer(jobs, at, flags, pages);
      if (next == at) {  // the helper has all slots
        out.push_back(result{jobs[at], call(fd_, *jobs[at], flags), flags});
        ++at;
        continue;
      }
      at = next;
      take_back(out);
    }
    for (int polls = 0; polls < k_polls && !lent_.empty(); ++polls) {
      collect(out);
      relax();
    }
  }
  std::size_t with_helper() const { return lent_jobs_; }  // that collect() will give
  void collect(std::vector<result>& out) {
    std::erase_if(lent_, [&](slot* s) {
      if (!s->ended.load(std::memory_order_acquire)) return false;
      s->ended.store(false, std::memory_order_relaxed);
      s->lent = false;
      lent_jobs_ -= s->count;
      give(*s, out);
      return true;
    });
  }

  // Any other thread's, whenever it likes. True if there was a job. From the back, where the owner comes last.
  bool help() {
    bool some = false;
    for (std::size_t i = offered_.load(std::memory_order_acquire); i-- > 0;) {
      slot& s = slots_[i];
      if (!s.open.load(std::memory_order_relaxed) || !s.open.exchange(false, std::memory_order_acq_rel)) continue;
      carry_out(s);
      s.ended.store(true, std::memory_order_release);
      some = true;
    }
    return some;
  }

 private:
  static constexpr std::size_t k_slots = 64;
  static constexpr std::size_t k_group = 32;  // half of a turn that is full: each thread has one call to make

  // Lines of the cache of their own: two threads work on neighbours.
  struct alignas(64) slot {
    std::atomic<bool> open{false};   // nobody has them yet
    std::atomic<bool> ended{false};  // by the helper: the values are there
    bool lent = false;               // the owner's mark
    int flags = 0;
    mapped_file* pages = nullptr;
    std::size_t count = 0;
    std::array<file_job*, k_group> jobs{};
    std::array<long, k_group> values{};
  };

  // Gives the first job that found no slot.
  std::size_t offer(const std::vector<file_job*>& jobs, std::size_t at, int flags, mapped_file* pages) {
    const std::size_t group = std::clamp((jobs.size() + 1) / 2, k_few_jobs, k_group);
    std::size_t used = 0;
    for (; used < k_slots && at < jobs.size(); ++used) {
      slot& s = slots_[used];
      if (s.lent) continue;  // its last jobs have not come back
      s.flags = flags;
      s.pages = pages != nullptr && pages->fits(*jobs[at]) ? pages : nullptr;
      s.count = 0;
      do {
        s.jobs[s.count++] = jobs[at++];
      } while (s.pages != nullptr && s.count < group && at < jobs.size() && pages->fits(*jobs[at]));
      s.open.store(true, std::memory_order_release);
    }
    offered_.store(used, std::memory_order_release);
    return at;
  }
  void take_back(std::vector<result>& out) {
    const std::size_t used = offered_.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < used; ++i) {
      slot& s = slots_[i];
      if (s.lent) continue;
      if (s.open.exchange(false, std::memory_order_acq_rel)) {
        carry_out(s);
        give(s, out);
      } else {
        s.lent = true;
        lent_.push_back(&s);
        lent_jobs_ += s.count;
      }
    }
    offered_.store(0, std::memory_order_relaxed);
  }
  void carry_out(slot& s) const {
    const std::size_t moved = s.pages != nullptr ? s.pages->move({s.jobs.data(), s.count}) : 0;
    for (std::size_t i = 0; i < s.count; ++i) {
      const file_job& job = *s.jobs[i];
      s.values[i] = i < moved ? static_cast<long>(job.parts[job.part].iov_len) : call(fd_, job, s.flags);
    }
  }
  static void give(const slot& s, std::vector<result>& out) {
    for (std::size_t i = 0; i < s.count; ++i) out.push_back(result{s.jobs[i], s.values[i], s.flags});
  }

  int fd_;
  std::atomic<std::size_t> offered_{0};  // slots, from the first
  std::array<slot, k_slots> slots_;
  std::vector<slot*> lent_;
  std::size_t lent_jobs_ = 0;
};

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
