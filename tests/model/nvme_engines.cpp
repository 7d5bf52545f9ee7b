// SPDX-License-Identifier: MIT
// What a drive's file engines do at once and what they leave to the kernel's threads.
#include <sys/syscall.h>

#include "model/nvme/file_engine.hpp"
#include "scratch_file.hpp"

namespace {
int refusals = 0;
}

// In place of the C library's: the next `refusals` calls that may not wait end as for a block that is not cached.
extern "C" ssize_t preadv2(int fd, const iovec* parts, int count, off_t offset, int flags) {
  if ((flags & RWF_NOWAIT) != 0 && refusals > 0) {
    --refusals;
    errno = EAGAIN;
    return -1;
  }
  return syscall(SYS_preadv2, fd, parts, count, offset, 0L, flags);
}

namespace {

using namespace xio::test;
using xio::model::nvme::file_engine;
using xio::model::nvme::file_job;

constexpr std::size_t k_block = 4096;
constexpr std::size_t k_blocks = 64;

// Takes jobs and does nothing about them.
class ledger : public file_engine {
 public:
  ledger(std::size_t most, std::vector<file_job*>& taken) : most_(most), taken_(taken) {}
  const char* name() const override { return "ledger"; }
  std::size_t room() const override { return most_ - taken_.size(); }
  void start(file_job& job) override { taken_.push_back(&job); }
  void kick() override {}
  void reap(std::vector<file_job*>&) override {}

 private:
  std::size_t most_;
  std::vector<file_job*>& taken_;
};

// Makes plain calls and counts them.
class counting : public file_engine {
 public:
  counting(int fd, std::size_t& jobs) : plain_(xio::model::nvme::make_plain_engine(fd)), jobs_(jobs) {}
  const char* name() const override { return "counting"; }
  std::size_t room() const override { return plain_->room(); }
  void start(file_job& job) override {
    ++jobs_;
    plain_->start(job);
  }
  void kick() override { plain_->kick(); }
  void reap(std::vector<file_job*>& done) override { plain_->reap(done); }

 private:
  std::unique_ptr<file_engine> plain_;
  std::size_t& jobs_;
};

struct engines : testing::Test {
  engines() {
    file.write(contents());
    fd = open(file.path.c_str(), O_RDWR);
    jobs.resize(k_blocks);
    memory.assign(k_blocks * k_block, 0xee);
  }
  ~engines() override { close(fd); }
  static std::vector<unsigned char> contents() { return stamped_data(k_blocks * k_block); }
  std::unique_ptr<file_engine> over_ledger(xio::model::nvme::trying how = {.prompt = std::chrono::seconds(100)}) {
    return make_cache_engine(fd, std::make_unique<ledger>(16, patient), how);
  }
  // The i-th job moves the i-th block.
  file_job& job(std::size_t i, file_job::kind what) {
    file_job& j = jobs[i];
    j.what = what;
    j.offset = i * k_block;
    j.parts = {{memory.data() + i * k_block, k_block}};
    return j;
  }
  void expect_writes_over(file_engine& e, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      e.start(job(i, file_job::kind::write));
      EXPECT_EQ(over(e).size(), 1u);
    }
  }
  std::vector<file_job*> over(file_engine& e) {
    std::vector<file_job*> done;
    e.kick();
    e.reap(done);
    return done;
  }

  scratch_file file;
  int fd = -1;
  std::vector<file_job> jobs;
  std::vector<unsigned char> memory;
  std::vector<file_job*> patient;
};

TEST_F(engines, a_cached_block_is_read_at_once) {
  const auto e = over_ledger();
  e->start(job(3, file_job::kind::read));
  EXPECT_EQ(over(*e), std::vector<file_job*>{&jobs[3]});
  EXPECT_TRUE(patient.empty());
  EXPECT_EQ(jobs[3].error, 0);
  EXPECT_TRUE(stamped(memory.data() + 3 * k_block, 3 * k_block, k_block));
  EXPECT_EQ(memory[2 * k_block], 0xee);
  EXPECT_TRUE(over(*e).empty());  // told once
}

