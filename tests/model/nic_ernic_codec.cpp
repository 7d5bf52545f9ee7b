// SPDX-License-Identifier: MIT
// The the emulated NIC's legacy codec alone: what it makes of completions, which are written here byte by byte.
// nic_dialect_lane.cpp has it over the NIC model.
#include "../gtest.hpp"
#include "xio/device/impl/ernic.hpp"

namespace {

using namespace xio::dev;

// Six entries of a ring of 8 are in flight; the test writes CQEs byte by byte.
class nic_ernic_codec : public testing::Test {
 protected:
  nic_ernic_codec() {
    state.issued = state.published = 16 + 6;
    state.completed = 16;
    state.credits = 2;
    r.state = &state;
    r.depth = 8;
    r.rdma.depth_log2 = 3;
    r.rdma.completions = cq;
    r.rdma.cq_depth = 16;
    r.rdma.cq_depth_log2 = 4;
  }
  void cqe(u64 at, unsigned status, unsigned ticket, unsigned vendor = 0) {
    unsigned char* c = cq + 4096 + at % 16 * 64;
    c[0] = static_cast<unsigned char>(ticket);
    c[20] = static_cast<unsigned char>(status);
    c[40] = static_cast<unsigned char>(vendor);
    cq[8] = static_cast<unsigned char>((at + 1) % 32);
  }
  void expect_failed(u64 completed, u32 vendor) {
    ring_reap<ernic_codec>(r);
    EXPECT_PAIRS((state.completed, completed), (static_cast<int>(state.failed), XIO_ERR_TRANSPORT),
                 (state.vendor, vendor), (state.failed_ticket, completed));
  }

  ring_state state{};
  ring_view r{};
  alignas(64) unsigned char cq[4096 + 16 * 64] = {};
};

TEST_F(nic_ernic_codec, nothing_new_changes_nothing) {
  ring_reap<ernic_codec>(r);
  EXPECT_PAIRS((state.completed, 16u), (state.cq_head, 0u), (cq[12], 0));
}

TEST_F(nic_ernic_codec, all_that_is_there) {
  cqe(0, 0, 18);
  cqe(1, 0, 19);
  ring_reap<ernic_codec>(r);
  EXPECT_PAIRS((state.completed, 20u), (state.credits, 6), (state.cq_head, 2u), (cq[12], 2), (state.failed, 0u));
}

TEST_F(nic_ernic_codec, the_indices_second_lap) {
  state.cq_head = 31;
  cqe(31, 0, 16);
  cqe(32, 0, 17);
  ring_reap<ernic_codec>(r);
  EXPECT_PAIRS((state.completed, 18u), (state.cq_head, 33u), (cq[12], 1));
}

TEST_F(nic_ernic_codec, one_completion_for_a_full_ring) {
  state.issued = 24;
  state.credits = 0;
  cqe(0, 0, 23);
  ring_reap<ernic_codec>(r);
  EXPECT_EQ(state.completed, 24u);
  EXPECT_EQ(state.credits, 8);
}

TEST_F(nic_ernic_codec, the_first_error_is_the_cause) {
  cqe(0, 0, 16);
  cqe(1, 10, 19, 3);
  cqe(2, 5, 20);
  expect_failed(19, 10 | 3 << 8);
  for (int i = 0; i < 5; ++i) ring_reap<ernic_codec>(r);
  expect_failed(19, 10 | 3 << 8);
}

TEST_F(nic_ernic_codec, a_flushed_entry_completes_nothing) {
  cqe(0, 5, 19);
  expect_failed(16, 5);
}

TEST_F(nic_ernic_codec, a_fatal_error_names_no_entry) {
  cqe(0, 19, 0, 1);
  expect_failed(16, 19 | 1 << 8);
}

TEST_F(nic_ernic_codec, requests_must_have_been_made) {
  cqe(0, 0, 22);  // only 16 to 21 were
  expect_failed(16, ernic_codec::k_strange_request);
}

TEST_F(nic_ernic_codec, requests_must_not_have_ended) {
  cqe(0, 0, 17);
  cqe(1, 0, 17);
  expect_failed(18, ernic_codec::k_strange_request);
}

TEST_F(nic_ernic_codec, the_tail_must_be_an_index) {
  cq[8] = 32;
  expect_failed(16, ernic_codec::k_strange_index);
}

TEST_F(nic_ernic_codec, the_tail_must_be_in_the_queue) {
  cq[8] = 17;
  expect_failed(16, ernic_codec::k_strange_index);
}

}  // namespace
