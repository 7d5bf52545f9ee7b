// SPDX-License-Identifier: MIT
// The NIC model's bnxt_re decoder against entries laid down byte by byte (rdma-core providers/bnxt_re/bnxt_re-abi.h):
// what is right is carried out, and every single wrong field ends in the CQE that hardware would write. The test polls
// the NIC itself. A CQE names no rule, so the rule is read where the decoder reports the failure.
#include "model/nic/bnxt_queue.hpp"
#include "nic_by_hand.hpp"

namespace {

namespace m = xio::model::rdma;
using m::rule;
using namespace xio::test::low_first;
using xio::test::one_fault;

// enum bnxt_re_req_wc_status
constexpr unsigned k_ok = 0, k_local_length = 2, k_local_qp = 3, k_local_protection = 4, k_remote_invalid = 6,
                   k_remote_access = 7, k_retry = 0xa, k_flushed = 0xb;
// enum bnxt_re_wc_type
constexpr unsigned k_request = 0, k_terminal = 0xe;

// Hands everything on and keeps the failure.
class listener final : public m::wire_queue {
 public:
  listener(std::unique_ptr<m::wire_queue> queue, m::op_error* heard) : queue_(std::move(queue)), heard_(heard) {}
  m::op_error poll_doorbells() override { return queue_->poll_doorbells(); }
  bool waiting() const override { return queue_->waiting(); }
  m::op_error fetch(m::op& out) override { return queue_->fetch(out); }
  void complete(const m::receipt& r) override { queue_->complete(r); }
  void complete_in_error(const m::receipt& r, m::op_error f) override {
    *heard_ = f;
    queue_->complete_in_error(r, f);
  }
  void drop(const m::receipt& r) override { queue_->drop(r); }
  void flush() override { queue_->flush(); }

 private:
  std::unique_ptr<m::wire_queue> queue_;
  m::op_error* heard_;
};

// One queue of 8 entries and 16 CQEs on one NIC.
class nic_bnxt : public testing::Test, protected xio::test::nic_by_hand {
 protected:
  static constexpr std::uint32_t k_depth_log2 = 3, k_depth = 8, k_cq_depth_log2 = 4, k_cq_depth = 16;
  static constexpr std::uint32_t k_mtu = 256, k_cq_number = 0x54321, k_max_message = 2048;

  explicit nic_bnxt(std::uint64_t start = 0, std::uint32_t psn = 0x123456, bool by_slots = false)
      : nic_by_hand(k_max_message), first_(start), next_(start), psn_(psn) {
    connect_queue(maker(&bell_, start, by_slots));
  }

  std::function<std::unique_ptr<listener>(std::uint32_t)> maker(const std::uint64_t* bell, std::uint64_t start,
                                                                bool by_slots = false) {
    m::bnxt_memory memory{};
    memory.slots = reinterpret_cast<const std::uint32_t*>(slots_);
    memory.msns = reinterpret_cast<const std::uint64_t*>(msns_);
    memory.depth_log2 = k_depth_log2;
    memory.doorbell = bell;
    memory.cqes = reinterpret_cast<std::uint32_t*>(cqes_);
    memory.cq_depth_log2 = k_cq_depth_log2;
    memory.cq_doorbell = &cq_bell_;
    memory.cq_number = k_cq_number;
    memory.start = start;
    memory.first_psn = psn_;
    memory.path_mtu = k_mtu;
    memory.by_slots = by_slots;
    return [this, memory](std::uint32_t number) {
      return std::make_unique<listener>(std::make_unique<m::bnxt_queue>(memory, number, k_max_message), &heard_);
    };
  }

  unsigned char* slot(std::uint64_t i) { return slots_ + (i % k_depth) * 128; }
  unsigned char* msn(std::uint64_t i) { return msns_ + (i % k_depth) * 8; }

