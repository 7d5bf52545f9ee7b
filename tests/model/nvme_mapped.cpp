// SPDX-License-Identifier: MIT
// Blocks of a file moved through its mapped pages, and what becomes of them where the pages cannot be had.
#include <linux/falloc.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "full_disk.hpp"
#include "model/nvme/mapped_file.hpp"
#include "scratch_file.hpp"

namespace {

using namespace xio::test;
using xio::model::nvme::file_job;
using xio::model::nvme::mapped_file;
using kind = file_job::kind;

constexpr std::size_t k_page = 4096;
constexpr std::size_t k_bytes = 64 * k_page;

file_job job(kind what, std::uint64_t offset, void* at, std::size_t bytes) {
  file_job j{};
  j.what = what;
  j.offset = offset;
  j.parts = {{at, bytes}};
  return j;
}

// An open file of stamped bytes in a directory.
struct stamped_file {
  explicit stamped_file(const std::string& directory, std::uint64_t bytes = k_bytes, int how = O_RDWR)
      : scratch(0, directory) {
    scratch.write(stamped_data(bytes));
    fd = open(scratch.path.c_str(), how);
    // Nothing of it waits for a disk, so that pages can be dropped.
    fsync(fd);
  }
  ~stamped_file() { close(fd); }
  stamped_file& operator=(stamped_file&&) = delete;

