// SPDX-License-Identifier: MIT
// xio_mem_alloc: every kind holds data, what a platform has not is refused, and wrong frees free nothing.
#include <sys/resource.h>

#include "gpu/gpu.hpp"
#include "local_world.hpp"
#include "memory/owner.hpp"
#include "says.hpp"

namespace {

using xio::test::says;

constexpr xio_mem_kind_t k_all[] = {
    XIO_MEM_HOST_MAPPED,  XIO_MEM_HOST_COHERENT,       XIO_MEM_HOST_PINNED,           XIO_MEM_HOST_PLAIN,
    XIO_MEM_HOST_DEFAULT, XIO_MEM_DEVICE_FINE_GRAINED, XIO_MEM_DEVICE_COARSE_GRAINED, XIO_MEM_DEVICE_UNCACHED,
    XIO_MEM_DEVICE_VMEM,  XIO_MEM_DEVICE_HIP};

const bool k_platform_is_host = !xio::gpu::has_device_memory();
std::size_t page() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

std::vector<unsigned char> bytes_of(const void* p, std::size_t n) {
  std::vector<unsigned char> out(n, 0xee);
  xio::gpu::copy(out.data(), p, n);
  return out;
}

std::vector<unsigned char> pattern(std::size_t n, unsigned seed) {
  std::vector<unsigned char> out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<unsigned char>(i * 7 + (i >> 8) * 13 + seed);
  return out;
}

struct each_kind : testing::TestWithParam<xio_mem_kind_t> {
  void SetUp() override {
    if (k_platform_is_host) {
      // There only uncached memory is missing: a wrong result here would skip the tests of a kind that is there.
      ASSERT_EQ(xio_mem_supports(GetParam()) == XIO_OK, GetParam() != XIO_MEM_DEVICE_UNCACHED) << xio_last_error();
    }
    there_ = xio_mem_supports(GetParam()) == XIO_OK;
  }
  // A platform may lack uncached memory, and pinned pages where the GPU sees them at other addresses.
  static const char* all_that_may_lack() {
    return GetParam() == XIO_MEM_HOST_PINNED ? "sees registered host memory at other addresses" : "uncached memory";
  }
  bool there_ = false;
};

TEST_P(each_kind, holds_data_to_its_last_byte) {
  void* p = nullptr;
  const std::size_t n = 3 * page() + 5;
  if (!there_) {
    p = &p;
    EXPECT_REFUSED(xio_mem_alloc(GetParam(), n, nullptr, &p), XIO_ERR_UNSUPPORTED, xio_mem_kind_name(GetParam()));
    EXPECT_PRED2(says, xio_last_error(), all_that_may_lack());
    EXPECT_EQ(p, nullptr);
    return;
  }
  ASSERT_EQ(xio_mem_alloc(GetParam(), n, nullptr, &p), XIO_OK) << xio_last_error();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % page(), 0u);
  EXPECT_EQ(bytes_of(p, n), std::vector<unsigned char>(n, 0));
  const auto data = pattern(n, static_cast<unsigned>(GetParam()));
  xio::gpu::copy(p, data.data(), n);
  EXPECT_EQ(bytes_of(p, n), data);
  EXPECT_EQ(xio_mem_free(p), XIO_OK) << xio_last_error();
}

TEST_P(each_kind, is_aligned_as_asked) {
  if (!there_) return;
  for (const std::size_t alignment :
       {std::size_t{1}, std::size_t{64}, page(), std::size_t{65536}, std::size_t{2} << 20}) {
    xio_mem_attr_t attr = XIO_MEM_ATTR_INIT;
    attr.alignment = alignment;
    void *p = nullptr, *q = nullptr;
    ASSERT_EQ(xio_mem_alloc(GetParam(), 100, &attr, &p), XIO_OK) << xio_last_error();
    ASSERT_EQ(xio_mem_alloc(GetParam(), 100, &attr, &q), XIO_OK) << xio_last_error();
    for (const void* at : {p, q}) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at) % alignment, 0u);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at) % page(), 0u) << "no block shares a page with another";
    }
    EXPECT_PAIRS((xio_mem_free(p), XIO_OK), (xio_mem_free(q), XIO_OK));
  }
}

