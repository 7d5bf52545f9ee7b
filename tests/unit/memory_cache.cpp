// SPDX-License-Identifier: MIT
// The registration cache, against an engine that counts, and through worlds and the real engines' books.
#include "base/error.hpp"
#include "gpu/gpu.hpp"
#include "local_world.hpp"
#include "memory/blocks.hpp"
#include "memory/cache.hpp"
#include "says.hpp"

namespace {

using xio::dev::region_view;
using xio::gpu::block;
using xio::memory::registration_cache;

// --- An engine that counts ---------------------------------------------------------------------------

// Refuses what overlaps memory that it knows, as engines may.
struct counting_engine final : xio::memory::engine_side {
  void reach(region_view& known) override {
    ++asked;
    if (now.size() >= room) xio::fail(XIO_ERR_NO_MEMORY, "no room");
    for (const auto& [base, bytes] : now)
      if (known.base < base + bytes && base < known.base + known.bytes) xio::fail(XIO_ERR_ARG, "overlap");
    now[known.base] = known.bytes;
    known.lkey[0] = next_key++;
  }
  void unreach(region_view& known) noexcept override {
    ++left;
    EXPECT_EQ(now.erase(known.base), 1u);
  }

  std::map<std::uint64_t, std::uint64_t> now;
  std::size_t room = 100;
  unsigned asked = 0, left = 0, next_key = 100;
};

block block_at(std::uint64_t base, std::size_t bytes = 0x10000) {
  block b;
  b.base = reinterpret_cast<void*>(base);
  b.bytes = bytes;
  return b;
}

TEST(cache, the_same_block_again_asks_no_engine) {
  counting_engine e;
  registration_cache c(e, 4);
  const block b = block_at(0x100000);
  auto& first = c.acquire(0x101000, 0x1000, &b);
  EXPECT_EQ(first.known.base, 0x100000u) << "engines know the whole block";
  EXPECT_EQ(first.known.bytes, 0x10000u);
  c.release(first);
  EXPECT_EQ(e.left, 0u);
  for (const std::uint64_t at : {0x101000, 0x100000, 0x10f000}) {
    auto& again = c.acquire(at, 0x1000, &b);
    EXPECT_EQ(again.known.lkey[0], 100u);
    c.release(again);
  }
  EXPECT_PAIRS((e.asked, 1u), (e.left, 0u), (c.stats().hits, 3u), (c.stats().misses, 1u), (c.stats().kept, 1u));
}

TEST(cache, two_parts_of_a_block_are_one_registration) {
  counting_engine e;
  registration_cache c(e, 1);
  const block b = block_at(0x100000), other = block_at(0x200000);
  auto& low = c.acquire(0x100000, 0x1000, &b);
  auto& high = c.acquire(0x108000, 0x1000, &b);
  EXPECT_EQ(&low, &high);
  c.release(low);
  EXPECT_EQ(c.stats().kept, 0u) << "the other part still uses it";
  for (int i = 0; i < 3; ++i) c.release(c.acquire(0x200000, 1, &other));
  EXPECT_EQ(e.now.size(), 2u);
  c.release(high);
  EXPECT_EQ(e.now.size(), 1u) << "one without use is kept, the newest";
  EXPECT_EQ(e.now.count(0x100000), 1u);
}

TEST(cache, the_least_recently_used_makes_room) {
  counting_engine e;
  registration_cache c(e, 2);
  const block a = block_at(0x100000), b = block_at(0x200000), d = block_at(0x300000);
  c.release(c.acquire(0x100000, 1, &a));
  c.release(c.acquire(0x200000, 1, &b));
  c.release(c.acquire(0x100000, 1, &a));  // b is the oldest now
  c.release(c.acquire(0x300000, 1, &d));
  EXPECT_PAIRS((c.stats().evictions, 1u), (c.stats().kept, 2u), (e.now.count(0x200000), 0u),
               (e.now.count(0x100000), 1u), (e.now.count(0x300000), 1u));
  c.release(c.acquire(0x200000, 1, &b));
  EXPECT_PAIRS((e.asked, 4u), (e.now.count(0x100000), 0u));
}

TEST(cache, what_is_in_use_is_never_evicted) {
  counting_engine e;
  registration_cache c(e, 1);
  std::vector<block> blocks;
  std::vector<registration_cache::span*> spans;
  for (std::uint64_t i = 1; i <= 5; ++i) {
    blocks.push_back(block_at(i << 20));
    spans.push_back(&c.acquire(i << 20, 1, &blocks.back()));
  }
  EXPECT_EQ(e.now.size(), 5u);
  for (auto* s : spans) c.release(*s);
  EXPECT_PAIRS((e.now.size(), 1u), (e.now.count(5 << 20), 1u));
}

TEST(cache, memory_of_others_is_not_kept) {
  counting_engine e;
  registration_cache c(e, 4);
  for (int i = 0; i < 3; ++i) {
    auto& s = c.acquire(0x5000, 0x123, nullptr);
    EXPECT_PAIRS((s.known.base, 0x5000u), (s.known.bytes, 0x123u));
    c.release(s);
    EXPECT_TRUE(e.now.empty());
  }
  EXPECT_PAIRS((e.asked, 3u), (c.stats().hits, 0u), (c.stats().misses, 3u));
}

TEST(cache, keeps_nothing_when_asked_to) {
  counting_engine e;
  registration_cache c(e, 0);
  const block b = block_at(0x100000);
  auto& s = c.acquire(0x101000, 0x1000, &b);
  EXPECT_PAIRS((s.known.base, 0x101000u), (s.known.bytes, 0x1000u));
  c.release(s);
  EXPECT_TRUE(e.now.empty());
}

TEST(cache, forgets_a_block_that_goes_and_no_other) {
  counting_engine e;
  registration_cache c(e, 8);
  const block a = block_at(0x100000), b = block_at(0x110000);
  c.release(c.acquire(0x100000, 1, &a));
  c.release(c.acquire(0x110000, 1, &b));
  c.forget(0x100000, 0x10000);
  EXPECT_PAIRS((e.now.count(0x100000), 0u), (e.now.count(0x110000), 1u), (c.stats().forgotten, 1u));
  c.release(c.acquire(0x100000, 1, &a));
  EXPECT_EQ(e.asked, 3u) << "the next block at that address is another";
}

TEST(cache, gives_up_what_it_keeps_when_engines_are_full) {
  counting_engine e;
  e.room = 3;
  registration_cache c(e, 8);
  const block a = block_at(0x100000), b = block_at(0x200000), d = block_at(0x300000);
  c.release(c.acquire(0x100000, 1, &a));
  c.release(c.acquire(0x200000, 1, &b));
  auto& used = c.acquire(0x300000, 1, &d);
  auto& mine = c.acquire(0x5000, 1, nullptr);
  EXPECT_PAIRS((e.now.size(), 2u), (c.stats().evictions, 2u));
  e.room = 2;
  EXPECT_THROW(c.acquire(0x6000, 1, nullptr), xio::error) << "there is nothing left to give up";
  c.release(used);
  c.release(mine);
}

// --- Blocks and those who watch them -----------------------------------------------------------------

struct noting final : xio::memory::watcher {
  void forget(const block& b) noexcept override {
    seen.push_back(b.base);
    bytes_there = *static_cast<volatile unsigned char*>(b.base);
    try {
      (void)xio::memory::blocks::all().around(b.base, 1, "test");
    } catch (const xio::error& e) {
      late = e.status();
    }
  }
  std::vector<void*> seen;
  int bytes_there = -1;
  xio_status_t late = XIO_OK;
};

TEST(blocks, watchers_hear_of_a_block_while_it_is_still_there) {
  noting watcher;
  auto& all = xio::memory::blocks::all();
  all.watch(watcher);
  void *p = nullptr, *q = nullptr;
  ASSERT_EQ(xio_mem_alloc(XIO_MEM_HOST_PLAIN, 100, nullptr, &p), XIO_OK);
  ASSERT_EQ(xio_mem_alloc(XIO_MEM_HOST_PLAIN, 100, nullptr, &q), XIO_OK);
  *static_cast<unsigned char*>(p) = 42;
  EXPECT_NE(xio_mem_free(static_cast<char*>(p) + 1), XIO_OK);
  EXPECT_TRUE(watcher.seen.empty());
  EXPECT_PAIRS((xio_mem_free(p), XIO_OK), (watcher.seen, std::vector<void*>{p}), (watcher.bytes_there, 42));
  EXPECT_EQ(watcher.late, XIO_ERR_STATE) << "nobody builds on it any more";
  all.unwatch(watcher);
  EXPECT_EQ(xio_mem_free(q), XIO_OK);
  EXPECT_EQ(watcher.seen, std::vector<void*>{p});
}

TEST(blocks, ranges_lie_in_one_block_or_in_none) {
  auto& all = xio::memory::blocks::all();
  const std::size_t n = 4 * xio::gpu::page_size();
  void* p = xio::test::take(XIO_MEM_DEVICE_HIP, n);
  auto* at = static_cast<unsigned char*>(p);
  EXPECT_PAIRS((all.around(p, n, "test")->base, p), (all.around(at + n - 1, 1, "test")->base, p));
  EXPECT_THROW((void)all.around(at + n - 1, 2, "test"), xio::error);
  EXPECT_THROW((void)all.around(at, n + 1, "test"), xio::error);
  EXPECT_THROW((void)all.around(at, SIZE_MAX, "test"), xio::error);
  EXPECT_THROW((void)all.around(at - 1, 2, "test"), xio::error) << "it ends in the block";
  EXPECT_THROW((void)all.around(at - 1, n + 2, "test"), xio::error) << "it is around the block";
  EXPECT_FALSE(all.around(at - 16, 16, "test"));
  EXPECT_EQ(xio_mem_free(p), XIO_OK);
  EXPECT_FALSE(all.around(p, n, "test"));
}

// --- Worlds ------------------------------------------------------------------------------------------

struct cached : testing::Test {
  void SetUp() override { w_ = start(); }
  void TearDown() override { EXPECT_EQ(xio_finalize(w_), XIO_OK) << xio_last_error(); }