// Where there are cores for others, all long reads but one are the kernel's threads'; short ones and writes are not.
TEST_F(engines, long_reads_that_come_together_are_divided) {
  using xio::model::nvme::k_cores_for_others, xio::model::nvme::k_long_read;
  constexpr std::size_t blocks = k_long_read / k_block;
  for (const unsigned cores : {k_cores_for_others, k_cores_for_others - 1}) {
    patient.clear();
    const auto e = over_ledger({.prompt = std::chrono::seconds(100), .cores = cores});
    for (const std::size_t first : {std::size_t{0}, k_blocks - blocks}) {
      file_job& j = job(first, file_job::kind::read);
      j.parts = {{memory.data() + first * k_block, k_long_read}};
      e->start(j);
    }
    e->start(job(1, file_job::kind::read));
    const bool divided = cores == k_cores_for_others;
    EXPECT_EQ(over(*e).size(), divided ? 2u : 3u);
    ASSERT_EQ(patient.size(), divided ? 1u : 0u);
    EXPECT_PAIRS((jobs[0].apart, false), (jobs[1].apart, false), (jobs[k_blocks - blocks].apart, divided));
    EXPECT_TRUE(patient.empty() || patient[0] == &jobs[k_blocks - blocks]);
  }
}
// And these read what is there.
TEST_F(engines, a_thread_of_the_kernel_reads_the_file) {
  const auto e = xio::model::nvme::make_uring_engine(fd);
  if (e == nullptr) GTEST_SKIP() << "no io_uring";
  file_job& j = job(5, file_job::kind::read);
  j.apart = true;
  e->start(j);
  std::vector<file_job*> done;
  for (const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
       done.empty() && std::chrono::steady_clock::now() < until;)
    done = over(*e);
  EXPECT_PAIRS((done, std::vector<file_job*>{&j}), (j.error, 0));
  EXPECT_TRUE(stamped(memory.data() + 5 * k_block, 5 * k_block, k_block));
}

TEST_F(engines, a_read_behind_the_end_is_an_error) {
  const auto e = over_ledger();
  file_job& j = job(k_blocks - 1, file_job::kind::read);
  unsigned char behind[512];
  std::memset(behind, 0xee, sizeof behind);
  j.parts.push_back({behind, sizeof behind});
  e->start(j);
  if (over(*e).empty()) {  // the part that is there at once, the rest by the other engine
    ASSERT_EQ(patient.size(), 1u);
    EXPECT_TRUE(j.apply_result(0));
  }
  EXPECT_EQ(j.error, EIO);
  EXPECT_TRUE(stamped(memory.data() + (k_blocks - 1) * k_block, (k_blocks - 1) * k_block, k_block));
  for (const unsigned char byte : behind) ASSERT_EQ(byte, 0xee);
}

TEST_F(engines, a_read_that_would_wait_is_left_to_the_kernel) {
  const auto e = over_ledger();
  refusals = 1;
  e->start(job(5, file_job::kind::read));
  EXPECT_TRUE(over(*e).empty());
  EXPECT_PAIRS((refusals, 0), (patient, std::vector<file_job*>{&jobs[5]}));
  for (std::size_t i = 0; i < k_block; ++i) ASSERT_EQ(memory[5 * k_block + i], 0xee) << i;
}

// Many reads are made together, and of these only the one that would wait is left.
TEST_F(engines, one_of_many_reads_that_would_wait_is_left_to_the_kernel) {
  const auto e = over_ledger();
  refusals = 1;
  for (std::size_t i = 0; i < 12; ++i) e->start(job(i, file_job::kind::read));
  const std::vector<file_job*> done = over(*e);
  EXPECT_EQ(refusals, 0);
  EXPECT_EQ(done.size() + patient.size(), 12u);
  EXPECT_FALSE(patient.empty());
  for (std::size_t i = 0; i < 12; ++i) {
    const bool read = std::find(done.begin(), done.end(), &jobs[i]) != done.end();
    EXPECT_EQ(stamped(memory.data() + i * k_block, i * k_block, k_block), read) << i;
    EXPECT_EQ(memory[i * k_block] == 0xee, !read) << i;
  }
}

// A kernel may fetch the block in the call itself, fast enough to return it, so both are right; half a block is not.
TEST_F(engines, a_dropped_block_is_read_or_left_whole) {
  fsync(fd);
  posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  const auto e = over_ledger();
  e->start(job(5, file_job::kind::read));
  const bool read = over(*e) == std::vector<file_job*>{&jobs[5]};
  EXPECT_EQ(patient, read ? std::vector<file_job*>{} : std::vector<file_job*>{&jobs[5]});
  if (read) {
    EXPECT_TRUE(stamped(memory.data() + 5 * k_block, 5 * k_block, k_block));
  } else {
    for (std::size_t i = 0; i < k_block; ++i) ASSERT_EQ(memory[5 * k_block + i], 0xee) << i;
  }
}

TEST_F(engines, a_write_is_in_the_cache_at_once) {
  const auto e = over_ledger();
  for (std::size_t i = 0; i < 12; ++i) {
    file_job& j = job(i, file_job::kind::write);
    stamp(memory.data() + i * k_block, i * k_block, k_block, 9);
    e->start(j);
  }
  const std::size_t done = over(*e).size();
  EXPECT_EQ(done + patient.size(), 12u);
  if (seldom_waits(fd)) {
    EXPECT_EQ(done, 12u);
  }
  const auto now = file.read();
  for (std::size_t i = 0; i < done; ++i) EXPECT_TRUE(stamped(now.data() + i * k_block, i * k_block, k_block, 9)) << i;
}

