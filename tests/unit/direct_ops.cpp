// SPDX-License-Identifier: MIT
// The direct lane and the checks before it, without a library: two heaps in one process make a world of two PEs.
#include "../gtest.hpp"
#include "ctx/ctx_value.hpp"
#include "xio/xio_device.hpp"

namespace {

using namespace xio::dev;

constexpr u64 k_heap = 1 << 16;

// PE 0's view. Every PE is reached by loads and stores.
struct direct_ops : ::testing::Test {
  void SetUp() override {
    for (auto& h : heap) h.assign(k_heap / 8, 0);
    w = world_view{};
    w.my_pe = 0;
    w.n_pes = 2;
    w.heap = bytes(0);
    w.heap_bytes = k_heap;
    w.ticks_per_ms = 1000000;
    w.timeout_ticks = 20 * w.ticks_per_ms;
    for (u32 pe = 0; pe < 2; ++pe) {
      peers[pe] = peer_view{};
      peers[pe].direct = bytes(pe);
      peers[pe].small = peers[pe].bulk = peers[pe].atomic = route::direct;
    }
    c = ctx_view{};
    c.world = &w;
    c.peers = peers;
    c.bulk_bytes = ~u64{0};
    c.pool_index = ~0u;
    take_ctx();
  }
  void take_ctx() { ctx = xio::ctx_value(&c, 1, c, w, peers); }

  unsigned char* bytes(int pe) { return reinterpret_cast<unsigned char*>(heap[pe].data()); }
  // The first symmetric byte after the head, here and there.
  unsigned char* mine() { return bytes(0) + sizeof(heap_head); }
  unsigned char* theirs() { return bytes(1) + sizeof(heap_head); }

  std::vector<u64> heap[2];
  world_view w;
  peer_view peers[2];
  ctx_view c;
  xio_ctx_t ctx;
};

TEST_F(direct_ops, the_whole_heap_behind_its_head_is_symmetric_and_nothing_else) {
  const u64 all = k_heap - sizeof(heap_head);
  std::vector<unsigned char> source(all, 7);
  EXPECT_EQ(xio_put(ctx, mine(), source.data(), all, 1), XIO_OK);
  EXPECT_PAIRS((theirs()[0], 7), (theirs()[all - 1], 7), (bytes(1)[sizeof(heap_head) - 1], 0));
  EXPECT_PAIRS((xio_put(ctx, mine() - 1, source.data(), 1, 1), XIO_ERR_NOT_SYMMETRIC),
               (xio_put(ctx, mine() + 1, source.data(), all, 1), XIO_ERR_NOT_SYMMETRIC),
               (xio_put(ctx, mine() + all, source.data(), 1, 1), XIO_ERR_NOT_SYMMETRIC),
               (xio_put(ctx, mine(), source.data(), ~size_t{0}, 1), XIO_ERR_NOT_SYMMETRIC),
               (xio_quiet(ctx), XIO_ERR_NOT_SYMMETRIC), (xio_quiet(ctx), XIO_OK));
}

// A kernel finds the PEs of its own node among its arguments, and their numbers may be any.
struct many_pes {
  explicit many_pes(u32 n, u32 me) : rows(n), heaps(n, std::vector<unsigned char>(sizeof(heap_head) + 64)) {
    w.my_pe = me;
    w.n_pes = n;
    w.heap = heaps[me].data();
    w.heap_bytes = heaps[me].size();
    for (peer_view& row : rows) row.small = row.bulk = row.atomic = route::rdma;
    c.world = &w;
    c.peers = rows.data();
    c.bulk_bytes = ~u64{0};
    c.pool_index = ~0u;
  }
  void map(u32 pe) {
    rows[pe].direct = heaps[pe].data();
    rows[pe].small = rows[pe].bulk = rows[pe].atomic = route::direct;
  }
  unsigned char* arena(u32 pe) { return heaps[pe].data() + sizeof(heap_head); }
  xio_ctx_t ctx() { return xio::ctx_value(&c, 1, c, w, rows.data()); }