  // Header and MSN entry of a WQE that carries `bytes`. Bytes that an earlier lap left behind stay.
  unsigned char* begin(unsigned opcode, unsigned flags, unsigned slots, std::uint32_t key, std::uint64_t lower,
                       std::uint64_t bytes) {
    unsigned char* e = slot(next_);
    e[0] = static_cast<unsigned char>(opcode);
    e[1] = static_cast<unsigned char>(flags);
    e[2] = static_cast<unsigned char>(slots);
    e[3] = 0;
    put32(e + 4, key);
    put64(e + 8, lower);
    const std::uint32_t after = psn_ + static_cast<std::uint32_t>(bytes == 0 ? 1 : (bytes + k_mtu - 1) / k_mtu);
    put24(msn(next_), psn_);
    put24(msn(next_) + 3, after);
    put16(msn(next_) + 6, next_ % k_depth);
    psn_ = after & 0xffffff;
    ++next_;
    return e;
  }
  void remote(unsigned char* e, std::uint64_t offset) {
    put64(e + 16, k_remote_address + offset);
    put32(e + 24, k_remote_key);
    put32(e + 28, 0);
  }
  void sge(unsigned char* at, std::uint32_t bytes, std::size_t offset) {
    put64(at, reinterpret_cast<std::uint64_t>(local_ + offset));
    put32(at + 8, key_);
    put32(at + 12, bytes);
  }
  unsigned char* copy(unsigned opcode, std::uint64_t offset, std::uint32_t bytes, unsigned flags = 0x01) {
    unsigned char* e = begin(opcode, flags, 3, 0, bytes, bytes);
    remote(e, offset);
    sge(e + 32, bytes, 0);
    return e;
  }
  unsigned char* write(std::uint64_t offset, std::uint32_t bytes, unsigned flags = 0x01) {
    return copy(0x04, offset, bytes, flags);
  }
  unsigned char* inlined(std::uint64_t offset, std::uint32_t bytes) {
    unsigned char* e = begin(0x04, 0x11, 2 + (bytes + 15) / 16, 0, bytes, bytes);
    remote(e, offset);
    for (unsigned i = 0; i < bytes; ++i) e[32 + i] = static_cast<unsigned char>(0xc0 + i);
    return e;
  }
  unsigned char* atomic(unsigned opcode, std::uint64_t offset, std::uint64_t swap_or_add, std::uint64_t compare) {
    unsigned char* e = begin(opcode, 0x01, 3, k_remote_key, k_remote_address + offset, 8);
    put64(e + 16, swap_or_add);
    put64(e + 24, compare);
    sge(e + 32, 8, 512);
    return e;
  }

  static void bell(std::uint64_t* word, std::uint64_t count, std::uint32_t log2, std::uint32_t number, unsigned type) {
    unsigned char at[8];
    put24(at, count & ((1u << log2) - 1));
    at[3] = (count >> log2) & 1;
    put32(at + 4, number | 0x04000000u | (std::uint32_t{type} << 28));
    std::memcpy(word, at, 8);
  }
  void ring(std::uint64_t producer) { bell(&bell_, producer, k_depth_log2, number_, 0); }
  void go() {
    ring(next_);
    run();
  }

  // --- Completions ---

