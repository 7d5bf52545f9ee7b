// SPDX-License-Identifier: MIT
// The ionic dialect, byte by byte, of both firmware interfaces: how it carries out right entries and refuses
// wrong ones. Entries are laid down as rdma-core's providers/ionic/ionic_fw_types.h and ionic_verbs.c say (struct
// ionic_v1_wqe, ionic_v1_prep_rdma, ionic_v1_prep_atomic), not by our own functions.
#include "model/nic/ionic_queue.hpp"
#include "nic_by_hand.hpp"

namespace {

namespace m = xio::model::rdma;
using m::rule;
using namespace xio::test::high_first;
using u8 = unsigned char;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

// enum ionic_v1_op and ionic_v2_op.
struct opcodes {
  u8 read, write, write_imm, swap, add;
};
constexpr opcodes k_v1{3, 4, 5, 6, 7}, k_v2{0x02, 0x21, 0x61, 0x04, 0x05};
constexpr u32 k_inline = 4, k_asks = 8, k_color = 0x10;
// enum ionic_status.
constexpr u32 k_local_length = 1, k_local_qp = 2, k_local_protection = 3, k_flushed = 4, k_remote_invalid = 8,
              k_remote_access = 9;

struct variant {
  bool v1, collapsed;
  u64 start;
};
void PrintTo(const variant& p, std::ostream* out) {
  *out << (p.v1 ? "v1" : "v2") << (p.collapsed ? " collapsed" : " queue") << " from " << p.start;
}

// One queue of 8 entries.
struct ionic_rig : xio::test::nic_by_hand {
  using nic_by_hand::remote_is;
  using nic_by_hand::run;
  static constexpr u32 k_depth_log2 = 3, k_depth = 8, k_cq_log2 = 4, k_cq_number = 0x4711;

  explicit ionic_rig(const variant& p) : nic_by_hand(4096), p_(p), ops_(p.v1 ? k_v1 : k_v2), next_(p.start) {
    if (!color(p.start))
      for (auto& e : slots_) e[11] = k_color;
    connect_queue([&](u32 number) {
      m::ionic_memory mem{};
      mem.face = p.v1 ? xio::wire::ionic::interface::v1 : xio::wire::ionic::interface::v2;
      mem.slots = reinterpret_cast<const u32*>(slots_);
      mem.depth_log2 = k_depth_log2;
      mem.doorbell = &bell_;
      mem.cqes = reinterpret_cast<u32*>(cqes_);
      mem.collapsed = p.collapsed;
      mem.cq_depth_log2 = k_cq_log2;
      mem.cq_doorbell = &cq_bell_;
      mem.cq_number = k_cq_number;
      mem.start = p.start;
      return std::make_unique<m::ionic_queue>(mem, number, 4096);
    });
  }
  static bool color(u64 position) { return (position >> k_depth_log2) % 2 == 0; }
  u8* slot() { return slots_[next_ % k_depth]; }

  u8* begin(u8 op, u32 flags, u64 remote, u32 sges) {
    u8* e = slot();
    std::memset(e, 0, 64);
    e[0] = static_cast<u8>(next_ % k_depth);
    e[8] = op;
    e[9] = static_cast<u8>(sges);
    put16(e + 10, flags | (color(next_) ? k_color : 0));
    put64(e + 16, k_remote_address + remote);
    put32(e + 24, k_remote_key);
    return e;
  }
  u8* copy(u8 op, u32 bytes, u64 remote, u64 local, u32 flags = k_asks) {
    u8* e = begin(op, flags, remote, 1);
    put32(e + 28, bytes);
    put64(e + 32, reinterpret_cast<u64>(local_) + local);
    put32(e + 40, bytes);
    put32(e + 44, key_);
    return e;
  }
  u8* atomic(u8 op, u64 remote, u64 swap_add, u64 compare) {
    u8* e = begin(op, k_asks, remote, 1);
    put64(e + 28, swap_add);
    put64(e + 36, compare);
    put64(e + 48, reinterpret_cast<u64>(local_));
    if (p_.v1) {
      put32(e + 56, 8);
      put32(e + 60, key_);
    } else {
      put32(e + 44, key_);
    }
    return e;
  }
  void ring(u64 index) { __atomic_store_n(&bell_, (u64{number_} << 24) | (index % k_depth), __ATOMIC_RELEASE); }
  void post() { ring(++next_); }
  void go() {
    post();
    run();
  }

