// SPDX-License-Identifier: MIT
// The emulated NIC's legacy codec alone: what it makes of completions, which are written here byte by byte.
// nic_dialect_lane.cpp has it over the NIC model.
#include "codec_rig.hpp"
#include "xio/device/impl/ernic.hpp"

namespace {

using namespace xio::dev;

struct entry {
  u64 at;
  unsigned status, ticket, vendor = 0;
};

struct rig : xio::test::codec_rig<ernic_codec> {
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

}  // namespace
