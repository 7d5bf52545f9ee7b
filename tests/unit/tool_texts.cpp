// SPDX-License-Identifier: MIT
// What tools read and write: numbers, names and patterns.
#include "../gtest.hpp"
#include "base/edit_distance.hpp"
#include "tools/command_line.hpp"
#include "tools/near_miss.hpp"
#include "tools/progress.hpp"
#include "tools/size_text.hpp"
#include "tools/xio-perf/axes.hpp"
#include "tools/xio-tester/latency.hpp"

namespace {

using namespace xio::tester;
using namespace xio::tools;

// --- Texts ------------------------------------------------------------------------------------------
// Words that were probably meant, sizes as people write them, and lines of progress.

TEST(edit_distance, counts_what_fingers_do) {
  struct pair {
    const char *a, *b;
    std::size_t edits;
  };
  for (const pair& p : {pair{"", "", 0}, pair{"", "abc", 3}, pair{"json", "json", 0}, pair{"json", "jsn", 1},
                        pair{"json", "jason", 1}, pair{"json", "jxon", 1}, pair{"json", "josn", 1},
                        pair{"kitten", "sitting", 3}, pair{"abcd", "badc", 2}, pair{"ca", "abc", 3}}) {
    EXPECT_EQ(xio::edit_distance(p.a, p.b), p.edits) << p.a << " " << p.b;
    EXPECT_EQ(xio::edit_distance(p.b, p.a), p.edits) << p.b << " " << p.a;
  }
}

TEST(near_miss, finds_what_fingers_did) {
  const std::vector<std::string> known{"--env", "--json", "--iterations", "--read-io", "--write-io", "nvme-ep"};
  EXPECT_PAIRS((near_miss("--jsn", known), "--json"), (near_miss("--evn", known), "--env"),
               (near_miss("--iteratoins=5", known), "--iterations"), (near_miss("-json", known), "--json"),
               (near_miss("--iter", known), "--iterations"), (near_miss("--raed-io", known), "--read-io"),
               (near_miss("nvme", known), "nvme-ep"));
}

TEST(near_miss, says_nothing_rather_than_nonsense) {
  const std::vector<std::string> known{"--env", "--json"};
  for (const char* nothing_like : {"--frobnicate", "", "--", "-", "=", "--e", "x"})
    EXPECT_EQ(near_miss(nothing_like, known), "") << nothing_like;
  EXPECT_PAIRS((near_miss("--json", {}), ""), (did_you_mean("--zzzzzz", known), ""),
               (did_you_mean("--jsno", known), "; did you mean --json?"));
}

TEST(size_text, reads_units_of_1024) {
  EXPECT_PAIRS((size_of_text("0"), 0u), (size_of_text("4096"), 4096u));
  for (const char* four : {"4k", "4K", "4kB", "4KiB"}) EXPECT_EQ(size_of_text(four), 4096u) << four;
  EXPECT_PAIRS((size_of_text("17B"), 17u), (size_of_text("1M"), 1048576u), (size_of_text("3g"), std::uint64_t{3} << 30),
               (size_of_text("2T"), std::uint64_t{2} << 40),
               (size_of_text("9999999999999999999"), 9999999999999999999u),
               (size_of_text("15E"), std::uint64_t{15} << 60));
}

TEST(size_text, refuses_all_else) {
  for (const char* wrong : {"",          "k",
                            "-1",        "+1",
                            " 1",        "1 ",
                            "1.5k",      "1kk",
                            "1kb4",      "1x",
                            "1e3",       "0x10",
                            "010",       "00",
                            "1 k",       "0b1",
                            "16E",       "18446744073709551616",
                            "16777216T", "99999999999999999999k"})
    EXPECT_EQ(size_of_text(wrong), std::nullopt) << wrong;
}

TEST(size_text, writes_what_it_reads) {
  EXPECT_PAIRS((text_of_size(0), "0"), (text_of_size(4097), "4097"));
  for (const char* text : {"512", "4k", "1M", "3G", "2T", "1025k"}) EXPECT_EQ(text_of_size(*size_of_text(text)), text);
  EXPECT_PAIRS((rounded_size(17), "17 B"), (rounded_size(1536), "1.5 KiB"),
               (rounded_size(double(std::uint64_t{5} << 40)), "5.0 TiB"));
}

TEST(progress, says_share_rate_and_time_left) {
  const progress p("nvme-ep write", "ops", 1000, 4096);
  EXPECT_EQ(p.line(500, 5), "nvme-ep write: 50% 500/1000 ops, 100 ops/s, 400.0 KiB/s, 5 s left");
  EXPECT_EQ(p.line(1000, 5), "nvme-ep write: 100% 1000/1000 ops, 200 ops/s, 800.0 KiB/s, 0 s left");
  EXPECT_EQ(p.line(1, 3600), "nvme-ep write: 0% 1/1000 ops, 0 ops/s, 1 B/s, 999.0 h left");
  EXPECT_EQ(p.line(0, 0), "nvme-ep write: 0% 0/1000 ops, 0 ops/s, 0 B/s");
  const progress endless("run", "ops", 0);
  EXPECT_EQ(endless.line(7, 2), "run: 7 ops, 4 ops/s");
}

// A log gets a line after ten seconds, and then ever fewer; nothing before.
TEST(progress, is_rare_in_a_log) {
  testing::internal::CaptureStderr();
  {
    progress p("run", "ops", 100);
    const auto start = progress::clock::now();
    for (int s = 0; s <= 100; ++s) p.update(static_cast<std::uint64_t>(s), start + std::chrono::seconds(s));
  }
  const std::string text = testing::internal::GetCapturedStderr();
  const auto lines = std::count(text.begin(), text.end(), '\n');
  EXPECT_GE(lines, 3) << text;
  EXPECT_LE(lines, 6) << text;
  EXPECT_EQ(text.find('\r'), std::string::npos);
}

// --- Axes of xio-perf's pictures ---

TEST(perf_axes, name_sizes_as_people_do) {
  EXPECT_PAIRS((xio::perf::tick_text(8), "8"), (xio::perf::tick_text(4096), "4K"), (xio::perf::tick_text(4097), "4097"),
               (xio::perf::tick_text(std::uint64_t{3} << 20), "3M"));
}

TEST(perf_axes, have_a_tick_for_each_size_with_room) {
  using sizes = std::vector<std::uint64_t>;
  EXPECT_EQ(xio::perf::size_ticks({4096}), (sizes{4096}));
  EXPECT_EQ(xio::perf::size_ticks({8, 64, 512}), (sizes{8, 64, 512}));
  // 4096 and 4097 would be printed over each other.
  EXPECT_EQ(xio::perf::size_ticks({8, 4096, 4097, 65536}), (sizes{8, 4096, 65536}));
  sizes all;
  for (int power = 0; power <= 32; ++power) all.push_back(std::uint64_t{1} << power);
  EXPECT_EQ(xio::perf::size_ticks(all).size(), 17u);  // every other one
}

TEST(perf_axes, enclose_all_values) {
  using ticks = std::vector<double>;
  EXPECT_PAIRS((xio::perf::value_ticks(3, 3), (ticks{2, 5})), (xio::perf::value_ticks(2, 2), (ticks{2, 5})),
               (xio::perf::value_ticks(0.9, 12), (ticks{0.5, 1, 2, 5, 10, 20})),
               (xio::perf::value_ticks(0.03, 700), (ticks{0.01, 0.1, 1, 10, 100, 1000})));
}

// --- Patterns of xio-tester -------------------------------------------------------------------------
// The pattern that tests write: its bytes, and the verdicts on what is read. The numbers were computed from the
// formula in docs/tester.md by another program.

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