  static xio_world_t* start(const char* keep = nullptr) {
    if (keep != nullptr) setenv("XIO_REGISTRATIONS", keep, 1);
    xio_world_t* w = xio::test::start_world();
    unsetenv("XIO_REGISTRATIONS");
    return w;
  }
  static void* take(xio_mem_kind_t kind = XIO_MEM_DEVICE_HIP, std::size_t bytes = 65536) {
    return xio::test::take(kind, bytes);
  }
  static xio_mem_cache_stats_t stats(xio_world_t* w) {
    xio_mem_cache_stats_t s = XIO_MEM_CACHE_STATS_INIT;
    EXPECT_EQ(xio_mem_cache_stats(w, &s), XIO_OK) << xio_last_error();
    return s;
  }
  static void use(xio_world_t* w, void* p, std::size_t bytes) {
    EXPECT_EQ(xio_mem_register(w, p, bytes), XIO_OK) << xio_last_error();
    EXPECT_EQ(xio_mem_unregister(w, p), XIO_OK) << xio_last_error();
  }
  xio_world_t* w_ = nullptr;
};

TEST_F(cached, registering_again_is_a_hit) {
  void* p = take();
  for (int i = 0; i < 5; ++i) use(w_, p, 65536);
  use(w_, static_cast<char*>(p) + 100, 1000);
  EXPECT_PAIRS((stats(w_).misses, 1u), (stats(w_).hits, 5u), (stats(w_).kept, 1u));
  EXPECT_PAIRS((xio_mem_free(p), XIO_OK), (stats(w_).kept, 0u), (stats(w_).forgotten, 1u));
}

TEST_F(cached, memory_of_the_program_is_registered_each_time) {
  std::vector<char> mine(65536);
  for (int i = 0; i < 3; ++i) use(w_, mine.data(), mine.size());
  EXPECT_PAIRS((stats(w_).misses, 3u), (stats(w_).hits, 0u), (stats(w_).kept, 0u));
}

TEST_F(cached, the_oldest_goes_when_too_many_are_kept) {
  xio_world_t* small = start("2");
  void* p[3] = {take(), take(), take()};
  for (void* b : p) use(small, b, 65536);
  EXPECT_PAIRS((stats(small).evictions, 1u), (stats(small).kept, 2u));
  use(small, p[2], 65536);
  use(small, p[0], 65536);
  EXPECT_PAIRS((stats(small).hits, 1u), (stats(small).misses, 4u));
  xio_world_t* none = start("0");
  for (int i = 0; i < 2; ++i) use(none, p[0], 65536);
  EXPECT_PAIRS((stats(none).misses, 2u), (stats(none).kept, 0u), (xio_finalize(none), XIO_OK),
               (xio_finalize(small), XIO_OK));
  for (void* b : p) EXPECT_EQ(xio_mem_free(b), XIO_OK);
}

TEST_F(cached, a_free_is_heard_in_every_world) {
  xio_world_t* other = start();
  void* p = take();
  EXPECT_EQ(xio_mem_register(w_, p, 100), XIO_OK);
  use(other, p, 65536);
  EXPECT_EQ(stats(other).kept, 1u);
  EXPECT_EQ(xio_mem_free(p), XIO_OK);
  EXPECT_PAIRS((stats(w_).forgotten, 1u), (stats(other).forgotten, 1u), (stats(w_).kept + stats(other).kept, 0u));
  EXPECT_REFUSED(xio_mem_unregister(w_, p), XIO_ERR_NOT_REGISTERED, "not the start of a registered buffer");
  EXPECT_EQ(xio_finalize(other), XIO_OK);
  void* q = take();
  EXPECT_EQ(xio_mem_free(q), XIO_OK) << "a world that is gone is not told";
}

TEST_F(cached, ranges_that_leave_a_block_are_refused) {
  void* p = take();
  EXPECT_REFUSED(xio_mem_register(w_, p, 65537), XIO_ERR_ARG, "leave the block of 65536 bytes");
  EXPECT_REFUSED(xio_mem_register(w_, static_cast<char*>(p) + 65535, 2), XIO_ERR_ARG, "stay inside one block");
  EXPECT_EQ(xio_mem_register(w_, p, 4096), XIO_OK);
  EXPECT_REFUSED(xio_mem_register(w_, static_cast<char*>(p) + 4095, 2), XIO_ERR_ARG, "overlap");
  EXPECT_PAIRS((xio_mem_register(w_, static_cast<char*>(p) + 4096, 2), XIO_OK), (stats(w_).misses, 1u),
               (stats(w_).hits, 1u), (xio_mem_free(p), XIO_OK));
  EXPECT_REFUSED(xio_mem_cache_stats(w_, nullptr), XIO_ERR_ARG, "out is null");
  EXPECT_REFUSED(xio_mem_cache_stats(nullptr, nullptr), XIO_ERR_ARG, "world is null");
}

// More rows than a world has, if freed blocks left theirs behind.
TEST_F(cached, a_freed_block_leaves_its_row) {
  for (int i = 0; i < 200; ++i) {
    void* p = take();
    ASSERT_EQ(xio_mem_register(w_, p, 65536), XIO_OK) << xio_last_error();
    ASSERT_EQ(xio_mem_free(p), XIO_OK) << xio_last_error();
  }
  EXPECT_EQ(stats(w_).forgotten, 200u);
}

TEST_F(cached, threads_free_while_the_world_registers) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < 200; ++i) EXPECT_EQ(xio_mem_free(take(XIO_MEM_HOST_PLAIN)), XIO_OK);
    });
  void* p = take();
  for (int i = 0; i < 300; ++i) use(w_, p, 65536);
  for (auto& t : threads) t.join();
  EXPECT_EQ(stats(w_).misses, 1u);
  EXPECT_EQ(xio_mem_free(p), XIO_OK);
}

// Engines forget blocks in one thread while another opens contexts, whose scratch words they learn of.
TEST_F(cached, threads_free_registered_blocks_while_contexts_come_and_go) {
  const xio_ctx_t first = xio::test::start_ctx(w_, XIO_ROUTE_RDMA);
  std::vector<void*> blocks;
  for (int i = 0; i < 60; ++i) {
    blocks.push_back(take());
    ASSERT_EQ(xio_mem_register(w_, blocks.back(), 65536), XIO_OK) << xio_last_error();
    if (i % 2 != 0) {
      ASSERT_EQ(xio_mem_unregister(w_, blocks.back()), XIO_OK);
    }
  }
  std::thread other([&] {
    for (void* p : blocks) EXPECT_EQ(xio_mem_free(p), XIO_OK) << xio_last_error();
  });
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(xio_ctx_destroy(w_, xio::test::start_ctx(w_, XIO_ROUTE_RDMA)), XIO_OK) << xio_last_error();
  other.join();
  EXPECT_PAIRS((stats(w_).forgotten, 60u), (stats(w_).kept, 0u), (xio_ctx_destroy(w_, first), XIO_OK));
}

}  // namespace
