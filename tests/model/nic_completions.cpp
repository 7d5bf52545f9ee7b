// SPDX-License-Identifier: MIT
// What the lane makes of completions that a test writes, of a device that does what a test says, and of depths and
// limits that a family cannot have. No NIC runs here.
#include "../gtest.hpp"
#include "nic_rig.hpp"
#include "transport/rdma/families.hpp"
#include "xio/device/impl/rdma.hpp"

namespace {

using namespace xio::dev;
namespace rdma = xio::dev::rdma;

// The sentence of a refusal, "" for none.
template <class Body>
std::string refusal(Body&& body) {
  return xio::guard(body) == XIO_OK ? "" : xio::last_error();
}

TEST(nic_family, completion_queues_are_as_deep_as_asked_for_or_refused) {
  using xio::proxy::completion_depth;
  for (const char* name : {"bnxt", "ionic_v1", "ernic", "mlx5_cq"}) {
    const xio::proxy::family& f = xio::rdma::find_family(name);
    EXPECT_EQ(completion_depth(f, 64, 0), 128u) << name;
    EXPECT_EQ(completion_depth(f, 64, 128), 128u) << name;
    EXPECT_EQ(completion_depth(f, 64, f.most_cq_depth), f.most_cq_depth) << name;
    // The deepest send queue's fit.
    EXPECT_EQ(completion_depth(f, f.most_depth, 0), 2 * f.most_depth) << name;
    EXPECT_LE(2 * f.most_depth, f.most_cq_depth) << name;
    for (const u64 wrong : {u64{64}, u64{192}, u64{2} * f.most_cq_depth, u64{1} << 40})
      EXPECT_NE(refusal([&] { completion_depth(f, 64, wrong); }).find("power of two from 128 to"), std::string::npos);
  }
  for (const char* name : {"mlx5", "ionic", "proxy"}) {
    const xio::proxy::family& f = xio::rdma::find_family(name);
    EXPECT_EQ(completion_depth(f, 64, 0), 0u) << name;
    EXPECT_NE(refusal([&] { completion_depth(f, 64, 128); }).find("its last completion alone"), std::string::npos)
        << name;
  }
}

TEST(nic_family, inline_limits_are_numbers_that_the_entry_holds) {
  for (const char* name : xio::test::k_families) {
    const xio::proxy::family& f = xio::rdma::find_family(name);
    EXPECT_EQ(xio::proxy::inline_limit(f, std::nullopt), f.inline_bytes) << name;
    EXPECT_EQ(xio::proxy::inline_limit(f, 0), 0u) << name;
    EXPECT_EQ(xio::proxy::inline_limit(f, f.inline_bytes), f.inline_bytes) << name;
    for (const u64 more : {u64{f.inline_bytes} + 1, u64{1} << 32, ~u64{0}})
      EXPECT_NE(refusal([&] { xio::proxy::inline_limit(f, more); }).find("at most"), std::string::npos) << name;
  }
}

// Eight slots that no NIC reads; the test writes the CQE.
struct codec_ring {
  explicit codec_ring(u64 posted) {
    state.issued = state.published = posted;
    state.credits = 8 - static_cast<std::int64_t>(posted);
    r.state = &state;
    r.marks = marks;
    r.slots = slots;
    r.depth = 8;
    r.rdma.depth_log2 = 3;
    r.rdma.completions = cqe;
  }
  ring_state state{};
  ring_view r{};
  u64 marks[8] = {};
  alignas(64) unsigned char slots[8 * 64] = {}, cqe[64] = {};
};

TEST(nic_codec, a_neutral_count_of_what_was_never_posted_is_an_error) {
  codec_ring ring(2);
  ring.cqe[0] = 3;
  ring_reap<proxy_codec>(ring.r);
  EXPECT_PAIRS((ring.state.completed, 0u), (static_cast<int>(ring.state.failed), XIO_ERR_TRANSPORT),
               (ring.state.vendor, proxy_codec::k_strange_count));
}

// Top bit of the count, then status and the carrier's code: remote access, rule 7.
TEST(nic_codec, a_neutral_failure_is_reported_at_the_count) {
  codec_ring ring(6);
  ring.cqe[0] = 4;
  ring.cqe[7] = 0x80;
  ring.cqe[8] = 6;
  ring.cqe[12] = 7;
  ring_reap<proxy_codec>(ring.r);
  EXPECT_PAIRS((ring.state.completed, 4u), (static_cast<int>(ring.state.failed), XIO_ERR_TRANSPORT),
               (ring.state.failed_ticket, 4u), (ring.state.vendor, 6u | 7u << 8));
}

// A CQE of a flushed entry says nothing about where the failure was: nothing may count as complete.
TEST(nic_codec, a_flushed_entry_completes_nothing) {
  codec_ring ring(6);
  ring.cqe[55] = 0x05;
  ring.cqe[61] = 4;
  ring.cqe[63] = 13 << 4;
  ring_reap<mlx5_codec>(ring.r);
  EXPECT_PAIRS((ring.state.completed, 0u), (static_cast<int>(ring.state.failed), XIO_ERR_TRANSPORT),
               (ring.state.vendor, 0x05u));
}

TEST(nic_codec, a_nonsense_completion_is_an_error) {
  codec_ring ring(2);
  for (int i = 0; i < 8; ++i) ring.slots[64 * i + 7] = 3;
  ring.cqe[61] = 2;  // only 0 and 1 were posted
  ring_reap<mlx5_codec>(ring.r);
  EXPECT_PAIRS((ring.state.completed, 0u), (static_cast<int>(ring.state.failed), XIO_ERR_TRANSPORT),
               (ring.state.vendor & mlx5_codec::k_strange_counter, mlx5_codec::k_strange_counter));
}

// The CQE that was consumed last stays where it is, and its slot may have become another entry's. It names a WQE that
// ended at what is complete, and none has more than 16 slots; a counter farther back is none that this ring has had.
TEST(nic_codec, a_completion_that_was_consumed_says_nothing) {
  for (const u64 completed : {u64{5}, u64{65536 + 3}, u64{3} << 20}) {
    codec_ring ring(completed + 3);
    ring.state.completed = completed;
    for (int i = 0; i < 8; ++i) ring.slots[64 * i + 7] = 3;
    const auto drain = [&](u64 counter) {
      ring.cqe[60] = static_cast<unsigned char>(counter >> 8);
      ring.cqe[61] = static_cast<unsigned char>(counter);
      ring_reap<mlx5_codec>(ring.r);
    };
    drain(completed - 1);
    drain(completed - 2);
    drain(completed - 16);
    EXPECT_PAIRS((ring.state.completed, completed), (ring.state.failed, 0u));
    drain(completed + 1);
    EXPECT_PAIRS((ring.state.completed, completed + 2), (ring.state.failed, 0u));
    drain(completed + 2 - 17);
    EXPECT_PAIRS((ring.state.completed, completed + 2), (static_cast<int>(ring.state.failed), XIO_ERR_TRANSPORT),
                 (ring.state.vendor & mlx5_codec::k_strange_counter, mlx5_codec::k_strange_counter));
  }
}

// How long an entry is comes from beside it, not from the slot, which may lie in memory that is slow to read; and what
// lies there is nobody's mark.
TEST(nic_codec, the_length_of_an_entry_is_kept_beside_it) {
  codec_ring ring(6);
  rdma::work w{};
  w.what = rdma::verb::write;
  w.from = rdma::payload::gathered;
  w.bytes = 64;
  ASSERT_EQ(mlx5_codec::slots(w), 2u);
  mlx5_codec::encode(ring.r, 3, 0, true, w);
  EXPECT_EQ(ring_scan(ring.r, 3), 3u);
  EXPECT_EQ(ring_kept_length(ring.r, 3), 2u);
  EXPECT_EQ(ring_kept_length(ring.r, 11), 0u) << "of the lap before";
  std::memset(ring.slots, 0x3f, sizeof ring.slots);
  ring.cqe[61] = 3;
  ring_reap<mlx5_codec>(ring.r);
  EXPECT_PAIRS((ring.state.completed, 5u), (ring.state.failed, 0u));
}

// A device that does what the test says.
struct scripted_codec {
  static constexpr bool k_in_order = true;
  static inline u64 upto = 0, announced = 0;
  static inline bool fails = false;
  static void announce(const ring_view&, u64, u64 to) { announced = to; }
  static u64 drain(const ring_view& r, u64 completed) {
    if (upto > completed) ring_complete(r, completed, upto);
    if (fails) ring_fail(r, XIO_ERR_TRANSPORT, 0, ring_completed(r));
    return ring_completed(r);
  }
  static void are(u64 complete, bool failing) {
    upto = complete;
    fails = failing;
  }
};

// Or no thread would ever drain again. The count is loaded together with the bit of the thread that drains.
TEST(nic_ring, every_way_out_of_a_wait_gives_the_turn_back) {
  world_view world{};
  world.timeout_ticks = 1000;
  const auto wait = [&](codec_ring& ring, u64 upto, xio_status_t status, u64 completed, const char* how) {
    EXPECT_EQ(ring_wait_below<scripted_codec>(ring.r, upto, world), status) << how;
    EXPECT_EQ(ring.state.completed, completed) << how;
  };
  codec_ring ring(6), failing(6), slow(6);
  scripted_codec::are(2, false);
  wait(ring, 2, XIO_OK, 2, "drained by itself");
  wait(ring, 1, XIO_OK, 2, "complete before");
  scripted_codec::are(3, true);
  wait(ring, 3, XIO_OK, 3, "complete, and the ring failed behind it");
  wait(ring, 5, XIO_ERR_TRANSPORT, 3, "failed before");
  scripted_codec::are(0, true);
  wait(failing, 1, XIO_ERR_TRANSPORT, 0, "failed by its own look");
  scripted_codec::are(0, false);
  wait(slow, 1, XIO_ERR_TIMEOUT, 0, "in vain");
}

// A wave that finds no slots has become the ringer meanwhile: it rings for the waves that have come, and is the ringer
// no more.
TEST(nic_ring, who_waits_for_slots_is_not_the_ringer) {
  world_view world{};
  world.timeout_ticks = 1000;
  codec_ring ring(8);
  ring.state.published = 6;
  ring.marks[6] = ring_mark_of(6, 2);
  scripted_codec::are(0, false);
  bool mine = true;
  EXPECT_EQ(ring_take_credits<scripted_codec>(ring.r, 1, world, &mine), XIO_ERR_TIMEOUT);
  EXPECT_FALSE(mine);
  EXPECT_PAIRS((scripted_codec::announced, 8u), (ring.state.pending, 0u), (ring.state.credits, 0));
  EXPECT_EQ(ring_take_credits<scripted_codec>(ring.r, 1, world, &mine), XIO_ERR_TIMEOUT) << "of a ring that has failed";
  EXPECT_EQ(ring.state.pending, 0u);
}

// This holds for a thread that polls while both come, too.
TEST(nic_ring, what_is_complete_stays_so_when_the_ring_fails) {
  codec_ring ring(2);
  std::atomic<int> begun = 0, done = 0;
  constexpr int rounds = 2000;
  std::thread reaper([&] {
    for (int i = 1; i <= rounds; ++i) {
      while (begun != i) std::this_thread::yield();
      ring_complete(ring.r, 0, 1);
      ring_fail(ring.r, XIO_ERR_TRANSPORT, 0, 1);
      done = i;
    }
  });
  int wrong = 0;
  for (int i = 1; i <= rounds; ++i) {
    ring.state = {};
    begun = i;
    xio_status_t status = XIO_PENDING;
    while (status == XIO_PENDING) status = ring_test(ring.r, 0);
    if (status != XIO_OK) ++wrong;
    while (done != i) std::this_thread::yield();
    EXPECT_EQ(ring_test(ring.r, 1), XIO_ERR_TRANSPORT);
  }
  reaper.join();
  EXPECT_EQ(wrong, 0);
}

// Ticket, length; the ring's end; a hole; the lap before; memory of zeroes.
TEST(nic_codec, a_scan_ends_at_the_first_batch_that_is_not_marked) {
  u64 marks[16] = {};
  ring_view r{};
  r.marks = marks;
  r.depth = 16;
  for (const u64 base : {u64{0}, u64{1} << 40, (u64{1} << 47) - 16}) {
    std::fill_n(marks, 16, u64{0});
    EXPECT_EQ(ring_scan(r, base), base);
    marks[3] = ring_mark_of(base + 3, 9);
    marks[12] = ring_mark_of(base + 12, 1);
    marks[13] = ring_mark_of(base + 13, 6);  // to slot 2 of the next lap
    marks[4] = ring_mark_of(base + 4, 1);    // inside a batch: nobody looks
    EXPECT_EQ(ring_scan(r, base), base);
    EXPECT_EQ(ring_scan(r, base + 3), base + 19);
    EXPECT_EQ(ring_scan(r, base + 19), base + 19) << "the mark of the lap before";
    marks[3] = ring_mark_of(base + 19, 1);
    EXPECT_EQ(ring_scan(r, base + 13), base + 20);
  }
}

}  // namespace
