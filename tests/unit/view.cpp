// SPDX-License-Identifier: MIT
// Members agree on those that go on: thousands of runs in which messages come late, twice or never, members die, the
// network is cut, and evidence comes when it likes.
#include "bootstrap/view.hpp"
#include "../gtest.hpp"

#include <random>

namespace {

using namespace xio::bootstrap;

struct in_flight {
  int from, to;
  view_message m;
};

// Members, and all that is under way between them.
class played_world {
 public:
  explicit played_world(int n) : n_(n), alive_(pe_set::all(n)) {
    for (int pe = 0; pe < n; ++pe) {
      members_.emplace_back(pe, pe_set::all(n));
      call_report r;
      r.after = 7;
      members_.back().report(r);
    }
    sent_.resize(static_cast<std::size_t>(n));
    taken_ = sent_;
  }

  view_agreement& at(int pe) { return members_[static_cast<std::size_t>(pe)]; }
  bool lives(int pe) const { return alive_.has(pe); }
  const pe_set& alive() const { return alive_; }
  void kill(int pe) { alive_.remove(pe); }
  void send(int from, const view_agreement::sent& all) {
    for (const auto& [to, m] : all) {
      ++sent_[static_cast<std::size_t>(from)];
      network_.push_back({from, to, *view_message::decode(m.encode(), n_)});
    }
  }
  void call(int pe) {
    if (const int l = at(pe).leader(); l != pe && l >= 0) send(pe, {{l, at(pe).call()}});
  }
  void step(int pe) {
    send(pe, at(pe).step());
    check();
  }
  void deliver(std::size_t i, bool again) {
    const in_flight one = network_[i];
    if (!again) network_.erase(network_.begin() + static_cast<std::ptrdiff_t>(i));
    if (!lives(one.to)) return;
    ++taken_[static_cast<std::size_t>(one.to)];
    send(one.to, at(one.to).receive(one.from, one.m));
    check();
  }
  void lose(std::size_t i) { network_.erase(network_.begin() + static_cast<std::ptrdiff_t>(i)); }
  const std::vector<in_flight>& network() const { return network_; }
  int messages(int pe) const { return sent_[static_cast<std::size_t>(pe)] + taken_[static_cast<std::size_t>(pe)]; }

  // All that is under way arrives, in order, and all do what is due.
  void run() {
    for (int quiet = 0; quiet < 3; ++quiet) {
      for (int pe = 0; pe < n_; ++pe)
        if (lives(pe)) step(pe);
      while (!network_.empty()) {
        deliver(0, false);
        for (int pe = 0; pe < n_; ++pe)
          if (lives(pe)) step(pe);
        quiet = 0;
      }
    }
  }

 private:
  // No two living members have different values of a view, so none that are apart go on under one number.
  void check() {
    for (int a = 0; a < n_; ++a)
      for (int b = a + 1; b < n_; ++b) {
        if (!lives(a) || !lives(b)) continue;
        const std::uint64_t both = std::min(at(a).number(), at(b).number());
        for (std::uint64_t v = 1; v <= both; ++v)
          ASSERT_TRUE(at(a).decided(v) == at(b).decided(v)) << "PEs " << a << " and " << b << " differ in view " << v;
      }
  }

