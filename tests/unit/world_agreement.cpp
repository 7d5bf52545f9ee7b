// SPDX-License-Identifier: MIT
// Collective calls: what one PE did wrong is an error on every PE, with the PE and the values in the sentence.

#include "ctx/agreement.hpp"
#include "outcome.hpp"
#include "says.hpp"
#include "thread_channel.hpp"

namespace {

using xio::agreement;
using xio::arguments;
using xio::call;
using xio::fail;
using namespace xio::test;

// Returns what each of three PEs gets from body(pe, agreement).
template <class Body>
std::array<outcome, 3> on_three(Body&& body) {
  std::array<outcome, 3> out;
  xio::test::run_pes(3, [&](int pe, std::unique_ptr<xio::bootstrap::channel> channel) {
    out[static_cast<std::size_t>(pe)] = outcome_of([&] {
      agreement a(*channel);
      body(pe, a);
    });
  });
  return out;
}

TEST(agreement, is_silent_when_all_is_well) {
  for (const auto& o : on_three([](int, agreement& a) {
         a.vote(call::malloc, [] { return arguments{{"the size", 64}}; });
         a.each(call::barrier, [] {});
       }))
    EXPECT_EQ(o.status, XIO_OK) << o.sentence;
}

TEST(agreement, tells_everyone_of_one_failure) {
  const auto out = on_three([](int pe, agreement& a) {
    a.each(call::malloc, [&] {
      if (pe == 1) fail(XIO_ERR_NO_MEMORY, "the shelf is empty");
    });
  });
  EXPECT_EQ(out[1].sentence, "the shelf is empty");
  for (const int pe : {0, 2}) EXPECT_EQ(out[static_cast<std::size_t>(pe)].sentence, "PE 1: the shelf is empty");
  for (const auto& o : out) EXPECT_EQ(o.status, XIO_ERR_NO_MEMORY);
}

TEST(agreement, cuts_long_sentences_and_stays_whole) {
  const auto out = on_three([](int pe, agreement& a) {
    a.each(call::malloc, [&] {
      if (pe == 2) fail(XIO_ERR_IO, "{}", std::string(4000, 'x'));
    });
  });
  EXPECT_EQ(out[2].sentence.size(), 4000u);
  EXPECT_PRED2(says, out[0].sentence, "PE 2: xxx");
  EXPECT_LT(out[0].sentence.size(), 300u);
}

TEST(agreement, names_both_values_when_they_differ) {
  const auto out = on_three([](int pe, agreement& a) {
    const auto size = [&] { return arguments{{"the size", pe == 2 ? 4711u : 64u}}; };
    a.vote(call::malloc, size, XIO_ERR_NOT_SYMMETRIC);
  });
  for (const auto& o : out) expect_outcome(o, XIO_ERR_NOT_SYMMETRIC, {"the size is 64 on PE 0 but 4711 on PE 2"});
}

TEST(agreement, notices_pes_that_are_in_different_calls) {
  const auto out = on_three([](int pe, agreement& a) { a.each(pe == 1 ? call::free : call::barrier, [] {}); });
  for (const auto& o : out) expect_outcome(o, XIO_ERR_STATE, {"PE 1 is in xio_free while PE 0 is in xio_host_barrier"});
}

// A channel of one PE that says how long an exchange may still take, and is slow.
struct slow_channel final : xio::bootstrap::channel {
  int rank() const override { return 0; }
  int size() const override { return 1; }
  const char* name() const override { return "slow"; }
  std::vector<std::byte> allgather(std::span<const std::byte> mine) override {
    left.push_back(limit() ? limit()->poll_ms() : -1);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    return {mine.begin(), mine.end()};
  }
  xio::bootstrap::cells all_to_all(const xio::bootstrap::cells& mine) override { return mine; }
  std::vector<int> left;
};

TEST(agreement, has_one_deadline_for_digests_and_ballots) {
  slow_channel c;
  agreement a(c);
  a.limit(90);
  EXPECT_THROW(a.each(call::free, [] { fail(XIO_ERR_ARG, "no"); }), xio::error);
  ASSERT_EQ(c.left.size(), 2u);
  EXPECT_GT(c.left[0], 0);
  EXPECT_LE(c.left[1], 60);
  EXPECT_FALSE(c.limit());
  a.each(call::free, [] {});
  EXPECT_EQ(c.left.size(), 3u);
}

TEST(agreement, ends_when_a_pe_is_gone) {
  const auto out = on_three([](int pe, agreement& a) {
    if (pe != 0) a.each(call::barrier, [] {});
  });
  for (const std::size_t pe : {1u, 2u}) EXPECT_EQ(out[pe].status, XIO_ERR_PEER) << out[pe].sentence;
}

TEST(agreement, keeps_the_own_failure_when_the_others_cannot_be_reached) {
  const auto out = on_three([](int pe, agreement& a) {
    if (pe == 0) return;
    a.each(call::malloc, [] { fail(XIO_ERR_NO_MEMORY, "the shelf is empty"); });
  });
  EXPECT_EQ(out[1].sentence, "the shelf is empty");
}

}  // namespace
