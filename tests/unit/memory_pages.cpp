// SPDX-License-Identifier: MIT
// Page arithmetic for the page sizes that kernels have: 4 KiB, 16 KiB and 64 KiB. Expected values are by hand.
#include "../gtest.hpp"
#include "memory/pages.hpp"

namespace {

using namespace xio::memory;

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

TEST(pages, a_range_in_one_page) {
  EXPECT_EQ(pages_of(0x12345, 0x10, k_4k), (page_span{0x12000, 0x345, 0x1000, 1}));
  EXPECT_EQ(pages_of(0x12345, 0x10, k_16k), (page_span{0x10000, 0x2345, 0x4000, 1}));
  EXPECT_EQ(pages_of(0x12345, 0x10, k_64k), (page_span{0x10000, 0x2345, 0x10000, 1}));
}

TEST(pages, a_range_over_page_ends) {
  // 0x12345 + 0x1000 = 0x13345: two pages of 4 KiB, one of the others.
  EXPECT_EQ(pages_of(0x12345, 0x1000, k_4k), (page_span{0x12000, 0x345, 0x2000, 2}));
  EXPECT_EQ(pages_of(0x12345, 0x1000, k_16k), (page_span{0x10000, 0x2345, 0x4000, 1}));
  EXPECT_EQ(pages_of(0x12345, 0x1000, k_64k), (page_span{0x10000, 0x2345, 0x10000, 1}));
  // To 0x22345: 0x12..0x22 are 17 pages of 4 KiB, 0x10..0x20 five of 16 KiB, two of 64 KiB.
  EXPECT_EQ(pages_of(0x12345, 0x10000, k_4k), (page_span{0x12000, 0x345, 0x11000, 17}));
  EXPECT_EQ(pages_of(0x12345, 0x10000, k_16k), (page_span{0x10000, 0x2345, 0x14000, 5}));
  EXPECT_EQ(pages_of(0x12345, 0x10000, k_64k), (page_span{0x10000, 0x2345, 0x20000, 2}));
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

}  // namespace
