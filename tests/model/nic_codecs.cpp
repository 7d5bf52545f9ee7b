// SPDX-License-Identifier: MIT
// The codecs of NIC families, judged by the decoders of the software NIC.
#include "../gtest.hpp"
#include "xio/device/impl/bnxt.hpp"
#include "xio/device/impl/ernic.hpp"
#include "xio/device/impl/ionic.hpp"
#include "xio/device/impl/rdma.hpp"

namespace {

using namespace xio::dev;

// A codec of a NIC family alone: a ring of 8 with six entries in flight, whose completions a test writes byte by byte.
template <class Codec>
struct codec_rig {
  // `credits` are left behind the six entries from `first` on.
  codec_rig(u64 from, int credits) : first(from) {
    state.issued = state.published = first + 6;
    state.completed = first;
    state.credits = credits;
    r.state = &state;
    r.depth = 8;
    r.rdma.depth_log2 = 3;
    r.rdma.completions = cq;
    r.rdma.cq_depth = 16;
    r.rdma.cq_depth_log2 = 4;
  }
  void reap() { ring_reap<Codec>(r); }
  // However often it is looked at: what failed stays the entry behind `failed` that have been completed.
  void expect_failed(u64 completed, u64 failed, u32 vendor) {
    for (int i = 0; i < 3; ++i) reap();
    EXPECT_PAIRS((state.completed, first + completed), (static_cast<int>(state.failed), XIO_ERR_TRANSPORT),
                 (state.vendor, vendor), (state.failed_ticket, first + failed));
  }
  void expect_nothing() {
    reap();
    EXPECT_PAIRS((state.completed, first), (state.cq_head, 0u), (bell, 0u), (state.failed, 0u));
  }

  const u64 first;
  ring_state state{};
  ring_view r{};
  u64 bell = 0;
  alignas(64) unsigned char cq[4096 + 16 * 64] = {};
};

// --- bnxt -------------------------------------------------------------------------------------------
// The bnxt_re codec alone: what it makes of completions, which are written here byte by byte. nic_dialect_lane.cpp has
// it over the NIC model.

namespace of_bnxt {

struct entry {
  u64 at;
  unsigned type, status, consumer, phase = 1;
};

struct rig : codec_rig<bnxt_codec> {
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

}  // namespace of_bnxt

// --- ernic ------------------------------------------------------------------------------------------
// The emulated NIC's legacy codec alone: what it makes of completions, which are written here byte by byte.
// nic_dialect_lane.cpp has it over the NIC model.

namespace of_ernic {

struct entry {
  u64 at;
  unsigned status, ticket, vendor = 0;
};

struct rig : codec_rig<ernic_codec> {
  rig() : codec_rig(16, 2) {}
  void cqe(const entry& e) {
    unsigned char* c = cq + 4096 + e.at % 16 * 64;
    c[0] = static_cast<unsigned char>(e.ticket);
    c[20] = static_cast<unsigned char>(e.status);
    c[40] = static_cast<unsigned char>(e.vendor);
    cq[8] = static_cast<unsigned char>((e.at + 1) % 32);
  }
};
struct nic_ernic_codec : testing::Test, rig {};

TEST_F(nic_ernic_codec, nothing_new_changes_nothing) {
  expect_nothing();
  EXPECT_EQ(cq[12], 0);
}

TEST_F(nic_ernic_codec, all_that_is_there) {
  cqe({0, 0, 18});
  cqe({1, 0, 19});
  reap();
  EXPECT_PAIRS((state.completed, 20u), (state.credits, 6), (state.cq_head, 2u), (cq[12], 2), (state.failed, 0u));
}

TEST_F(nic_ernic_codec, the_indices_second_lap) {
  state.cq_head = 31;
  cqe({31, 0, 16});
  cqe({32, 0, 17});
  reap();
  EXPECT_PAIRS((state.completed, 18u), (state.cq_head, 33u), (cq[12], 1));
}

TEST_F(nic_ernic_codec, one_completion_for_a_full_ring) {
  state.issued = 24;
  state.credits = 0;
  cqe({0, 0, 23});
  reap();
  EXPECT_PAIRS((state.completed, 24u), (state.credits, 8));
}

TEST(nic_ernic_codec_fails, with_what_failed_first) {
  const struct {
    const char* name;
    std::vector<entry> entries;
    u64 completed;
    u32 vendor;
  } rows[] = {
      {"the first error is the cause", {{0, 0, 16}, {1, 10, 19, 3}, {2, 5, 20}}, 3, 10 | 3 << 8},
      {"a flushed entry completes nothing", {{0, 5, 19}}, 0, 5},
      {"a fatal error names no entry", {{0, 19, 0, 1}}, 0, 19 | 1 << 8},
      {"only 16 to 21 were requested", {{0, 0, 22}}, 0, ernic_codec::k_strange_request},
      {"requests must not have ended", {{0, 0, 17}, {1, 0, 17}}, 2, ernic_codec::k_strange_request},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    rig n;
    for (const entry& e : row.entries) n.cqe(e);
    n.expect_failed(row.completed, row.completed, row.vendor);
  }
  for (const unsigned char tail : {32, 17}) {
    SCOPED_TRACE(tail == 32 ? "the tail must be an index" : "the tail must be in the queue");
    rig n;
    n.cq[8] = tail;
    n.expect_failed(0, 0, ernic_codec::k_strange_index);
  }
}

}  // namespace of_ernic

// --- ionic ------------------------------------------------------------------------------------------
// The ionic codec alone: what it makes of completions, which are written here byte by byte. nic_dialect_lane.cpp has it
// over the NIC model.

namespace of_ionic {

constexpr u64 k_first = 0x1000010;
constexpr unsigned k_msn = 2 << 5, k_npg = 3 << 5, k_error = 2;

struct entry {
  u64 at;
  unsigned state, msn, status = 0, index = 0, color = 1;
};

// Bytes as struct ionic_v1_cqe has them. `queued`: in a completion queue, or in one CQE.
struct rig : codec_rig<ionic_codec> {
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
  EXPECT_PAIRS((state.cq_head, 7u), (bell, 0x12345000007u));
}

}  // namespace of_ionic

}  // namespace