TEST_F(engines, what_must_reach_the_medium_is_left_to_the_kernel) {
  const auto e = over_ledger();
  job(0, file_job::kind::write).durable = true;
  e->start(jobs[0]);
  e->start(job(1, file_job::kind::sync));
  job(2, file_job::kind::zero).bytes = k_block;
  e->start(jobs[2]);
  EXPECT_TRUE(over(*e).empty());
  EXPECT_PAIRS((patient, (std::vector<file_job*>{&jobs[0], &jobs[1], &jobs[2]})), (file.read(), contents()));
}

// Each by one of the two, and told once. The kernel may drop the file's pages meanwhile: a test of many milliseconds
// cannot count on them.
TEST_F(engines, another_thread_assists_with_many_reads) {
  std::size_t left = 0;
  const auto e = make_cache_engine(fd, std::make_unique<counting>(fd, left), {.prompt = std::chrono::seconds(100)});
  std::atomic<int> assisted{0};
  std::jthread other([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) assisted += e->assist() ? 1 : 0;
  });
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  int rounds = 0;
  for (; (rounds < 200 || assisted < 20) && std::chrono::steady_clock::now() < end; ++rounds) {
    std::memset(memory.data(), 0xee, memory.size());
    jobs.assign(k_blocks, file_job{});
    for (std::size_t i = 0; i < k_blocks; ++i) e->start(job(i, file_job::kind::read));
    std::vector<file_job*> done = over(*e);
    while (done.size() < k_blocks && std::chrono::steady_clock::now() < end) e->reap(done);
    std::sort(done.begin(), done.end());
    ASSERT_EQ(done.size(), k_blocks);
    for (std::size_t i = 0; i < k_blocks; ++i) ASSERT_EQ(done[i], &jobs[i]);
    ASSERT_EQ(memory, contents());
  }
  other.request_stop();
  other.join();
  EXPECT_GE(rounds, 200);
  EXPECT_GE(assisted, 20);
  EXPECT_LT(left, static_cast<std::size_t>(rounds) * k_blocks / 2);
  EXPECT_FALSE(e->assist());
}

TEST_F(engines, many_reads_of_a_full_ledger_find_room_again) {
  const auto e = over_ledger();
  for (std::size_t i = 0; i < 16; ++i) e->start(job(i, file_job::kind::read));
  EXPECT_PAIRS((e->room(), 0u), (over(*e).size(), 16u), (e->room(), 16u));
}

TEST_F(engines, there_is_room_for_what_the_other_engine_takes) {
  const auto e = over_ledger();
  EXPECT_EQ(e->room(), 16u);
  for (std::size_t i = 0; i < 16; ++i) e->start(job(i, file_job::kind::sync));
  EXPECT_EQ(e->room(), 0u);
  EXPECT_TRUE(e->full());
  e->kick();
  EXPECT_EQ(e->room(), 0u);
}

// Every call counts as one that took long, and every look at the thread as one that finds that it has slept since.
long sleeps_each_time() {
  static long times = 0;
  return ++times;
}
long never_sleeps() { return 7; }

TEST_F(engines, after_writes_that_waited_others_wait) {
  if (!seldom_waits(fd)) GTEST_SKIP() << "writes of this file system say by themselves that they would wait";
  const auto e = over_ledger({.prompt = std::chrono::seconds(-1), .rest = 100000000, .sleeps = sleeps_each_time});
  // The first makes it watch, the second is seen to sleep.
  expect_writes_over(*e, 2);
  e->start(job(2, file_job::kind::write));
  EXPECT_TRUE(over(*e).empty());
  EXPECT_EQ(patient, std::vector<file_job*>{&jobs[2]});
}

// Another process had the core.
TEST_F(engines, writes_that_lost_their_core_stop_nobody) {
  if (!seldom_waits(fd)) GTEST_SKIP() << "writes of this file system say by themselves that they would wait";
  const auto e = over_ledger({.prompt = std::chrono::seconds(-1), .rest = 100000000, .sleeps = never_sleeps});
  expect_writes_over(*e, 8);
  EXPECT_TRUE(patient.empty());
}

// And then it is tried again.
TEST_F(engines, the_rest_has_an_end) {
  if (!seldom_waits(fd)) GTEST_SKIP() << "writes of this file system say by themselves that they would wait";
  const auto e = over_ledger({.prompt = std::chrono::seconds(-1), .rest = 10, .sleeps = sleeps_each_time});
  expect_writes_over(*e, 2);
  bool again = false;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!again && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    e->start(job(9, file_job::kind::write));
    again = !over(*e).empty();
    patient.clear();
  }
  EXPECT_TRUE(again);
}

TEST(sleeps, are_counted_and_work_is_not) {
  const long before = xio::model::nvme::sleeps();
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  while (std::chrono::steady_clock::now() < end) {
  }
  EXPECT_EQ(xio::model::nvme::sleeps(), before);
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_GT(xio::model::nvme::sleeps(), before);
}

}  // namespace
