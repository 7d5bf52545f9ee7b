// SPDX-License-Identifier: MIT
// Which queue pairs a poll of a NIC looks at: the busy ones in each, those at rest in turn, none too late.
#include "proxy/queue_rota.hpp"
#include "../gtest.hpp"

namespace {

struct fake_queue {
  explicit fake_queue(std::uint32_t n) : name(n) {}
  std::uint32_t number() const { return name; }
  bool at_rest() const { return !waits; }
  bool turn() {
    ++looks;
    if (work == 0) return false;
    --work;
    return true;
  }
  std::uint32_t name;
  unsigned work = 0, looks = 0;
  bool waits = false;
};

struct rig {
  explicit rig(std::uint32_t n) {
    for (std::uint32_t i = 0; i < n; ++i) rota.add(std::make_unique<fake_queue>(i));
  }
  fake_queue& at(std::uint32_t n) { return *rota.find(n); }
  void poll(unsigned times = 1) {
    for (; times != 0; --times) rota.poll([](fake_queue& q) { return q.turn(); });
  }
  unsigned all_looks() {
    unsigned sum = 0;
    rota.for_each([&](const fake_queue& q) { sum += q.looks; });
    return sum;
  }
  // Polls until queue `n` has had its work.
  unsigned polls_until_done(std::uint32_t n) {
    unsigned polls = 0;
    for (; at(n).work != 0 && polls < 100000; ++polls) poll();
    return polls;
  }
  xio::proxy::queue_rota<fake_queue> rota;
};

TEST(queue_rota, looks_at_few_all_the_time) {
  rig r(8);
  r.poll(5000);
  r.rota.for_each([](const fake_queue& q) { EXPECT_EQ(q.looks, 5000u); });
}

TEST(queue_rota, looks_at_the_busy_in_each_poll_and_at_eight_others) {
  rig r(1001);
  r.at(500).work = 1u << 30;
  r.poll(200);
  const unsigned before = r.all_looks(), busy = r.at(500).looks;
  r.poll(1000);
  EXPECT_PAIRS((r.at(500).looks - busy, 1000u), (r.all_looks() - before, 1000u * 9));
}

TEST(queue_rota, forgets_none) {
  rig r(1000);
  r.at(0).work = 1u << 30;
  r.poll(200);
  for (std::uint32_t n = 1; n < 1000; ++n) {
    r.at(n).work = 3;
    EXPECT_LE(r.polls_until_done(n), 2u * 1000 / 8 + 3) << n;
  }
}

TEST(queue_rota, finds_work_soon_where_there_was_none) {
  rig r(1024);
  r.poll(1100);
  r.at(700).work = 1;
  EXPECT_LE(r.polls_until_done(700), 1024u / 128 + 1);
}

TEST(queue_rota, looks_on_while_something_is_under_way) {
  rig r(1000);
  r.at(1).work = 1u << 30;  // others have work all the time
  r.at(999).work = 1;
  r.at(999).waits = true;
  r.poll(300);
  const unsigned before = r.at(999).looks;
  r.poll(5000);
  EXPECT_EQ(r.at(999).looks - before, 5000u);
  r.at(999).waits = false;
  r.poll(1000);
  const unsigned at_rest = r.at(999).looks;
  r.poll(1250);
  EXPECT_LE(r.at(999).looks - at_rest, 12u);
}

TEST(queue_rota, goes_on_after_one_is_destroyed) {
  for (const std::uint32_t gone : {0u, 3u, 99u}) {
    rig r(100);
    for (const std::uint32_t n : {3u, 50u, 99u}) r.at(n).work = 1u << 30;
    r.poll(40);
    EXPECT_TRUE(r.rota.erase(gone));
    EXPECT_FALSE(r.rota.erase(gone));
    EXPECT_EQ(r.rota.find(gone), nullptr);
    const unsigned before = r.at(50).looks;
    r.poll(100);
    EXPECT_EQ(r.at(50).looks - before, 100u);
  }
}

}  // namespace
