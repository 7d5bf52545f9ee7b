// SPDX-License-Identifier: MIT
// The RDMA lane through its ring and the NIC model: data, statuses, wraps. Host threads are waves of one lane here, so
// this runs on the host platform only; nic_wave does it with kernels.
#include "nic_by_hand.hpp"
#include "nic_rig.hpp"
#include "transport/rdma/families.hpp"
#include "xio/device/impl/inbox.hpp"
#include "xio/device/impl/rdma.hpp"

namespace {

using namespace xio::dev;
namespace rdma = xio::dev::rdma;
using xio::test::nic_rig;
using xio::test::nic_rig_shape;
using xio::test::one_fault;

constexpr unsigned char k_poison = 0xee;

struct nic_lane : testing::Test {
  void SetUp() override {
    if (std::string(xio::gpu::name()) != "host") GTEST_SKIP() << "device code runs on the GPU: see nic_wave";
    start({});
  }
  void start(const nic_rig_shape& shape) {
    rig.reset();
    rig = std::make_unique<nic_rig>(shape);
  }
  const ctx_view& c() { return *rig->pes[0].view(); }
  unsigned char* mine() { return rig->pes[0].heap->data(); }
  unsigned char* theirs() { return rig->pes[1].heap->data(); }
  xio_status_t wait(u32 pe, xio_req_t request) {
    if (request == 0) return XIO_OK;
    const ring_view& r = *c().peers[pe].rdma;
    return ring_wait_below<mlx5_codec>(r, request_ticket(r, request) + 1, *c().world);
  }
  // Begins an op, and waits for its end.
  template <class Begin>
  xio_status_t ended(u32 pe, Begin&& begin) {
    xio_req_t request = 0;
    const xio_status_t begun = begin(&request);
    return begun == XIO_OK ? wait(pe, request) : begun;
  }
  xio_status_t quiet(u32 pe) { return ring_quiet<mlx5_codec>(*c().peers[pe].rdma, *c().world); }
  void poison(unsigned char* heap) { std::memset(heap, k_poison, 1 << 20); }
  void pattern(unsigned char* p, std::size_t n, unsigned salt) {
    for (std::size_t i = 0; i < n; ++i) p[i] = static_cast<unsigned char>(i * 131 + salt + (i >> 8));
  }
  void expect_only(const unsigned char* heap, std::size_t at, const unsigned char* want, std::size_t n) {
    EXPECT_EQ(std::memcmp(heap + at, want, n), 0) << n << " bytes at " << at;
    for (std::size_t i = at > 64 ? at - 64 : 0; i < at; ++i) ASSERT_EQ(heap[i], k_poison) << "guard before, " << n;
    for (std::size_t i = at + n; i < at + n + 64; ++i) ASSERT_EQ(heap[i], k_poison) << "guard behind, " << n;
  }

