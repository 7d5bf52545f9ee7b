// SPDX-License-Identifier: MIT
// The books of the symmetric heap, against a reference that keeps one flag per granule.
#include "memory/allocator.hpp"
#include "../gtest.hpp"

#include <random>

namespace {

using xio::memory::allocator;
constexpr std::uint64_t k_granule = allocator::k_granule;

TEST(allocator, gives_the_whole_range_and_takes_it_back) {
  allocator a(4096, 4096 + 65536);
  EXPECT_PAIRS((a.free_bytes(), 65536u), (a.allocate(65536, 1), 4096u), (a.free_bytes(), 0u),
               (a.allocate(1, 1), std::nullopt));
  a.release(4096);
  EXPECT_PAIRS((a.largest_free(), 65536u), (a.free_ranges(), 1u));
}

TEST(allocator, refuses_nothing_and_too_much) {
  allocator a(0, 65536);
  EXPECT_PAIRS((a.allocate(0, 128), std::nullopt), (a.allocate(65537, 128), std::nullopt),
               (a.allocate(UINT64_MAX, 128), std::nullopt), (a.allocate(UINT64_MAX - 126, 128), std::nullopt),
               (a.live_blocks(), 0u));
}

TEST(allocator, takes_the_best_fit_and_then_the_lowest) {
  allocator a(0, 1 << 20);
  std::vector<std::uint64_t> kept;
  // Holes of 1024, 512, 2048 and 512 bytes with walls between them.
  std::vector<std::uint64_t> holes;
  for (const std::uint64_t hole : {1024, 512, 2048, 512}) {
    holes.push_back(*a.allocate(hole, 128));
    kept.push_back(*a.allocate(128, 128));
  }
  for (const auto h : holes) a.release(h);
  EXPECT_PAIRS((a.allocate(500, 128), holes[1]), (a.allocate(500, 128), holes[3]), (a.allocate(500, 128), holes[0]),
               (a.allocate(2048, 128), holes[2]));
}

TEST(allocator, coalesces_with_both_neighbours_in_any_order) {
  for (const auto& order :
       std::vector<std::vector<int>>{{0, 1, 2}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}}) {
    allocator a(0, 3 * 4096);
    std::vector<std::uint64_t> block;
    for (int i = 0; i < 3; ++i) block.push_back(*a.allocate(4096, 128));
    for (const int i : order) a.release(block[static_cast<std::size_t>(i)]);
    EXPECT_PAIRS((a.free_ranges(), 1u), (a.largest_free(), 3u * 4096u));
  }
}

TEST(allocator, aligns_and_keeps_what_lies_before) {
  allocator a(128, 1 << 20);
  const auto block = a.allocate(100, 65536);
  ASSERT_EQ(block, 65536u);
  // The bytes in front are not lost.
  EXPECT_EQ(a.allocate(65536 - 128, 128), 128u);
  for (const std::uint64_t alignment : {1u, 8u, 64u, 128u, 256u, 4096u, 262144u}) {
    const auto at = a.allocate(1, alignment);
    ASSERT_TRUE(at) << alignment;
    EXPECT_EQ(*at % std::max<std::uint64_t>(alignment, 128), 0u);
  }
}

TEST(allocator, finds_the_block_of_any_byte_in_it) {
  allocator a(0, 65536);
  const auto first = *a.allocate(1000, 128);  // 1024 with padding
  const auto second = *a.allocate(128, 128);
  EXPECT_PAIRS((a.find(first)->offset, first), (a.find(first + 1023)->offset, first), (a.find(first)->bytes, 1024u),
               (a.find(second)->offset, second));
  EXPECT_FALSE(a.find(second + 128));
  a.release(first);
  EXPECT_FALSE(a.find(first));
  a.release(first);  // unknown: no effect
  EXPECT_EQ(a.live_blocks(), 1u);
}

// One flag per granule: slow and plainly right.
class reference {
 public:
  reference(std::uint64_t begin, std::uint64_t end) : begin_(begin / k_granule), used_(end / k_granule) {
    for (std::uint64_t i = 0; i < begin_; ++i) used_[i] = true;
  }
  bool could_hold(std::uint64_t bytes, std::uint64_t alignment) const {
    const std::uint64_t need = (bytes + k_granule - 1) / k_granule;
    const std::uint64_t step = std::max(alignment, k_granule) / k_granule;
    for (std::uint64_t at = 0; at + need <= used_.size(); at += step) {
      std::uint64_t n = 0;
      while (n < need && !used_[at + n]) ++n;
      if (n == need) return true;
    }
    return false;
  }
  // False if any granule is in that state already, or outside.
  bool set(std::uint64_t offset, std::uint64_t bytes, bool to) {
    for (std::uint64_t at = offset / k_granule; at < (offset + bytes + k_granule - 1) / k_granule; ++at) {
      if (at < begin_ || at >= used_.size() || used_[at] == to) return false;
      used_[at] = to;
    }
    return true;
  }
  std::uint64_t free_bytes() const {
    std::uint64_t n = 0;
    for (const bool u : used_) n += u ? 0 : k_granule;
    return n;
  }

