// SPDX-License-Identifier: MIT
// Teams on the host: members, the memory that serves all teams of one call, and the sentences for calls that were
// refused, from records as kernels write them.
#include "ctx/team.hpp"
#include "base/error.hpp"
#include "ctx/team_text.hpp"
#include "says.hpp"
#include "xio/device/impl/team_tag.hpp"

namespace xio {
namespace {

using namespace dev::teams;

void expect_words(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* one : words) EXPECT_PRED2(test::says, text, one);
}

TEST(team, strided_members_of_a_parent) {
  const std::vector<int> parent = {4, 5, 6, 7};
  EXPECT_EQ(strided_members(parent, 5, 3, -2, 2), (std::vector<int>{7, 5}));
  EXPECT_TRUE(strided_members(parent, 4, 3, -2, 2).empty());  // not one of them
  EXPECT_THROW(strided_members(parent, 4, 0, 2, 3), error);
  EXPECT_THROW(strided_members(parent, 4, 0, 1, 0), error);
  EXPECT_THROW(strided_members(parent, 4, 0, 1, SIZE_MAX), error);
  EXPECT_THROW(strided_members(parent, 4, 0, 0, 1), error);
}

// A team of few members has larger packets than one of many, so it may be the larger one of those that one call makes.
TEST(team, memory_serves_the_largest_team_and_the_one_with_the_largest_packets) {
  std::vector<team_offer> offers(64, team_offer{1, 64});
  for (int i = 0; i < 8; ++i) offers.push_back(team_offer{2, 8});
  offers.push_back(team_offer{3, 0});
  constexpr dev::team_wishes small{0, dev::k_most_packet_bytes, 4};
  EXPECT_GT(dev::team_work_bytes(8, small), dev::team_work_bytes(64, small));
  EXPECT_EQ(work_bytes_for(offers, small), dev::team_work_bytes(8, small));
  EXPECT_EQ(work_bytes_for({team_offer{3, 0}}, {1 << 20, dev::k_most_packet_bytes}), 0u);
}

// xio/team.h says 450, 730 and 490 KiB.
TEST(team, memory_is_what_the_header_says) {
  constexpr dev::team_wishes area{16 << 10, dev::k_most_packet_bytes, 4};
  EXPECT_NEAR(static_cast<double>(dev::team_work_bytes(2, area)), 450 << 10, 10 << 10);
  EXPECT_NEAR(static_cast<double>(dev::team_work_bytes(8, area)), 730 << 10, 10 << 10);
  EXPECT_NEAR(static_cast<double>(dev::team_work_bytes(64, area)), 490 << 10, 10 << 10);
  // An area has room for 64 bytes of each other member, and for XIO_TEAM_AREA bytes.
  for (const std::uint64_t n : {1, 2, 3, 7, 100, 4096})
    for (const std::uint64_t wanted : {0, 100, 16 << 10, 16 << 20}) {
      const std::uint64_t bytes = dev::team_area_bytes(n, wanted), part = dev::team_part_bytes(n, bytes);
      EXPECT_GE(bytes, wanted);
      EXPECT_GE(part, 64u);
      EXPECT_LE(part * (n > 1 ? n - 1 : 1), bytes);
      EXPECT_GT((part + 16) * (n > 1 ? n - 1 : 1), bytes);
    }
}

// A record of PE 5, member 2 of a team of 3 in the second call that made teams, on channel 1.
dev::call_record record_of(refusal why, std::uint32_t mine, std::uint32_t other) {
  dev::call_record r{};
  r.pe = 5;
  r.address = (std::uint64_t{2} << 32) | (3 << 8) | 1;
  r.local = (std::uint64_t{other} << 32) | mine;
  r.words = static_cast<std::uint64_t>(why);
  r.found = 2;
  return r;
}

TEST(team, a_sentence_names_both_calls) {
  const std::string text =
      refused_text(record_of(refusal::unlike, tag_of(op::alltoall, 8), tag_of(op::broadcast, 24, 1)));
  expect_words(text, {"xio_alltoall of 8 bytes on team 2 (3 members, channel 1): ",
                      "PE 5, its member 2, called xio_broadcast of 24 bytes from root 1; ",
                      "all members call alike, in counts, types and roots"});
}

// Operation from bit 5 on (sum 0, prod 1, ...), 16: floating point, 8: bfloat16, and log2 of the bytes.
TEST(team, a_sentence_names_reductions_and_types) {
  EXPECT_EQ(team_call_name(tag_of(op::reduce, 40, 16 | 2)), "xio_reduce of 40 bytes, sum of float");
  EXPECT_EQ(team_call_name(tag_of(op::reduce, 40, 16 | 3)), "xio_reduce of 40 bytes, sum of double");
  EXPECT_EQ(team_call_name(tag_of(op::reduce, 2, 1 << 5 | 16 | 1)), "xio_reduce of 2 bytes, product of xio_half_t");
  EXPECT_EQ(team_call_name(tag_of(op::reduce_scatter, 2, 2 << 5 | 16 | 8 | 1)),
            "xio_reduce_scatter of 2 bytes, minimum of xio_bfloat16_t");
  EXPECT_EQ(team_call_name(tag_of(op::reduce, 16, 6 << 5 | 3)), "xio_reduce of 16 bytes, xor of 8-byte integers");
  EXPECT_EQ(team_call_name(tag_of(op::alltoall, 1 << 20)), "xio_alltoall of 512 KiB or more");
  EXPECT_EQ(team_call_name(tag_of(op::collect)), "xio_collect");
}

TEST(team, a_sentence_says_why_another_member_refused) {
  const std::uint32_t mine = tag_of(op::broadcast, 24, 1);
  for (const int root : {-1, 77, 70000, -70000})
    expect_words(
        refused_text(record_of(refusal::unlike, mine, tag_of(refusal::no_such_root, static_cast<std::uint32_t>(root)))),
        {"PE 5, its member 2, refused its own arguments: ", fmt::format("there is no root {};", root).c_str()});
  dev::call_record own = record_of(refusal::no_such_root, mine, 0);
  own.found = static_cast<std::uint32_t>(-1);
  expect_words(refused_text(own), {"there is no root -1; members are 0 to xio_team_n_pes - 1"});
  expect_words(refused_text(record_of(refusal::unlike, mine, dev::teams::k_refuses)),
               {"PE 5, its member 2, has heard of a member in another call"});
}

// Counts whose tags have only a hash of them differ without a word for it.
TEST(team, large_counts_that_differ_have_tags_that_differ) {
  const std::uint32_t mine = tag_of(op::fcollect, 1 << 20), other = tag_of(op::fcollect, (1 << 20) + 4);
  EXPECT_NE(mine, other);
  EXPECT_NE(tag_of(op::fcollect, 524288), tag_of(op::fcollect, 0));
  expect_words(refused_text(record_of(refusal::unlike, mine, other)), {"PE 5, its member 2, gave another count"});
}

TEST(team, every_sentence_has_room) {
  const std::uint32_t longest = tag_of(op::reduce_scatter, 524287, 1 << 5 | 3);
  for (const refusal why : {refusal::unlike, refusal::null_pointer, refusal::not_symmetric, refusal::overlap,
                            refusal::no_such_root, refusal::unequal, refusal::unreachable, refusal::foreign,
                            refusal::empty_team, refusal::destroyed, refusal::broken})
    for (const std::uint32_t other :
         {tag_of(op::reduce_scatter, 524286, 1 << 5 | 3), dev::teams::k_refuses, tag_of(refusal::not_symmetric, 0),
          tag_of(refusal::no_such_root, static_cast<std::uint32_t>(-100000))}) {
      dev::call_record r = record_of(why, longest, other);
      r.pe = 4095, r.found = why == refusal::broken ? static_cast<std::uint32_t>(XIO_ERR_TIMEOUT) : 4095;
      r.address = (std::uint64_t{99} << 32) | (4096 << 8) | 3;
      EXPECT_LT(refused_text(r).size(), sizeof xio_error_info_t{}.sentence) << refused_text(r);
    }
}

TEST(team, a_member_that_has_not_come) {
  dev::call_record r{};
  r.pe = 7;
  r.address = (std::uint64_t{1} << 32) | (8 << 8);
  r.words = tag_of(op::sync);
  r.wanted = 3;
  expect_words(missing_member_text(r),
               {"xio_team_sync on team 1 (8 members, channel 0): PE 7, its member 3, has not come "
                "within XIO_TIMEOUT_MS; "});
  r.found = 1;
  r.address = (std::uint64_t{99} << 32) | (4096 << 8) | 3;
  r.words = tag_of(op::reduce_scatter, 524286, 1 << 5 | 3);
  r.pe = r.wanted = 4095;
  expect_words(missing_member_text(r), {"another call of this PE has used the channel meanwhile", "xio_team_channel"});
  EXPECT_LT(missing_member_text(r).size(), sizeof xio_error_info_t{}.sentence);
}

}  // namespace
}  // namespace xio
