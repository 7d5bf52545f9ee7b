// SPDX-License-Identifier: MIT
// Entries of bnxt, as the software NIC takes and refuses them.
#include "nic_bnxt_rig.hpp"

namespace {

using namespace xio::test::bnxt;
using xio::test::one_fault;

// --- Taken ------------------------------------------------------------------------------------------
// The NIC model's bnxt_re decoder carries out what is right, and completes as hardware would.

TEST_F(nic_bnxt, write_moves_the_bytes_and_no_others) {
  write(100, 333);
  run();
  EXPECT_TRUE(remote_is(0x11)) << "an entry was taken that no doorbell announced";
  go();
  expect_done(0);
  EXPECT_PAIRS((std::memcmp(remote_ + 100, local_, 333), 0), (remote_[99], 0x11), (remote_[433], 0x11));
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
    EXPECT_PAIRS((remote_[63 + n], 0x11), (remote_[64 + n + n], 0x11));
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
  const struct {
    unsigned opcode;
    std::uint64_t operand, compare, remote, fetched;
  } rows[] = {{0x0b, 23, 0, 123, 100}, {0x08, 7, 123, 7, 123}, {0x08, 9, 123, 7, 7}};
  for (const auto& r : rows) {
    atomic(r.opcode, 0, r.operand, r.compare);
    go();
    expect_done(next_ - 1);
    EXPECT_PAIRS((remote_word(0), r.remote), (local_word(512), r.fetched));
  }
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

// --- Refused ----------------------------------------------------------------------------------------
// Every single wrong field of a bnxt_re entry or doorbell ends in the CQE that hardware would write.

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

#define XIO_WRONG_ENTRIES(suite, good, rows)                                               \
  class suite : public nic_bnxt_entry, public testing::WithParamInterface<wrong_entry> {}; \
  TEST_P(suite, refused) {                                                                 \
    expect_refused([this] { return good; }, GetParam());                                   \
  }                                                                                        \
  INSTANTIATE_TEST_SUITE_P(fields, suite, testing::ValuesIn(rows))

using raw = unsigned char*;

const wrong_entry k_wrong_writes[] = {
    {"send", k_local_qp, rule::entry_opcode, [](raw e, raw) { e[0] = 0x00; }},
    {"bind", k_local_qp, rule::entry_opcode, [](raw e, raw) { e[0] = 0x0e; }},
    {"no opcode", k_local_qp, rule::entry_opcode, [](raw e, raw) { e[0] = 0xff; }},
    {"header's top byte", k_local_qp, rule::entry_reserved, [](raw e, raw) { e[3] = 1; }},
    {"unknown flag", k_local_qp, rule::entry_flags, [](raw e, raw) { e[1] |= 0x20; }},
    {"unknown flag", k_local_qp, rule::entry_flags, [](raw e, raw) { e[1] |= 0x80; }},
    {"size below the headers", k_local_qp, rule::entry_segments, [](raw e, raw) { e[2] = 1; }},
    {"size above a WQE", k_local_qp, rule::entry_segments, [](raw e, raw) { e[2] = 9; }},
    {"no span for its bytes", k_local_length, rule::data_length, [](raw e, raw) { e[2] = 2; }},
    {"a second span", k_local_length, rule::data_length, [](raw e, raw) { e[2] = 4, std::memcpy(e + 48, e + 32, 16); }},
    {"immediate", k_local_qp, rule::entry_reserved, [](raw e, raw) { e[5] = 1; }},
    {"behind the rkey", k_local_qp, rule::entry_reserved, [](raw e, raw) { e[31] = 1; }},
    {"length above its spans", k_local_length, rule::data_length, [](raw e, raw) { put64(e + 8, 601); }},
    {"length below its spans", k_local_length, rule::data_length, [](raw e, raw) { put64(e + 8, 599); }},
    {"length's upper half", k_local_length, rule::data_length, [](raw e, raw) { e[12] = 1; }},
    {"above the message limit", k_local_length, rule::data_length,
     [](raw e, raw) { put64(e + 8, 2049), put32(e + 44, 2049); }},
    {"MSN of another slot", k_local_qp, rule::entry_index, [](raw, raw n) { n[6] ^= 1; }},
    {"MSN slot's upper byte", k_local_qp, rule::entry_index, [](raw, raw n) { n[7] = 1; }},
    {"gap before the PSN", k_local_qp, rule::entry_sequence, [](raw, raw n) { n[0] += 1; }},
    {"start PSN's upper byte", k_local_qp, rule::entry_sequence, [](raw, raw n) { n[2] += 1; }},
    {"one packet too many", k_local_qp, rule::entry_sequence, [](raw, raw n) { n[3] += 1; }},
    {"one packet too few", k_local_qp, rule::entry_sequence, [](raw, raw n) { n[3] -= 1; }},
    {"no MSN entry", k_local_qp, rule::entry_sequence, [](raw, raw n) { put64(n, 0); }},
    {"lkey", k_local_protection, rule::local_key, [](raw e, raw) { e[41] ^= 1; }},
    {"local range", k_local_protection, rule::local_range, [](raw e, raw) { e[34] ^= 1; }},
    {"rkey", k_remote_access, rule::remote_key, [](raw e, raw) { e[26] ^= 1; }},
    {"rkey that may only read", k_remote_access, rule::remote_rights, [](raw e, raw) { e[24] ^= 1; }},
    {"remote range", k_remote_access, rule::remote_range, [](raw e, raw) { put16(e + 16, 3497); }}};
XIO_WRONG_ENTRIES(nic_bnxt_write, write(0, 600), k_wrong_writes);

const wrong_entry k_wrong_inlines[] = {
    {"more than it holds", k_local_length, rule::data_length, [](raw e, raw) { put64(e + 8, 97); }},
    {"size too small", k_local_qp, rule::entry_segments, [](raw e, raw) { e[2] = 4; }},
    {"size too big", k_local_qp, rule::entry_segments, [](raw e, raw) { e[2] = 8; }},
    {"inline read", k_local_qp, rule::entry_flags, [](raw e, raw) { e[0] = 0x06; }},
    {"inline atomic", k_local_qp, rule::entry_flags, [](raw e, raw) { e[0] = 0x0b; }}};
XIO_WRONG_ENTRIES(nic_bnxt_inline, inlined(0, 40), k_wrong_inlines);

const wrong_entry k_wrong_reads[] = {{"lkey", k_local_protection, rule::local_key, [](raw e, raw) { e[41] ^= 1; }},
                                     {"immediate", k_local_qp, rule::entry_reserved, [](raw e, raw) { e[4] = 1; }},
                                     {"one packet, as its request is", k_local_qp, rule::entry_sequence,
                                      [](raw, raw n) { n[3] = static_cast<unsigned char>(n[0] + 1); }}};
XIO_WRONG_ENTRIES(nic_bnxt_read, copy(0x06, 0, 600), k_wrong_reads);

TEST_F(nic_bnxt_entry, a_read_needs_a_key_that_may_be_written) {
  put32(copy(0x06, 0, 600) + 40, read_only_key_);
  go();
  expect_error(0, k_local_protection, rule::local_rights);
}

const wrong_entry k_wrong_atomics[] = {
    {"compare of a fetch-add", k_local_qp, rule::entry_reserved, [](raw e, raw) { e[24] = 1; }},
    {"two spans", k_local_qp, rule::entry_segments, [](raw e, raw) { e[2] = 4; }},
    {"no span", k_local_qp, rule::entry_segments, [](raw e, raw) { e[2] = 2; }},
    {"4 bytes", k_local_length, rule::data_length, [](raw e, raw) { e[44] = 4; }},
    {"16 bytes", k_local_length, rule::data_length, [](raw e, raw) { e[44] = 16; }},
    {"not aligned", k_remote_invalid, rule::atomic_alignment, [](raw e, raw) { e[8] += 4; }},
    {"rkey", k_remote_access, rule::remote_key, [](raw e, raw) { e[6] ^= 1; }},
    {"rkey that may only read", k_remote_access, rule::remote_rights, [](raw e, raw) { e[4] ^= 1; }}};
XIO_WRONG_ENTRIES(nic_bnxt_atomic, atomic(0x0b, 64, 5, 0), k_wrong_atomics);

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
  EXPECT_PAIRS((std::memcmp(remote_, local_, 8), 0), (std::memcmp(remote_ + 8, local_, 8), 0), (remote_[16], 0x11),
               (remote_[24], 0x11));
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
const wrong_bell k_wrong_sq_bells[] = {{"queue", rule::doorbell_queue, upper(1)},
                                       {"queue's top bit", rule::doorbell_queue, upper(0x80000)},
                                       {"receive queue", rule::doorbell_queue, upper(0x10000000)},
                                       {"CQ", rule::doorbell_queue, upper(0x40000000)},
                                       {"not valid", rule::doorbell_reserved, upper(0x04000000)},
                                       {"above the queue", rule::doorbell_reserved, upper(0x00100000)},
                                       {"path", rule::doorbell_reserved, upper(0x02000000)},
                                       {"above valid", rule::doorbell_reserved, upper(0x08000000)},
                                       {"toggle", rule::doorbell_reserved, 0x02000000},
                                       {"above toggle", rule::doorbell_reserved, 0x04000000},
                                       {"top of the index's half", rule::doorbell_reserved, 0x80000000},
                                       {"epoch", rule::doorbell_phase, 0x01000000},
                                       {"index beyond the ring", rule::doorbell_range, 8},
                                       {"index's top bit", rule::doorbell_range, 0x800000}};
INSTANTIATE_TEST_SUITE_P(bits, nic_bnxt_sq_bell, testing::ValuesIn(k_wrong_sq_bells));

TEST_P(nic_bnxt_cq_bell, refused) {
  bell(&cq_bell_, cq_next_, k_cq_depth_log2, k_cq_number, 4);
  cq_bell_ ^= GetParam().flip;
  expect_terminal(GetParam().why);
}
const wrong_bell k_wrong_cq_bells[] = {
    {"queue", rule::doorbell_queue, upper(1)},           {"send queue", rule::doorbell_queue, upper(0x40000000)},
    {"arm", rule::doorbell_queue, upper(0x20000000)},    {"not valid", rule::doorbell_reserved, upper(0x04000000)},
    {"toggle", rule::doorbell_reserved, 0x02000000},     {"above toggle", rule::doorbell_reserved, 0x10000000},
    {"epoch", rule::doorbell_phase, 0x01000000},         {"ahead of the producer index", rule::doorbell_range, 4},
    {"index beyond the queue", rule::doorbell_range, 16}};
INSTANTIATE_TEST_SUITE_P(bits, nic_bnxt_cq_bell, testing::ValuesIn(k_wrong_cq_bells));

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

}  // namespace
