// SPDX-License-Identifier: MIT
// The bnxt_re codec alone: what it makes of completions, which are written here byte by byte. nic_dialect_lane.cpp has
// it over the NIC model.
#include "codec_rig.hpp"
#include "xio/device/impl/bnxt.hpp"

namespace {

using namespace xio::dev;

struct entry {
  u64 at;
  unsigned type, status, consumer, phase = 1;
};

struct rig : xio::test::codec_rig<bnxt_codec> {
  rig() : codec_rig(16, 2) {
    r.rdma.bnxt.cq_doorbell = &bell;
    r.rdma.bnxt.cq_id = 0x12345;
    r.rdma.bnxt.unit = 1;
  }
  void cqe(const entry& e) {
    unsigned char* c = cq + e.at % 16 * 32;
    c[8] = static_cast<unsigned char>(e.consumer);
    c[9] = static_cast<unsigned char>(e.consumer >> 8);
    c[24] = static_cast<unsigned char>(e.phase | e.type << 1);
    c[25] = static_cast<unsigned char>(e.status);
  }
};
struct nic_bnxt_codec : testing::Test, rig {};

TEST_F(nic_bnxt_codec, nothing_new_changes_nothing) {
  expect_nothing();
  cqe({0, 0, 0, 3, 0});
  expect_nothing();
}

TEST_F(nic_bnxt_codec, all_that_is_there_and_one_doorbell) {
  cqe({0, 0, 0, 2});
  cqe({1, 0xd, 0, 0});  // says nothing
  cqe({2, 0, 0, 5});
  reap();
  EXPECT_PAIRS((state.completed, 21u), (state.credits, 7), (state.cq_head, 3u), (state.failed, 0u));
  EXPECT_EQ(bell, 0x4401234500000003u);  // type 4, valid, CQ number; index 3 of lap 0
}

TEST_F(nic_bnxt_codec, the_queues_end_and_its_next_lap) {
  state.cq_head = 15;
  for (u64 i = 0; i < 15; ++i) cqe({i, 0, 0, 0});  // as the lap left them
  cqe({15, 0, 0, 1});
  cqe({16, 0, 0, 2, 0});
  reap();
  EXPECT_PAIRS((state.completed, 18u), (state.cq_head, 17u), (bell, 0x4401234501000001u));  // epoch 1
}

TEST_F(nic_bnxt_codec, one_completion_for_a_full_ring) {
  state.issued = 24;
  state.credits = 0;
  cqe({0, 0, 0, 0});
  reap();
  EXPECT_PAIRS((state.completed, 24u), (state.credits, 8));
}

// `unit` is 8 in variable mode, which names what failed by its slot.
TEST(nic_bnxt_codec_fails, with_what_failed_first) {
  const struct {
    const char* name;
    u16 unit;
    std::vector<entry> entries;
    u64 completed;
    u32 vendor;
  } rows[] = {
      {"the first error is the cause", 1, {{0, 0, 0, 1}, {1, 0, 6, 4}, {2, 0, 0xb, 5}, {3, 0, 0xb, 6}}, 3, 6},
      {"a flushed entry completes nothing", 1, {{0, 0, 0xb, 4}}, 0, 0xb},
      {"a terminal completion ends the ring", 1, {{0, 0xe, 0, 3}}, 3, bnxt_codec::k_terminal},
      {"a terminal completion without an index", 1, {{0, 0xe, 0, 0xffff}}, 0, bnxt_codec::k_terminal},
      {"only 16 to 21 were posted", 1, {{0, 0, 0, 7}}, 0, bnxt_codec::k_strange_index | 7},
      {"a receive completion is not ours", 1, {{0, 1, 0, 3}}, 0, bnxt_codec::k_strange_type | 1},
      {"a slot of variable mode", 8, {{0, 0, 0, 1}, {1, 0, 6, 3 * 8}}, 3, 6},
      {"no entry within an entry", 8, {{0, 0, 6, 9}}, 0, bnxt_codec::k_strange_index | 9},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    rig n;
    n.r.rdma.bnxt.unit = row.unit;
    for (const entry& e : row.entries) n.cqe(e);
    n.expect_failed(row.completed, row.completed, row.vendor);
    if (row.entries.size() == 4) {
      EXPECT_EQ(n.state.cq_head, 4u);
    }
  }
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
