// SPDX-License-Identifier: MIT
// Ops over the TCP carrier: data, losses, and what is refused.
#include "nic_tcp_rig.hpp"

namespace {

using namespace xio::test;

struct chances {
  double drop = 0, twice = 0, swap = 0, wait = 0;
};

// Every frame's fate is drawn from a fixed sequence.
class dice final : public m::frame_faults, chances {
 public:
  explicit dice(const chances& c) : chances(c) {}
  m::frame_fate next_frame(std::uint32_t) override {
    m::frame_fate f;
    f.drop = roll() < drop;
    f.twice = roll() < twice;
    f.swap = roll() < swap;
    if (roll() < wait) f.wait = 300us;
    return f;
  }

 private:
  double roll() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 40) / (1 << 24);
  }
  std::uint64_t state_ = 1;
};
class nic_tcp : public tcp_pair {
 protected:
  void mix_with(const chances& c, int rounds) {
    close();
    dice one(c), other(c);
    auto a = settings_of(0), b = settings_of(1);
    a.faults = &one;
    b.faults = &other;
    a.retries = 1000;
    open(a, b);
    mix(rounds);
    close();
  }
};

TEST_F(nic_tcp, writes_and_reads_of_every_size) {
  std::vector<std::uint32_t> sizes;
  for (std::uint32_t n = 0; n < 200; ++n) sizes.push_back(n);
  for (std::uint32_t n = 65'500; n < 65'570; ++n) sizes.push_back(n);
  for (std::uint32_t n : {131'071u, 131'072u, 131'073u, 70'000u, 400'000u}) sizes.push_back(n);
  for (const std::uint32_t n : sizes) {
    std::memset(theirs_.data(), 0x11, k_bytes);
    std::memset(mine_.data() + 500'000, 0x22, 450'000);
    expect_ok(run({write(64, 3, n), read(64, 500'001, n)}));
    ASSERT_EQ(0, std::memcmp(theirs_.data() + 64, mine_.data() + 3, n)) << n;
    ASSERT_EQ(theirs_[63], 0x11);
    ASSERT_EQ(theirs_[64 + n], 0x11) << n;
    ASSERT_EQ(0, std::memcmp(mine_.data() + 500'001, mine_.data() + 3, n)) << n;
    ASSERT_EQ(mine_[500'000], 0x22);
    ASSERT_EQ(mine_[500'001 + n], 0x22) << n;
  }
}

TEST_F(nic_tcp, many_spans_across_frames) {
  m::op o = write(0, 0, 0);
  o.span_count = 3;
  std::uint64_t total = 0;
  const std::uint32_t sizes[] = {1, 100'000, 65'000};
  for (std::uint32_t i = 0; i < 3; ++i) {
    o.spans[i] = {reinterpret_cast<std::uint64_t>(mine_.data()) + 200'000 * i, sizes[i], key_};
    total += sizes[i];
  }
  o.bytes = total;
  expect_ok(run({o}));
  const unsigned char* at = theirs_.data();
  for (std::uint32_t i = 0; i < 3; ++i, at += sizes[i - 1])
    ASSERT_EQ(0, std::memcmp(at, mine_.data() + 200'000 * i, sizes[i])) << i;
}

TEST_F(nic_tcp, inline) {
  m::op o = write(8, 0, 8);
  o.is_inline = true;
  o.span_count = 0;
  std::memcpy(o.inlined.data(), "\1\2\3\4\5\6\7\10", 8);
  expect_ok(run({o}));
  EXPECT_EQ(0, std::memcmp(theirs_.data() + 8, "\1\2\3\4\5\6\7\10", 8));
}

TEST_F(nic_tcp, atomics) {
  const std::uint64_t start = 41;
  std::memcpy(theirs_.data() + 16, &start, 8);
  m::op swap = add(16, 7, 8);
  swap.change.is_add = false;
  swap.change.compare = 42;
  swap.change.swap_mask = swap.change.compare_mask = ~std::uint64_t{0};
  expect_ok(run({add(16, 1, 0), swap, add(16, 1, 16, 4)}));
  std::uint64_t v[3] = {};
  std::memcpy(v, mine_.data(), 20);
  EXPECT_PAIRS((v[0], 41u), (v[1], 42u), (static_cast<std::uint32_t>(v[2]), 7u));
  std::memcpy(v, theirs_.data() + 16, 8);
  EXPECT_EQ(v[0], 8u);
}

TEST_F(nic_tcp, mix_without_faults) { mix(200); }

// The table of ops begins small. It grows while their frames are under way, wherever in it the oldest op stands.
TEST_F(nic_tcp, ops_under_way_stay_the_same_when_their_table_grows) {
  constexpr std::uint64_t k_ops = 72, k_counter = 900'000, k_sums = 800'000, k_read_at = 600'000, k_reads = 400'000;
  const auto size_of = [](std::uint64_t i) { return static_cast<std::uint32_t>(100 + 37 * i); };
  for (std::uint64_t i = k_read_at; i < k_read_at + k_ops * 4096; ++i) theirs_[i] = static_cast<unsigned char>(i * 3);
  for (std::uint64_t before = 0; before < 17; ++before) {
    ask_.reset();
    back_.reset();
    const auto queue = static_cast<std::uint32_t>(1000 + before);
    ask_ = local_->connect(queue, 1, {}, queue);
    back_ = remote_->connect(queue, 0, {}, queue);
    std::memset(theirs_.data(), 0x11, k_ops * 4096);
    std::memset(theirs_.data() + k_counter, 0, 8);
    std::memset(mine_.data() + k_reads, 0x22, k_ops * 4096);
    expect_ok(run(std::vector<m::op>(before, write(0, 0, 0))));

    for (std::uint64_t i = 0; i < k_ops; ++i) {
      if (i % 3 == 0) {
        ASSERT_TRUE(ask_->begin(write(4096 * i, 5 * i, size_of(i))));
      }
      if (i % 3 == 1) {
        ASSERT_TRUE(ask_->begin(read(k_read_at + 4096 * i, k_reads + 4096 * i, size_of(i))));
      }
      if (i % 3 == 2) {
        ASSERT_TRUE(ask_->begin(add(k_counter, i, k_sums + 8 * i)));
      }
      ask_->advance(1 << 20);
    }
    const auto until = clock_type::now() + 20s;
    for (std::uint64_t over = 0; over < k_ops;) {
      turn();
      for (m::op_error how; ask_->ended(&how); ++over) expect_ok(how);
      ASSERT_LT(clock_type::now(), until) << over << " ops ended after " << before;
    }

    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < k_ops; ++i) {
      const unsigned char* const to = i % 3 == 0 ? theirs_.data() + 4096 * i : mine_.data() + k_reads + 4096 * i;
      if (i % 3 == 0) {
        ASSERT_EQ(0, std::memcmp(to, mine_.data() + 5 * i, size_of(i))) << i << " after " << before;
      }
      if (i % 3 == 1) {
        ASSERT_EQ(0, std::memcmp(to, theirs_.data() + k_read_at + 4096 * i, size_of(i))) << i << " after " << before;
      }
      if (i % 3 != 2) {
        ASSERT_EQ(to[size_of(i)], i % 3 == 0 ? 0x11 : 0x22) << i << " after " << before;
      }
      if (i % 3 != 2) continue;
      std::uint64_t old;
      std::memcpy(&old, mine_.data() + k_sums + 8 * i, 8);
      ASSERT_EQ(old, sum) << i << " after " << before;
      sum += i;
    }
  }
}

TEST_F(nic_tcp, loss) { mix_with({.drop = 0.05}, 60); }
TEST_F(nic_tcp, repetition) { mix_with({.twice = 0.2}, 100); }
TEST_F(nic_tcp, reordering) { mix_with({.swap = 0.1}, 60); }
TEST_F(nic_tcp, delay) { mix_with({.wait = 0.05}, 60); }
TEST_F(nic_tcp, everything_at_once) { mix_with({0.03, 0.03, 0.03, 0.03}, 60); }

TEST_F(nic_tcp, nothing_arrives) {
  close();
  dice d({.drop = 1});
  auto a = settings_of(0);
  a.faults = &d;
  a.retries = 3;
  open(a, settings_of(1));
  expect(run({write(0, 0, 8)}, 5s), m::outcome::retry_exceeded, m::rule::link_lost);
  EXPECT_EQ(theirs_[0], 0x11);
}

TEST_F(nic_tcp, wrong_remote_key) {
  m::op o = write(0, 0, 8);
  o.remote_key ^= 1;
  expect(run({o}), m::outcome::remote_access, m::rule::remote_key);
}
TEST_F(nic_tcp, outside_the_range) {
  expect(run({write(0, 0, 8), write(k_bytes - 4, 0, 8)}), m::outcome::remote_access, m::rule::remote_range);
}
TEST_F(nic_tcp, no_right) {
  remote_key_ = remote_->register_memory(theirs_.data(), k_bytes, m::remote_read).rkey;
  expect(run({read(0, 0, 8), write(0, 0, 8)}), m::outcome::remote_access, m::rule::remote_rights);
}
TEST_F(nic_tcp, crooked_atomic) {
  expect(run({add(4, 1, 0)}), m::outcome::remote_invalid_request, m::rule::atomic_alignment);
}
TEST_F(nic_tcp, wrong_local_key) {
  m::op o = write(0, 0, 8);
  o.spans[0].key ^= 1;
  expect(run({write(8, 0, 8), o, write(16, 0, 8)}), m::outcome::local_protection, m::rule::local_key);
  EXPECT_PAIRS((theirs_[0], 0x11), (theirs_[8], mine_[0]), (theirs_[16], 0x11));
}
TEST_F(nic_tcp, nothing_behind_a_refusal_is_carried_out) {
  m::op bad = write(0, 0, 8);
  bad.remote_key = 1;
  expect(run({write(8, 0, 8), bad, write(16, 0, 8)}), m::outcome::remote_access, m::rule::remote_key);
  for (int i = 0; i < 100; ++i) turn();
  EXPECT_PAIRS((theirs_[8], mine_[0]), (theirs_[16], 0x11));
}

TEST_F(nic_tcp, immediate) {
  close();
  std::vector<std::uint32_t> got;
  int refusals = 3;
  auto b = settings_of(1);
  b.on_immediate = [&](std::uint32_t number, std::uint32_t immediate, std::uint64_t bytes) {
    EXPECT_PAIRS((number, k_remote_queue), (bytes, 100'000u), (theirs_[99'999], mine_[99'999]));
    if (refusals-- > 0) return false;
    got.push_back(immediate);
    return true;
  };
  open(settings_of(0), b);
  m::op o = write(0, 0, 100'000);
  o.has_immediate = true;
  o.immediate = 0x12345678;
  expect_ok(run({o}));
  EXPECT_EQ(got, std::vector<std::uint32_t>{0x12345678});
}
TEST_F(nic_tcp, nobody_takes_the_immediate) {
  close();
  auto a = settings_of(0);
  a.rnr_retries = 3;
  open(a, settings_of(1));
  m::op o = write(0, 0, 8);
  o.has_immediate = true;
  expect(run({o}), m::outcome::rnr_retry_exceeded, m::rule::not_connected);
}

}  // namespace
