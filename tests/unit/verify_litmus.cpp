// SPDX-License-Identifier: MIT
// How xio-verify judges what the parties of its litmus tests have read. Registers hold 1 + what was read, and 0 where a
// party did not come so far.
#include "../gtest.hpp"
#include "tools/xio-verify/litmus.hpp"

namespace {

using namespace xio::verify;

litmus_result judged(litmus t, std::vector<std::uint64_t> first, std::vector<std::uint64_t> second,
                     std::vector<std::uint64_t> third = {}) {
  const auto n = static_cast<std::uint32_t>(first.size());
  std::vector<std::uint64_t> all = first;
  all.insert(all.end(), second.begin(), second.end());
  third.resize(n);
  all.insert(all.end(), third.begin(), third.end());
  litmus_result r;
  count(t, all.data(), n, r);
  return r;
}

TEST(litmus, message_passing_counts_words_that_are_old) {
  const litmus_result r = judged(litmus::pass_by_store, {1, 1, 1, 1}, {1, 9, 2, 0});
  EXPECT_PAIRS((r.runs, 3u), (r.weak, 2u), (r.not_run, 1u), (r.outcomes.at("data before the flag"), 1u),
               (r.outcomes.at("old data behind the flag"), 2u));
}

TEST(litmus, passing_on_is_judged_by_the_third_party) {
  const litmus_result r = judged(litmus::pass_on, {1, 1}, {1, 1}, {1, 3});
  EXPECT_PAIRS((r.runs, 2u), (r.weak, 1u));
}

TEST(litmus, of_store_buffering_both_must_miss) {
  // Reads of 0 and 0, 0 and 1, 1 and 0, 1 and 1.
  const litmus_result r = judged(litmus::store_buffering, {1, 1, 2, 2}, {1, 2, 1, 2});
  EXPECT_PAIRS((r.weak, 1u), (r.outcomes.at("read 0 and 0"), 1u), (r.outcomes.at("read 1 and 1"), 1u));
}

TEST(litmus, of_load_buffering_both_must_see) {
  const litmus_result r = judged(litmus::load_buffering, {1, 1, 2, 2, 0}, {1, 2, 1, 2, 2});
  EXPECT_PAIRS((r.weak, 1u), (r.runs, 4u), (r.not_run, 1u));
}

TEST(litmus, adds_and_coherence_have_one_register_each) {
  EXPECT_PAIRS((judged(litmus::adds, {1, 2}, {7, 7}).weak, 1u), (judged(litmus::coherence, {1, 1}, {1, 4}).weak, 1u));
}

TEST(litmus, every_test_has_its_facts) {
  for (int i = 0; i < k_litmus_count; ++i) {
    const litmus_facts& f = facts_of(static_cast<litmus>(i));
    EXPECT_NE(std::string(f.test), "");
    EXPECT_TRUE(f.parties == 2 || f.parties == k_parties_max);
    // A control stands for nothing that XIO does.
    EXPECT_EQ(f.control, std::string(f.stands_for).empty()) << f.test << ", " << f.way;
  }
  EXPECT_TRUE(facts_of(litmus::pass_unordered).control);
  EXPECT_TRUE(facts_of(litmus::load_buffering_unordered).control);
  EXPECT_TRUE(facts_of(litmus::adds_in_gpu).in_gpu);
}

}  // namespace
