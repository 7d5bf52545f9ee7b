// SPDX-License-Identifier: MIT
// Rules of memory: what a mode puts where, pages, rows of registered memory, and the memory cgroup.
#include <random>

#include "gpu/memory_group.hpp"
#include "memory/mode.hpp"
#include "memory/pages.hpp"
#include "memory/registration.hpp"
#include "refusal.hpp"
#include "sysfs_tree.hpp"

namespace xio::memory {
namespace {

using gpu::tightest_memory_group;
using test::sysfs_tree;

// --- Modes ------------------------------------------------------------------------------------------
// What a memory mode puts where, and what it is refused for. The bits are those of ROCm XIO's --memory-mode.

constexpr part k_parts[] = {part::submission, part::completion, part::doorbell, part::data};
constexpr gpu::place k_host = gpu::place::shared;
constexpr gpu::place k_device = gpu::place::device;

std::string why(xio_status_t status, std::uint64_t bits, part p, const ability& can) {
  return test::refusal(status, [&] { mode(bits).place(p, "a test", can); });
}

TEST(memory_mode, every_bit_of_every_mode_is_honoured_where_both_places_can_be) {
  for (int bits = 0; bits < 16; ++bits) {
    const mode m(bits);
    const int weights[] = {1, 2, 4, 8};
    for (int i = 0; i < 4; ++i) {
      const gpu::place wanted = bits / weights[i] % 2 == 1 ? k_device : k_host;
      EXPECT_EQ(m.place(k_parts[i], "a test", {k_host, nullptr}), wanted) << bits << " " << i;
      EXPECT_EQ(m.place(k_parts[i], "a test", {k_device, nullptr}), wanted) << bits << " " << i;
    }
  }
}

TEST(memory_mode, auto_is_the_transports_own_choice) {
  for (const part p : k_parts) {
    EXPECT_EQ(mode(std::nullopt).place(p, "a test", {k_host, "no"}), k_host);
    EXPECT_EQ(mode(std::nullopt).place(p, "a test", {k_device, "no"}), k_device);
    EXPECT_EQ(mode{}.place(p, "a test", {k_device, nullptr}), k_device);
  }
}

TEST(memory_mode, what_cannot_be_is_refused_with_the_reason_and_the_bit) {
  const std::string up = why(XIO_ERR_UNSUPPORTED, 3, part::completion, {k_host, "it is a register"});
  test::expect_words(up, {"XIO_MEMORY_MODE=3", "completions into GPU memory", "it is a register", "leave out 2"});
  const std::string down = why(XIO_ERR_UNSUPPORTED, 0, part::data, {k_device, "there is no other"});
  test::expect_words(down, {"data into host memory", "add 8"});
  // A placement that is the default anyway needs no permission.
  EXPECT_EQ(mode(3).place(part::doorbell, "a test", {k_host, "it is a register"}), k_host);
  EXPECT_EQ(mode(8).place(part::data, "a test", {k_device, "there is no other"}), k_device);
}

// --- Pages ------------------------------------------------------------------------------------------
// Page arithmetic for the page sizes that kernels have: 4 KiB, 16 KiB and 64 KiB. Expected values are by hand.

constexpr std::uint64_t k_4k = 0x1000, k_16k = 0x4000, k_64k = 0x10000;
constexpr std::uint64_t k_last = ~std::uint64_t{0};

TEST(pages, align_down_and_up) {
  EXPECT_PAIRS((align_down(0x12345, k_4k), 0x12000u), (align_down(0x12345, k_16k), 0x10000u),
               (align_down(0x12345, k_64k), 0x10000u), (align_up(0x12345, k_4k), 0x13000u),
               (align_up(0x12345, k_16k), 0x14000u), (align_up(0x12345, k_64k), 0x20000u));
  for (const std::uint64_t page : {k_4k, k_16k, k_64k}) {
    EXPECT_PAIRS((align_down(0, page), 0u), (align_up(0, page), 0u), (align_up(1, page), page),
                 (align_down(page - 1, page), 0u), (align_up(page, page), page), (align_down(page, page), page),
                 (align_up(page + 1, page), 2 * page));
  }
}

TEST(pages, aligning_up_past_the_last_page_is_reported) {
  for (const std::uint64_t page : {k_4k, k_16k, k_64k}) {
    const std::uint64_t top = ~(page - 1);  // start of the last page
    EXPECT_EQ(align_up(top, page), top);
    EXPECT_FALSE(align_up(top + 1, page));
    EXPECT_FALSE(align_up(k_last, page));
  }
}

// 0x12345 + 0x10 lies in one page of any size. To 0x13345 it is two pages of 4 KiB; to 0x22345 0x12..0x22 are 17 pages
// of 4 KiB, 0x10..0x20 five of 16 KiB, two of 64 KiB.
TEST(pages, a_range_in_one_page_and_over_page_ends) {
  const struct {
    std::uint64_t bytes;
    page_span of_4k, of_16k, of_64k;
  } rows[] = {{0x10, {0x12000, 0x345, 0x1000, 1}, {0x10000, 0x2345, 0x4000, 1}, {0x10000, 0x2345, 0x10000, 1}},
              {0x1000, {0x12000, 0x345, 0x2000, 2}, {0x10000, 0x2345, 0x4000, 1}, {0x10000, 0x2345, 0x10000, 1}},
              {0x10000, {0x12000, 0x345, 0x11000, 17}, {0x10000, 0x2345, 0x14000, 5}, {0x10000, 0x2345, 0x20000, 2}}};
  for (const auto& r : rows) {
    EXPECT_PAIRS((pages_of(0x12345, r.bytes, k_4k), r.of_4k), (pages_of(0x12345, r.bytes, k_16k), r.of_16k),
                 (pages_of(0x12345, r.bytes, k_64k), r.of_64k));
  }
}

TEST(pages, a_range_that_ends_with_its_page) {
  for (const std::uint64_t page : {k_4k, k_16k, k_64k}) {
    EXPECT_EQ(pages_of(page, page, page), (page_span{page, 0, page, 1}));
    EXPECT_EQ(pages_of(page + 1, page - 1, page), (page_span{page, 1, page, 1}));
    EXPECT_EQ(pages_of(page + 1, page, page), (page_span{page, 1, 2 * page, 2}));
    EXPECT_EQ(pages_of(page - 1, 2, page), (page_span{0, page - 1, 2 * page, 2}));
  }
}

TEST(pages, an_empty_range_touches_no_page) {
  EXPECT_EQ(pages_of(0x12345, 0, k_4k), (page_span{0x12000, 0x345, 0, 0}));
  EXPECT_EQ(pages_of(k_last, 0, k_64k), (page_span{0xffffffffffff0000, 0xffff, 0, 0}));
}

TEST(pages, a_range_past_the_end_is_reported) {
  for (const std::uint64_t page : {k_4k, k_16k, k_64k}) {
    const std::uint64_t top = ~(page - 1);
    EXPECT_FALSE(pages_of(page, k_last, page));
    EXPECT_FALSE(pages_of(k_last, 1, page));
    EXPECT_FALSE(pages_of(top, page, page)) << "its end is 2^64, which 64 bits cannot say";
    EXPECT_FALSE(pages_of(top - 1, 2 * page, page));
    EXPECT_FALSE(pages_of(1, k_last, page));
    EXPECT_EQ(pages_of(top - page, page, page), (page_span{top - page, 0, page, 1}));
  }
}

// --- Registered memory ------------------------------------------------------------------------------
// The rows of registered memory while kernels look through them: a kernel may read a row's base before and its bytes
// after the row goes to other memory, or the other way round, and must not take it for the memory that it looks for.

struct range {
  std::uint64_t base, bytes;
  bool overlaps(const range& o) const { return base < o.base + o.bytes && o.base < base + bytes; }
};

// Registers and keeps what the rows show, as the device has it.
class table {
 public:
  table() { r_.row(0) = dev::region_view{0x100000, 0x100000, {}, {}, 1, 0, 0, {}, {}}; }