  std::unique_ptr<nic_rig> rig;
};

TEST_F(nic_lane, put_and_get_of_all_small_sizes_and_alignments) {
  for (std::size_t n = 0; n <= 64; ++n)
    for (std::size_t shift = 0; shift < 5; ++shift) {
      std::memset(theirs() + 4096 - 256, k_poison, 1024);
      pattern(mine() + 8192 + shift, n, static_cast<unsigned>(n));
      xio_req_t request;
      ASSERT_EQ(rdma::put(c(), 1, 4096 + 3 * shift, mine() + 8192 + shift, n, &request), XIO_OK);
      ASSERT_EQ(request == 0, n == 0);
      ASSERT_EQ(wait(1, request), XIO_OK);
      expect_only(theirs(), 4096 + 3 * shift, mine() + 8192 + shift, n);
      std::memset(mine() + 65536, k_poison, 256);
      ASSERT_EQ(ended(1, [&](auto* r) { return rdma::get(c(), 1, mine() + 65600 + shift, 4096 + 3 * shift, n, r); }),
                XIO_OK);
      expect_only(mine(), 65600 + shift, mine() + 8192 + shift, n);
    }
}

TEST_F(nic_lane, large_ones_in_chunks) {
  start({.depth = 4, .chunk = 1000});
  for (const std::size_t n : {999u, 1000u, 1001u, 1028u, 1029u, 2000u, 33333u, 300000u}) {
    poison(theirs());
    pattern(mine(), n, 9);
    ASSERT_EQ(ended(1, [&](auto* r) { return rdma::put(c(), 1, 700, mine(), n, r); }), XIO_OK);
    expect_only(theirs(), 700, mine(), n);
    std::memset(mine() + 500000, k_poison, 500000);
    ASSERT_EQ(ended(1, [&](auto* r) { return rdma::get(c(), 1, mine() + 500100, 700, n, r); }), XIO_OK);
    expect_only(mine(), 500100, mine(), n);
  }
}

// The last message carries the immediate, and it alone: the others are plain writes.
TEST_F(nic_lane, large_ones_with_an_immediate) {
  for (const char* family : xio::test::k_families) {
    SCOPED_TRACE(family);
    start({.chunk = 1000, .family = family, .immediates = 16});
    const ring_view& r = *c().peers[1].rdma;
    unsigned char* inbox = theirs() + rig->inboxes();
    u32 sent = 0;
    for (const std::size_t n : {0u, 20u, 1000u, 1001u, 2500u}) {
      std::memset(theirs(), k_poison, 8192);
      pattern(mine(), n, 5);
      xio_req_t request;
      ASSERT_EQ(rdma::put_immediate(c(), 1, {700, mine(), n}, 0x1234 + sent, &request), XIO_OK);
      ASSERT_EQ(wait_ring(r, request_ticket(r, request) + 1, *c().world), XIO_OK) << n;
      expect_only(theirs(), 700, mine(), n);
      u32 immediate = 0;
      ASSERT_TRUE(inbox_poll(inbox, 16, &immediate)) << n;
      EXPECT_EQ(immediate, 0x1234 + sent);
      EXPECT_FALSE(inbox_poll(inbox, 16, &immediate)) << n;
      ++sent;
    }
  }
}

TEST_F(nic_lane, values_of_every_width) {
  for (const u32 width : {1u, 2u, 4u, 8u}) {
    std::memset(theirs() + 1024, k_poison, 256);
    const u64 value = 0xf1e2d3c4b5a69788;
    ASSERT_EQ(ended(1, [&](auto* r) { return rdma::put_value(c(), 1, 1088, value, width, r); }), XIO_OK);
    expect_only(theirs(), 1088, reinterpret_cast<const unsigned char*>(&value), width);
    u64 back = ~u64{0};
    ASSERT_EQ(rdma::get_value(c(), 1, 1088, width, &back), XIO_OK);
    EXPECT_EQ(back, width == 8 ? value : value & ((u64{1} << (8 * width)) - 1));
  }
}

TEST_F(nic_lane, signals_come_behind_their_data) {
  auto* flag = reinterpret_cast<u64*>(theirs() + 2048);
  *flag = 5;
  xio_req_t request;
  ASSERT_EQ(ended(1, [&](auto* r) { return rdma::signal(c(), 1, {2048, 7, XIO_SIGNAL_ADD}, r); }), XIO_OK);
  EXPECT_EQ(*flag, 12u);
  ASSERT_EQ(ended(1,
                  [&](auto* r) {
                    return rdma::signal(c(), 1, {2048, 0x0123456789abcdef, XIO_SIGNAL_SET}, r);
                  }),
            XIO_OK);
  EXPECT_EQ(*flag, 0x0123456789abcdefu);
  *flag = 0;
  const std::size_t sizes[] = {0, 1, 8, 28, 29, 4096, 100000};
  u64 round = 0;
  for (int turn = 0; turn < 20; ++turn)
    for (const std::size_t n : sizes) {
      ++round;
      std::memset(theirs() + 4096, 0, 100000);
      pattern(mine() + 4096, n, static_cast<unsigned>(round));
      const xio_signal_op_t op = round % 2 != 0 ? XIO_SIGNAL_SET : XIO_SIGNAL_ADD;
      ASSERT_EQ(
          rdma::put_signal(c(), 1, {4096, mine() + 4096, n}, {2048, op == XIO_SIGNAL_SET ? round : 1, op}, &request),
          XIO_OK);
      while (load<scope::system, order::acquire>(flag) != round) sched_yield();
      ASSERT_EQ(std::memcmp(theirs() + 4096, mine() + 4096, n), 0) << "the signal overtook " << n << " bytes";
      ASSERT_EQ(wait(1, request), XIO_OK);
    }
}

struct atomic_case {
  amo op;
  u64 old, operand, compare, result8, result4;
};

TEST_F(nic_lane, atomics_of_both_widths) {
  const u64 a = 0x8000000180000001, b = 0xff00ff00f0f0f0f0;
  const atomic_case cases[] = {
      {amo::fetch, a, 0, 0, a, 0x80000001},        {amo::set, a, b, 0, b, 0xf0f0f0f0},
      {amo::compare_swap, a, b, a, b, 0xf0f0f0f0}, {amo::compare_swap, a, b, a ^ 1, a, 0x80000001},
      {amo::add, a, b, 0, a + b, 0x70f0f0f1},      {amo::bit_and, a, b, 0, a & b, 0x80000000},
      {amo::bit_or, a, b, 0, a | b, 0xf0f0f0f1},   {amo::bit_xor, a, b, 0, a ^ b, 0x70f0f0f1},
  };
  for (const auto& t : cases)
    for (const bool fetch : {true, false})
      for (const u32 width : {8u, 4u}) {
        SCOPED_TRACE(testing::Message() << "op " << int(t.op) << " width " << width << " fetch " << fetch);
        std::memset(theirs() + 1024, k_poison, 256);
        std::memcpy(theirs() + 1088, &t.old, width);
        u64 old = 0x7777;
        ASSERT_EQ(rdma::atomic(c(), 1, {1088, width, t.op, t.operand, t.compare}, fetch, &old), XIO_OK);
        ASSERT_EQ(quiet(1), XIO_OK);
        EXPECT_EQ(old, !fetch ? 0x7777 : width == 8 ? t.old : t.old & 0xffffffff);
        const u64 want = width == 8 ? t.result8 : t.result4;
        expect_only(theirs(), 1088, reinterpret_cast<const unsigned char*>(&want), width);
      }
}

TEST_F(nic_lane, loopback_to_myself) {
  pattern(mine() + 4096, 5000, 3);
  ASSERT_EQ(ended(0, [&](auto* r) { return rdma::put(c(), 0, 40000, mine() + 4096, 5000, r); }), XIO_OK);
  EXPECT_EQ(std::memcmp(mine() + 40000, mine() + 4096, 5000), 0);
}

TEST_F(nic_lane, local_memory_must_be_registered) {
  std::vector<unsigned char> buffer(4096, 0x42);
  xio_req_t request = 99;
  EXPECT_PAIRS((rdma::put(c(), 1, 4096, buffer.data(), 29, &request), XIO_ERR_NOT_REGISTERED), (request, 0u),
               (rdma::get(c(), 1, buffer.data(), 4096, 1, &request), XIO_ERR_NOT_REGISTERED));
  EXPECT_EQ(rdma::put(c(), 1, 4096, buffer.data(), 28, &request), XIO_OK);  // travels in the entry
  rig->register_memory(0, buffer.data(), buffer.size());
  EXPECT_PAIRS((rdma::put(c(), 1, 4096, buffer.data(), 4096, &request), XIO_OK), (wait(1, request), XIO_OK),
               (std::memcmp(theirs() + 4096, buffer.data(), 4096), 0),
               (rdma::put(c(), 1, 4096, buffer.data() + 1, 4096, &request), XIO_ERR_NOT_REGISTERED));
  rig->pes[0].endpoint->unregister_memory(buffer.data());
}

// Data that travel in the entry need no key, all other data need one.
TEST_F(nic_lane, the_inline_limit_is_what_was_asked_for) {
  const xio::gpu::buffer unknown(4096, xio::gpu::place::shared);
  for (const char* family : xio::test::k_families)
    for (const u32 limit : {0u, 1u, 8u, 28u}) {
      start({.family = family, .inline_bytes = limit});
      xio_req_t request;
      EXPECT_EQ(rdma::put(c(), 1, 4096, unknown.as<unsigned char>(), limit, &request), XIO_OK)
          << family << ' ' << limit;
      EXPECT_EQ(rdma::put(c(), 1, 4096, unknown.as<unsigned char>(), limit + 1, &request), XIO_ERR_NOT_REGISTERED)
          << family << ' ' << limit;
    }
}

TEST_F(nic_lane, tickets_wrap_on_a_tiny_ring) {
  for (const u64 start_at : {(u64{1} << 32) - 8, (u64{1} << 16) - 4, u64{0}}) {
    start({.depth = 4, .ticket_start = start_at});
    auto* word = reinterpret_cast<u64*>(theirs() + 1024);
    u64 sum = 0;
    for (u64 i = 1; i <= 70000; ++i) {
      // One slot, two slots, two entries: a two-slot entry reaches the ring's end in turn.
      u64 old = 0;
      xio_req_t request;
      if (i % 1000 == 0) {
        ASSERT_EQ(rdma::atomic(c(), 1, {1024, 8, amo::set, sum, 0}, true, &old), XIO_OK);
        ASSERT_EQ(old, sum);
      }
      if (i % 3 == 0) {
        ASSERT_EQ(rdma::put_signal(c(), 1, {4096, &i, 8}, {2048, i, XIO_SIGNAL_SET}, &request), XIO_OK);
      }
      ASSERT_EQ(rdma::atomic(c(), 1, {1024, 8, amo::add, i, 0}, false, &old), XIO_OK);
      sum += i;
    }
    ASSERT_EQ(quiet(1), XIO_OK);
    EXPECT_EQ((load<scope::system, order::acquire>(word)), sum);
    EXPECT_EQ(*reinterpret_cast<u64*>(theirs() + 2048), 69999u);
    const auto state = rig->state(0, 1);
    EXPECT_PAIRS((state.issued, state.completed), (state.published, state.completed), (state.credits, 4));
    EXPECT_GT(state.completed, start_at + 70000);
  }
}

TEST_F(nic_lane, several_threads_on_one_tiny_ring) {
  start({.depth = 4, .scratch_words = 2});  // one to hand out: all but one thread wait for it
  constexpr u64 k_each = 3000;
  std::atomic<int> bad{0};
  std::vector<u64> seen(4 * k_each);
  xio::test::at_once(4, [&](int t) {
    for (u64 i = 0; i < k_each; ++i) {
      u64 old = 0;
      if (rdma::atomic(c(), 1, {1024, t % 2 == 0 ? 8u : 4u, amo::add, 1, 0}, true, &old) != XIO_OK) ++bad;
      seen[static_cast<u64>(t) * k_each + i] = old;
    }
  });
  EXPECT_EQ(bad, 0);
  EXPECT_EQ(*reinterpret_cast<u64*>(theirs() + 1024), 4 * k_each);
  xio::test::expect_each_once(seen);
  EXPECT_EQ(*rig->pes[0].view()->scratch_used, 0u);
}

// --- Failures ----------------------------------------------------------------------------------------

TEST_F(nic_lane, a_wrong_remote_key_fails_the_ring_and_no_other) {
  c().peers[1].rdma->rdma.remote_key ^= 0x100;
  xio_req_t request;
  ASSERT_EQ(rdma::put(c(), 1, 4096, mine() + 4096, 100, &request), XIO_OK);
  EXPECT_EQ(wait(1, request), XIO_ERR_TRANSPORT);
  const auto state = rig->state(0, 1);
  EXPECT_EQ(state.vendor & 0xff, 0x13u);  // remote access error
  EXPECT_EQ(state.failed_ticket, 0u);
  EXPECT_EQ(rdma::put(c(), 1, 4096, mine() + 4096, 100, &request), XIO_ERR_TRANSPORT);
  u64 value = 0;
  EXPECT_PAIRS((rdma::get_value(c(), 1, 4096, 8, &value), XIO_ERR_TRANSPORT), (quiet(1), XIO_ERR_TRANSPORT),
               (rdma::put(c(), 0, 4096, mine() + 8192, 100, &request), XIO_OK), (wait(0, request), XIO_OK));
}

TEST_F(nic_lane, every_family_reports_a_failure) {
  for (const char* family : xio::test::k_families) {
    SCOPED_TRACE(family);
    start({.family = family});
    ring_view& r = *c().peers[1].rdma;
    const auto ended = [&](xio_req_t request) { return wait_ring(r, request_ticket(r, request) + 1, *c().world); };
    xio_req_t good, bad;
    ASSERT_EQ(rdma::put(c(), 1, 4096, mine() + 4096, 100, &good), XIO_OK);
    ASSERT_EQ(ended(good), XIO_OK);
    r.rdma.remote_key ^= 0x100;
    ASSERT_EQ(rdma::put(c(), 1, 4096, mine() + 4096, 100, &bad), XIO_OK);
    EXPECT_PAIRS((ended(bad), XIO_ERR_TRANSPORT), (ended(good), XIO_OK));
    const auto state = rig->state(0, 1);
    EXPECT_EQ(static_cast<int>(state.failed), XIO_ERR_TRANSPORT);
    EXPECT_NE(state.vendor & 0xff, 0u);
    EXPECT_EQ(state.vendor >> 16 & 0xffff, 0u) << "no code of ours: the device said why";
    r.rdma.remote_key ^= 0x100;
    EXPECT_EQ(rdma::put(c(), 1, 4096, mine() + 4096, 100, &bad), XIO_ERR_TRANSPORT);
  }
}

TEST_F(nic_lane, what_was_before_the_failure_is_complete) {
  one_fault plan(one_fault::kind::fail, 3);
  rig->pes[0].nic().set_faults(&plan);
  const ring_view& r = *c().peers[1].rdma;
  xio_req_t requests[5];
  for (int i = 0; i < 5; ++i) rdma::put(c(), 1, 4096 + 8 * i, mine(), 8, &requests[i]);
  EXPECT_EQ(wait(1, requests[3]), XIO_ERR_TRANSPORT);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ring_test(r, request_ticket(r, requests[i])), XIO_OK);
  EXPECT_EQ(ring_test(r, request_ticket(r, requests[3])), XIO_ERR_TRANSPORT);
  const auto state = rig->state(0, 1);
  EXPECT_PAIRS((state.failed_ticket, 3u), (state.vendor, 0x15u | (22u << 8)));
  rig->pes[0].nic().set_faults(nullptr);
}

TEST_F(nic_lane, a_lost_op_is_a_timeout) {
  start({.timeout_ms = 100});
  one_fault plan(one_fault::kind::lose, 0);
  rig->pes[0].nic().set_faults(&plan);
  u64 value = 0;
  EXPECT_EQ(rdma::get_value(c(), 1, 4096, 8, &value), XIO_ERR_TIMEOUT);
  const u64 taken = *rig->pes[0].view()->scratch_used;
  EXPECT_NE(taken, 0u) << "the NIC may still write to that word";
  // The ring is dead: what it does not take leaves no word taken.
  for (int i = 0; i < 100; ++i) EXPECT_EQ(rdma::get_value(c(), 1, 4096, 8, &value), XIO_ERR_TIMEOUT);
  EXPECT_EQ(*rig->pes[0].view()->scratch_used, taken);
  rig->pes[0].nic().set_faults(nullptr);
}

}  // namespace
