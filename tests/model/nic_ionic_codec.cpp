// SPDX-License-Identifier: MIT
// The ionic codec alone: what it makes of completions, which are written here byte by byte. nic_dialect_lane.cpp has it
// over the NIC model.
#include "codec_rig.hpp"
#include "xio/device/impl/ionic.hpp"

namespace {

using namespace xio::dev;

constexpr u64 k_first = 0x1000010;
constexpr unsigned k_msn = 2 << 5, k_npg = 3 << 5, k_error = 2;

struct entry {
  u64 at;
  unsigned state, msn, status = 0, index = 0, color = 1;
};

// Bytes as struct ionic_v1_cqe has them. `queued`: in a completion queue, or in one CQE.
struct rig : xio::test::codec_rig<ionic_codec> {
  explicit rig(bool in_queue) : codec_rig(k_first, 1), queued(in_queue) {
    if (!queued) r.rdma.cq_depth = r.rdma.cq_depth_log2 = 0;
    r.rdma.ionic = {&bell, 0x12345, 2};
    cqe({0, 0, 0x10, 0, 0, queued ? 0u : 1u});  // as nothing happened yet
  }
  void cqe(const entry& e) {
    unsigned char* c = cq + (queued ? e.at % 16 * 32 : 0);
    for (int i = 0; i < 4; ++i) c[4 + i] = static_cast<unsigned char>(e.msn >> (24 - 8 * i));
    c[16] = static_cast<unsigned char>(e.index);
    c[18] = 0x77;  // time stamp
    c[27] = static_cast<unsigned char>(e.status);
    c[29] = 0x12;  // queue pair
    c[31] = static_cast<unsigned char>(e.state | e.color);
  }
  const bool queued;
};

TEST(nic_ionic_codec, nothing_new_changes_nothing) {
  for (const bool queued : {false, true}) rig(queued).expect_nothing();
}

TEST(nic_ionic_codec, counts_messages) {
  for (const bool queued : {false, true}) {
    rig n(queued);
    n.cqe({0, k_msn, 0x12});
    n.reap();
    EXPECT_EQ(n.state.completed, k_first + 2);
    n.cqe({1, k_msn, 0x16});
    n.reap();
    EXPECT_PAIRS((n.state.completed, k_first + 6), (n.state.credits, 7), (n.state.failed, 0u),
                 (n.bell, queued ? 0x12345000002u : 0u));
  }
}

TEST(nic_ionic_codec, fails_with_what_failed_first) {
  const struct {
    const char* name;
    entry what;
    u64 completed, failed;
    u32 vendor;
  } rows[] = {
      {"an error by number", {0, k_msn | k_error, 0x14, 9}, 3, 3, 9},
      {"an error by index completes only what is counted", {0, k_npg | k_error, 0x12, 3, 4}, 2, 4, 3},
      {"an error by index with a count that cannot be", {0, k_npg | k_error, 0, 3, 4}, 0, 4, 3},
      {"an error of no entry of ours", {0, k_npg | k_error, 0x10, 2, 7}, 0, 0, 2},
      {"a flush names nothing", {0, k_npg | k_error, 0x13, 4, 3}, 0, 0, 4},
      {"more than was posted is strange", {0, k_msn, 0x17}, 0, 0, ionic_codec::k_strange_count},
      {"a receive completion is not ours", {0, 1 << 5, 0x12}, 0, 0, ionic_codec::k_strange_type | 1},
  };
  for (const auto& row : rows)
    for (const bool queued : {false, true}) {
      SCOPED_TRACE(std::string(row.name) + (queued ? " in a queue" : ", collapsed"));
      rig n(queued);
      n.cqe(row.what);
      n.expect_failed(row.completed, row.failed, row.vendor);
    }
}

// --- In a queue ---

struct nic_ionic_codec_queue : testing::Test, rig {
  nic_ionic_codec_queue() : rig(true) {}
};

TEST_F(nic_ionic_codec_queue, the_first_error_is_the_cause) {
  cqe({0, k_msn, 0x12});
  cqe({1, k_msn | k_error, 0x13, 10});
  cqe({2, k_npg | k_error, 0x13, 4});
  expect_failed(2, 2, 10);
  EXPECT_EQ(state.cq_head, 3u);
}

TEST_F(nic_ionic_codec_queue, its_end_and_its_next_lap) {
  state.cq_head = 15;
  for (u64 i = 0; i < 15; ++i) cqe({i, k_msn, 0x10});  // as the lap left them
  cqe({15, k_msn, 0x11});
  cqe({16, k_msn, 0x12, 0, 0, 0});
  reap();
  EXPECT_PAIRS((state.completed, k_first + 2), (state.cq_head, 17u), (bell, 0x12345000001u));
}

// Or the NIC, which goes on meanwhile, would find the queue full.
TEST_F(nic_ionic_codec_queue, room_is_given_back_in_time) {
  for (u64 i = 0; i < 16; ++i) cqe({i, k_msn, 0x16});
  reap();
  EXPECT_EQ(state.cq_head, 7u);
  EXPECT_EQ(bell, 0x12345000007u);
}

}  // namespace