  const int n_;
  pe_set alive_;
  std::vector<view_agreement> members_;
  std::vector<in_flight> network_;
  std::vector<int> sent_, taken_;
};

void prove_all_dead(played_world& w, int n) {
  for (int pe = 0; pe < n; ++pe)
    for (int dead = 0; dead < n; ++dead)
      if (w.lives(pe) && !w.lives(dead)) w.at(pe).prove_dead(dead);
}
void all_call(played_world& w, int n) {
  for (int pe = 0; pe < n; ++pe)
    if (w.lives(pe)) w.at(pe).begin();
  for (int pe = 0; pe < n; ++pe)
    if (w.lives(pe)) w.call(pe);
}

TEST(view, the_living_go_on_whoever_dies) {
  for (int n = 2; n <= 9; ++n)
    for (unsigned dead = 1; dead + 1 < (1u << n); ++dead) {
      played_world w(n);
      for (int pe = 0; pe < n; ++pe)
        if ((dead >> pe & 1) != 0) w.kill(pe);
      prove_all_dead(w, n);
      all_call(w, n);
      w.run();
      for (const int pe : w.alive().list()) {
        ASSERT_EQ(w.at(pe).number(), 1u);
        ASSERT_TRUE(w.at(pe).members() == w.alive());
        // The leader has those of all.
        ASSERT_LE(w.messages(pe), pe == w.alive().lowest() ? 6 * (n - 1) : 6);
      }
    }
}

TEST(view, of_two_halves_one_goes_on) {
  for (int n = 2; n <= 9; ++n)
    for (unsigned half = 1; half + 1 < (1u << n); ++half) {
      played_world w(n);
      const auto side = [&](int pe) { return half >> pe & 1; };
      for (int pe = 0; pe < n; ++pe)
        for (int other = 0; other < n; ++other)
          if (side(pe) != side(other)) w.at(pe).shun(other);
      all_call(w, n);
      w.run();
      int moved[2] = {0, 0}, members[2] = {0, 0};
      for (int pe = 0; pe < n; ++pe) {
        ++members[side(pe)];
        moved[side(pe)] += static_cast<int>(w.at(pe).number());
        EXPECT_EQ(w.at(pe).is_stuck(), w.at(pe).number() == 0 && w.at(pe).leader() == pe);
      }
      const unsigned winner = 2 * members[0] == n ? side(0) : members[1] > members[0];
      EXPECT_EQ(moved[winner], members[winner]) << n << " " << half;
      EXPECT_EQ(moved[1 - winner], 0) << n << " " << half;
    }
}

TEST(view, two_that_do_not_reach_each_other_are_parted) {
  for (int n = 3; n <= 6; ++n) {
    played_world w(n);
    w.at(1).shun(2);
    w.at(2).shun(1);
    all_call(w, n);
    w.run();
    pe_set wanted = pe_set::all(n);
    wanted.remove(2);
    EXPECT_TRUE(w.at(0).members() == wanted);
    EXPECT_TRUE(w.at(2).is_out());
  }
}

TEST(view, the_leader_waits_for_those_that_do_not_call) {
  played_world w(3);
  w.at(0).begin();
  w.at(2).begin();
  w.call(2);
  w.run();
  EXPECT_PAIRS((w.at(0).number(), 0u), (w.at(0).awaited().list(), std::vector<int>{1}));
  w.at(1).begin();
  w.call(1);
  w.run();
  for (int pe = 0; pe < 3; ++pe) EXPECT_EQ(w.at(pe).members().count(), 3);
}

// PE 0 decides, tells one of two, and dies.
TEST(view, a_late_member_hears_of_the_decision) {
  played_world w(4);
  w.kill(3);
  prove_all_dead(w, 4);
  all_call(w, 4);
  while (w.at(1).number() == 0) {
    for (int pe = 0; pe < 3; ++pe) w.step(pe);
    const auto& all = w.network();
    const auto wanted = std::find_if(all.begin(), all.end(),
                                     [](const in_flight& f) { return f.to != 2 || f.m.word != view_word::decided; });
    ASSERT_NE(wanted, all.end());
    w.deliver(static_cast<std::size_t>(wanted - all.begin()), false);
  }
  while (!w.network().empty()) w.lose(0);
  ASSERT_EQ(w.at(2).number(), 0u);
  w.kill(0);
  w.at(2).prove_dead(0);
  w.at(1).end();  // it has returned, and does something else
  w.call(2);
  w.run();
  EXPECT_EQ(w.at(2).number(), 1u);
  // Both notice that PE 0 is gone.
  w.at(1).prove_dead(0);
  all_call(w, 4);
  w.run();
  EXPECT_EQ(w.at(1).members().list(), (std::vector<int>{1, 2}));
  EXPECT_TRUE(w.at(1).members() == w.at(2).members());
}

TEST(view, a_call_in_doubt_is_done_or_undone_on_all) {
  const call_report done{5, 1, 64, 0, 0, 100, 200}, before{4, 2, 0, 0, 0, 90, 100};
  common_state s = view_agreement::merge({before, done, done});
  EXPECT_PAIRS((s.alike, 1u), (s.in_doubt, 1u), (s.hash(), 200u));
  call_report undone = done;
  undone.kind |= k_goes_back;
  s = view_agreement::merge({before, undone});
  EXPECT_EQ(s.hash(), 100u);
  EXPECT_EQ(view_agreement::merge({undone, undone}).hash(), 200u);
  call_report other = done;
  other.after = 201;
  EXPECT_EQ(view_agreement::merge({done, other}).alike, 0u);
  other = before;
  other.after = 101;
  EXPECT_EQ(view_agreement::merge({done, other}).alike, 0u);
  other.calls = 3;
  EXPECT_EQ(view_agreement::merge({done, other}).alike, 0u);
}

TEST(view, what_is_no_message_is_refused) {
  view_message m;
  m.word = view_word::call;
  m.dead = m.shunned = pe_set(70);
  m.dead.add(69);
  auto bytes = m.encode();
  ASSERT_TRUE(view_message::decode(bytes, 70));
  EXPECT_TRUE(view_message::decode(bytes, 70)->dead == m.dead);
  EXPECT_FALSE(view_message::decode(bytes, 200));
  EXPECT_FALSE(view_message::decode(std::span(bytes).first(bytes.size() - 1), 70));
  bytes[0] = std::byte{9};
  EXPECT_FALSE(view_message::decode(bytes, 70));
  bytes[0] = std::byte{6};
  EXPECT_FALSE(view_message::decode(bytes, 70)) << "a decision without a value";
}

// One run of random events. Every message may come late, twice or never, and any member may lead.
void play(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const int n = seed % 8 == 0 ? 5 + static_cast<int>(below(5)) : 4;
  const std::size_t deaths = 10 + below(60), repeats = 1 + below(4), others = 1 + below(12), loses = 1 + below(6);
  const bool goes_on = seed % 8 == 1;
  played_world w(n);
  const auto any = [&] { return static_cast<int>(below(static_cast<std::size_t>(n))); };
  for (int pe = 0; pe < n; ++pe) w.at(pe).begin();
  for (int i = 0; i < 60 * n && !testing::Test::HasFatalFailure(); ++i) {
    const int pe = any(), other = any();
    if (!w.lives(pe)) continue;
    if (below(deaths) == 0 && w.alive().count() > 1) w.kill(pe);
    if (!w.lives(other) && below(3) != 0) w.at(pe).prove_dead(other);
    if (pe != other && below(others) == 0) w.at(pe).shun(other);
    if (below(2) == 0) w.at(pe).hurry();
    if (goes_on && !w.at(pe).takes_part()) w.at(pe).begin();
    if (pe != other && below(2) == 0) w.send(pe, {{other, w.at(pe).call()}});
    if (below(3) == 0) w.step(pe);
    for (int k = 0; k < 2 && !w.network().empty(); ++k)
      if (below(loses) == 1)
        w.lose(below(w.network().size()));
      else
        w.deliver(below(w.network().size()), below(repeats) != 0);
  }
}

TEST(view, no_two_that_live_decide_differently) {
  for (unsigned seed = 1; seed <= 20000 && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE(seed);
    play(seed);
  }
}

}  // namespace