TEST_P(each_kind, wrong_frees_free_nothing) {
  if (!there_) return;
  void* p = xio::test::take(GetParam(), 2 * page());
  const auto data = pattern(2 * page(), 1);
  xio::gpu::copy(p, data.data(), data.size());
  auto* bytes = static_cast<unsigned char*>(p);
  EXPECT_REFUSED(xio_mem_free(bytes + 1), XIO_ERR_ARG, "1 bytes into a block");
  EXPECT_REFUSED(xio_mem_free(bytes + page()), XIO_ERR_ARG, "give the block's start");
  EXPECT_EQ(bytes_of(p, data.size()), data);
  EXPECT_EQ(xio_mem_free(p), XIO_OK);
  EXPECT_REFUSED(xio_mem_free(p), XIO_ERR_STATE, "freed already, or never returned");
}

TEST_P(each_kind, too_much_is_refused) {
  if (!there_) return;
  void* p = &p;
  for (const std::size_t n : {SIZE_MAX, SIZE_MAX - page() + 2, SIZE_MAX / 2, std::size_t{1} << 50}) {
    EXPECT_REFUSED(xio_mem_alloc(GetParam(), n, nullptr, &p), XIO_ERR_NO_MEMORY, "xio_mem_alloc");
    EXPECT_EQ(p, nullptr);
  }
  EXPECT_REFUSED(xio_mem_alloc(GetParam(), 0, nullptr, &p), XIO_ERR_ARG, "bytes is 0");
}

INSTANTIATE_TEST_SUITE_P(memory, each_kind, testing::ValuesIn(k_all),
                         [](const auto& k) { return std::string(xio_mem_kind_name(k.param)); });

TEST(memory, wrong_arguments_are_named) {
  void* p = &p;
  EXPECT_REFUSED(xio_mem_alloc(XIO_MEM_HOST_PLAIN, 1, nullptr, nullptr), XIO_ERR_ARG, "out is null");
  for (const int k : {-1, 0, 6, 15, 21, 1 << 30}) {
    EXPECT_REFUSED(xio_mem_alloc(static_cast<xio_mem_kind_t>(k), 1, nullptr, &p), XIO_ERR_ARG, "no kind of memory");
    EXPECT_STREQ(xio_mem_kind_name(static_cast<xio_mem_kind_t>(k)), "NONE");
  }
  xio_mem_attr_t attr = XIO_MEM_ATTR_INIT;
  for (const std::size_t a : {std::size_t{3}, std::size_t{4097}, std::size_t{1} << 31, SIZE_MAX}) {
    attr.alignment = a;
    EXPECT_REFUSED(xio_mem_alloc(XIO_MEM_HOST_PLAIN, 1, &attr, &p), XIO_ERR_ARG, "is no power of two");
  }
  attr = xio_mem_attr_t{0, 0};
  EXPECT_REFUSED(xio_mem_alloc(XIO_MEM_HOST_PLAIN, 1, &attr, &p), XIO_ERR_CONFIG, "xio_mem_attr_t.size is 0");
  EXPECT_EQ(p, nullptr);
}

TEST(memory, foreign_pointers_are_not_freed) {
  std::vector<unsigned char> mine(3 * page(), 0x5a);
  EXPECT_REFUSED(xio_mem_free(mine.data()), XIO_ERR_STATE, "is no block");
  EXPECT_REFUSED(xio_mem_free(reinterpret_cast<void*>(8)), XIO_ERR_STATE, "is no block");
  EXPECT_REFUSED(xio_mem_free(reinterpret_cast<void*>(UINTPTR_MAX)), XIO_ERR_STATE, "is no block");
  EXPECT_EQ(xio_mem_free(nullptr), XIO_OK);
  EXPECT_EQ(mine, std::vector<unsigned char>(3 * page(), 0x5a));
}

TEST(memory, an_owner_gives_back_what_it_has_once) {
  xio::memory::owner a(XIO_MEM_DEVICE_HIP, 10, 0, "test");
  void* where = a.data();
  ASSERT_NE(where, nullptr);
  EXPECT_EQ(a.size(), page());
  xio::memory::owner b(std::move(a));
  EXPECT_EQ(a.data(), nullptr);  // NOLINT: what is left of it is stated
  EXPECT_EQ(b.data(), where);
  xio::memory::owner c;
  c = std::move(b);
  EXPECT_EQ(c.data(), where);
}