  world_view w{};
  ctx_view c{};
  std::vector<peer_view> rows;
  std::vector<std::vector<unsigned char>> heaps;
};

TEST(many_pes, those_of_the_own_node_are_found_by_any_number) {
  many_pes world(32, 18);
  for (u32 pe = 16; pe < 24; ++pe) world.map(pe);
  const xio_ctx_t ctx = world.ctx();
  for (u32 pe = 0; pe < 40; ++pe) {
    const mapped_place found = mapped_arena(ctx, pe);
    EXPECT_EQ(found.there, pe >= 16 && pe < 24) << pe;
    if (found.there) {
      EXPECT_EQ(found.bytes(), world.arena(pe)) << pe;
    }
  }
  const u64 value = 5;
  EXPECT_EQ(xio_put(ctx, world.arena(18), &value, 8, 23), XIO_OK);
  EXPECT_EQ(std::memcmp(world.arena(23), &value, 8), 0);
}

TEST(many_pes, on_a_node_of_ten_each_finds_its_neighbours_and_reaches_all) {
  for (u32 me = 0; me < 10; ++me) {
    many_pes world(10, me);
    for (u32 pe = 0; pe < 10; ++pe) world.map(pe);
    const xio_ctx_t ctx = world.ctx();
    u32 found = 0;
    for (u32 pe = 0; pe < 10; ++pe) {
      const mapped_place place = mapped_arena(ctx, pe);
      found += place.there ? 1 : 0;
      EXPECT_TRUE(place.there || pe + 1 < me || pe > me + 1) << me << " to " << pe;
      if (place.there) {
        EXPECT_EQ(place.bytes(), world.arena(pe)) << me << " to " << pe;
      }
      const u64 value = 100 * me + pe;
      EXPECT_EQ(xio_put(ctx, world.arena(me), &value, 8, static_cast<int>(pe)), XIO_OK);
      EXPECT_EQ(std::memcmp(world.arena(pe), &value, 8), 0) << me << " to " << pe;
    }
    EXPECT_EQ(found, 8u) << me;
  }
}

TEST(many_pes, holes_between_mapped_ones_are_not_taken_for_them) {
  many_pes world(20, 9);
  for (const u32 pe : {9u, 11u, 15u}) world.map(pe);
  const xio_ctx_t ctx = world.ctx();
  for (u32 pe = 0; pe < 20; ++pe) EXPECT_EQ(mapped_arena(ctx, pe).there, pe == 9 || pe == 11 || pe == 15) << pe;
  EXPECT_FALSE(mapped_arena(xio_ctx_t{}, 0).there);
}

// Queues to many PEs, all of which have failed: which ones are looked at shows in the call's status.
TEST(many_pes, quiet_and_waits_look_at_the_queues_that_were_used_and_at_no_others) {
  constexpr u32 most = 32 * k_used_words - 1,
                own = most - 32;  // queues with a bit, and with one of their own in any case
  struct row {
    u32 queues, used, also_looked_at;  // by calls after an op on queue `used` alone; itself: no other
  };
  for (const row& t : {row{1, 0, 0}, row{2, 1, 1}, row{31, 30, 30}, row{33, 30, 30}, row{33, 31, 31}, row{33, 32, 32},
                       row{128, 64, 64}, row{most, most - 1, most - 1}, row{most + 1, own, most},
                       row{most + 1, most, own}, row{5000, 30, 30}, row{5000, own - 1, own - 1},
                       row{5000, 4999, 4999 - 32}, row{5000, own + 8, own + 8 + 4 * 32}}) {
    std::vector<ring_state> states(t.queues);
    std::vector<ring_view> rings(t.queues);
    many_pes world(2, 0);
    for (u32 i = 0; i < t.queues; ++i) {
      states[i].failed = static_cast<u32>(XIO_ERR_TRANSPORT);
      rings[i].state = &states[i];
      rings[i].depth = 4;
    }
    world.c.rings = rings.data();
    world.c.ring_count = t.queues;
    const xio_ctx_t ctx = world.ctx();
    const auto both_are = [&](xio_status_t status) { return xio_quiet(ctx) == status && drain_own(world.c) == status; };
    EXPECT_TRUE(both_are(XIO_OK)) << t.queues << ": nothing was posted";
    mark_used(world.c, rings[t.used]);
    EXPECT_TRUE(both_are(XIO_ERR_TRANSPORT)) << t.queues;
    states[t.used].failed = 0;
    EXPECT_TRUE(both_are(t.also_looked_at == t.used ? XIO_OK : XIO_ERR_TRANSPORT)) << t.queues;
    states[t.also_looked_at].failed = 0;
    for (u32 i = own + (t.used - own) % 32; t.used >= own && i < t.queues; i += 32) states[i].failed = 0;
    EXPECT_TRUE(both_are(XIO_OK)) << t.queues << ": a queue that no op went to";
  }
}

// The word says that there is one, and its address has not come.
TEST_F(direct_ops, nothing_is_posted_by_the_view_of_no_queue_pair) {
  ring_state state{};
  u32 ask = k_ask_connected;
  u64 bell = 0;
  ring_view own{}, dormant{};
  own.depth = 4;
  dormant.state = &state;
  dormant.rdma.doorbell = &bell;
  dormant.rdma.dormant = {&ask, nullptr, &c};
  EXPECT_EQ(connect_leaf(dormant, w, 0).status, XIO_ERR_TIMEOUT);
  ask = k_ask_connected;
  c.rings = dormant.rdma.dormant.ring = &own;
  EXPECT_EQ(connect_leaf(dormant, w, 0).status, XIO_OK);
  peers[1].atomic = route::rdma;
  peers[1].rdma = &dormant;
  EXPECT_EQ(flag_ring(c, 1), &own) << "a barrier looks for failures at the one that carries its flags";
}

TEST_F(direct_ops, strides_that_overflow_are_refused_and_the_last_that_fits_is_not) {
  auto* dst = reinterpret_cast<u64*>(mine());
  const u64 source[4] = {1, 2, 3, 4};
  const std::ptrdiff_t last = (k_heap - sizeof(heap_head)) / 8 - 1;
  EXPECT_PAIRS((xio_iput(ctx, dst, source, last, 1, 2, 1), XIO_OK), (heap[1].back(), 2u),
               (xio_iput(ctx, dst, source, last + 1, 1, 2, 1), XIO_ERR_NOT_SYMMETRIC),
               (xio_iput(ctx, dst, source, PTRDIFF_MAX / 8, 1, ~size_t{0}, 1), XIO_ERR_ARG),
               (xio_iput(ctx, dst, source, PTRDIFF_MAX, 1, 1, 1), XIO_ERR_ARG),
               (xio_quiet(ctx), XIO_ERR_NOT_SYMMETRIC));
}

TEST_F(direct_ops, a_refused_request_returns_its_error) {
  const u64 value = 1;
  const xio_req_t request = xio_put_nbi(ctx, mine(), &value, 8, 2);
  EXPECT_NE(request, 0u);
  EXPECT_PAIRS((xio_wait(ctx, request), XIO_ERR_PE), (xio_test(ctx, request), XIO_ERR_PE),
               (xio_wait(ctx, xio_put_nbi(ctx, mine(), &value, 8, 1)), XIO_OK));
}

TEST_F(direct_ops, a_route_that_is_not_there_is_an_error_and_not_a_crash) {
  const u64 value = 1;
  for (const route r : {route::none, route::rdma, route::sdma}) {
    peers[1].small = peers[1].bulk = peers[1].atomic = r;
    take_ctx();
    EXPECT_EQ(xio_put(ctx, mine(), &value, 8, 1), XIO_ERR_NO_ROUTE);
    EXPECT_EQ(xio_put_signal(ctx, mine(), &value, 8, reinterpret_cast<u64*>(mine()), 1, XIO_SIGNAL_SET, 1),
              XIO_ERR_NO_ROUTE);
    EXPECT_EQ(xio_signal_op(ctx, reinterpret_cast<u64*>(mine()), 1, XIO_SIGNAL_SET, 1), XIO_ERR_NO_ROUTE);
    EXPECT_EQ(xio_quiet(ctx), XIO_ERR_NO_ROUTE);
  }
}

TEST_F(direct_ops, a_copy_engine_chosen_for_size_alone_leaves_unregistered_memory_to_stores) {
  ring_state state{};
  ring_view ring{};
  ring.state = &state;
  ring.kind = ring_kind::sdma;
  peers[1].sdma = &ring;
  peers[1].bulk = route::sdma;
  c.bulk_bytes = 64;
  take_ctx();
  std::vector<unsigned char> source(128, 9);
  EXPECT_EQ(xio_put_nbi(ctx, mine(), source.data(), source.size(), 1), 0u);
  EXPECT_EQ(std::memcmp(theirs(), source.data(), source.size()), 0);
  // Forced, it is an error.
  peers[1].small = route::sdma;
  take_ctx();
  EXPECT_EQ(xio_wait(ctx, xio_put_nbi(ctx, mine(), source.data(), source.size(), 1)), XIO_ERR_NOT_REGISTERED);
  EXPECT_EQ(xio_quiet(ctx), XIO_ERR_NOT_REGISTERED);
}

TEST_F(direct_ops, fence_asks_for_completion_only_where_ops_can_overtake) {
  EXPECT_FALSE(takes_several_ways(peers[1]));
  peers[1].small = peers[1].bulk = peers[1].atomic = route::rdma;
  EXPECT_FALSE(takes_several_ways(peers[1]));
  peers[1].small = route::direct;
  EXPECT_TRUE(takes_several_ways(peers[1]));
  // Scalars do not go by the copy engine's queue, even where all routes are sdma.
  peers[1].small = peers[1].bulk = peers[1].atomic = route::sdma;
  EXPECT_TRUE(takes_several_ways(peers[1]));
}

TEST_F(direct_ops, waits_end_with_the_deadline_and_not_before) {
  auto* word = reinterpret_cast<u64*>(mine());
  const u64 start = wall_clock();
  EXPECT_EQ(xio_wait_until(ctx, word, XIO_CMP_NE, 0), XIO_ERR_TIMEOUT);
  EXPECT_GE(wall_clock() - start, w.timeout_ticks);
  std::thread later([&] { store<scope::system, order::release>(word, u64{5}); });
  EXPECT_EQ(xio_wait_until(ctx, word, XIO_CMP_EQ, 5), XIO_OK);
  later.join();
  // A deadline of 0 is none: the word is there already, so this ends.
  w.timeout_ticks = 0;
  EXPECT_EQ(xio_wait_until(ctx, word, XIO_CMP_EQ, 5), XIO_OK);
}

TEST_F(direct_ops, pool_contexts_are_taken_once_each_and_can_be_given_back) {
  constexpr u32 count = 70;  // more than one word of marks
  std::vector<ctx_view> pool(count, c);
  u64 used[2] = {0, ~u64{0} << (count - 64)};
  c.pool = pool.data();
  c.pool_used = used;
  c.pool_count = count;
  std::vector<xio_ctx_t> taken(count);
  std::vector<bool> seen(count);
  for (auto& own : taken) {
    ASSERT_EQ(xio_ctx_create_wg(ctx, &own), XIO_OK);
    const auto place = static_cast<std::size_t>(static_cast<ctx_view*>(own.view) - pool.data());
    ASSERT_LT(place, count);
    EXPECT_FALSE(seen[place]);
    seen[place] = true;
  }
  xio_ctx_t more{};
  EXPECT_EQ(xio_ctx_create_wg(ctx, &more), XIO_ERR_NO_MEMORY);
  EXPECT_EQ(more.view, nullptr);
  void* const given = taken[66].view;
  EXPECT_PAIRS((xio_ctx_destroy_wg(ctx, &taken[66]), XIO_OK), (taken[66].view, nullptr),
               (xio_ctx_create_wg(ctx, &more), XIO_OK), (more.view, given));
  // The ctx itself is not one of its pool.
  xio_ctx_t self = ctx;
  EXPECT_EQ(xio_quiet(ctx), XIO_ERR_NO_MEMORY);
  EXPECT_EQ(xio_ctx_destroy_wg(ctx, &self), XIO_ERR_ARG);
}

}  // namespace
