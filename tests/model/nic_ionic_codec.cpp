// SPDX-License-Identifier: MIT
// The ionic codec alone: what it makes of completions, which are written here byte by byte. nic_dialect_lane.cpp has it
// over the NIC model.
#include "../gtest.hpp"
#include "xio/device/impl/ionic.hpp"

namespace {

using namespace xio::dev;

// Six entries of a ring of 8 are under way, 0x1000010 to 0x1000015; the test writes CQEs byte by byte as struct
// ionic_v1_cqe has them.
class nic_ionic_codec : public testing::TestWithParam<bool> {
 protected:
  static constexpr u64 k_first = 0x1000010;
  static constexpr unsigned k_msn = 2 << 5, k_npg = 3 << 5, k_error = 2;

  nic_ionic_codec() {
    state.issued = state.published = k_first + 6;
    state.completed = k_first;
    state.credits = 1;
    r.state = &state;
    r.depth = 8;
    r.rdma.depth_log2 = 3;
    r.rdma.completions = cqes;
    r.rdma.cq_depth = queued() ? 16 : 0;
    r.rdma.cq_depth_log2 = queued() ? 4 : 0;
    r.rdma.ionic = {&bell, 0x12345, 2};
    cqe(0, 0, 0x10, 0, 0, queued() ? 0 : 1);  // as nothing happened yet
  }
  bool queued() const { return GetParam(); }
  void cqe(u64 at, unsigned state, unsigned msn, unsigned status = 0, unsigned index = 0, unsigned color = 1) {
    unsigned char* c = cqes + (queued() ? at % 16 * 32 : 0);
    for (int i = 0; i < 4; ++i) c[4 + i] = static_cast<unsigned char>(msn >> (24 - 8 * i));
    c[16] = static_cast<unsigned char>(index);
    c[18] = 0x77;  // time stamp
    c[27] = static_cast<unsigned char>(status);
    c[29] = 0x12;  // queue pair
    c[31] = static_cast<unsigned char>(state | color);
  }
  void expect_failed(u64 completed, u64 failed, u32 vendor) {
    for (int i = 0; i < 3; ++i) ring_reap<ionic_codec>(r);
    EXPECT_PAIRS((state.completed, completed), (static_cast<int>(state.failed), XIO_ERR_TRANSPORT),
                 (state.vendor, vendor), (state.failed_ticket, failed));
  }

  ring_state state{};
  ring_view r{};
  u64 bell = 0;
  alignas(64) unsigned char cqes[16 * 32] = {};
};
INSTANTIATE_TEST_SUITE_P(both, nic_ionic_codec, testing::Bool(),
                         [](const auto& info) { return info.param ? "queue" : "collapsed"; });

TEST_P(nic_ionic_codec, nothing_new_changes_nothing) {
  ring_reap<ionic_codec>(r);
  EXPECT_PAIRS((state.completed, k_first), (state.cq_head, 0u), (bell, 0u), (state.failed, 0u));
}

TEST_P(nic_ionic_codec, counts_messages) {
  cqe(0, k_msn, 0x12);
  ring_reap<ionic_codec>(r);
  EXPECT_EQ(state.completed, k_first + 2);
  cqe(1, k_msn, 0x16);
  ring_reap<ionic_codec>(r);
  EXPECT_PAIRS((state.completed, k_first + 6), (state.credits, 7), (state.failed, 0u));
  if (queued()) {
    EXPECT_EQ(bell, 0x12345000002u);
  }
}

TEST_P(nic_ionic_codec, an_error_by_number) {
  cqe(0, k_msn | k_error, 0x14, 9);
  expect_failed(k_first + 3, k_first + 3, 9);
}

TEST_P(nic_ionic_codec, an_error_by_index_completes_only_what_is_counted) {
  cqe(0, k_npg | k_error, 0x12, 3, 4);
  expect_failed(k_first + 2, k_first + 4, 3);
}

TEST_P(nic_ionic_codec, an_error_by_index_with_a_count_that_cannot_be) {
  cqe(0, k_npg | k_error, 0, 3, 4);
  expect_failed(k_first, k_first + 4, 3);
}

TEST_P(nic_ionic_codec, an_error_of_no_entry_of_ours) {
  cqe(0, k_npg | k_error, 0x10, 2, 7);
  expect_failed(k_first, k_first, 2);
}

TEST_P(nic_ionic_codec, a_flush_names_nothing) {
  cqe(0, k_npg | k_error, 0x13, 4, 3);
  expect_failed(k_first, k_first, 4);
}

TEST_P(nic_ionic_codec, more_than_was_posted_is_strange) {
  cqe(0, k_msn, 0x17);
  expect_failed(k_first, k_first, ionic_codec::k_strange_count);
}

TEST_P(nic_ionic_codec, a_receive_completion_is_not_ours) {
  cqe(0, 1 << 5, 0x12);
  expect_failed(k_first, k_first, ionic_codec::k_strange_type | 1);
}

TEST_P(nic_ionic_codec, the_first_error_is_the_cause) {
  if (!queued()) GTEST_SKIP() << "there is one CQE";
  cqe(0, k_msn, 0x12);
  cqe(1, k_msn | k_error, 0x13, 10);
  cqe(2, k_npg | k_error, 0x13, 4);
  expect_failed(k_first + 2, k_first + 2, 10);
  EXPECT_EQ(state.cq_head, 3u);
}

TEST_P(nic_ionic_codec, the_queues_end_and_its_next_lap) {
  if (!queued()) GTEST_SKIP() << "there is one CQE";
  state.cq_head = 15;
  for (u64 i = 0; i < 15; ++i) cqe(i, k_msn, 0x10);  // as the lap left them
  cqe(15, k_msn, 0x11);
  cqe(16, k_msn, 0x12, 0, 0, 0);
  ring_reap<ionic_codec>(r);
  EXPECT_PAIRS((state.completed, k_first + 2), (state.cq_head, 17u), (bell, 0x12345000001u));
}

// Or the NIC, which goes on meanwhile, would find the queue full.
TEST_P(nic_ionic_codec, room_is_given_back_in_time) {
  if (!queued()) GTEST_SKIP() << "there is one CQE";
  for (u64 i = 0; i < 16; ++i) cqe(i, k_msn, 0x16);
  ring_reap<ionic_codec>(r);
  EXPECT_EQ(state.cq_head, 7u);
  EXPECT_EQ(bell, 0x12345000007u);
}

}  // namespace