 private:
  std::uint64_t begin_;
  std::vector<bool> used_;
};

// Ranges that some PEs hold alone: [at, at + 1024) from offset 2^16 down, beside blocks from 4096 up.
TEST(allocator, ranges_of_some_lie_at_the_end_and_bound_what_all_get) {
  constexpr std::uint64_t begin = 4096, end = 65536, kib = 1024;
  allocator a(begin, end), without(begin, end);
  EXPECT_EQ(a.place_below(end, kib), end - kib);
  EXPECT_EQ(a.place_below(end + 999, 1000), end - kib);  // whole granules
  EXPECT_EQ(a.place_below(end - 5, 128), end - 2 * k_granule);
  EXPECT_EQ(a.place_below(end, end), std::nullopt);
  EXPECT_EQ(a.place_below(100, 128), std::nullopt);
  a.hold(end - kib, kib);
  a.hold(end - 4 * kib, kib);
  EXPECT_EQ(a.place_below(end, kib), end - 2 * kib);
  EXPECT_EQ(a.place_below(end, 2 * kib), end - 3 * kib);
  EXPECT_EQ(a.place_below(end, 2 * kib + 1), end - 4 * kib - 2 * kib - k_granule);
  EXPECT_EQ(a.place_below(end - kib - 1, kib), end - 2 * kib - k_granule);
  a.let_go(end - kib);
  EXPECT_EQ(a.place_below(end, 3 * kib), end - 3 * kib);
  EXPECT_EQ(a.digest(), without.digest());

  // Never at another offset than on a PE that holds none; what lies across is refused.
  EXPECT_EQ(a.allocate(8 * kib, 1), begin);
  EXPECT_EQ(without.allocate(8 * kib, 1), begin);
  EXPECT_EQ(a.allocate(end - begin - 8 * kib - 3 * kib, 1), std::nullopt);
  EXPECT_EQ(a.allocate(end - begin - 8 * kib - 4 * kib, 1), begin + 8 * kib);
  EXPECT_EQ(without.allocate(end - begin - 8 * kib - 4 * kib, 1), begin + 8 * kib);
  EXPECT_EQ(a.place_below(end, 3 * kib), end - 3 * kib);
  EXPECT_EQ(a.place_below(end - 4 * kib, k_granule), std::nullopt);  // live blocks begin there
  EXPECT_EQ(a.digest(), without.digest());
}

class allocator_property : public testing::TestWithParam<unsigned> {};

TEST_P(allocator_property, never_overlaps_never_refuses_what_fits_and_ends_whole) {
  constexpr std::uint64_t begin = 4096, end = begin + 256 * 1024;
  std::mt19937_64 random(GetParam());
  allocator a(begin, end), twin(begin, end);
  reference truth(begin, end);
  std::map<std::uint64_t, std::uint64_t> live;
  const auto pick = [&](std::uint64_t n) { return random() % n; };
  for (int step = 0; step < 4000; ++step) {
    if (live.empty() || pick(100) < 55) {
      const std::uint64_t bytes = 1 + pick(std::uint64_t{1} << (4 + pick(13)));
      const std::uint64_t alignment = std::uint64_t{1} << pick(15);
      const auto at = a.allocate(bytes, alignment);
      ASSERT_EQ(at, twin.allocate(bytes, alignment)) << "not deterministic";
      ASSERT_EQ(at.has_value(), truth.could_hold(bytes, alignment)) << bytes << " bytes, alignment " << alignment;
      if (!at) continue;
      ASSERT_EQ(*at % std::max(alignment, k_granule), 0u);
      ASSERT_TRUE(truth.set(*at, bytes, true)) << "overlap or outside at " << *at;
      live[*at] = bytes;
    } else {
      const auto victim = std::next(live.begin(), static_cast<std::ptrdiff_t>(pick(live.size())));
      ASSERT_TRUE(truth.set(victim->first, victim->second, false));
      a.release(victim->first);
      twin.release(victim->first);
      live.erase(victim);
    }
    ASSERT_EQ(a.free_bytes(), truth.free_bytes());
    ASSERT_EQ(a.live_blocks(), live.size());
  }
  for (const auto& [at, bytes] : live) a.release(at);
  EXPECT_PAIRS((a.free_ranges(), 1u), (a.largest_free(), end - begin));
}

INSTANTIATE_TEST_SUITE_P(seeds, allocator_property, testing::Range(1u, 9u));

}  // namespace
