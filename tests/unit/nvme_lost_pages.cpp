// SPDX-License-Identifier: MIT
// Pages that a drive took away with it: a file that becomes shorter has the same fault.
#include "transport/nvme/lost_pages.hpp"

#include "../gtest.hpp"
#include "base/unique_fd.hpp"

namespace xio::nvme {
namespace {

class nvme_lost_pages : public testing::Test {
 protected:
  static constexpr std::size_t k_pages = 4;
  const std::size_t page_ = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

  void SetUp() override {
    file_ = unique_fd(memfd_create("drive", MFD_CLOEXEC));
    ASSERT_EQ(ftruncate(file_.get(), static_cast<off_t>(k_pages * page_)), 0);
    base_ = static_cast<volatile unsigned char*>(
        mmap(nullptr, k_pages * page_, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0));
    ASSERT_NE(const_cast<unsigned char*>(base_), MAP_FAILED);
  }
  void TearDown() override { munmap(at(0), k_pages * page_); }
  void* at(std::size_t page) const { return const_cast<unsigned char*>(base_) + page * page_; }
  void take_away() { ASSERT_EQ(ftruncate(file_.get(), 0), 0); }

  unique_fd file_;
  volatile unsigned char* base_ = nullptr;
};

TEST_F(nvme_lost_pages, reads_find_ones_and_stores_are_kept_from_the_bus) {
  const lost_pages watch(at(0), k_pages * page_);
  base_[0] = 7;
  take_away();
  EXPECT_EQ(base_[0], 0xff) << "and not what was there before";
  base_[page_ + 5] = 9;
  EXPECT_PAIRS((base_[page_ + 5], 9), (base_[page_ + 4], 0xff));
  EXPECT_EQ(base_[2 * page_], 0xff) << "each page is one of its own";
  EXPECT_EQ(base_[2 * page_ + 5], 0xff);
}

// A thread that touches the page meanwhile sees ones as well, and never a page that is not filled yet.
TEST_F(nvme_lost_pages, many_threads_see_ones) {
  const lost_pages watch(at(0), k_pages * page_);
  take_away();
  std::atomic<int> others{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (std::size_t i = 0; i < k_pages * page_; i += 64)
        if (base_[i] != 0xff) ++others;
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(others, 0);
}

TEST_F(nvme_lost_pages, pages_that_nobody_watches_end_the_process) {
  EXPECT_EXIT(
      {
        const lost_pages watch(at(0), page_);
        if (ftruncate(file_.get(), 0) != 0) _exit(1);
        base_[0] = 1;
        base_[page_] = 1;
        _exit(0);
      },
      testing::KilledBySignal(SIGBUS), "");
  EXPECT_EXIT(
      {
        std::optional<lost_pages> watch(std::in_place, at(0), page_);
        watch.reset();
        if (ftruncate(file_.get(), 0) != 0) _exit(1);
        base_[0] = 1;
        _exit(0);
      },
      testing::KilledBySignal(SIGBUS), "")
      << "and those that are watched no more";
}

// The program's own handler goes on having all that is not ours.
TEST_F(nvme_lost_pages, another_fault_is_left_to_the_handler_before) {
  EXPECT_EXIT(
      {
        struct sigaction mine {};
        mine.sa_handler = [](int) { _exit(42); };
        sigaction(SIGBUS, &mine, nullptr);
        const lost_pages watch(at(0), page_);
        if (ftruncate(file_.get(), 0) != 0) _exit(1);
        base_[0] = 1;
        base_[page_] = 1;
        _exit(0);
      },
      testing::ExitedWithCode(42), "");
}

}  // namespace
}  // namespace xio::nvme