  // The newest CQE, or in a queue the nth.
  const u8* cqe(u32 nth) const { return cqes_[p_.collapsed ? 0 : nth % (1u << k_cq_log2)]; }
  void expect_done(u32 nth) const {
    const u8* c = cqe(nth);
    EXPECT_EQ(get32(c + 4), next_ & 0xffffff);
    const bool turned = p_.collapsed ? nth % 2 != 0 : (nth >> k_cq_log2) % 2 != 0;
    EXPECT_EQ(get32(c + 28), (number_ << 8) | (2 << 5) | (turned ? 0u : 1u));
  }
  void expect_error(u32 nth, u64 at, u32 why, bool remote) const {
    const u8* c = cqe(nth);
    EXPECT_PAIRS((get32(c + 24), why), (get32(c + 28) & 0xfe, 2u | ((remote ? 2u : 3u) << 5)));
    if (remote) {
      EXPECT_EQ(get32(c + 4), (at + 1) & 0xffffff);
    } else {
      EXPECT_EQ(c[16], at % k_depth);
    }
  }
  const variant p_;
  const opcodes ops_;
  u64 next_;
  alignas(64) u8 slots_[k_depth][64] = {};
  alignas(64) u8 cqes_[1 << k_cq_log2][32] = {};
  u64 bell_ = 0, cq_bell_ = 0;
};

struct nic_ionic : testing::TestWithParam<variant>, protected ionic_rig {
  nic_ionic() : ionic_rig(GetParam()) {}
  // An entry laid down in a rig of its own, of which nothing may move.
  void expect_refused(const char* what, const std::function<void(ionic_rig&)>& lay, u32 why,
                      bool remote = false) const {
    SCOPED_TRACE(what);
    ionic_rig r(p_);
    lay(r);
    r.go();
    r.expect_error(0, p_.start, why, remote);
    EXPECT_TRUE(r.remote_is(0x11));
  }
};

TEST_P(nic_ionic, writes_and_reads) {
  copy(ops_.write, 100, 8, 16);
  go();
  expect_done(0);
  EXPECT_PAIRS((std::memcmp(remote_ + 8, local_ + 16, 100), 0), (remote_[7], 0x11), (remote_[108], 0x11));
  std::memset(remote_ + 512, 0x77, 64);
  copy(ops_.read, 64, 512, 1024);
  go();
  expect_done(1);
  EXPECT_PAIRS((local_[1024], 0x77), (local_[1087], 0x77), (local_[1088], static_cast<u8>(1088 * 7 + 1)));
}

TEST_P(nic_ionic, gathers_from_two_places) {
  u8* e = copy(ops_.write, 30, 0, 100);
  e[9] = 2;
  put32(e + 40, 10);
  put64(e + 48, reinterpret_cast<u64>(local_) + 500);
  put32(e + 56, 20);
  put32(e + 60, key_);
  go();
  expect_done(0);
  EXPECT_PAIRS((std::memcmp(remote_, local_ + 100, 10), 0), (std::memcmp(remote_ + 10, local_ + 500, 20), 0),
               (remote_[30], 0x11));
}

TEST_P(nic_ionic, carries_every_inline_length) {
  for (u32 n = 0; n <= 32; ++n) {
    std::memset(remote_, 0x11, sizeof remote_);
    u8* e = begin(ops_.write, k_asks | k_inline, 4, 0);
    put32(e + 28, n);
    for (u32 i = 0; i < n; ++i) e[32 + i] = static_cast<u8>(i + 1);
    go();
    expect_done(n);
    cq_bell_ = (u64{k_cq_number} << 24) | ((n + 1) % (1u << k_cq_log2));
    for (u32 i = 0; i < 64; ++i) ASSERT_EQ(remote_[4 + i], i < n ? i + 1 : 0x11) << n << " " << i;
  }
}

TEST_P(nic_ionic, changes_words) {
  std::memset(remote_, 0, 64);
  atomic(ops_.add, 8, (u64{7} << 32) | 5, 0);
  go();
  EXPECT_EQ(remote_word(8), (u64{7} << 32) | 5);
  atomic(ops_.swap, 8, 77, (u64{7} << 32) | 5);
  go();
  expect_done(1);
  EXPECT_EQ(remote_word(8), 77u);
  EXPECT_EQ(local_word(0), (u64{7} << 32) | 5);
  atomic(ops_.swap, 8, 1, 2);
  go();
  EXPECT_EQ(remote_word(8), 77u);
}

TEST_P(nic_ionic, asked_for_only) {
  copy(ops_.write, 8, 0, 0, 0);
  go();
  EXPECT_EQ(get32(cqe(0) + 28), 0u);
  copy(ops_.write, 8, 8, 8);
  go();
  expect_done(0);
}

struct mistake {
  const char* what;
  u32 at, value;  // byte
  u32 why;
  bool remote;
};

TEST_P(nic_ionic, refuses_wrong_writes) {
  const mistake all[] = {
      {"an opcode of nobody", 8, 0x3f, k_local_qp, false},
      {"the other interface's opcode", 8, u32{p_.v1 ? k_v2.write : k_v1.read}, k_local_qp, false},
      {"another index", 0, 7, k_local_qp, false},
      {"an index beyond the ring", 4, 1, k_local_qp, false},
      {"flags of nobody", 11, k_asks | (color(next_) ? k_color : 0) | 0x20, k_local_qp, false},
      {"a list format that is not ours", 10, 0x10, k_local_qp, false},
      {"a solicited plain write", 11, k_asks | (color(next_) ? k_color : 0) | 2, k_local_qp, false},
      {"the other lap's colour", 11, k_asks | (color(next_) ? 0 : k_color), k_local_qp, false},
      {"an immediate of a plain write", 15, 1, k_local_qp, false},
      {"no SGE", 9, 0, k_local_qp, false},
      {"three SGEs", 9, 3, k_local_qp, false},
      {"a length that is not the SGE's", 31, 17, k_local_length, false},
      {"another lkey", 45, 0x7f, k_local_protection, false},
      {"another rkey", 24, 0x7f, k_remote_access, true},
      {"a place outside", 16, 0x7f, k_remote_access, true},
  };
  for (const mistake& one : all)
    expect_refused(
        one.what, [&](ionic_rig& r) { r.copy(r.ops_.write, 16, 0, 0)[one.at] = static_cast<u8>(one.value); }, one.why,
        one.remote);
}

TEST_P(nic_ionic, refuses_wrong_lengths) {
  expect_refused(
      "nothing", [](ionic_rig& r) { r.copy(r.ops_.write, 0, 0, 0); }, k_local_length);
  expect_refused(
      "much", [](ionic_rig& r) { r.copy(r.ops_.read, 4097, 0, 0); }, k_local_length);
  expect_refused(
      "inline", [](ionic_rig& r) { put32(r.begin(r.ops_.write, k_asks | k_inline, 0, 0) + 28, 33); }, k_local_length);
  expect_refused(
      "inline read", [](ionic_rig& r) { r.begin(r.ops_.read, k_asks | k_inline, 0, 0); }, k_local_qp);
}

TEST_P(nic_ionic, refuses_wrong_atomics) {
  expect_refused(
      "odd place", [](ionic_rig& r) { r.atomic(r.ops_.add, 4, 1, 0); }, k_remote_invalid, true);
  expect_refused(
      "two SGEs", [](ionic_rig& r) { r.atomic(r.ops_.add, 8, 1, 0)[9] = 2; }, k_local_qp);
  expect_refused(
      "an add compares", [](ionic_rig& r) { r.atomic(r.ops_.add, 8, 1, 1); }, k_local_qp);
  expect_refused(
      "dirty", [](ionic_rig& r) { r.atomic(r.ops_.add, 8, 1, 0)[r.p_.v1 ? 47 : 63] = 1; }, k_local_qp);
}

TEST_P(nic_ionic, refuses_wrong_doorbells) {
  const u64 right = u64{number_} << 24;
  for (const u64 wrong :
       {(u64{number_} + 1) << 24 | 1, right | 1 << 16 | 1, right | 1 << 18 | 1, right | u64{1} << 48 | 1, right | 8}) {
    ionic_rig r(p_);
    r.copy(r.ops_.write, 16, 0, 0);
    r.bell_ = wrong;
    r.run();
    EXPECT_EQ(get32(r.cqe(0) + 24), k_local_qp) << std::hex << wrong;
    EXPECT_TRUE(r.remote_is(0x11));
  }
}

TEST_P(nic_ionic, what_follows_a_failure_is_flushed) {
  copy(ops_.write, 8, 0, 0);
  post();
  copy(ops_.write, 8, 8, 8)[24] = 0x7f;
  post();
  copy(ops_.write, 8, 16, 16);
  go();
  expect_error(p_.collapsed ? 0 : 1, p_.start + 1, k_remote_access, true);
  if (!p_.collapsed) {
    EXPECT_EQ(get32(cqe(2) + 24), k_flushed);
  }
  EXPECT_PAIRS((remote_[0], local_[0]), (remote_[16], 0x11));
}

TEST_P(nic_ionic, many_laps) {
  for (u32 i = 0; i < 1000; ++i) {
    copy(ops_.write, 8, 8 * (i % 100), i);
    go();
    ASSERT_NO_FATAL_FAILURE(expect_done(i));
    ASSERT_EQ(remote_[8 * (i % 100)], local_[i]);
    cq_bell_ = (u64{k_cq_number} << 24) | ((i + 1) % (1u << k_cq_log2));
  }
}

INSTANTIATE_TEST_SUITE_P(all, nic_ionic,
                         testing::Values(variant{false, true, 0}, variant{true, false, 0},
                                         variant{false, false, (u64{1} << 32) - 8},
                                         variant{true, true, (u64{1} << 24) - 8}));

TEST(nic_ionic_queue, a_completion_doorbell_ahead_of_the_cqes_is_refused) {
  ionic_rig r({false, false, 0});
  r.cq_bell_ = (u64{ionic_rig::k_cq_number} << 24) | 1;
  r.run();
  EXPECT_EQ(get32(r.cqe(0) + 24), k_local_qp);
}

}  // namespace
