// SPDX-License-Identifier: MIT
// xio_mem_register refuses what engines would die of: memory that is not mapped, or not all of it, or not to be
// written.
#include "gpu/gpu.hpp"
#include "gpu/memory.hpp"
#include "local_world.hpp"
#include "memory/usable.hpp"
#include "says.hpp"

namespace {

using xio::memory::mapping;
using xio::memory::not_usable;

std::size_t page() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

mapping mapped(std::uint64_t begin, std::uint64_t end, const char* rights = "rw") {
  mapping m;
  m.begin = begin;
  m.end = end;
  m.readable = rights[0] == 'r';
  m.writable = rights[1] == 'w';
  return m;
}

TEST(usable, is_what_mappings_hold_without_a_gap) {
  const std::vector<mapping> all{mapped(0x1000, 0x2000), mapped(0x2000, 0x4000), mapped(0x5000, 0x6000)};
  EXPECT_PAIRS((not_usable(all, 0x1000, 0x4000, false), ""), (not_usable(all, 0x1fff, 0x2001, false), ""),
               (not_usable(all, 0x5fff, 0x6000, false), ""),
               (not_usable(all, 0xfff, 0x1001, false), "nothing is mapped at 0xfff"),
               (not_usable(all, 0x3fff, 0x4001, false), "nothing is mapped at 0x4000"),
               (not_usable(all, 0x1000, 0x6000, false), "nothing is mapped at 0x4000"),
               (not_usable(all, 0x5000, 0x6001, false), "nothing is mapped at 0x6000"),
               (not_usable({}, 0x5000, 0x6001, false), "nothing is mapped at 0x5000"));
}

TEST(usable, is_what_may_be_read_and_written) {
  const std::vector<mapping> all{mapped(0x1000, 0x2000), mapped(0x2000, 0x3000, "r-"), mapped(0x3000, 0x4000, "--")};
  EXPECT_EQ(not_usable(all, 0x1000, 0x2000, false), "");
  EXPECT_EQ(not_usable(all, 0x1000, 0x2001, false), "what is mapped at 0x2000 may not be written");
  EXPECT_EQ(not_usable(all, 0x3800, 0x3801, false), "what is mapped at 0x3800 may not be read");
  EXPECT_EQ(not_usable(all, 0x1000, 0x4000, true), "") << "it may be a device's";
}

struct registered : testing::Test {
  void SetUp() override {
    ASSERT_NE(w_ = xio::test::start_world(), nullptr);
    // Four pages, of which the third goes: rw rw gap r. The kernel fills holes from the top, and the world's threads
    // (and a sanitizer's, as they start) map what they need meanwhile: so the gap is far below, where nobody gets
    // memory without asking for the place. Both sanitizers have program memory below 2 GiB.
    void* const low = reinterpret_cast<void*>(std::uintptr_t{0x60000000});
    at_ = static_cast<char*>(mmap(low, 4 * page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(static_cast<void*>(at_), MAP_FAILED);
    ASSERT_EQ(munmap(at_ + 2 * page(), page()), 0);
    ASSERT_EQ(mprotect(at_ + 3 * page(), page(), PROT_READ), 0);
  }
  void TearDown() override {
    EXPECT_EQ(xio_finalize(w_), XIO_OK) << xio_last_error();
    munmap(at_, 2 * page());
    munmap(at_ + 3 * page(), page());
  }
  xio_world_t* w_ = nullptr;
  char* at_ = nullptr;
};

TEST_F(registered, memory_that_is_not_mapped_is_refused) {
  EXPECT_REFUSED(xio_mem_register(w_, at_ + 2 * page(), 8), XIO_ERR_ARG, "nothing is mapped at");
  EXPECT_REFUSED(xio_mem_register(w_, at_ + page(), page() + 1), XIO_ERR_ARG, "nothing is mapped at");
  EXPECT_REFUSED(xio_mem_register(w_, at_, 4 * page()), XIO_ERR_ARG, "nothing is mapped at");
  EXPECT_REFUSED(xio_mem_register(w_, reinterpret_cast<void*>(8), 8), XIO_ERR_ARG, "nothing is mapped at 0x8");
  // It left nothing behind.
  EXPECT_EQ(xio_mem_register(w_, at_ + 1, 2 * page() - 1), XIO_OK) << xio_last_error();
  EXPECT_EQ(xio_mem_unregister(w_, at_ + 1), XIO_OK) << xio_last_error();
}

TEST_F(registered, memory_that_is_not_to_be_written_is_refused) {
  if (xio::gpu::has_device_memory()) GTEST_SKIP() << "what the GPU's runtime does not know may be its memory";
  EXPECT_REFUSED(xio_mem_register(w_, at_ + 3 * page(), 8), XIO_ERR_ARG, "may not be written");
  ASSERT_EQ(mprotect(at_ + 3 * page(), page(), PROT_NONE), 0);
  EXPECT_REFUSED(xio_mem_register(w_, at_ + 3 * page(), 8), XIO_ERR_ARG, "may not be read");
}

TEST_F(registered, lengths_that_no_memory_has_are_refused) {
  EXPECT_REFUSED(xio_mem_register(w_, at_, SIZE_MAX), XIO_ERR_ARG, "past the end of the address space");
  EXPECT_REFUSED(xio_mem_register(w_, at_, SIZE_MAX / 2), XIO_ERR_ARG, "nothing is mapped at");
}

// A range that begins where nothing is mapped is refused for that, although the heap lies at its end.
TEST_F(registered, what_reaches_into_the_heap_is_first_not_mapped) {
  void* p = nullptr;
  ASSERT_EQ(xio_malloc(w_, 64, &p), XIO_OK) << xio_last_error();
  char* const heap = static_cast<char*>(p);
  char* const low = reinterpret_cast<char*>(8);
  EXPECT_REFUSED(xio_mem_register(w_, low, static_cast<std::size_t>(heap + 8 - low)), XIO_ERR_ARG,
                 "nothing is mapped at 0x8");
  EXPECT_REFUSED(xio_mem_register(w_, heap, 8), XIO_ERR_ARG, "in the symmetric heap");
  EXPECT_EQ(xio_free(w_, heap), XIO_OK) << xio_last_error();
}

// A TiB of addresses, no page of which is there: only its mappings are looked at.
TEST_F(registered, a_long_range_takes_no_longer) {
  constexpr std::size_t k_long = std::size_t{1} << 40;
  void* p = mmap(nullptr, k_long, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) GTEST_SKIP() << "no TiB of addresses";
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(xio_mem_register(w_, p, k_long), XIO_OK) << xio_last_error();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
  EXPECT_EQ(xio_mem_unregister(w_, p), XIO_OK) << xio_last_error();
  munmap(p, k_long);
}

// None of xio_mem_alloc: nobody but the runtime knows how long it is.
TEST_F(registered, memory_of_the_gpu_is_judged_by_its_runtime) {
  const xio::gpu::block b = xio::gpu::take(XIO_MEM_DEVICE_HIP, 1 << 20, page());
  EXPECT_EQ(xio_mem_register(w_, b.base, b.bytes), XIO_OK) << xio_last_error();
  EXPECT_EQ(xio_mem_unregister(w_, b.base), XIO_OK) << xio_last_error();
  EXPECT_REFUSED(xio_mem_register(w_, b.base, std::size_t{1} << 46), XIO_ERR_ARG, "engines cannot read and write");
  xio::gpu::give_back(b);
}

}  // namespace