  scratch_file scratch;
  int fd = -1;
};

// Memory with a forbidden page in the middle.
struct gapped_memory {
  gapped_memory() {
    base = static_cast<unsigned char*>(
        mmap(nullptr, 3 * k_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    stamp(base, 0, 3 * k_page, 5);
    mprotect(base + k_page, k_page, PROT_NONE);
  }
  ~gapped_memory() { munmap(base, 3 * k_page); }
  gapped_memory& operator=(gapped_memory&&) = delete;
  unsigned char* base;
};

// In the temporary directory and in memory.
struct mapped : testing::TestWithParam<const char*> {
  static std::string place() { return *GetParam() == 0 ? testing::TempDir() : GetParam(); }
  void SetUp() override {
    if (access(place().c_str(), W_OK) != 0) GTEST_SKIP() << "there is no " << place();
  }

  // Moves what fits; the others stay.
  std::size_t move(mapped_file& pages, std::vector<file_job>& jobs) {
    std::vector<file_job*> list;
    for (file_job& j : jobs)
      if (pages.fits(j)) list.push_back(&j);
    return pages.move(list);
  }

  std::vector<unsigned char> memory = std::vector<unsigned char>(k_bytes, 0xee);
};

INSTANTIATE_TEST_SUITE_P(places, mapped, testing::Values("", "/dev/shm"),
                         [](const auto& info) { return *info.param == 0 ? "temporary" : "memory"; });

TEST_P(mapped, pages_are_written_and_their_neighbours_are_not) {
  const stamped_file f(place());
  mapped_file pages(f.fd);
  std::vector<unsigned char> want = stamped_data(k_bytes);
  std::vector<file_job> jobs;
  for (std::size_t i = 1; i < 60; i += 3) {
    stamp(&memory[i * k_page], i * k_page, k_page, 7);
    stamp(&want[i * k_page], i * k_page, k_page, 7);
    jobs.push_back(job(kind::write, i * k_page, &memory[i * k_page], k_page));
  }
  EXPECT_PAIRS((move(pages, jobs), jobs.size()), (f.scratch.read(), want), (f.scratch.size(), k_bytes));
}

// More than one system call takes, in both directions, and each in its order.
TEST_P(mapped, more_than_fit_into_one_call) {
  const stamped_file f(place());
  mapped_file pages(f.fd);
  std::vector<file_job> writes, reads;
  std::vector<unsigned char> from = stamped_data(k_bytes, 3);
  for (std::size_t at = 0; at < k_bytes; at += 1024) writes.push_back(job(kind::write, at, &from[at], 1024));
  EXPECT_EQ(move(pages, writes), 256u);
  EXPECT_EQ(f.scratch.read(), from);
  for (std::size_t at = 0; at < k_bytes; at += 512) reads.push_back(job(kind::read, at, &memory[at], 512));
  EXPECT_EQ(move(pages, reads), 512u);
  EXPECT_EQ(memory, from);
}

// Blocks of 512 bytes, several of one page, from and to odd addresses.
TEST_P(mapped, small_blocks_share_a_page) {
  const stamped_file f(place());
  mapped_file pages(f.fd);
  std::vector<unsigned char> want = stamped_data(k_bytes);
  std::vector<file_job> jobs;
  for (const std::size_t block : {9, 11, 12, 15, 16, 23}) {
    stamp(&want[block * 512], block * 512, 512, 4);
    std::memcpy(&memory[block * 1000 + 13], &want[block * 512], 512);
    jobs.push_back(job(kind::write, block * 512, &memory[block * 1000 + 13], 512));
  }
  EXPECT_EQ(move(pages, jobs), 6u);
  EXPECT_EQ(f.scratch.read(), want);
  memory.assign(k_bytes, 0xee);
  for (file_job& j : jobs) j.what = kind::read;
  EXPECT_EQ(move(pages, jobs), 6u);
  for (const std::size_t block : {9, 11, 12, 15, 16, 23}) {
    EXPECT_TRUE(stamped(&memory[block * 1000 + 13], block * 512, 512, 4)) << block;
    EXPECT_PAIRS((memory[block * 1000 + 12], 0xee), (memory[block * 1000 + 13 + 512], 0xee));
  }
}

TEST_P(mapped, what_does_not_fit) {
  const stamped_file f(place(), k_bytes + 1000);
  mapped_file pages(f.fd);
  EXPECT_TRUE(pages.fits(job(kind::write, k_bytes - 512, memory.data(), 512)));
  EXPECT_TRUE(pages.fits(job(kind::read, 0, memory.data(), mapped_file::k_most_bytes)));
  EXPECT_FALSE(pages.fits(job(kind::read, 0, memory.data(), mapped_file::k_most_bytes + 512)));
  EXPECT_FALSE(pages.fits(job(kind::sync, 0, memory.data(), 512)));
  EXPECT_FALSE(pages.fits(job(kind::zero, 0, memory.data(), 512)));
  EXPECT_FALSE(pages.fits(job(kind::read, 0, memory.data(), 0)));
  file_job durable = job(kind::write, 0, memory.data(), 512);
  durable.durable = true;
  EXPECT_FALSE(pages.fits(durable));
  file_job two = job(kind::write, 0, memory.data(), 512);
  two.parts.push_back(two.parts[0]);
  EXPECT_FALSE(pages.fits(two));
  // In the last page are bytes that the file does not have.
  EXPECT_FALSE(pages.fits(job(kind::write, k_bytes, memory.data(), 512)));
  EXPECT_FALSE(pages.fits(job(kind::write, k_bytes - 512, memory.data(), 1024)));
  EXPECT_FALSE(pages.fits(job(kind::read, ~std::uint64_t{511}, memory.data(), 512)));
}

// Of a sparse file larger than the process's memory only the beginning is mapped.
TEST_P(mapped, a_huge_file) {
  constexpr std::uint64_t k_huge = std::uint64_t{15} << 40;
  const stamped_file f(place());
  if (ftruncate(f.fd, static_cast<off_t>(k_huge)) != 0) GTEST_SKIP() << "this file system has no such files";
  mapped_file pages(f.fd);
  std::vector<file_job> jobs{job(kind::read, 512, memory.data(), 512)};
  EXPECT_EQ(move(pages, jobs), 1u);
  EXPECT_TRUE(stamped(memory.data(), 512, 512));
  ASSERT_EQ(pwrite(f.fd, memory.data(), 512, k_huge - 4096), 512);
  EXPECT_FALSE(pages.fits(job(kind::write, k_huge - 4096, memory.data(), 512)));
}

TEST_P(mapped, a_file_opened_for_less) {
  const stamped_file reads(place(), k_bytes, O_RDONLY), writes(place(), k_bytes, O_WRONLY), none(place(), 4000);
  mapped_file read_only(reads.fd), write_only(writes.fd), empty(none.fd), closed(-1);
  std::vector<file_job> jobs{job(kind::read, 4096, memory.data(), 512)};
  EXPECT_FALSE(read_only.fits(job(kind::write, 0, memory.data(), 512)));
  EXPECT_EQ(move(read_only, jobs), 1u);
  EXPECT_TRUE(stamped(memory.data(), 4096, 512));
  for (mapped_file* other : {&write_only, &empty, &closed}) {
    EXPECT_FALSE(other->fits(job(kind::read, 0, memory.data(), 512)));
    EXPECT_FALSE(other->fits(job(kind::write, 0, memory.data(), 512)));
  }
}

// Of a batch with a page that is gone nothing counts: it may have been written before or after the file was cut.
TEST_P(mapped, a_file_that_is_cut) {
  for (const kind what : {kind::read, kind::write}) {
    const stamped_file f(place());
    mapped_file pages(f.fd);
    std::vector<file_job> jobs{job(what, 0, memory.data(), 512), job(what, 40 * k_page, memory.data(), 512)};
    std::vector<file_job*> list{&jobs[0], &jobs[1]};
    EXPECT_TRUE(pages.fits(jobs[0]) && pages.fits(jobs[1]));
    ASSERT_EQ(ftruncate(f.fd, 10 * k_page), 0);
    EXPECT_EQ(pages.move(list), 0u);
    EXPECT_FALSE(pages.fits(jobs[0]));
    EXPECT_EQ(f.scratch.size(), 10 * k_page);
  }
}

// The page is there, what is stored in it is not.
TEST_P(mapped, a_file_that_is_cut_within_the_page) {
  for (const kind what : {kind::read, kind::write}) {
    const stamped_file f(place());
    mapped_file pages(f.fd);
    std::vector<file_job> jobs{job(what, k_bytes - 512, memory.data(), 512)};
    std::vector<file_job*> list{&jobs[0]};
    EXPECT_TRUE(pages.fits(jobs[0]));
    ASSERT_EQ(ftruncate(f.fd, k_bytes - 1024), 0);
    EXPECT_EQ(pages.move(list), 0u);
    EXPECT_FALSE(pages.fits(jobs[0]));
  }
}

TEST_P(mapped, payload_that_cannot_be_had_stops_there) {
  const stamped_file f(place());
  mapped_file pages(f.fd);
  gapped_memory m;
  std::vector<unsigned char> want = stamped_data(k_bytes);
  std::memcpy(&want[8192], m.base, 4096);
  // The second cannot be read, the third could.
  std::vector<file_job> jobs{job(kind::write, 8192, m.base, 4096), job(kind::write, 16384, m.base + k_page, 4096),
                             job(kind::write, 32768, m.base + 2 * k_page, 4096)};
  EXPECT_EQ(move(pages, jobs), 1u);
  const auto now = f.scratch.read();
  EXPECT_TRUE(stamped(&now[8192], 0, 4096, 5));
  EXPECT_EQ(now, want);
  for (file_job& j : jobs) j.what = kind::read;
  jobs[0].offset = 0;
  EXPECT_EQ(move(pages, jobs), 1u);
  EXPECT_TRUE(stamped(m.base, 0, 4096));
  EXPECT_TRUE(stamped(m.base + 2 * k_page, 2 * k_page, 4096, 5));
}

// Memory of a kind that the kernel cannot pin would cost every time.
TEST_P(mapped, who_never_succeeds_gives_up) {
  const stamped_file f(place());
  mapped_file pages(f.fd);
  gapped_memory m;
  std::vector<file_job> bad{job(kind::write, 0, m.base + k_page, 512)}, good{job(kind::write, 0, m.base, 512)};
  for (int i = 0; i < 15; ++i) EXPECT_EQ(move(pages, bad), 0u);
  EXPECT_EQ(move(pages, good), 1u);  // which begins the count anew
  for (int i = 0; i < 16; ++i) {
    EXPECT_TRUE(pages.fits(bad[0])) << i;
    EXPECT_EQ(move(pages, bad), 0u);
  }
  EXPECT_FALSE(pages.fits(good[0]));
}

// From now on, for this process and for good: the call is EPERM, as in some containers.
bool forbid_the_call() {
  sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_process_vm_readv, 0, 1),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{sizeof code / sizeof *code, code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST_P(mapped, a_process_that_may_not) {
  const int status = in_child([&] {
    bool forbidden = false;
    {
      const stamped_file f(place());
      mapped_file pages(f.fd);
      forbidden = forbid_the_call();
      std::vector<file_job> jobs{job(kind::write, 0, memory.data(), 512)};
      EXPECT_EQ(move(pages, jobs), forbidden ? 0u : 1u);
      EXPECT_EQ(pages.fits(jobs[0]), !forbidden);  // it is asked once
      if (forbidden) {
        EXPECT_EQ(f.scratch.read(), stamped_data(k_bytes));
      }
    }
    if (!forbidden && !HasFailure()) return full_disk::k_cannot;
    return HasFailure() ? 1 : 0;
  });
  if (status == full_disk::k_cannot) GTEST_SKIP() << "system calls cannot be forbidden here";
  EXPECT_EQ(status, 0);
}

TEST_P(mapped, a_limit_of_file_size_holds) {
  const stamped_file f(place());
  mapped_file pages(f.fd);
  std::vector<file_job> jobs{job(kind::write, 0, memory.data(), 512)};
  {
    const full_disk::file_limit limit(k_bytes - 1);
    EXPECT_EQ(move(pages, jobs), 0u);
  }
  EXPECT_EQ(f.scratch.read(), stamped_data(k_bytes));
}

// A write would have to read from the disk what it overwrites.
TEST_P(mapped, what_is_not_cached_does_not_fit) {
  const stamped_file f(place());
  posix_fadvise(f.fd, 0, 0, POSIX_FADV_DONTNEED);
  {
    void* all = mmap(nullptr, k_bytes, PROT_READ, MAP_SHARED, f.fd, 0);
    unsigned char there[64] = {};
    mincore(all, k_bytes, there);
    munmap(all, k_bytes);
    for (const unsigned char t : there)
      if (t & 1) GTEST_SKIP() << "this file system keeps its pages";
  }
  mapped_file pages(f.fd);
  const file_job one = job(kind::write, 8 * k_page, memory.data(), k_page);
  EXPECT_FALSE(pages.fits(one));
  ASSERT_EQ(pwrite(f.fd, memory.data(), k_page, 8 * k_page), static_cast<ssize_t>(k_page));
  pages.written(8 * k_page, k_page);
  EXPECT_TRUE(pages.fits(one));
  EXPECT_FALSE(pages.fits(job(kind::write, 7 * k_page, memory.data(), k_page)));
  EXPECT_FALSE(pages.fits(job(kind::write, 9 * k_page - 512, memory.data(), 1024)));
  // Nothing is known any more, so it is asked for again.
  pages.forget();
  EXPECT_TRUE(pages.fits(one));
}

TEST_P(mapped, a_hole_stays_one) {
  const scratch_file f(k_bytes, place());
  const int fd = open(f.path.c_str(), O_RDWR);
  mapped_file pages(fd);
  std::vector<file_job> jobs{job(kind::read, 0, memory.data(), k_page), job(kind::write, 0, memory.data(), k_page)};
  EXPECT_EQ(move(pages, jobs), 0u);
  struct stat info {};
  EXPECT_EQ(fstat(fd, &info), 0);
  EXPECT_EQ(info.st_blocks, 0);
  close(fd);
}

// --- Through the engine ------------------------------------------------------------------------------

// Write calls of this thread, by proc(5); -1 where they are not counted.
long write_calls() {
  std::ifstream in("/proc/thread-self/io");
  std::string word;
  while (in >> word)
    if (long n = 0; word == "syscw:" && in >> n) return n;
  return -1;
}

std::vector<file_job*> run(xio::model::nvme::file_engine& e, std::vector<file_job>& jobs) {
  std::vector<file_job*> done;
  for (file_job& j : jobs) e.start(j);
  e.kick();
  for (int i = 0; i < 20000 && done.size() < jobs.size(); ++i) {
    e.reap(done);
    if (done.size() < jobs.size()) usleep(1000);
  }
  return done;
}

// Writes the first pages of a file from the same place of the memory.
std::vector<file_job> page_writes(std::vector<unsigned char>& memory, std::uint64_t salt, std::size_t count = 32) {
  std::vector<file_job> jobs;
  stamp(memory.data(), 0, count * k_page, salt);
  for (std::size_t i = 0; i < count; ++i) jobs.push_back(job(kind::write, i * k_page, &memory[i * k_page], k_page));
  return jobs;
}

class turn : public mapped {};

INSTANTIATE_TEST_SUITE_P(places, turn, testing::Values("", "/dev/shm"),
                         [](const auto& info) { return *info.param == 0 ? "temporary" : "memory"; });

TEST_P(turn, many_writes_are_no_calls) {
  const stamped_file f(place());
  // While a file is opened there is an engine, with nothing to do, before the file is as long as it will be.
  ASSERT_EQ(ftruncate(f.fd, 0), 0);
  const auto e = xio::model::nvme::make_file_engine(f.fd);
  e->kick();
  f.scratch.write(stamped_data(k_bytes));
  std::vector<file_job> few = page_writes(memory, 1, 2), many = page_writes(memory, 2);
  EXPECT_EQ(run(*e, few).size(), 2u);  // which learns what this file system knows
  write_calls();                       // a sanitizer has calls of its own at first
  const long before = write_calls();
  EXPECT_EQ(run(*e, many).size(), 32u);
  const long after = write_calls();
  std::vector<unsigned char> want = stamped_data(k_bytes);
  stamp(want.data(), 0, 32 * k_page, 2);
  EXPECT_EQ(f.scratch.read(), want);
  for (const file_job& j : many) EXPECT_EQ(j.error, 0);
  if (before < 0 || !seldom_waits(f.fd) || std::string(e->name()) != "io_uring")
    GTEST_SKIP() << "data is right; calls are not counted here, or not expected to be saved";
  EXPECT_EQ(after, before);
}

// The error is what a call says.
TEST_P(turn, many_reads_of_a_file_that_is_cut) {
  const stamped_file f(place());
  const auto e = xio::model::nvme::make_file_engine(f.fd);
  std::vector<file_job> first = page_writes(memory, 0), jobs = page_writes(memory, 0);
  EXPECT_EQ(run(*e, first).size(), 32u);
  ASSERT_EQ(ftruncate(f.fd, 20 * k_page + 2048), 0);
  memory.assign(k_bytes, 0xee);
  for (file_job& j : jobs) j.what = kind::read;
  EXPECT_EQ(run(*e, jobs).size(), 32u);
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(jobs[i].error, i < 20 ? 0 : EIO) << i;
  EXPECT_TRUE(stamped(memory.data(), 0, 20 * k_page + 2048));
  for (std::size_t i = 20 * k_page + 2048; i < 32 * k_page; ++i) ASSERT_EQ(memory[i], 0xee) << i;
}

// A write that may still be under way in the kernel keeps others of the same block out, as the kernel's calls do.
TEST_P(turn, beside_a_durable_write_there_are_calls) {
  const stamped_file f(place());
  const auto e = xio::model::nvme::make_file_engine(f.fd);
  std::vector<file_job> few = page_writes(memory, 1, 2), many = page_writes(memory, 2, 12);
  EXPECT_EQ(run(*e, few).size(), 2u);
  many[5].durable = true;
  const long before = write_calls();
  EXPECT_EQ(run(*e, many).size(), 12u);
  const long after = write_calls();
  std::vector<unsigned char> want = stamped_data(k_bytes);
  stamp(want.data(), 0, 12 * k_page, 2);
  EXPECT_EQ(f.scratch.read(), want);
  if (before < 0 || !seldom_waits(f.fd) || std::string(e->name()) != "io_uring")
    GTEST_SKIP() << "data is right; calls are not counted here, or are others";
  EXPECT_GE(after - before, 11);
}

// Pages that the engine takes for cached, and that somebody has taken out of the file since, on a disk without room.
void write_into_holes(const std::string& place) {
  const stamped_file f(place);
  const auto e = xio::model::nvme::make_file_engine(f.fd);
  std::vector<unsigned char> memory(k_bytes);
  std::vector<file_job> jobs;
  const auto round = [&](std::uint64_t salt) {
    jobs = page_writes(memory, salt);
    EXPECT_EQ(run(*e, jobs).size(), 32u);
  };
  for (int i = 0; i < 2; ++i) round(1);
  ASSERT_EQ(fallocate(f.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 10 * k_page, 3 * k_page), 0);
  const int filler = open((place + "/filler").c_str(), O_CREAT | O_TRUNC | O_RDWR, 0600);
  full_disk::fill_up(filler);
  round(2);
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(jobs[i].error, i >= 10 && i < 13 ? ENOSPC : 0) << i;
  std::vector<unsigned char> want = stamped_data(k_bytes);
  stamp(want.data(), 0, 32 * k_page, 2);
  std::memset(&want[10 * k_page], 0, 3 * k_page);
  EXPECT_EQ(f.scratch.read(), want);
  ASSERT_EQ(ftruncate(filler, 0), 0);
  round(3);
  for (const file_job& j : jobs) EXPECT_EQ(j.error, 0);
  stamp(want.data(), 0, 32 * k_page, 3);
  EXPECT_EQ(f.scratch.read(), want);
  close(filler);
}

TEST(full, holes_on_a_full_disk) { full_disk::run_in_a_child(write_into_holes); }

}  // namespace
