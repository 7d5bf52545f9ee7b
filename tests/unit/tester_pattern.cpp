// SPDX-License-Identifier: MIT
// The pattern that tests write: its bytes, and the verdicts on what is read. The numbers were computed from the
// formula in docs/tester.md by another program.
#include "../gtest.hpp"
#include "tools/xio-tester/latency.hpp"

namespace {

using namespace xio::tester;

std::vector<u64> words_of(u64 seed, u64 block, std::size_t count) {
  std::vector<u64> words(count);
  pattern::of(seed, 512).fill_block(reinterpret_cast<u8*>(words.data()), count * 8, block);
  return words;
}

TEST(tester_pattern, is_the_documented_one) {
  EXPECT_EQ(words_of(0, 0, 3), (std::vector<u64>{0x48218226ff3cd4bf, 0x566059ba22cc62d6, 0x3a5d604f76ed8f93}));
  EXPECT_EQ(words_of(0, 1, 3), (std::vector<u64>{0xea8568d2e45fd6cb, 0x53735346dbf7bba6, 0x4739069ca6787d51}));
  EXPECT_EQ(words_of(7, 123456789, 3), (std::vector<u64>{0xd8bb20cc8e9cae50, 0x5521bebd2378030c, 0x8ffcf858e74bb00a}));
  EXPECT_EQ(words_of(UINT64_MAX, u64{1} << 40, 3),
            (std::vector<u64>{0xa7217a95252b8339, 0xfa7b524041183a7f, 0xe8bc3d616b4d75cb}));
}

TEST(tester_pattern, mix_can_be_undone) {
  for (u64 x : {u64{0}, u64{1}, u64{0x8000000000000000}, UINT64_MAX, u64{0x123456789abcdef0}}) {
    EXPECT_EQ(unmix(mix(x)), x);
    EXPECT_EQ(mix(unmix(x)), x);
  }
  const pattern p = pattern::of(99, 512);
  for (u64 block = 0; block < 1000; ++block) EXPECT_EQ(p.block_of(p.first(block)), block);
}

// A cut does not change the bytes before it, and touches none behind it.
TEST(tester_pattern, fills_any_length_and_no_more) {
  const pattern p = pattern::of(5, 64);
  std::vector<u8> whole(256);
  p.fill(whole.data(), 256, 10);
  for (u64 bytes = 0; bytes <= 256; ++bytes) {
    std::vector<u8> part(257, 0xee);
    p.fill(part.data(), bytes, 10);
    ASSERT_EQ(std::memcmp(part.data(), whole.data(), bytes), 0) << bytes;
    ASSERT_EQ(part[bytes], 0xee) << bytes;
  }
  EXPECT_NE(std::memcmp(&whole[0], &whole[64], 64), 0);
}

struct judged {
  verdict what;
  u64 found;
};
judged judge(const std::vector<u8>& data, u64 block, u64 end = 1000) {
  judged j{};
  j.what = pattern::of(3, 512).judge(data.data(), data.size(), block, end, &j.found);
  return j;
}

std::vector<u8> block_of(u64 seed, u64 block, u64 bytes = 512) {
  std::vector<u8> data(bytes);
  pattern::of(seed, 512).fill_block(data.data(), bytes, block);
  return data;
}

TEST(tester_pattern, tells_astray_from_missing_from_corrupt) {
  EXPECT_EQ(judge(block_of(3, 17), 17).what, verdict::good);
  const judged astray = judge(block_of(3, 18), 17);
  EXPECT_PAIRS((astray.what, verdict::astray), (astray.found, 18u),
               (judge(std::vector<u8>(512, 0), 17).what, verdict::missing),
               (judge(std::vector<u8>(512, 0x5a), 17).what, verdict::missing));
  // Another seed, or a place that is not there: nobody knows where that is from.
  EXPECT_EQ(judge(block_of(4, 17), 17).what, verdict::corrupt);
  EXPECT_EQ(judge(block_of(3, 1000), 17).what, verdict::corrupt);
  EXPECT_EQ(judge(block_of(3, 999), 17).what, verdict::astray);
  // Half a block is no block.
  auto torn = block_of(3, 17);
  std::memset(&torn[256], 0, 256);
  EXPECT_EQ(judge(torn, 17).what, verdict::corrupt);
}

TEST(tester_pattern, sees_every_flipped_bit) {
  for (const u64 bytes : {u64{512}, u64{509}, u64{5}}) {
    const auto good = block_of(3, 17, bytes);
    for (u64 bit = 0; bit < bytes * 8; ++bit) {
      auto data = good;
      data[bit / 8] ^= static_cast<u8>(1u << bit % 8);
      ASSERT_EQ(judge(data, 17).what, verdict::corrupt) << bytes << " bytes, bit " << bit;
    }
  }
}

TEST(tester_record, keeps_the_first_that_was_wrong) {
  lane_record r{};
  std::vector<u8> data(4 * 512);
  const pattern p = pattern::of(3, 512);
  p.fill(data.data(), data.size(), 20);
  std::memset(&data[512], 0, 512);
  p.fill_block(&data[1024], 512, 5);
  r.judge(p, data.data(), data.size(), 20, 1000);
  EXPECT_PAIRS((r.verdicts[0], 2u), (r.verdicts[static_cast<int>(verdict::astray)], 1u),
               (r.verdicts[static_cast<int>(verdict::missing)], 1u), (r.wrong_block, 21u),
               (r.wrong_verdict, static_cast<u32>(verdict::missing)));
  r.fail(XIO_OK, 1);
  r.fail(XIO_ERR_TIMEOUT, 7);
  r.fail(XIO_ERR_STORAGE, 8);
  EXPECT_PAIRS((r.status, XIO_ERR_TIMEOUT), (r.failed_op, 7u));
}

TEST(tester_record, counts_by_powers_of_two) {
  lane_record r{};
  r.begin(0);
  for (const u64 ticks : {0, 1, 2, 3, 4, 7, 8, 1000}) r.keep(ticks);
  r.keep(UINT64_MAX);
  EXPECT_PAIRS((r.least, 0u), (r.most, UINT64_MAX));
  EXPECT_EQ(r.buckets[0], 2u);  // 0 and 1
  EXPECT_EQ(r.buckets[1], 2u);  // 2 and 3
  EXPECT_EQ(r.buckets[2], 2u);  // 4 to 7
  EXPECT_EQ(r.buckets[3], 1u);  // 8 to 15
  EXPECT_EQ(r.buckets[9], 1u);  // 512 to 1023
  EXPECT_EQ(r.buckets[k_buckets - 1], 1u);
}

TEST(tester_latency, sums_leave_out_lanes_that_only_help) {
  lane_record a{}, idle{};
  a.begin(0);
  for (const u64 ticks : {10, 20, 60}) a.keep(ticks);
  const auto s = summarize({&a, &idle}, 0.5);
  EXPECT_EQ(s.count, 3u);
  EXPECT_DOUBLE_EQ(s.min, 5);
  EXPECT_DOUBLE_EQ(s.max, 30);
  EXPECT_DOUBLE_EQ(s.mean, 15);
  const std::string rows = histogram({&a, &idle}, 1);
  EXPECT_NE(rows.find("8.000 .. 16.000"), std::string::npos) << rows;
  EXPECT_EQ(histogram({&idle}, 1), "");
}

}  // namespace
