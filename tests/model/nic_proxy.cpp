// SPDX-License-Identifier: MIT
// The neutral dialect, entry by entry: how it carries out right ones and refuses wrong ones. Entries are written
// word by word as include/xio/wire/proxy.hpp's table says, not by its functions.
#include "nic_by_hand.hpp"
#include "proxy/proxy_queue.hpp"

namespace {

namespace m = xio::proxy;
using m::rule;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr u32 k_write = 1, k_read = 3, k_add = 4, k_swap = 5, k_masked_add = 6, k_masked_swap = 7;
constexpr u32 k_asks = 1 << 8, k_inline = 2 << 8, k_narrow = 4 << 8;
constexpr u64 k_failed = u64{1} << 63;
constexpr u32 k_local_length = 1, k_local_qp = 2, k_local_protection = 3, k_remote_access = 6;

// One queue of 8 entries.
struct proxy_rig : xio::test::nic_by_hand {
  using nic_by_hand::remote_is;
  using nic_by_hand::run;
  static constexpr u32 k_depth_log2 = 3, k_depth = 8;

  explicit proxy_rig(u64 start = 0) : nic_by_hand(4096), next_(start) {
    for (auto& e : slots_)
      for (u64& word : e) word = (start >> k_depth_log2) << 32;
    done_[0] = start;
    connect_queue([&](u32) {
      return std::make_unique<m::proxy_queue>(m::proxy_memory{&slots_[0][0], k_depth_log2, done_, start}, 4096);
    });
  }

  static u32 low(u64 v) { return static_cast<u32>(v); }
  static u32 high(u64 v) { return static_cast<u32>(v >> 32); }

  // The data of the next entry, which post() writes.
  u32* entry(u32 head, u32 bytes, u64 remote, u64 local) {
    u32* e = data_[next_ % k_depth];
    std::memset(e, 0, 64);
    e[0] = head;
    e[1] = bytes;
    e[2] = low(k_remote_address + remote);
    e[3] = high(k_remote_address + remote);
    e[4] = k_remote_key;
    e[5] = key_;
    const u64 at = reinterpret_cast<u64>(local_) + local;
    e[6] = low(at);
    e[7] = high(at);
    return e;
  }
  u32* atomic(u32 head, u64 remote, u64 first, u64 second) {
    u32* e = entry(head, 0, remote, 0);
    const u64 at = reinterpret_cast<u64>(local_);
    e[1] = low(at);
    e[14] = high(at);
    e[6] = low(first);
    e[7] = high(first);
    e[8] = low(second);
    e[9] = high(second);
    return e;
  }
  u64 word(u32 i) const { return u64{static_cast<u32>((next_ >> k_depth_log2) + 1)} << 32 | data_[next_ % k_depth][i]; }
  void post_word(u32 i) { __atomic_store_n(&slots_[next_ % k_depth][i], word(i), __ATOMIC_RELEASE); }
  void post() {
    for (u32 i = 0; i < 16; ++i) post_word(i);
    ++next_;
  }
  void go() {
    post();
    run();
  }
  void expect_done() { EXPECT_PAIRS((done_[0], next_), (done_[1], 0u)); }
  void expect_error(u64 at, u32 why, rule which) {
    EXPECT_PAIRS((done_[0], at | k_failed), (low(done_[1]), why), (high(done_[1]), static_cast<u32>(which)));
  }

