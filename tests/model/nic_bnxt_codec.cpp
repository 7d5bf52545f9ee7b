// SPDX-License-Identifier: MIT
// The bnxt_re codec alone: what it makes of completions, which are written here byte by byte. nic_dialect_lane.cpp has
// it over the NIC model.
#include "../gtest.hpp"
#include "xio/device/impl/bnxt.hpp"

namespace {

using namespace xio::dev;

// Six entries of a ring of 8 are in flight; the test writes CQEs byte by byte.
class nic_bnxt_codec : public testing::Test {
 protected:
  nic_bnxt_codec() {
    state.issued = state.published = 16 + 6;
    state.completed = 16;
    state.credits = 2;
    r.state = &state;
    r.depth = 8;
    r.rdma.depth_log2 = 3;
    r.rdma.completions = cqes;
    r.rdma.cq_depth = 16;
    r.rdma.cq_depth_log2 = 4;
    r.rdma.bnxt.cq_doorbell = &bell;
    r.rdma.bnxt.cq_id = 0x12345;
    r.rdma.bnxt.unit = 1;
  }
  void cqe(u64 at, unsigned type, unsigned status, unsigned consumer, unsigned phase = 1) {
    unsigned char* c = cqes + at % 16 * 32;
    c[8] = static_cast<unsigned char>(consumer);
    c[9] = static_cast<unsigned char>(consumer >> 8);
    c[24] = static_cast<unsigned char>(phase | type << 1);
    c[25] = static_cast<unsigned char>(status);
  }
  void expect_failed(u64 completed, u32 vendor) {
    ring_reap<bnxt_codec>(r);
    EXPECT_PAIRS((state.completed, completed), (static_cast<int>(state.failed), XIO_ERR_TRANSPORT),
                 (state.vendor, vendor), (state.failed_ticket, completed));
  }

  ring_state state{};
  ring_view r{};
  u64 bell = 0;
  alignas(64) unsigned char cqes[16 * 32] = {};
};

TEST_F(nic_bnxt_codec, nothing_new_changes_nothing) {
  ring_reap<bnxt_codec>(r);
  cqe(0, 0, 0, 3, 0);
  ring_reap<bnxt_codec>(r);
  EXPECT_PAIRS((state.completed, 16u), (state.cq_head, 0u), (bell, 0u));
}

TEST_F(nic_bnxt_codec, all_that_is_there_and_one_doorbell) {
  cqe(0, 0, 0, 2);
  cqe(1, 0xd, 0, 0);  // says nothing
  cqe(2, 0, 0, 5);
  ring_reap<bnxt_codec>(r);
  EXPECT_PAIRS((state.completed, 21u), (state.credits, 7), (state.cq_head, 3u));
  EXPECT_EQ(bell, 0x4401234500000003u);  // type 4, valid, CQ number; index 3 of lap 0
  EXPECT_EQ(state.failed, 0u);
}

TEST_F(nic_bnxt_codec, the_queues_end_and_its_next_lap) {
  state.cq_head = 15;
  for (u64 i = 0; i < 15; ++i) cqe(i, 0, 0, 0);  // as the lap left them
  cqe(15, 0, 0, 1);
  cqe(16, 0, 0, 2, 0);
  ring_reap<bnxt_codec>(r);
  EXPECT_EQ(state.completed, 18u);
  EXPECT_EQ(state.cq_head, 17u);
  EXPECT_EQ(bell, 0x4401234501000001u);  // epoch 1
}

TEST_F(nic_bnxt_codec, one_completion_for_a_full_ring) {
  state.issued = 24;
  state.credits = 0;
  cqe(0, 0, 0, 0);
  ring_reap<bnxt_codec>(r);
  EXPECT_EQ(state.completed, 24u);
  EXPECT_EQ(state.credits, 8);
}

TEST_F(nic_bnxt_codec, the_first_error_is_the_cause) {
  cqe(0, 0, 0x0, 1);
  cqe(1, 0, 0x6, 4);
  cqe(2, 0, 0xb, 5);
  cqe(3, 0, 0xb, 6);
  expect_failed(19, 0x6);
  for (int i = 0; i < 5; ++i) ring_reap<bnxt_codec>(r);
  expect_failed(19, 0x6);
  EXPECT_EQ(state.cq_head, 4u);
}

TEST_F(nic_bnxt_codec, a_flushed_entry_completes_nothing) {
  cqe(0, 0, 0xb, 4);
  expect_failed(16, 0xb);
}

TEST_F(nic_bnxt_codec, a_terminal_completion_ends_the_ring) {
  cqe(0, 0xe, 0, 3);
  expect_failed(19, bnxt_codec::k_terminal);
}

TEST_F(nic_bnxt_codec, a_terminal_completion_without_an_index) {
  cqe(0, 0xe, 0, 0xffff);
  expect_failed(16, bnxt_codec::k_terminal);
}

TEST_F(nic_bnxt_codec, index_and_type_must_make_sense) {
  cqe(0, 0, 0, 7);  // only 16 to 21 were posted
  expect_failed(16, bnxt_codec::k_strange_index | 7);
}

TEST_F(nic_bnxt_codec, a_receive_completion_is_not_ours) {
  cqe(0, 1, 0, 3);
  expect_failed(16, bnxt_codec::k_strange_type | 1);
}

// --- Variable mode ---

TEST_F(nic_bnxt_codec, variable_mode_names_what_failed_by_its_slot) {
  r.rdma.bnxt.unit = 8;
  cqe(0, 0, 0, 1);
  cqe(1, 0, 0x6, 3 * 8);
  expect_failed(19, 0x6);
}

TEST_F(nic_bnxt_codec, variable_mode_has_no_entry_within_an_entry) {
  r.rdma.bnxt.unit = 8;
  cqe(0, 0, 0x6, 9);
  expect_failed(16, bnxt_codec::k_strange_index | 9);
}

TEST_F(nic_bnxt_codec, variable_mode_counts_slots) {
  alignas(64) unsigned char slots[8 * 128];
  u64 msns[8] = {}, sq_bell = 0;
  __builtin_memset(slots, 0xee, sizeof slots);  // an inline put was here
  r.rdma.bnxt.unit = 8;
  r.slots = slots;
  r.rdma.bnxt.msn_table = msns;
  r.rdma.doorbell = &sq_bell;
  r.id = 0x777;
  r.rdma.bnxt.path_mtu = 256;
  rdma::work w{};
  w.what = rdma::verb::write;
  w.from = rdma::payload::memory;
  w.bytes = 600;
  bnxt_codec::encode(r, 8 + 5, 0x100, true, w);
  const unsigned char* entry = slots + 5 * 128;
  EXPECT_EQ(entry[2], 8);  // slots, so that the next entry begins where it does
  for (int i = 48; i < 128; ++i) EXPECT_EQ(entry[i], 0) << i;
  EXPECT_EQ(msns[5], 0x0028'000103'000100u);
  w.from = rdma::payload::value;
  w.bytes = 4;
  bnxt_codec::encode(r, 8 + 6, 0x103, true, w);
  EXPECT_EQ(slots[6 * 128 + 2], 8);
  bnxt_codec::announce(r, 8 + 5, 8 + 7);
  EXPECT_EQ(sq_bell, 0x0400077701000038u);  // type 0, valid; epoch 1, slot 56
}

}  // namespace
