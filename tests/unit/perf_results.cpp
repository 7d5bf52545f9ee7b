// SPDX-License-Identifier: MIT
// What xio-perf says of measurements: statistics, the three ways of printing, and that wrong data is found.
#include "refusal.hpp"
#include "tools/result_table.hpp"
#include "tools/statistics.hpp"
#include "tools/xio-perf/data.hpp"

namespace {

using namespace xio;
using namespace xio::tools;
using test::refusal;

// --- Statistics --------------------------------------------------------------------------------------

TEST(statistics, of_few) {
  const auto one = statistics_of({7});
  EXPECT_PAIRS((one.count, 1u), (one.min, 7), (one.median, 7), (one.p99, 7), (one.p999, 7), (one.max, 7), (one.mean, 7),
               (statistics_of({}).count, 0u), (statistics_of({4, 1}).median, 2.5), (statistics_of({4, 1, 3}).median, 3),
               (statistics_of({9, 1, 2, 4}).mean, 4));
}

// Nearest rank: of n sorted samples number ceil(0.99 n), or ceil(0.999 n).
TEST(statistics, percentiles_are_samples) {
  const auto upward = [](int n) {
    std::vector<double> v;
    for (int i = n; i > 0; --i) v.push_back(i);
    return v;
  };
  EXPECT_PAIRS((statistics_of(upward(99)).p99, 99), (statistics_of(upward(100)).p99, 99),
               (statistics_of(upward(101)).p99, 100), (statistics_of(upward(200)).p99, 198),
               (statistics_of(upward(1000)).p99, 990), (statistics_of(upward(200)).median, 100.5),
               (statistics_of(upward(999)).p999, 999), (statistics_of(upward(1000)).p999, 999),
               (statistics_of(upward(1001)).p999, 1000), (statistics_of(upward(2000)).p999, 1998),
               (statistics_of(upward(100)).p95, 95), (statistics_of(upward(101)).p95, 96),
               (statistics_of(upward(10001)).p9999, 10000), (statistics_of(upward(12345)).p999, 12333),
               (statistics_of(upward(12345)).p99, 12222));
}

// --- Printing ----------------------------------------------------------------------------------------

std::string printed(table_format format, const std::vector<std::vector<field>>& rows, std::size_t columns = 0) {
  std::FILE* to = std::tmpfile();
  result_table out(format, {{"machine", "a \"b\", c"}, {"pes", "2"}}, to, columns);
  for (const auto& row : rows) out.add(row);
  EXPECT_TRUE(out.finish());
  std::string text(static_cast<std::size_t>(std::ftell(to)), '\0');
  std::rewind(to);
  EXPECT_EQ(std::fread(text.data(), 1, text.size(), to), text.size());
  std::fclose(to);
  return text;
}

const std::vector<std::vector<field>> k_rows{
    {{"test", std::string("put")}, {"bytes", std::uint64_t{8}}, {"us", 1.23456}, {"more", std::string("x"), false}},
    {{"test", std::string("get,x")},
     {"bytes", std::uint64_t{1048576}},
     {"us", cell()},
     {"more", std::string(), false}}};

TEST(result_table, csv_is_rfc_4180) {
  EXPECT_EQ(printed(table_format::csv, k_rows),
            "test,bytes,us,more,machine,pes\n"
            "put,8,1.235,x,\"a \"\"b\"\", c\",2\n"
            "\"get,x\",1048576,,,\"a \"\"b\"\", c\",2\n");
}

TEST(result_table, table_is_for_people) {
  EXPECT_EQ(printed(table_format::table, k_rows),
            "# machine: a \"b\", c\n"
            "# pes: 2\n"
            "test       bytes        us\n"
            "put            8     1.235\n"
            "get,x    1048576\n");
}

// Columns leave in their order until the table fits; the rest stays, also where it is too wide.
TEST(result_table, a_table_fits_its_columns) {
  const std::vector<field> row{{"a", 1.0}, {"b", 2.0, true, 0, 2}, {"c", 3.0, true, 0, 1}};
  EXPECT_EQ(printed(table_format::table, {row}, 28).find("wide"), std::string::npos);
  test::expect_words(printed(table_format::table, {row}, 27), {"# --wide has more: c\n       a         b\n"});
  test::expect_words(printed(table_format::table, {row}, 5), {"# --wide has more: c b\n       a\n   1.000\n"});
}

TEST(result_table, json_is_one_object) {
  EXPECT_EQ(printed(table_format::json, {k_rows[0], k_rows[1]}),
            "{\n"
            "  \"machine\": \"a \\\"b\\\", c\",\n"
            "  \"pes\": \"2\",\n"
            "  \"results\": [\n"
            "    {\n"
            "      \"test\": \"put\",\n"
            "      \"bytes\": 8,\n"
            "      \"us\": 1.23456,\n"
            "      \"more\": \"x\"\n"
            "    },\n"
            "    {\n"
            "      \"test\": \"get,x\",\n"
            "      \"bytes\": 1048576,\n"
            "      \"us\": null,\n"
            "      \"more\": \"\"\n"
            "    }\n"
            "  ]\n"
            "}\n");
}

TEST(result_table, tell_when_nothing_can_be_written) {
  std::FILE* full = std::fopen("/dev/full", "w");
  if (full == nullptr) GTEST_SKIP() << "no /dev/full here";
  result_table out(table_format::csv, {}, full);
  out.add(k_rows[0]);
  EXPECT_FALSE(out.finish());
  std::fclose(full);
}

// --- Wrong data is found -----------------------------------------------------------------------------

TEST(data, one_wrong_byte_is_named) {
  std::vector<unsigned char> found(5000 + perf::k_guard, perf::k_poison);
  for (std::size_t i = 0; i < 5000; ++i) found[i] = perf::pattern(1, 100 + i);
  EXPECT_EQ(refusal([&] { perf::check_pattern(found, 5000, 1, 100, "x"); }), "");
  EXPECT_EQ(refusal([&] { perf::check_guard(found, 5000, "x"); }), "");
  // Of another PE, or from another place: astray.
  EXPECT_NE(refusal([&] { perf::check_pattern(found, 5000, 0, 100, "x"); }), "");
  EXPECT_NE(refusal([&] { perf::check_pattern(found, 5000, 1, 108, "x"); }), "");
  found[4999] ^= 1;
  EXPECT_NE(refusal([&] { perf::check_pattern(found, 5000, 1, 100, "x"); }).find("byte 4999"), std::string::npos);
  found[5000 + perf::k_guard - 1] = 0;
  EXPECT_NE(refusal([&] { perf::check_guard(found, 5000, "x"); }).find("was written"), std::string::npos);
}

TEST(data, nothing_that_arrived_looks_like_poison) {
  int same = 0;
  for (std::uint64_t i = 0; i < 4096; ++i) same += perf::pattern(0, i) == perf::k_poison ? 1 : 0;
  EXPECT_LT(same, 64);
}

// By OpenSHMEM 1.5, section 9.8: what each op leaves in the word, one after another.
template <class T>
void apply_all() {
  using enum perf::atomic_op;
  const T base = static_cast<T>(perf::k_word_base);
  const T bits = static_cast<T>(0x5a5a5a5a5a5a5a5aULL);
  const std::pair<perf::atomic_op, std::function<T(T)>> ops[] = {
      {inc, [](T w) { return static_cast<T>(w + 1); }},
      {fetch_inc, [](T w) { return static_cast<T>(w + 1); }},
      {add, [](T w) { return static_cast<T>(w + 3); }},
      {fetch_add, [](T w) { return static_cast<T>(w + 3); }},
      {bit_and, [&](T w) { return static_cast<T>(w & bits); }},
      {fetch_and, [&](T w) { return static_cast<T>(w & bits); }},
      {bit_or, [&](T w) { return static_cast<T>(w | bits); }},
      {fetch_or, [&](T w) { return static_cast<T>(w | bits); }},
      {bit_xor, [&](T w) { return static_cast<T>(w ^ bits); }},
      {fetch_xor, [&](T w) { return static_cast<T>(w ^ bits); }},
      {fetch, [](T w) { return w; }}};
  for (const auto& [op, change] : ops) {
    T word = base;
    for (std::uint64_t k = 0; k < 7; ++k) {
      EXPECT_EQ(perf::value_after<T>(op, base, k), word) << "op " << static_cast<int>(op) << " after " << k;
      word = change(word);
    }
  }
  // These store another number each time, so that a lost one shows.
  for (const auto op : {set, swap, compare_swap})
    for (std::uint64_t k = 1; k < 7; ++k)
      EXPECT_NE(perf::value_after<T>(op, base, k), perf::value_after<T>(op, base, k - 1));
}

TEST(data, words_are_what_the_atomics_make_of_them) {
  apply_all<std::uint32_t>();
  apply_all<std::uint64_t>();
}

TEST(data, a_lost_atomic_is_found) {
  void* block = nullptr;
  ASSERT_EQ(hipMalloc(&block, 64), hipSuccess) << hipGetErrorString(hipGetLastError());
  for (const std::uint32_t element : {4u, 8u}) {
    perf::fill_words(block, 64, element);
    EXPECT_EQ(refusal([&] { perf::check_words(block, 64, element, perf::atomic_op::inc, 0, "x"); }), "");
    EXPECT_NE(refusal([&] { perf::check_words(block, 64, element, perf::atomic_op::inc, 1, "x"); }), "");
  }
  (void)hipFree(block);
}

}  // namespace