  // True if no half of a row, old or new, makes another out of what is registered.
  bool add(const range& what) {
    const std::uint32_t i = r_.add(reinterpret_cast<void*>(what.base), what.bytes);
    const range was = rows_[i];
    rows_[i] = what;
    bool good = true;
    for (std::uint32_t k = 0; k < dev::k_max_regions; ++k) {
      if (k == i || r_.row(k).live == 0) continue;
      const range other{r_.row(k).base, r_.row(k).bytes};
      good = good && !other.overlaps({was.base, what.bytes}) && !other.overlaps({what.base, was.bytes});
    }
    return good;
  }
  void remove(const range& what) { r_.remove(r_.find(reinterpret_cast<void*>(what.base))); }
  std::uint32_t row_of(const range& what) { return r_.find(reinterpret_cast<void*>(what.base)); }

 private:
  registration r_;
  range rows_[dev::k_max_regions]{};
};

TEST(registration, a_long_buffer_does_not_follow_a_short_one_in_front_of_another) {
  table t;
  const range small{0x7000010000, 0x1000}, other{0x7000020000, 0x1000}, big{0x7000900000, 0x40000};
  EXPECT_TRUE(t.add(small));
  EXPECT_TRUE(t.add(other));
  t.remove(small);
  EXPECT_TRUE(t.add(big));
  // And the other way round: a short one in front of another does not follow a long one.
  t.remove(big);
  EXPECT_TRUE(t.add(small));
}

TEST(registration, the_same_buffer_has_the_same_row_again) {
  table t;
  const range one{0x7000010000, 0x1000}, longer{0x7000010000, 0x3000};
  for (const range& r : {one, longer, one}) {
    EXPECT_TRUE(t.add(r));
    EXPECT_EQ(t.row_of(r), 1u) << "which kernels look at first";
    t.remove(r);
  }
}

TEST(registration, no_mix_of_many_that_come_and_go) {
  std::mt19937 random(7);
  table t;
  std::optional<range> slots[40];
  for (int n = 0; n < 20000; ++n) {
    const std::size_t s = random() % 40;
    if (slots[s]) {
      t.remove(*slots[s]);
      slots[s].reset();
    } else {
      slots[s] = range{0x1000000 + 0x10000 * s, 0x1000 * (1 + random() % 16)};
      ASSERT_TRUE(t.add(*slots[s])) << n;
    }
  }
}

// There may be no other row; then it is taken all the same.
TEST(registration, the_last_row_is_taken_whatever_it_held) {
  table t;
  std::vector<range> all;
  for (std::uint64_t i = 1; i < dev::k_max_regions; ++i) all.push_back({0x1000000 + 0x10000 * i, 0x1000});
  for (const range& r : all) EXPECT_TRUE(t.add(r));
  t.remove(all[0]);
  EXPECT_FALSE(t.add({0x9000000, 0x40000}));
  EXPECT_EQ(t.row_of({0x9000000, 0}), 1u);
}

// --- The memory cgroup ------------------------------------------------------------------------------
// Which memory cgroup leaves least, in made-up trees as the kernel's Documentation/admin-guide/cgroup-v1/memory.rst and
// cgroup-v2.rst describe them.

TEST(memory_group, no_group_has_a_limit) {
  const sysfs_tree t;
  EXPECT_FALSE(tightest_memory_group(t.root));
  t.file("/proc/self/cgroup", "0::/user/one\n");
  t.file("/sys/fs/cgroup/user/one/memory.max", "max\n");
  t.file("/sys/fs/cgroup/user/memory.max", "max\n");
  EXPECT_FALSE(tightest_memory_group(t.root));
}

TEST(memory_group, one_above_may_be_the_tightest) {
  const sysfs_tree t;
  t.file("/proc/self/cgroup", "0::/user/one\n");
  t.file("/sys/fs/cgroup/user/one/memory.max", "1000000\n");
  t.file("/sys/fs/cgroup/user/one/memory.current", "100\n");
  t.file("/sys/fs/cgroup/user/memory.max", "1000000\n");
  t.file("/sys/fs/cgroup/user/memory.current", "700000\n");
  t.file("/sys/fs/cgroup/user/memory.stat", "anon 500000\nactive_file 30000\ninactive_file 50000\n");
  const auto found = tightest_memory_group(t.root);
  ASSERT_TRUE(found);
  EXPECT_PAIRS((found->limit_file, t.root + "/sys/fs/cgroup/user/memory.max"), (found->limit, 1000000u),
               (found->left, 1000000u - (700000u - 80000u)));
}

TEST(memory_group, version_1_is_beside_version_2) {
  const sysfs_tree t;
  t.file("/proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/job/a\n0::/\n");
  t.file("/sys/fs/cgroup/memory/job/a/memory.limit_in_bytes", "5000\n");
  t.file("/sys/fs/cgroup/memory/job/a/memory.usage_in_bytes", "9000\n");
  t.file("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
  const auto found = tightest_memory_group(t.root);
  ASSERT_TRUE(found);
  EXPECT_PAIRS((found->limit, 5000u), (found->left, 0u));
}

// In a container /proc has a path of outside, and the group lies where the others' root would.
TEST(memory_group, a_container_sees_its_own_as_the_root) {
  const sysfs_tree t;
  t.file("/proc/self/cgroup", "0::/docker/0123\n");
  t.file("/sys/fs/cgroup/memory.max", "67108864\n");
  t.file("/sys/fs/cgroup/memory.current", "1048576\n");
  const auto found = tightest_memory_group(t.root);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->left, 66060288u);
}

}  // namespace
}  // namespace xio::memory