  bool has_cqe() const { return (cqes_[(cq_next_ % k_cq_depth) * 32 + 24] & 1) == ((cq_next_ / k_cq_depth + 1) & 1); }
  void expect_cqe(unsigned type, unsigned status, std::uint64_t consumer) {
    ASSERT_TRUE(has_cqe()) << "CQE " << cq_next_;
    const unsigned char* c = cqes_ + (cq_next_++ % k_cq_depth) * 32;
    EXPECT_EQ(get32(c), number_);
    EXPECT_EQ(get32(c + 8), consumer % k_depth);
    EXPECT_EQ(c[24] >> 1, type);
    EXPECT_EQ(c[25], status);
    for (const int at : {4, 12, 16, 20, 28}) EXPECT_EQ(get32(c + at), 0u) << "offset " << at;
    EXPECT_EQ(c[26] | c[27], 0);
  }
  void give_back() {
    bell(&cq_bell_, cq_next_, k_cq_depth_log2, k_cq_number, 4);
    run();
  }
  void expect_done(std::uint64_t first) {
    expect_cqe(k_request, k_ok, first + 1);
    EXPECT_FALSE(has_cqe());
    give_back();
  }
  void expect_error(std::uint64_t first, unsigned status, rule why) {
    expect_cqe(k_request, status, first + 1);
    EXPECT_FALSE(has_cqe());
    EXPECT_EQ(static_cast<int>(heard_.why), static_cast<int>(why));
  }
  alignas(64) unsigned char slots_[k_depth * 128] = {};
  alignas(64) unsigned char msns_[k_depth * 8] = {};
  alignas(64) unsigned char cqes_[k_cq_depth * 32] = {};
  std::uint64_t bell_ = 0, cq_bell_ = 0, cq_next_ = 0;
  m::op_error heard_;
  const std::uint64_t first_;
  std::uint64_t next_;
  std::uint32_t psn_;
};

// --- What is right -----------------------------------------------------------------------------------

TEST_F(nic_bnxt, write_moves_the_bytes_and_no_others) {
  write(100, 333);
  run();
  EXPECT_TRUE(remote_is(0x11)) << "an entry was taken that no doorbell announced";
  go();
  expect_done(0);
  EXPECT_EQ(std::memcmp(remote_ + 100, local_, 333), 0);
  EXPECT_EQ(remote_[99], 0x11);
  EXPECT_EQ(remote_[433], 0x11);
}

TEST_F(nic_bnxt, only_asked_for_completions_are_written) {
  for (int i = 0; i < 3; ++i) write(8 * static_cast<unsigned>(i), 8, 0x00);
  go();
  EXPECT_EQ(std::memcmp(remote_ + 16, local_, 8), 0);
  EXPECT_FALSE(has_cqe());
  write(24, 8);
  go();
  expect_done(3);
}

TEST_F(nic_bnxt, inline_bytes_of_all_sizes) {
  for (unsigned n = 0; n <= 96; ++n) {
    std::memset(remote_, 0x11, sizeof remote_);
    inlined(64 + n, n);
    go();
    expect_done(next_ - 1);
    for (unsigned i = 0; i < n; ++i) ASSERT_EQ(remote_[64 + n + i], static_cast<unsigned char>(0xc0 + i)) << n;
    EXPECT_EQ(remote_[63 + n], 0x11);
    EXPECT_EQ(remote_[64 + n + n], 0x11);
  }
}

TEST_F(nic_bnxt, read_gathers_into_six_spans) {
  for (std::size_t i = 0; i < sizeof remote_; ++i) remote_[i] = static_cast<unsigned char>(i ^ 0x5a);
  const std::uint32_t sizes[] = {3, 50, 0, 1, 300, 7};
  unsigned char* e = begin(0x06, 0x01, 8, 0, 361, 361);
  remote(e, 10);
  for (unsigned i = 0; i < 6; ++i) sge(e + 32 + 16 * i, sizes[i], 320 * i);
  put32(e + 32 + 16 * 2 + 8, 0);  // the key of an empty span is not looked at
  go();
  expect_done(0);
  std::size_t from = 10;
  for (unsigned i = 0; i < 6; ++i) {
    EXPECT_EQ(std::memcmp(local_ + 320 * i, remote_ + from, sizes[i]), 0) << i;
    EXPECT_EQ(local_[320 * i + sizes[i]], static_cast<unsigned char>((320 * i + sizes[i]) * 7 + 1)) << i;
    from += sizes[i];
  }
}

TEST_F(nic_bnxt, a_write_of_nothing_needs_no_span) {
  remote(begin(0x04, 0x01, 2, 0, 0, 0), 0);
  go();
  expect_done(0);
  EXPECT_TRUE(remote_is(0x11));
}

TEST_F(nic_bnxt, atomics) {
  set_remote_word(0, 100);
  atomic(0x0b, 0, 23, 0);
  go();
  expect_done(0);
  EXPECT_EQ(remote_word(0), 123u);
  EXPECT_EQ(local_word(512), 100u);
  atomic(0x08, 0, 7, 123);
  go();
  expect_done(1);
  EXPECT_EQ(remote_word(0), 7u);
  EXPECT_EQ(local_word(512), 123u);
  atomic(0x08, 0, 9, 123);
  go();
  expect_done(2);
  EXPECT_EQ(remote_word(0), 7u);
  EXPECT_EQ(local_word(512), 7u);
}

TEST_F(nic_bnxt, fences_and_solicited_are_taken) {
  write(0, 8, 0x01 | 0x02 | 0x04 | 0x08);
  go();
  expect_done(0);
}

// A full ring: the doorbell's index is the old one, and the epoch tells.
TEST_F(nic_bnxt, a_full_ring_in_one_doorbell) {
  for (int lap = 0; lap < 5; ++lap) {
    for (unsigned i = 0; i < 8; ++i) write(64 * i, 64, i == 7 ? 0x01 : 0x00);
    go();
    expect_done(next_ - 1);
    EXPECT_EQ(std::memcmp(remote_ + 64 * 7, local_, 64), 0);
    std::memset(remote_, 0x11, sizeof remote_);
  }
}

class nic_bnxt_near_a_wrap : public nic_bnxt {
 protected:
  nic_bnxt_near_a_wrap() : nic_bnxt((std::uint64_t{1} << 32) - 8, 0xfffff0) {}
};

// Laps of queue and CQ, and the PSN's wrap after 16 packets and every 2^24 again.
TEST_F(nic_bnxt_near_a_wrap, many_laps) {
  for (unsigned i = 0; i < 500; ++i) {
    const std::uint32_t bytes = 1 + i * 37 % 1200;
    write(i % 100, bytes);
    go();
    expect_done(next_ - 1);
    ASSERT_EQ(std::memcmp(remote_ + i % 100, local_, bytes), 0) << i;
  }
}

// --- What is wrong in an entry -----------------------------------------------------------------------

struct wrong_entry {
  const char* what;
  unsigned status;
  rule why;
  std::function<void(unsigned char* wqe, unsigned char* msn)> spoil;
};

void PrintTo(const wrong_entry& t, std::ostream* out) { *out << t.what; }

class nic_bnxt_entry : public nic_bnxt {
 protected:
  // Lays down a good entry, spoils it, and one behind it. Nothing may move.
  void expect_refused(const std::function<unsigned char*()>& lay, const wrong_entry& t) {
    SCOPED_TRACE(t.what);
    unsigned char* e = lay();
    t.spoil(e, msn(first_));
    write(512, 8);
    go();
    expect_cqe(k_request, t.status, first_ + 1);
    expect_cqe(k_request, k_flushed, first_ + 2);
    EXPECT_FALSE(has_cqe());
    EXPECT_EQ(static_cast<int>(heard_.why), static_cast<int>(t.why));
    EXPECT_TRUE(remote_is(0x11));
    write(512, 8);  // and it stays in error
    go();
    expect_cqe(k_request, k_flushed, first_ + 3);
    EXPECT_TRUE(remote_is(0x11));
  }
};

class nic_bnxt_write : public nic_bnxt_entry, public testing::WithParamInterface<wrong_entry> {};
class nic_bnxt_inline : public nic_bnxt_entry, public testing::WithParamInterface<wrong_entry> {};
class nic_bnxt_read : public nic_bnxt_entry, public testing::WithParamInterface<wrong_entry> {};
class nic_bnxt_atomic : public nic_bnxt_entry, public testing::WithParamInterface<wrong_entry> {};

using raw = unsigned char*;

TEST_P(nic_bnxt_write, refused) {
  expect_refused([this] { return write(0, 600); }, GetParam());
}
INSTANTIATE_TEST_SUITE_P(
    fields, nic_bnxt_write,
    testing::Values(
        wrong_entry{"send", k_local_qp, rule::entry_opcode, [](raw e, raw) { e[0] = 0x00; }},
        wrong_entry{"bind", k_local_qp, rule::entry_opcode, [](raw e, raw) { e[0] = 0x0e; }},
        wrong_entry{"no opcode", k_local_qp, rule::entry_opcode, [](raw e, raw) { e[0] = 0xff; }},
        wrong_entry{"header's top byte", k_local_qp, rule::entry_reserved, [](raw e, raw) { e[3] = 1; }},
        wrong_entry{"unknown flag", k_local_qp, rule::entry_flags, [](raw e, raw) { e[1] |= 0x20; }},
        wrong_entry{"unknown flag", k_local_qp, rule::entry_flags, [](raw e, raw) { e[1] |= 0x80; }},
        wrong_entry{"size below the headers", k_local_qp, rule::entry_segments, [](raw e, raw) { e[2] = 1; }},
        wrong_entry{"size above a WQE", k_local_qp, rule::entry_segments, [](raw e, raw) { e[2] = 9; }},
        wrong_entry{"no span for its bytes", k_local_length, rule::data_length, [](raw e, raw) { e[2] = 2; }},
        wrong_entry{"a second span", k_local_length, rule::data_length,
                    [](raw e, raw) {
                      e[2] = 4;
                      std::memcpy(e + 48, e + 32, 16);
                    }},
        wrong_entry{"immediate", k_local_qp, rule::entry_reserved, [](raw e, raw) { e[5] = 1; }},
        wrong_entry{"behind the rkey", k_local_qp, rule::entry_reserved, [](raw e, raw) { e[31] = 1; }},
        wrong_entry{"length above its spans", k_local_length, rule::data_length, [](raw e, raw) { put64(e + 8, 601); }},
        wrong_entry{"length below its spans", k_local_length, rule::data_length, [](raw e, raw) { put64(e + 8, 599); }},
        wrong_entry{"length's upper half", k_local_length, rule::data_length, [](raw e, raw) { e[12] = 1; }},
        wrong_entry{"above the message limit", k_local_length, rule::data_length,
                    [](raw e, raw) {
                      put64(e + 8, 2049);
                      put32(e + 44, 2049);
                    }},
        wrong_entry{"MSN of another slot", k_local_qp, rule::entry_index, [](raw, raw n) { n[6] ^= 1; }},
        wrong_entry{"MSN slot's upper byte", k_local_qp, rule::entry_index, [](raw, raw n) { n[7] = 1; }},
        wrong_entry{"gap before the PSN", k_local_qp, rule::entry_sequence, [](raw, raw n) { n[0] += 1; }},
        wrong_entry{"start PSN's upper byte", k_local_qp, rule::entry_sequence, [](raw, raw n) { n[2] += 1; }},
        wrong_entry{"one packet too many", k_local_qp, rule::entry_sequence, [](raw, raw n) { n[3] += 1; }},
        wrong_entry{"one packet too few", k_local_qp, rule::entry_sequence, [](raw, raw n) { n[3] -= 1; }},
        wrong_entry{"no MSN entry", k_local_qp, rule::entry_sequence, [](raw, raw n) { put64(n, 0); }},
        wrong_entry{"lkey", k_local_protection, rule::local_key, [](raw e, raw) { e[41] ^= 1; }},
        wrong_entry{"local range", k_local_protection, rule::local_range, [](raw e, raw) { e[34] ^= 1; }},
        wrong_entry{"rkey", k_remote_access, rule::remote_key, [](raw e, raw) { e[26] ^= 1; }},
        wrong_entry{"rkey that may only read", k_remote_access, rule::remote_rights, [](raw e, raw) { e[24] ^= 1; }},
        wrong_entry{"remote range", k_remote_access, rule::remote_range, [](raw e, raw) { put16(e + 16, 3497); }}));

TEST_P(nic_bnxt_inline, refused) {
  expect_refused([this] { return inlined(0, 40); }, GetParam());
}
INSTANTIATE_TEST_SUITE_P(
    fields, nic_bnxt_inline,
    testing::Values(wrong_entry{"more than it holds", k_local_length, rule::data_length,
                                [](raw e, raw) { put64(e + 8, 97); }},
                    wrong_entry{"size too small", k_local_qp, rule::entry_segments, [](raw e, raw) { e[2] = 4; }},
                    wrong_entry{"size too big", k_local_qp, rule::entry_segments, [](raw e, raw) { e[2] = 8; }},
                    wrong_entry{"inline read", k_local_qp, rule::entry_flags, [](raw e, raw) { e[0] = 0x06; }},
                    wrong_entry{"inline atomic", k_local_qp, rule::entry_flags, [](raw e, raw) { e[0] = 0x0b; }}));

TEST_P(nic_bnxt_read, refused) {
  expect_refused([this] { return copy(0x06, 0, 600); }, GetParam());
}
INSTANTIATE_TEST_SUITE_P(
    fields, nic_bnxt_read,
    testing::Values(wrong_entry{"lkey", k_local_protection, rule::local_key, [](raw e, raw) { e[41] ^= 1; }},
                    wrong_entry{"immediate", k_local_qp, rule::entry_reserved, [](raw e, raw) { e[4] = 1; }},
                    wrong_entry{"one packet, as its request is", k_local_qp, rule::entry_sequence,
                                [](raw, raw n) { n[3] = static_cast<unsigned char>(n[0] + 1); }}));

TEST_F(nic_bnxt_entry, a_read_needs_a_key_that_may_be_written) {
  put32(copy(0x06, 0, 600) + 40, read_only_key_);
  go();
  expect_error(0, k_local_protection, rule::local_rights);
}

TEST_P(nic_bnxt_atomic, refused) {
  expect_refused([this] { return atomic(0x0b, 64, 5, 0); }, GetParam());
}
INSTANTIATE_TEST_SUITE_P(
    fields, nic_bnxt_atomic,
    testing::Values(
        wrong_entry{"compare of a fetch-add", k_local_qp, rule::entry_reserved, [](raw e, raw) { e[24] = 1; }},
        wrong_entry{"two spans", k_local_qp, rule::entry_segments, [](raw e, raw) { e[2] = 4; }},
        wrong_entry{"no span", k_local_qp, rule::entry_segments, [](raw e, raw) { e[2] = 2; }},
        wrong_entry{"4 bytes", k_local_length, rule::data_length, [](raw e, raw) { e[44] = 4; }},
        wrong_entry{"16 bytes", k_local_length, rule::data_length, [](raw e, raw) { e[44] = 16; }},
        wrong_entry{"not aligned", k_remote_invalid, rule::atomic_alignment, [](raw e, raw) { e[8] += 4; }},
        wrong_entry{"rkey", k_remote_access, rule::remote_key, [](raw e, raw) { e[6] ^= 1; }},
        wrong_entry{"rkey that may only read", k_remote_access, rule::remote_rights, [](raw e, raw) { e[4] ^= 1; }}));

TEST_F(nic_bnxt, what_was_before_the_failure_is_complete) {
  write(0, 8, 0x00);
  write(8, 8, 0x01);
  write(16, 8, 0x00)[26] ^= 1;
  write(24, 8, 0x00);
  go();
  expect_cqe(k_request, k_ok, 2);
  expect_cqe(k_request, k_remote_access, 3);
  expect_cqe(k_request, k_flushed, 4);  // asked for or not
  EXPECT_FALSE(has_cqe());
  EXPECT_EQ(std::memcmp(remote_, local_, 8), 0);
  EXPECT_EQ(std::memcmp(remote_ + 8, local_, 8), 0);
  EXPECT_EQ(remote_[16], 0x11);
  EXPECT_EQ(remote_[24], 0x11);
}

// An entry of the lap before, with the MSN entry of the lap before.
TEST_F(nic_bnxt, a_stale_slot) {
  for (int i = 0; i < 8; ++i) write(0, 8);
  go();
  for (unsigned i = 0; i < 8; ++i) expect_cqe(k_request, k_ok, i + 1);
  give_back();
  ring(9);
  run();
  expect_error(8, k_local_qp, rule::entry_sequence);
}

TEST_F(nic_bnxt, a_write_with_immediate_has_nobody_to_tell_over_shared_memory) {
  unsigned char* e = begin(0x05, 0x01, 3, 0xfeedbeef, 8, 8);
  remote(e, 0);
  sge(e + 32, 8, 0);
  go();
  expect_error(0, 9, rule::not_connected);
}

TEST_F(nic_bnxt, an_entry_before_the_connection) {
  std::uint64_t bell_word = 0;
  number_ = nic_.create_queue(maker(&bell_word, 0));
  write(0, 8);
  bell(&bell_word, 1, k_depth_log2, number_, 0);
  run();
  expect_cqe(k_request, k_local_qp, 1);
  EXPECT_EQ(static_cast<int>(heard_.why), static_cast<int>(rule::not_connected));
}

// --- What is wrong in a doorbell ---------------------------------------------------------------------

// Three good entries are done when it comes, and two more lie ready. Entries that no doorbell has announced as it
// should are never taken.
class nic_bnxt_bell : public nic_bnxt {
 protected:
  void SetUp() override {
    for (int i = 0; i < 3; ++i) write(0, 8);
    go();
    for (unsigned i = 0; i < 3; ++i) expect_cqe(k_request, k_ok, i + 1);
    std::memset(remote_, 0x11, sizeof remote_);
    for (int i = 0; i < 2; ++i) write(0, 8);
  }
  void expect_terminal(rule why) {
    run();
    expect_cqe(k_terminal, k_ok, 3);
    EXPECT_FALSE(has_cqe());
    EXPECT_EQ(static_cast<int>(heard_.why), static_cast<int>(why));
    EXPECT_TRUE(remote_is(0x11));
    go();
    expect_cqe(k_request, k_flushed, 4);
    expect_cqe(k_request, k_flushed, 5);
    EXPECT_TRUE(remote_is(0x11));
  }
};

struct wrong_bell {
  const char* what;
  rule why;
  std::uint64_t flip;  // bits, of the right doorbell
};
void PrintTo(const wrong_bell& t, std::ostream* out) { *out << t.what; }

class nic_bnxt_sq_bell : public nic_bnxt_bell, public testing::WithParamInterface<wrong_bell> {};
class nic_bnxt_cq_bell : public nic_bnxt_bell, public testing::WithParamInterface<wrong_bell> {};

constexpr std::uint64_t upper(std::uint64_t bits) { return bits << 32; }

TEST_P(nic_bnxt_sq_bell, refused) {
  ring(next_);
  bell_ ^= GetParam().flip;
  expect_terminal(GetParam().why);
}
INSTANTIATE_TEST_SUITE_P(bits, nic_bnxt_sq_bell,
                         testing::Values(wrong_bell{"queue", rule::doorbell_queue, upper(1)},
                                         wrong_bell{"queue's top bit", rule::doorbell_queue, upper(0x80000)},
                                         wrong_bell{"receive queue", rule::doorbell_queue, upper(0x10000000)},
                                         wrong_bell{"CQ", rule::doorbell_queue, upper(0x40000000)},
                                         wrong_bell{"not valid", rule::doorbell_reserved, upper(0x04000000)},
                                         wrong_bell{"above the queue", rule::doorbell_reserved, upper(0x00100000)},
                                         wrong_bell{"path", rule::doorbell_reserved, upper(0x02000000)},
                                         wrong_bell{"above valid", rule::doorbell_reserved, upper(0x08000000)},
                                         wrong_bell{"toggle", rule::doorbell_reserved, 0x02000000},
                                         wrong_bell{"above toggle", rule::doorbell_reserved, 0x04000000},
                                         wrong_bell{"top of the index's half", rule::doorbell_reserved, 0x80000000},
                                         wrong_bell{"epoch", rule::doorbell_phase, 0x01000000},
                                         wrong_bell{"index beyond the ring", rule::doorbell_range, 8},
                                         wrong_bell{"index's top bit", rule::doorbell_range, 0x800000}));

TEST_P(nic_bnxt_cq_bell, refused) {
  bell(&cq_bell_, cq_next_, k_cq_depth_log2, k_cq_number, 4);
  cq_bell_ ^= GetParam().flip;
  expect_terminal(GetParam().why);
}
INSTANTIATE_TEST_SUITE_P(bits, nic_bnxt_cq_bell,
                         testing::Values(wrong_bell{"queue", rule::doorbell_queue, upper(1)},
                                         wrong_bell{"send queue", rule::doorbell_queue, upper(0x40000000)},
                                         wrong_bell{"arm", rule::doorbell_queue, upper(0x20000000)},
                                         wrong_bell{"not valid", rule::doorbell_reserved, upper(0x04000000)},
                                         wrong_bell{"toggle", rule::doorbell_reserved, 0x02000000},
                                         wrong_bell{"above toggle", rule::doorbell_reserved, 0x10000000},
                                         wrong_bell{"epoch", rule::doorbell_phase, 0x01000000},
                                         wrong_bell{"ahead of the producer index", rule::doorbell_range, 4},
                                         wrong_bell{"index beyond the queue", rule::doorbell_range, 16}));

TEST_F(nic_bnxt_bell, backwards_is_another_lap) {
  ring(2);
  expect_terminal(rule::doorbell_phase);
}

TEST_F(nic_bnxt, more_than_the_ring_has_room_for) {
  one_fault plan(one_fault::kind::lose);
  nic_.set_faults(&plan);
  for (int i = 0; i < 8; ++i) write(0, 8);
  go();  // the first entry never ends, so there is no room for a ninth
  EXPECT_FALSE(has_cqe());
  write(0, 8);
  go();
  expect_cqe(k_request, k_local_qp, 1);
  EXPECT_EQ(static_cast<int>(heard_.why), static_cast<int>(rule::doorbell_range));
  nic_.set_faults(nullptr);
}

TEST_F(nic_bnxt, a_wrong_doorbell_before_any_entry) {
  ring(1);
  bell_ ^= upper(1);
  run();
  expect_cqe(k_terminal, k_ok, 0);
}

// --- The completion queue ----------------------------------------------------------------------------

TEST_F(nic_bnxt, a_full_completion_queue_is_never_overwritten) {
  for (int i = 0; i < 24; ++i) {
    write(static_cast<unsigned>(i), 1);
    go();
  }
  for (unsigned i = 0; i < 16; ++i) expect_cqe(k_request, k_ok, i + 1);
  EXPECT_FALSE(has_cqe());
  EXPECT_EQ(std::memcmp(cqes_ + 24, cqes_ + 15 * 32 + 24, 4), 0) << "all of one phase";
  give_back();
  write(0, 1);
  go();
  expect_done(24);  // what came in between is lost
}

TEST_F(nic_bnxt, all_of_a_completion_queue_is_given_back_at_once) {
  for (int lap = 0; lap < 3; ++lap) {
    for (int half = 0; half < 2; ++half) {
      for (unsigned i = 0; i < 8; ++i) write(i, 1);
      go();
    }
    for (unsigned i = 0; i < 16; ++i) expect_cqe(k_request, k_ok, i + 1);
    give_back();
  }
  EXPECT_EQ(static_cast<int>(heard_.why), static_cast<int>(rule::none));
}

TEST_F(nic_bnxt, a_lost_peer_is_reported_as_such) {
  one_fault plan(one_fault::kind::fail);
  nic_.set_faults(&plan);
  write(0, 8);
  go();
  expect_error(0, k_retry, rule::injected);
  nic_.set_faults(nullptr);
}

// --- Variable mode: the queues that Linux gives to users ---

class nic_bnxt_variable : public nic_bnxt {
 protected:
  nic_bnxt_variable() : nic_bnxt(0, 0x123456, true) {}
  unsigned char* whole(unsigned char* e) {
    e[2] = 8;
    std::memset(e + 48, 0, 80);
    put16(msn(next_ - 1) + 6, (next_ - 1) % k_depth * 8);
    return e;
  }
  void go() {
    bell(&bell_, (next_ / k_depth * k_depth + next_ % k_depth) * 8, k_depth_log2 + 3, number_, 0);
    run();
  }
};

TEST_F(nic_bnxt_variable, entries_of_eight_slots_are_carried_out_for_two_laps) {
  for (unsigned i = 0; i < 2 * k_depth + 3; ++i) {
    whole(write(i, 1));
    go();
    expect_done(next_ - 1);
    EXPECT_EQ(remote_[i], local_[0]);
  }
}

TEST_F(nic_bnxt_variable, a_shorter_entry_hides_the_next) {
  whole(write(0, 8))[2] = 3;
  go();
  expect_cqe(k_request, k_local_qp, 0);
  EXPECT_EQ(static_cast<int>(heard_.why), static_cast<int>(rule::entry_segments));
}

TEST_F(nic_bnxt_variable, msn_entries_count_slots) {
  whole(write(0, 8));
  go();
  expect_done(0);
  whole(write(0, 8));
  put16(msn(1) + 6, 1);
  go();
  EXPECT_EQ(get32(cqes_ + 32 + 8), 8u);  // by its slot
  EXPECT_EQ(cqes_[32 + 25], k_local_qp);
  EXPECT_EQ(static_cast<int>(heard_.why), static_cast<int>(rule::entry_index));
}

TEST_F(nic_bnxt_variable, a_doorbell_within_an_entry_is_wrong) {
  whole(write(0, 8));
  bell(&bell_, 9, k_depth_log2 + 3, number_, 0);
  run();
  EXPECT_EQ(static_cast<int>(heard_.why), static_cast<int>(rule::doorbell_range));
}

}  // namespace
