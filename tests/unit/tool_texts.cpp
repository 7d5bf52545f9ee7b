// SPDX-License-Identifier: MIT
// Words that were probably meant, sizes as people write them, and lines of progress.
#include "../gtest.hpp"
#include "base/edit_distance.hpp"
#include "tools/command_line.hpp"
#include "tools/near_miss.hpp"
#include "tools/progress.hpp"
#include "tools/size_text.hpp"
#include "tools/xio-perf/axes.hpp"

namespace {

using namespace xio::tools;

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

}  // namespace