#if defined(XIO_PLATFORM_HOST)
// With the system's own handling of a fault, in place of a handler that a sanitizer may have set.
void touch(volatile unsigned char& at) {
  signal(SIGSEGV, SIG_DFL);
  at = 1;
}

// Touching a page before or behind a VMEM block is a fault: in a child, which must die of it.
TEST(memory, virtual_memory_has_guards_on_both_sides) {
  void* p = xio::test::take(XIO_MEM_DEVICE_VMEM, page());
  auto* at = static_cast<volatile unsigned char*>(p);
  unsigned char there = 0;
  EXPECT_EQ(mincore(static_cast<char*>(p) - page(), page(), &there), 0) << "nothing else is mapped next to it";
  EXPECT_EQ(mincore(static_cast<char*>(p) + page(), page(), &there), 0) << "nothing else is mapped next to it";
  EXPECT_EXIT(touch(at[page()]), testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(touch(at[-1]), testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EQ(xio_mem_free(p), XIO_OK);
  EXPECT_EXIT(touch(at[0]), testing::KilledBySignal(SIGSEGV), "") << "addresses went with the memory";
}

// Without the right to lock memory, pinned memory is refused and says how to get the right.
TEST(memory, pinned_memory_needs_the_right_to_lock_it) {
  const auto in_child = [] {
    const rlimit none{0, 0};
    if (setrlimit(RLIMIT_MEMLOCK, &none) != 0 || setgid(65534) != 0 || setuid(65534) != 0) _exit(3);
    void* p = nullptr;
    const xio_status_t status = xio_mem_alloc(XIO_MEM_HOST_PINNED, 1, nullptr, &p);
    const bool plain = xio_mem_alloc(XIO_MEM_HOST_PLAIN, 1, nullptr, &p) == XIO_OK;
    fprintf(stderr, "%s\n", xio_last_error());
    _exit(status == XIO_ERR_NO_MEMORY && plain ? 0 : 1);
  };
  // A fork of a process that has used XIO is refused; a process that begins anew is not.
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  if (getuid() == 0)
    EXPECT_EXIT(in_child(), testing::ExitedWithCode(0), "HOST|ulimit -l");
  else
    SUCCEED() << "only root can lower the limit and stay bound by it here";
}
#endif

// --- Pairs -------------------------------------------------------------------------------------------

TEST(memory_pair, mirrors_both_ways_and_only_what_was_asked) {
  const std::size_t n = 2 * page() + 100;
  xio_mem_pair_t p{};
  ASSERT_EQ(xio_mem_pair_alloc(XIO_MEM_HOST_DEFAULT, XIO_MEM_DEVICE_HIP, n, nullptr, &p), XIO_OK) << xio_last_error();
  EXPECT_NE(p.host, p.device);
  EXPECT_EQ(p.bytes, n);
  const auto data = pattern(n, 3);
  std::memcpy(p.host, data.data(), n);
  EXPECT_EQ(bytes_of(p.device, n), std::vector<unsigned char>(n, 0)) << "it moves when it is told to";
  ASSERT_EQ(xio_mem_pair_to_device(&p, 0, n), XIO_OK) << xio_last_error();
  EXPECT_EQ(bytes_of(p.device, n), data);

  const auto other = pattern(n, 99);
  xio::gpu::copy(p.device, other.data(), n);
  ASSERT_EQ(xio_mem_pair_to_host(&p, 17, 1000), XIO_OK);
  auto expected = data;
  std::copy(other.begin() + 17, other.begin() + 1017, expected.begin() + 17);
  EXPECT_EQ(bytes_of(p.host, n), expected);
  EXPECT_EQ(xio_mem_pair_to_host(&p, n, 0), XIO_OK);

  EXPECT_REFUSED(xio_mem_pair_to_host(&p, n, 1), XIO_ERR_ARG, "leave the pair's");
  EXPECT_REFUSED(xio_mem_pair_to_device(&p, 1, n), XIO_ERR_ARG, "leave the pair's");
  EXPECT_REFUSED(xio_mem_pair_to_device(&p, 2, SIZE_MAX), XIO_ERR_ARG, "leave the pair's");
  EXPECT_EQ(bytes_of(p.host, n), expected);

  const xio_mem_pair_t stale = p;
  EXPECT_EQ(xio_mem_pair_free(&p), XIO_OK) << xio_last_error();
  EXPECT_EQ(p.host, nullptr);
  EXPECT_EQ(xio_mem_pair_free(&p), XIO_OK) << "an empty pair";
  p = stale;
  EXPECT_REFUSED(xio_mem_pair_free(&p), XIO_ERR_STATE, "is no block");
  EXPECT_REFUSED(xio_mem_pair_to_device(&stale, 0, 1), XIO_ERR_STATE, "is no block");
}

TEST(memory_pair, is_both_sides_or_none) {
  xio_mem_pair_t p{&p, &p, 5};
  EXPECT_REFUSED(xio_mem_pair_alloc(XIO_MEM_DEVICE_HIP, XIO_MEM_HOST_PLAIN, 8, nullptr, &p), XIO_ERR_ARG,
                 "give a kind of the host, then one of the device");
  EXPECT_EQ(p.host, nullptr);
  if (k_platform_is_host)
    EXPECT_REFUSED(xio_mem_pair_alloc(XIO_MEM_HOST_PLAIN, XIO_MEM_DEVICE_UNCACHED, 8, nullptr, &p), XIO_ERR_UNSUPPORTED,
                   "no uncached memory");
  EXPECT_REFUSED(xio_mem_pair_alloc(XIO_MEM_HOST_PLAIN, XIO_MEM_DEVICE_HIP, 0, nullptr, &p), XIO_ERR_ARG, "bytes is 0");
  EXPECT_REFUSED(xio_mem_pair_alloc(XIO_MEM_HOST_PLAIN, XIO_MEM_DEVICE_HIP, 8, nullptr, nullptr), XIO_ERR_ARG, "null");
  EXPECT_REFUSED(xio_mem_pair_to_host(nullptr, 0, 0), XIO_ERR_ARG, "null");
  EXPECT_REFUSED(xio_mem_pair_free(nullptr), XIO_ERR_ARG, "null");
  ASSERT_EQ(xio_mem_pair_alloc(XIO_MEM_HOST_PLAIN, XIO_MEM_DEVICE_HIP, 8, nullptr, &p), XIO_OK);
  xio_mem_pair_t wrong = p;
  wrong.bytes = 1 << 30;
  EXPECT_REFUSED(xio_mem_pair_to_device(&wrong, 0, 1), XIO_ERR_ARG, "no pair of xio_mem_pair_alloc");
  std::swap(wrong.host, wrong.device);
  EXPECT_REFUSED(xio_mem_pair_free(&wrong), XIO_ERR_ARG, "no pair of xio_mem_pair_alloc");
  EXPECT_EQ(xio_mem_pair_free(&p), XIO_OK);
}

// --- Threads -----------------------------------------------------------------------------------------

TEST(memory_threads, allocate_look_and_free_at_once) {
  const auto work = [](unsigned me) {
    for (unsigned i = 0; i < 40; ++i) {
      const auto kind = k_all[(me + i) % 10];
      void* p = nullptr;
      if (xio_mem_supports(kind) != XIO_OK) continue;
      if (xio_mem_alloc(kind, 1000 + me, nullptr, &p) != XIO_OK) return false;
      const auto data = pattern(1000, me * 100 + i);
      xio::gpu::copy(p, data.data(), data.size());
      xio_mem_place_t place = XIO_MEM_PLACE_INIT;
      if (xio_mem_where(p, &place) != XIO_OK || place.kind != kind || place.base != p || place.placed_as_requested != 1)
        return false;
      if (bytes_of(p, data.size()) != data) return false;
      if (xio_mem_free(p) != XIO_OK) return false;
    }
    return true;
  };
  std::vector<int> well(6);
  xio::test::at_once<unsigned>(well.size(), [&](unsigned t) { well[t] = work(t); });
  EXPECT_EQ(well, std::vector<int>(6, 1));
}

}  // namespace
