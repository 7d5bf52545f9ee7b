// SPDX-License-Identifier: MIT
// Worlds whose PEs are threads of this process: the symmetric heap, what is agreed, and what kernels will read.
#include "config.h"

#include <random>

#include "thread_worlds.hpp"
#include "xio/hip.h"
#include "xio/xio_device.hpp"

namespace {

using xio::options;
using xio::world;
using xio::dev::route;
using namespace xio::test;

options small_world() {
  options o = options::defaults();
  o.heap_size = 1 << 20;
  return o;
}

void* take(world& w, std::size_t bytes, std::size_t alignment = 1, bool zero = false) {
  void* block = nullptr;
  w.heap().allocate({"test", 1, bytes, alignment, zero}, &block);
  return block;
}

TEST(world, gives_blocks_that_every_pe_sees_at_the_same_place) {
  in_world(3, small_world(), [](int pe, world& w) {
    auto* mine = static_cast<unsigned char*>(take(w, 1000));
    ASSERT_NE(mine, nullptr);
    std::memset(mine, 0x40 + pe, 1000);
    w.members().barrier();
    for (int other = 0; other < 3; ++other) {
      const auto* there = static_cast<unsigned char*>(w.heap().reach(mine, other));
      ASSERT_NE(there, nullptr);
      for (int i = 0; i < 1000; ++i) ASSERT_EQ(there[i], 0x40 + other) << i;
    }
    EXPECT_EQ(w.heap().reach(mine, pe), mine);
    w.members().barrier();
    w.heap().release(mine);
  });
}

TEST(world, heap_holds_just_what_was_asked_for) {
  in_world(2, small_world(), [](int, world& w) {
    void* all = take(w, 1 << 20);
    EXPECT_NE(all, nullptr);
    expect_outcome(outcome_of([&] { take(w, 1); }), XIO_ERR_NO_MEMORY, {"raise XIO_HEAP_SIZE"});
    w.heap().release(all);
    w.heap().release(take(w, 1 << 20));
  });
}

TEST(world, refuses_what_is_not_symmetric_on_every_pe_and_forgets_it) {
  in_world(2, small_world(), [](int pe, world& w) {
    expect_outcome(outcome_of([&] { take(w, pe == 0 ? 100 : 200); }), XIO_ERR_NOT_SYMMETRIC,
                   {"the size is 100 on PE 0 but 200 on PE 1"});
    expect_outcome(outcome_of([&] { take(w, pe == 0 ? 64 : 2 << 20); }), XIO_ERR_NO_MEMORY, {pe == 0 ? "PE 1: " : ""});
    void* a = take(w, 512);
    void* b = take(w, 512);
    for (void* other : {b, static_cast<void*>(nullptr)})
      expect_outcome(outcome_of([&] { w.heap().release(pe == 0 ? a : other); }), XIO_ERR_NOT_SYMMETRIC, {});
    w.heap().release(a);
    w.heap().release(b);
    w.heap().release(nullptr);
    // Nothing of the refused calls is left.
    w.heap().release(take(w, 1 << 20));
  });
}

TEST(world, refuses_frees_of_what_is_no_block) {
  in_world(1, small_world(), [](int, world& w) {
    auto* block = static_cast<unsigned char*>(take(w, 1000));
    int local = 0;
    const auto status = [&](void* p) { return outcome_of([&] { w.heap().release(p); }).status; };
    EXPECT_PAIRS((status(block + 8), XIO_ERR_ARG), (status(block + 4096), XIO_ERR_STATE),
                 (status(&local), XIO_ERR_NOT_SYMMETRIC));
    EXPECT_EQ(status(block - 4096), XIO_ERR_NOT_SYMMETRIC);  // the head of the heap
    EXPECT_EQ(status(block), XIO_OK);
    EXPECT_EQ(status(block), XIO_ERR_STATE);
    EXPECT_PRED2(says, xio::last_error(), "freed already");
  });
}

TEST(world, aligns_zeroes_and_refuses_silly_sizes) {
  in_world(2, small_world(), [](int, world& w) {
    for (const std::size_t alignment : {1u, 16u, 128u, 256u, 4096u, 262144u}) {
      const auto at = reinterpret_cast<std::uintptr_t>(take(w, 100, alignment));
      EXPECT_EQ(at % std::max<std::size_t>(alignment, 128), 0u);
    }
    EXPECT_EQ(take(w, 0), nullptr);
    for (const std::size_t alignment : {0u, 3u, 100u})
      EXPECT_EQ(outcome_of([&] { take(w, 100, alignment); }).status, XIO_ERR_ARG);
    EXPECT_EQ(outcome_of([&] { take(w, 100, std::size_t{1} << 60); }).status, XIO_ERR_ARG);
    void* out = &w;
    const auto wraps = outcome_of([&] { w.heap().allocate({"xio_calloc", SIZE_MAX / 2, 4, 1, true}, &out); });
    EXPECT_PAIRS((wraps.status, XIO_ERR_ARG), (out, nullptr));
    void* dirty = take(w, 5000);
    std::memset(dirty, 0xff, 5000);
    w.heap().release(dirty);
    const auto* clean = static_cast<unsigned char*>(take(w, 5000, 1, true));
    EXPECT_EQ(clean, dirty);
    for (int i = 0; i < 5000; ++i) ASSERT_EQ(clean[i], 0);
  });
}

TEST(world, random_heap_traffic_stays_symmetric) {
  in_world(3, small_world(), [](int pe, world& w) {
    std::mt19937 random(7);  // the same on every PE
    std::vector<std::pair<unsigned char*, std::size_t>> live;
    for (int step = 0; step < 400; ++step) {
      if (live.empty() || random() % 2 == 0) {
        const std::size_t bytes = 1 + random() % 20000;
        unsigned char* block = nullptr;
        const auto o = outcome_of([&] { block = static_cast<unsigned char*>(take(w, bytes, 1u << random() % 12)); });
        if (o.status == XIO_ERR_NO_MEMORY) continue;
        ASSERT_EQ(o.status, XIO_OK) << o.sentence;
        std::memset(block, static_cast<int>(live.size() + static_cast<std::size_t>(pe)), bytes);
        live.emplace_back(block, bytes);
      } else {
        w.heap().release(live.back().first);
        live.pop_back();
      }
    }
    w.members().barrier();
    for (std::size_t i = 0; i < live.size(); ++i)
      for (int other = 0; other < 3; ++other) {
        const auto* there = static_cast<unsigned char*>(w.heap().reach(live[i].first, other));
        const auto want = static_cast<unsigned char>(i + static_cast<std::size_t>(other));
        EXPECT_PAIRS((there[0], want), (there[live[i].second - 1], want));
      }
    w.members().barrier();
  });
}

TEST(world, of_pes_that_do_not_fit_together_is_refused_on_every_pe) {
  const auto both = [](const std::function<void(int, options&)>& change) {
    std::vector<outcome> out(2);
    xio::test::run_pes(2, [&](int pe, std::unique_ptr<xio::bootstrap::channel> channel) {
      options o = small_world();
      change(pe, o);
      out[static_cast<std::size_t>(pe)] = outcome_of([&] { world w(o, std::move(channel)); });
    });
    EXPECT_PAIRS((out[0].sentence, out[1].sentence), (out[0].status, out[1].status));
    return out[0];
  };
  expect_outcome(both([](int pe, options& o) { o.heap_size = pe == 0 ? 1 << 20 : 2 << 20; }), XIO_ERR_CONFIG,
                 {"'1048576' on PE 0 but '2097152' on PE 1"});
  const auto routes = both([](int pe, options& o) { o.route = pe == 0 ? XIO_ROUTE_AUTO : XIO_ROUTE_RDMA; });
  EXPECT_PRED2(says, routes.sentence, "XIO_ROUTE is 'auto' on PE 0 but 'rdma' on PE 1");
}

TEST(world, survives_a_pe_that_leaves) {
  xio::test::run_pes(3, [&](int pe, std::unique_ptr<xio::bootstrap::channel> channel) {
    world w(small_world(), std::move(channel));
    w.members().barrier();
    if (pe == 1) return;
    EXPECT_EQ(outcome_of([&] { w.members().barrier(); }).status, XIO_ERR_PEER);
    EXPECT_EQ(outcome_of([&] { take(w, 64); }).status, XIO_ERR_PEER);
    EXPECT_EQ(outcome_of([&] { w.finalize(); }).status, XIO_ERR_PEER);
  });
}

TEST(world, tells_kernels_who_is_there) {
  options o = small_world();
  o.timeout_ms = 1234;
  in_world(2, o, [](int pe, world& w) {
    const auto* view = &view_of(make_ctx(w, XIO_ROUTE_AUTO, 70));
    EXPECT_PAIRS((view->world->my_pe, static_cast<unsigned>(pe)), (view->world->n_pes, 2u),
                 (view->world->timeout_ticks, 1234 * view->world->ticks_per_ms));
    void* block = take(w, 64);
    const auto offset = static_cast<unsigned char*>(block) - view->world->heap;
    for (int other = 0; other < 2; ++other) {
      const auto& p = view->peers[other];
      EXPECT_PAIRS((p.direct + offset, w.heap().reach(block, other)), (p.small, route::direct), (p.bulk, route::direct),
                   (p.atomic, route::direct), (p.rdma, nullptr));
    }
    EXPECT_PAIRS((view->ring_count, 0u), (view->pool_index, UINT32_MAX));
    ASSERT_EQ(view->pool_count, 70u);
    EXPECT_PAIRS((view->pool_used[0], 0u), (view->pool_used[1], ~std::uint64_t{0} << 6));
    for (unsigned i = 0; i < 70; ++i) {
      EXPECT_PAIRS((view->pool[i].pool_index, i), (view->pool[i].world, view->world),
                   (view->pool[i].peers, view->peers), (view->pool[i].pool, nullptr));
    }
    const auto& heap = view->world->regions[0];
    EXPECT_PAIRS((heap.base, reinterpret_cast<std::uint64_t>(view->world->heap)), (heap.live, 1u));
    w.heap().release(block);
  });
}

TEST(world, registers_memory_in_rows) {
  in_world(1, small_world(), [](int, world& w) {
    const auto* view = view_of(make_ctx(w)).world;
    std::vector<char> buffer(10000);
    w.local_memory().register_memory(buffer.data(), buffer.size());
    const auto row = [&]() -> const xio::dev::region_view* {
      for (const auto& r : view->regions)
        if (r.live != 0 && r.base == reinterpret_cast<std::uint64_t>(buffer.data())) return &r;
      return nullptr;
    };
    ASSERT_NE(row(), nullptr);
    EXPECT_EQ(row()->bytes, 10000u);
    EXPECT_EQ(outcome_of([&] { w.local_memory().register_memory(buffer.data() + 1, 1); }).status, XIO_ERR_ARG);
    w.local_memory().unregister_memory(buffer.data());
    EXPECT_EQ(row(), nullptr);
    EXPECT_EQ(outcome_of([&] { w.local_memory().unregister_memory(buffer.data()); }).status, XIO_ERR_NOT_REGISTERED);
  });
}

TEST(world, contexts_asked_for_differently_are_refused_on_every_pe) {
  in_world(2, small_world(), [](int pe, world& w) {
    xio_ctx_attr_t attr = XIO_CTX_ATTR_INIT;
    attr.pool = static_cast<std::uint32_t>(1 + pe);
    xio_ctx_t ctx{};
    expect_outcome(outcome_of([&] { w.contexts().create(&attr, &ctx); }), XIO_ERR_ARG,
                   {"(XIO_CTX_POOL or attr.pool) is 1 on PE 0 but 2 on PE 1"});
    EXPECT_EQ(ctx.view, nullptr);
    EXPECT_EQ(outcome_of([&] { w.contexts().create(nullptr, pe == 1 ? nullptr : &ctx); }).status, XIO_ERR_ARG);
    const xio_ctx_t one = make_ctx(w), two = make_ctx(w);
    EXPECT_EQ(outcome_of([&] { w.contexts().destroy(pe == 0 ? one : two); }).status, XIO_ERR_ARG);
    w.contexts().destroy(two);
    expect_outcome(outcome_of([&] { w.contexts().destroy(two); }), XIO_ERR_STATE, {"destroyed already"});
    EXPECT_EQ(w.contexts().route_of(one, 1 - pe, 8), route::direct);
  });
}

#ifdef XIO_ENABLE_MODEL

// Checks the rings of a ctx, which are alike for every device behind them. lives: how often the ctx was made.
void expect_rings(const xio::dev::ctx_view& c, int n, bool rdma, bool sdma, unsigned lives = 1) {
  EXPECT_EQ(c.ring_count, static_cast<unsigned>((rdma ? n : 0) + (sdma ? n : 0)));
  EXPECT_EQ(c.ring_first, (lives - 1) * c.ring_count);
  for (unsigned i = 0; i < c.ring_count; ++i) {
    EXPECT_PAIRS((c.rings[i].index, c.ring_first + i), (c.rings[i].depth, 64u));
    EXPECT_NE(c.rings[i].state, nullptr);
  }
  for (int pe = 0; pe < n; ++pe) {
    const auto& p = c.peers[pe];
    EXPECT_PAIRS((p.rdma != nullptr, rdma), (p.sdma != nullptr, sdma));
    if (rdma) {
      EXPECT_PAIRS((p.rdma, c.rings + pe), (p.rdma->kind, xio::dev::ring_kind::mlx5));
    }
    if (sdma) {
      EXPECT_PAIRS((p.sdma, c.rings + (rdma ? n : 0) + pe), (p.sdma_count, 1u),
                   (p.sdma->kind, xio::dev::ring_kind::sdma));
    }
  }
  EXPECT_EQ(c.scratch_count, rdma ? 1024u : 0u);
  if (rdma) {
    EXPECT_EQ(c.scratch_used[0], 1u);
  }
}

class world_rings : public testing::TestWithParam<xio_route_t> {};

TEST_P(world_rings, are_complete_in_the_ctx_and_in_its_pool) {
  options o = small_world();
  o.ring_depth = 64;
  in_world(3, o, [](int pe, world& w) {
    std::vector<char> early(4096), late(4096);
    w.local_memory().register_memory(early.data(), early.size());
    const xio_ctx_t ctx = make_ctx(w, GetParam(), 2);
    w.local_memory().register_memory(late.data(), late.size());
    const auto* c = &view_of(ctx);
    const bool rdma = GetParam() == XIO_ROUTE_RDMA, sdma = GetParam() == XIO_ROUTE_SDMA;
    expect_rings(*c, 3, rdma, sdma);
    for (unsigned i = 0; i < 2; ++i) {
      expect_rings(c->pool[i], 3, rdma, sdma);
      EXPECT_NE(c->pool[i].rings, c->rings);
      EXPECT_NE(c->pool[i].rings[0].state, c->rings[0].state);
    }
    if (rdma) {
      // Every region has a key of its own.
      const auto& r = c->world->regions;
      EXPECT_NE(r[0].lkey, r[1].lkey);
      EXPECT_NE(r[1].lkey, r[2].lkey);
    }
    xio_engine_stats_t stats = w.contexts().stats(ctx, GetParam());
    EXPECT_PAIRS((stats.ops + stats.doorbells + stats.bytes, 0u), (w.ctx_error(ctx).status, XIO_OK),
                 (w.contexts().route_of(ctx, pe, 8), rdma ? route::rdma : route::sdma));
    w.contexts().destroy(ctx);
    make_ctx(w, GetParam(), 2);  // and left for finalize
    w.local_memory().unregister_memory(early.data());
  });
}
TEST_P(world_rings, are_made_anew_in_the_same_place) {
  options o = small_world();
  o.ring_depth = 64;
  in_world(3, o, [](int, world& w) {
    const bool rdma = GetParam() == XIO_ROUTE_RDMA, sdma = GetParam() == XIO_ROUTE_SDMA;
    const xio_ctx_t ctx = make_ctx(w, GetParam(), 2);
    auto* c = &view_of(ctx);
    const auto before = *c;
    for (unsigned life = 2; life < 5; ++life) {
      // As kernels leave it that had no luck.
      c->error = static_cast<unsigned>(XIO_ERR_PE);
      c->rings[1].state->failed = static_cast<unsigned>(XIO_ERR_TIMEOUT);
      c->rings[1].state->issued += 7;
      c->pool_used[0] |= 3;
      if (rdma) c->scratch_used[0] |= 0xff;
      EXPECT_NE(w.ctx_error(ctx).status, XIO_OK);
      w.contexts().recover(ctx);
      EXPECT_PAIRS((w.ctx_error(ctx).status, XIO_OK), (c->rings, before.rings), (c->pool, before.pool), (c->error, 0u),
                   (c->pool_used[0] & 3, 0u));
      expect_rings(*c, 3, rdma, sdma, life);
      for (unsigned i = 0; i < c->ring_count; ++i) {
        EXPECT_EQ(c->rings[i].state->failed, 0u);
        EXPECT_EQ(c->rings[i].state->issued, c->rings[i].state->completed & ~xio::dev::k_reaping);
      }
      for (unsigned i = 0; i < 2; ++i) expect_rings(c->pool[i], 3, rdma, sdma, life);
    }
  });
}
INSTANTIATE_TEST_SUITE_P(routes, world_rings, testing::Values(XIO_ROUTE_RDMA, XIO_ROUTE_SDMA));

// A mistake among the PEs leaves both ctxs as they are.
TEST(world, recovers_what_was_stopped_and_agrees_on_barriers) {
  options o = small_world();
  in_world(2, o, [](int pe, world& w) {
    const xio_ctx_t one = make_ctx(w, XIO_ROUTE_RDMA), two = make_ctx(w, XIO_ROUTE_RDMA);
    EXPECT_EQ(outcome_of([&] { w.contexts().recover(pe == 0 ? one : two); }).status, XIO_ERR_ARG);
    for (const xio_ctx_t& ctx : {one, two}) EXPECT_EQ(w.ctx_error(ctx).status, XIO_OK);
    auto& epoch = view_of(one).world->barrier_epoch;
    epoch = 41 + static_cast<unsigned>(pe);
    w.contexts().recover(one);
    EXPECT_EQ(epoch, 42u);
    w.contexts().recover(two);
    for (const xio_ctx_t& ctx : {one, two}) EXPECT_EQ(w.ctx_error(ctx).status, XIO_OK);
    w.contexts().destroy(one);
    EXPECT_EQ(outcome_of([&] { w.contexts().recover(one); }).status, XIO_ERR_STATE);
    EXPECT_EQ(outcome_of([&] { w.contexts().recover(xio_ctx_t{}); }).status, XIO_ERR_ARG);
  });
}

TEST(world, stops_a_ctx_whose_other_pe_has_left) {
  xio::test::run_pes(2, [&](int pe, std::unique_ptr<xio::bootstrap::channel> channel) {
    world w(small_world(), std::move(channel));
    const xio_ctx_t ctx = make_ctx(w, XIO_ROUTE_RDMA);
    w.members().barrier();
    if (pe == 1) return;
    EXPECT_PAIRS((outcome_of([&] { w.contexts().recover(ctx); }).status, XIO_ERR_PEER),
                 (w.ctx_error(ctx).status, XIO_OK),
                 (outcome_of([&] { w.contexts().destroy(ctx); }).status, XIO_ERR_PEER),
                 (w.ctx_error(ctx).status, XIO_ERR_STATE), (outcome_of([&] { w.finalize(); }).status, XIO_ERR_PEER));
  });
}

// --- A software NIC that fails for good on purpose ---------------------------------------------------

__global__ void put_one(xio_ctx_t ctx, std::uint64_t* to, int pe, int* status) {
  *status = xio_p(ctx, to, std::uint64_t{7}, pe);
  const xio_status_t quiet = xio_quiet(ctx);
  if (*status == XIO_OK) *status = quiet;
}

TEST(world, whose_nic_fails_by_a_fault_on_purpose_is_recovered) {
  options o = small_world();
  o.model_faults = "fatal@2/pe1";
  in_world(3, o, [](int pe, world& w) {
    void* word = nullptr;
    w.heap().allocate({"xio_calloc", 1, sizeof(std::uint64_t)}, &word);
    const xio_ctx_t ctx = make_ctx(w, XIO_ROUTE_RDMA);
    const auto put = [&](int to) {
      int status = -1;
      hipLaunchKernelGGL(put_one, dim3(1), dim3(1), 0, nullptr, ctx, static_cast<std::uint64_t*>(word), to, &status);
      EXPECT_EQ(hipDeviceSynchronize(), hipSuccess);
      return status;
    };
    for (int life = 0; life < 2; ++life) {
      for (int i = 0; i < 2; ++i) EXPECT_EQ(put(2), XIO_OK) << "PE " << pe;
      if (pe == 1) {
        EXPECT_EQ(put(2), XIO_ERR_TRANSPORT);
        EXPECT_EQ(put(0), XIO_ERR_TRANSPORT) << "the device is one for all queue pairs";
      }
      w.members().barrier();
      w.contexts().recover(ctx);
    }
    EXPECT_EQ(put(2), XIO_OK);
    w.contexts().destroy(ctx);
  });
}

TEST(world, copy_engines_take_large_copies_when_asked) {
  options o = small_world();
  o.sdma_threshold = 65536;
  in_world(2, o, [](int pe, world& w) {
    const xio_ctx_t ctx = make_ctx(w);
    EXPECT_EQ(w.contexts().route_of(ctx, 1 - pe, 65535), route::direct);
    EXPECT_EQ(w.contexts().route_of(ctx, 1 - pe, 65536), route::sdma);
    EXPECT_EQ(w.contexts().route_of(ctx, pe, 65536), route::direct);
    EXPECT_EQ(view_of(ctx).ring_count, 1u);
  });
}

#endif

}  // namespace