  u64 next_;
  alignas(64) u64 slots_[k_depth][16] = {};
  u32 data_[k_depth][16] = {};
  alignas(16) u64 done_[2] = {};
};

// An entry laid down in a rig of its own is refused, and moves nothing.
template <class Lay>
void expect_refused(Lay&& lay, u32 why, rule which) {
  proxy_rig one;
  lay(one);
  one.go();
  one.expect_error(0, why, which);
  EXPECT_TRUE(one.remote_is(0x11));
}

class nic_proxy : public testing::Test, protected proxy_rig {};

TEST_F(nic_proxy, writes_and_reads) {
  entry(k_write | k_asks, 100, 8, 16);
  go();
  expect_done();
  EXPECT_EQ(std::memcmp(remote_ + 8, local_ + 16, 100), 0);
  EXPECT_EQ(remote_[108], 0x11);
  std::memset(remote_ + 512, 0x77, 64);
  entry(k_read | k_asks, 64, 512, 1024);
  go();
  expect_done();
  EXPECT_PAIRS((local_[1024], 0x77), (local_[1087], 0x77), (local_[1088], static_cast<unsigned char>(1088 * 7 + 1)));
}

TEST_F(nic_proxy, carries_every_inline_length) {
  for (u32 n = 0; n <= 40; ++n) {
    std::memset(remote_, 0x11, sizeof remote_);
    u32* e = entry(k_write | k_asks | k_inline, n, 4, 0);
    e[5] = 0;
    std::memset(e + 6, 0, 40);
    for (u32 i = 0; i < n; ++i) reinterpret_cast<unsigned char*>(e + 6)[i] = static_cast<unsigned char>(i + 1);
    go();
    expect_done();
    for (u32 i = 0; i < 64; ++i) ASSERT_EQ(remote_[4 + i], i < n ? i + 1 : 0x11) << n << " " << i;
  }
}

TEST_F(nic_proxy, changes_words) {
  std::memset(remote_, 0, 64);
  const struct {
    u32 what;
    u64 operand, other, after, before;
  } rows[] = {{k_add, 5, 0, 5, 0},
              {k_swap, 77, 5, 77, 5},
              {k_masked_add, 0xffffffffu, 1u << 31, 76, 77}};  // no carry leaves the low 32 bits
  for (const auto& r : rows) {
    atomic(r.what | k_asks, 8, r.operand, r.other);
    go();
    EXPECT_PAIRS((remote_word(8), r.after), (local_word(0), r.before));
  }
  u32* e = atomic(k_masked_swap | k_asks, 8, 0xf0, 0);
  e[10] = 0xff;
  go();
  EXPECT_EQ(remote_word(8), 0xf0u);
  EXPECT_EQ(local_word(0), 76u);
  expect_done();
}

TEST_F(nic_proxy, changes_words_of_four_bytes) {
  std::memset(remote_, 0xff, 64);
  atomic(k_masked_add | k_asks | k_narrow, 12, 1, 0);
  go();
  expect_done();
  EXPECT_EQ(remote_word(8), 0x00000000ffffffffu);
  EXPECT_EQ(local_word(0) & 0xffffffffu, 0xffffffffu);
}

TEST_F(nic_proxy, counts_only_where_asked) {
  entry(k_write, 8, 0, 0);
  go();
  EXPECT_EQ(done_[0], 0u);
  entry(k_write | k_asks, 8, 8, 8);
  go();
  EXPECT_EQ(done_[0], 2u);
}

TEST_F(nic_proxy, an_entry_waits_for_the_ones_before_it) {
  entry(k_write | k_asks, 8, 0, 0);
  ++next_;
  entry(k_write | k_asks, 8, 8, 8);
  go();
  EXPECT_PAIRS((done_[0], 0u), (remote_[8], 0x11));
  next_ = 0;
  go();
  EXPECT_EQ(done_[0], 2u);
}

TEST_F(nic_proxy, an_entry_is_there_when_each_of_its_words_is) {
  for (u32 late = 0; late < 16; ++late) {
    SCOPED_TRACE(late);
    std::memset(remote_, 0x11, sizeof remote_);
    u32* e = entry(k_write | k_asks | k_inline, 40, 0, 0);
    e[5] = 0;
    for (u32 i = 6; i < 16; ++i) e[i] = 0x01010101 * i;
    for (u32 i = 0; i < 16; ++i)
      if (i != late) post_word(i);
    run();
    ASSERT_EQ(done_[0], next_);
    ASSERT_EQ(remote_[0], 0x11);
    post_word(late);
    ++next_;
    run();
    expect_done();
    for (u32 i = 0; i < 40; ++i) ASSERT_EQ(remote_[i], 6 + i / 4) << i;
  }
}

TEST_F(nic_proxy, refuses_what_the_table_does_not_say) {
  struct {
    const char* what;
    u32 head, dword, value, why;
    rule which;
  } const cases[] = {
      {"no verb", k_asks, 0, k_asks, k_local_qp, rule::entry_opcode},
      {"a verb beyond the last", 8 | k_asks, 0, 8 | k_asks, k_local_qp, rule::entry_opcode},
      {"a flag of nobody", k_write | k_asks, 0, k_write | k_asks | 8 << 8, k_local_qp, rule::entry_flags},
      {"a narrow write", k_write | k_asks, 0, k_write | k_asks | k_narrow, k_local_qp, rule::entry_flags},
      {"bits above the flags", k_write | k_asks, 0, k_write | k_asks | 1 << 16, k_local_qp, rule::entry_reserved},
      {"an immediate of a plain write", k_write | k_asks, 8, 1, k_local_qp, rule::entry_reserved},
      {"a word that must be zero", k_write | k_asks, 14, 1, k_local_qp, rule::entry_reserved},
      {"the last word", k_write | k_asks, 15, 1, k_local_qp, rule::entry_reserved},
      {"no bytes", k_write | k_asks, 1, 0, k_local_length, rule::data_length},
      {"too many bytes", k_write | k_asks, 1, 4097, k_local_length, rule::data_length},
      {"another lkey", k_write | k_asks, 5, 0x1234500, k_local_protection, rule::local_key},
      {"another rkey", k_write | k_asks, 4, 0xabd00, k_remote_access, rule::remote_key},
      {"a place outside", k_write | k_asks, 2, 0xfff, k_remote_access, rule::remote_range},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    expect_refused([&](auto& one) { one.entry(c.head, 16, 0, 0)[c.dword] = c.value; }, c.why, c.which);
  }
}

TEST_F(nic_proxy, refuses_inline_of_reads_and_beyond_the_entry) {
  for (const u32 head : {k_write | k_asks | k_inline, k_read | k_asks | k_inline})
    expect_refused([&](auto& one) { one.entry(head, (head & 0xff) == k_write ? 41 : 8, 0, 0)[5] = 0; }, k_local_length,
                   rule::data_length);
}

TEST_F(nic_proxy, refuses_wrong_atomics) {
  struct {
    u32 head, dword, value;
    rule which;
  } const cases[] = {
      {k_add | k_asks | k_narrow, 6, 1, rule::entry_modifier}, {k_add | k_asks, 8, 1, rule::entry_reserved},
      {k_swap | k_asks, 10, 1, rule::entry_reserved},          {k_masked_add | k_asks, 12, 1, rule::entry_reserved},
      {k_add | k_asks | k_inline, 6, 1, rule::entry_flags},    {k_add | k_asks, 15, 1, rule::entry_reserved},
  };
  for (const auto& c : cases)
    expect_refused([&](auto& one) { one.atomic(c.head, 0, 1, 0)[c.dword] = c.value; }, k_local_qp, c.which);
  expect_refused([](auto& odd) { odd.atomic(k_add | k_asks, 4, 1, 0); }, 5, rule::atomic_alignment);
}

TEST_F(nic_proxy, a_strange_generation_stops_the_queue) {
  for (u32 i = 0; i < 16; ++i) {
    SCOPED_TRACE(i);
    proxy_rig one;
    one.entry(k_write | k_asks, 8, 0, 0);
    for (u32 k = 0; k < i; ++k) one.post_word(k);
    one.slots_[0][i] = u64{7} << 32;
    one.run();
    one.expect_error(0, k_local_qp, rule::entry_phase);
  }
}

// No entry failed: what has been counted stays counted.
TEST_F(nic_proxy, a_strange_generation_takes_nothing_back) {
  entry(k_write | k_asks, 8, 0, 0);
  go();
  expect_done();
  slots_[1][3] = u64{7} << 32;
  for (const u32 i : {0u, 1u, 2u}) slots_[1][i] = u64{1} << 32;
  run();
  expect_error(1, k_local_qp, rule::entry_phase);
}

TEST_F(nic_proxy, what_follows_a_failure_is_dropped) {
  entry(k_write | k_asks, 8, 0, 0);
  post();
  entry(k_write | k_asks, 8, 8, 8)[4] = 1;
  post();
  entry(k_write | k_asks, 8, 16, 16);
  go();
  expect_error(1, k_remote_access, rule::remote_key);
  EXPECT_PAIRS((remote_[0], local_[0]), (remote_[16], 0x11));
}

TEST(nic_proxy_laps, generations_wrap_with_their32_bits) {
  proxy_rig r((u64{0xfffffffe} << 3));
  for (int i = 0; i < 40; ++i) {
    r.entry(k_write | k_asks, 8, 0, 0);
    r.go();
    ASSERT_EQ(r.done_[0], r.next_);
    ASSERT_EQ(r.done_[1], 0u);
  }
}

}  // namespace
