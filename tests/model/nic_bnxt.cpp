// SPDX-License-Identifier: MIT
// The NIC model's bnxt_re decoder carries out what is right, and completes as hardware would.
#include "nic_bnxt_rig.hpp"

namespace {

using namespace xio::test::bnxt;
using xio::test::one_fault;

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
