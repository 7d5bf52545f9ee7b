// SPDX-License-Identifier: MIT
// Flushing the host data path: what device code does to the register, what the progress thread does, and that nobody
// waits for ever. A fake HDP holds writes back until it is flushed.
#include <time.h>

#include "../gtest.hpp"
#include "ctx/ctx_value.hpp"
#include "memory/hdp_thread.hpp"
#include "trapped_page.hpp"
#include "xio/xio_device.hpp"

namespace {

using namespace xio::dev;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using xio::memory::hdp_thread;

// PE 0 of a world of its own.
struct hdp_flush_test : ::testing::Test {
  hdp_flush_test() : w(std::make_unique<world_view>()) {
    w->n_pes = 1;
    w->heap = heap;
    w->heap_bytes = sizeof heap;
    w->ticks_per_ms = 1000000;
    set_timeout(10000);
    self.direct = heap;
    self.small = self.bulk = self.atomic = route::direct;
    c.world = w.get();
    c.peers = &self;
    c.bulk_bytes = ~u64{0};
    c.pool_index = ~0u;
  }
  void set_timeout(u64 ms) { w->timeout_ticks = ms * w->ticks_per_ms; }
  void set_way(hdp_way way) { w->hdp.way = w->hdp.storage = way; }
  template <class Page>
  void use_register(Page& page) {
    w->hdp.flush = page.template as<u32>();
    set_way(hdp_way::device);
  }
  void use_ring(ring_view& ring) {
    c.flush_rings = &ring;
    c.flush_ring_count = 1;
    set_way(hdp_way::sdma);
  }
  // Flushes by a queue whose engine replies to the first doorbell by that fence.
  template <class Queue>
  void expect_flushed_by_engine(Queue& q, u32 fence) {
    std::thread engine([&] {
      while (load<scope::system, order::acquire>(&q.doorbell) == 0) std::this_thread::yield();
      store<scope::system, order::release>(&q.completion.fence, fence);
    });
    EXPECT_EQ(xio_hdp_flush(ctx()), XIO_OK);
    engine.join();
  }
  void use_words() {
    w->hdp.asked = &asked;
    w->hdp.done = &done;
  }
  xio_ctx_t ctx() { return xio::ctx_value(&c, 1, c, *w, &self); }

  alignas(128) unsigned char heap[4096] = {};
  u64* const flag = reinterpret_cast<u64*>(heap + 1024);
  u64* const data = reinterpret_cast<u64*>(heap + 2048);
  alignas(128) u64 asked = 0;
  alignas(128) u64 done = 0;
  std::unique_ptr<world_view> w;
  peer_view self{};
  ctx_view c{};
};

// --- The register ------------------------------------------------------------------------------------

#if defined(XIO_TEST_HAS_TRAPPED_PAGE)

using xio::test::trapped_page;

TEST_F(hdp_flush_test, none_touches_nothing) {
  trapped_page page;
  w->hdp.flush = page.as<u32>();
  *flag = 1;
  EXPECT_PAIRS((xio_hdp_flush(ctx()), XIO_OK), (xio_signal_wait_until(ctx(), flag, XIO_CMP_EQ, 1), XIO_OK),
               (xio_test_until(ctx(), flag, XIO_CMP_EQ, 2), XIO_PENDING), (xio_quiet(ctx()), XIO_OK),
               (page.accesses(), ""));
}

TEST_F(hdp_flush_test, device_stores_then_reads_back) {
  trapped_page page;
  use_register(page);
  EXPECT_EQ(xio_hdp_flush(ctx()), XIO_OK);
  EXPECT_PAIRS((page.accesses(), "wr"), (page.offset(0), 0u), (page.offset(1), 0u));
  *flag = 1;
  EXPECT_EQ(xio_signal_wait_until(ctx(), flag, XIO_CMP_EQ, 1), XIO_OK);
  EXPECT_EQ(page.accesses(), "wr") << "after the flag, before the data, and only once";
  EXPECT_PAIRS((xio_test_until(ctx(), flag, XIO_CMP_EQ, 1), XIO_OK), (page.accesses(), "wr"),
               (xio_signal_fetch(ctx(), flag), 1u));
  EXPECT_EQ(page.accesses(), "wrwr") << "the word itself may wait, and what came with it";
  EXPECT_EQ(xio_barrier_all(ctx()), XIO_OK);
  EXPECT_EQ(page.accesses(), "wr");
  // Everything of this ctx is loads and stores: nobody else has written for it.
  EXPECT_EQ(xio_quiet(ctx()), XIO_OK);
  EXPECT_EQ(page.accesses(), "");
}

// The host data path holds back the flag, and the data that came with it, until somebody flushes.
TEST_F(hdp_flush_test, device_sees_the_data_behind_a_flag) {
  trapped_page page([this] { *data = 42; });
  use_register(page);
  *flag = 1;
  ASSERT_EQ(xio_signal_wait_until(ctx(), flag, XIO_CMP_EQ, 1), XIO_OK);
  EXPECT_EQ(*data, 42u);
  *data = 0;
  ASSERT_EQ(xio_test_until(ctx(), flag, XIO_CMP_EQ, 1), XIO_OK);
  EXPECT_EQ(*data, 42u);
}

TEST_F(hdp_flush_test, device_sees_a_flag_that_waits_itself) {
  trapped_page page([this] { *flag = 7; });
  use_register(page);
  u64 seen = 0;
  ASSERT_EQ(xio_signal_wait_until(ctx(), flag, XIO_CMP_EQ, 7, &seen), XIO_OK);
  EXPECT_EQ(seen, 7u);
  EXPECT_EQ(page.accesses(), "wwr") << "one nudge brings it, one flush its data";
  *flag = 0;
  EXPECT_EQ(xio_test_until(ctx(), flag, XIO_CMP_EQ, 7), XIO_OK) << "a test flushes before it says no";
  EXPECT_EQ(page.accesses(), "wrwr");
  *flag = 0;
  EXPECT_EQ(xio_signal_fetch(ctx(), flag), 7u);
  u64 none = 0;
  EXPECT_EQ(xio_test_until(ctx(), &none, XIO_CMP_EQ, 7), XIO_PENDING);
}

TEST_F(hdp_flush_test, a_wait_in_vain_flushes_at_a_bounded_rate) {
  trapped_page page;
  use_register(page);
  set_timeout(20);
  EXPECT_EQ(xio_signal_wait_until(ctx(), flag, XIO_CMP_EQ, 1), XIO_ERR_TIMEOUT);
  const std::string all = page.accesses();
  EXPECT_GE(all.size(), 1u);
  EXPECT_EQ(all.find('r'), std::string::npos) << "nudges do not wait: " << all;
}

TEST_F(hdp_flush_test, requests_of_nics_and_drives_flush_and_those_of_copy_engines_do_not) {
  trapped_page page;
  use_register(page);
  ring_view rings[2]{};
  rings[0].kind = ring_kind::mlx5;
  rings[1].kind = ring_kind::sdma;
  c.rings = rings;
  c.ring_count = 2;
  EXPECT_EQ(hdp_flush_for(c, 0), XIO_OK);
  EXPECT_EQ(page.accesses(), "") << "there was nothing to wait for";
  EXPECT_PAIRS((hdp_flush_for(c, u64{1} << 48), XIO_OK), (page.accesses(), "wr"),
               (hdp_flush_for(c, u64{2} << 48), XIO_OK), (page.accesses(), ""));
}

TEST(hdp_thread, stores_to_the_register_then_reads_it_back) {
  trapped_page page;
  xio::memory::flush_by_register(page.as<volatile std::uint32_t>());
  EXPECT_EQ(page.accesses(), "wr");
}

// Write a line, its last byte last, and read that.
TEST(hdp_thread, reads_back_the_last_byte_of_what_it_wrote) {
  trapped_page page;
  xio::memory::flush_by_readback(page.as<volatile unsigned char>(), 0x5a);
  EXPECT_EQ(page.accesses(), std::string(64, 'w') + "r");
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(page.offset(i), i);
  EXPECT_EQ(page.offset(64), 63u);
}

#endif

TEST(hdp_thread, leaves_in_the_line_what_it_was_given) {
  unsigned char line[66] = {};
  xio::memory::flush_by_readback(line + 1, 0x5a);
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(line[1 + i], 0x5a);
  EXPECT_PAIRS((line[0], 0), (line[65], 0));
}

// --- The progress thread -----------------------------------------------------------------------------

TEST_F(hdp_flush_test, host_ways_see_flags_and_data_that_wait) {
  for (const hdp_way way : {hdp_way::host, hdp_way::readback}) {
    asked = done = w->hdp_numbers = *flag = *data = 0;
    use_words();
    set_way(way);
    hdp_thread thread(&asked, &done, [this] {
      store<scope::system, order::relaxed>(data, u64{42});
      store<scope::system, order::release>(flag, u64{1});
    });
    ASSERT_EQ(xio_signal_wait_until(ctx(), flag, XIO_CMP_EQ, 1), XIO_OK);
    EXPECT_EQ((load<scope::system, order::relaxed>(data)), 42u);
    EXPECT_GE(thread.flushes(), 1u);
  }
}

TEST_F(hdp_flush_test, a_dead_thread_is_a_timeout) {
  use_words();
  set_way(hdp_way::host);
  set_timeout(30);
  const auto start = steady_clock::now();
  EXPECT_EQ(xio_hdp_flush(ctx()), XIO_ERR_TIMEOUT);
  *flag = 1;
  EXPECT_EQ(xio_signal_wait_until(ctx(), flag, XIO_CMP_EQ, 1), XIO_ERR_TIMEOUT) << "its data is not proven to be there";
  EXPECT_EQ(xio_signal_wait_until(ctx(), flag, XIO_CMP_EQ, 2), XIO_ERR_TIMEOUT);
  EXPECT_EQ(xio_test_until(ctx(), flag, XIO_CMP_EQ, 2), XIO_ERR_TIMEOUT);
  EXPECT_EQ(xio_barrier_all(ctx()), XIO_ERR_TIMEOUT);
  EXPECT_GE(steady_clock::now() - start, milliseconds(5 * 30));
  EXPECT_LT(steady_clock::now() - start, milliseconds(5 * 30 + 2000));
}

// Each must get a flush that began after it asked, however many others ask at the same time.
TEST_F(hdp_flush_test, everybody_gets_a_flush_of_his_own_time) {
  use_words();
  set_way(hdp_way::host);
  std::atomic<u64> begun{0}, ended{0};
  hdp_thread thread(&asked, &done, [&] {
    begun.fetch_add(1);
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    ended.fetch_add(1);
  });
  std::atomic<int> wrong{0};
  xio::test::at_once(8, [&](int) {
    for (int i = 0; i < 200; ++i) {
      const u64 before = begun.load();
      if (xio_hdp_flush(ctx()) != XIO_OK || ended.load() < before + 1) wrong.fetch_add(1);
    }
  });
  EXPECT_PAIRS((wrong.load(), 0), (w->hdp_numbers, 8u * 200u),
               ((load<scope::system, order::relaxed>(&done)), 8u * 200u));
  EXPECT_LE(thread.flushes(), 8u * 200u);
}

// Numbers may be stored out of their order: a smaller one can overwrite a larger one, which is then stored again.
TEST_F(hdp_flush_test, a_smaller_number_hides_no_larger_one) {
  use_words();
  set_way(hdp_way::host);
  w->hdp_numbers = 5;
  std::thread late([this] {
    std::this_thread::sleep_for(milliseconds(5));
    store<scope::system, order::release>(&asked, u64{3});
    const auto end = steady_clock::now() + milliseconds(10000);  // a busy machine takes its time
    while (load<scope::system, order::acquire>(&asked) != 6 && steady_clock::now() < end) std::this_thread::yield();
    EXPECT_EQ((load<scope::system, order::acquire>(&asked)), 6u);
    store<scope::system, order::release>(&done, u64{6});
  });
  EXPECT_EQ(xio_hdp_flush(ctx()), XIO_OK);
  late.join();
}

TEST(hdp_thread, sleeps_while_nobody_asks_and_wakes_in_time) {
  alignas(128) std::uint64_t asked = 0;
  alignas(128) std::uint64_t done = 0;
  hdp_thread thread(&asked, &done, [] {});
  timespec before{}, after{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
  std::this_thread::sleep_for(milliseconds(300));
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
  const double used =
      static_cast<double>(after.tv_sec - before.tv_sec) + 1e-9 * static_cast<double>(after.tv_nsec - before.tv_nsec);
  EXPECT_LT(used, 0.1) << "seconds of 0.3";
  EXPECT_EQ(thread.flushes(), 0u);
  __atomic_store_n(&asked, std::uint64_t{1}, __ATOMIC_RELEASE);
  const auto start = steady_clock::now();
  while (__atomic_load_n(&done, __ATOMIC_ACQUIRE) != 1 && steady_clock::now() - start < milliseconds(2000))
    std::this_thread::yield();
  EXPECT_EQ(__atomic_load_n(&done, __ATOMIC_ACQUIRE), 1u);
  EXPECT_EQ(thread.flushes(), 1u);
}

TEST(hdp_thread, stops_at_once_also_while_asked) {
  alignas(128) std::uint64_t asked = 0;
  alignas(128) std::uint64_t done = 0;
  for (int i = 0; i < 50; ++i) {
    hdp_thread thread(&asked, &done, [] {});
    __atomic_store_n(&asked, static_cast<std::uint64_t>(i), __ATOMIC_RELEASE);
  }
}

// --- A copy queue ------------------------------------------------------------------------------------

// A queue whose engine is this test.
struct copy_queue {
  static constexpr u32 k_depth = 8;
  copy_queue() {
    state.credits = k_depth;
    view.state = &state;
    view.marks = marks;
    view.slots = reinterpret_cast<unsigned char*>(slots);
    view.depth = k_depth;
    view.kind = ring_kind::sdma;
    view.sdma.doorbell = &doorbell;
    view.sdma.write_pointer = &written;
    view.sdma.completion = &completion;
    view.sdma.least_slots = 1;
    view.sdma.generation = xio::wire::sdma::gen_9_0a;
  }
  ring_state state{};
  u64 marks[k_depth] = {};
  u32 slots[k_depth][16] = {};
  alignas(8) u64 doorbell = 0;
  alignas(8) u64 written = 0;
  sdma_completion completion{};
  ring_view view{};
};

// SDMA_PKT_HDP_FLUSH, ROCR core/inc/sdma_registers.h; NOP and FENCE: vega10_sdma_pkt_open.h.
TEST_F(hdp_flush_test, sdma_posts_the_packet_and_waits_for_its_fence) {
  copy_queue q;
  use_ring(q.view);
  expect_flushed_by_engine(q, 1u);
  EXPECT_PAIRS((q.doorbell, 64u), (q.written, 64u));
  const u64 at = reinterpret_cast<u64>(&q.completion);
  const u32 packet[16] = {
      0x8, 0, 0x80000000u, 0, 0, 0, 5u << 16, 0, 0, 0, 0, 0, 0x5, static_cast<u32>(at), static_cast<u32>(at >> 32), 1};
  for (int i = 0; i < 16; ++i) EXPECT_EQ(q.slots[0][i], packet[i]) << i;
  EXPECT_EQ(q.state.ops, 0u) << "it is no op of the user's";
}

TEST_F(hdp_flush_test, sdma_fills_what_the_engine_wants_at_least) {
  copy_queue q;
  q.view.sdma.least_slots = 4;
  use_ring(q.view);
  q.completion.fence = 0;
  expect_flushed_by_engine(q, 4u);
  EXPECT_EQ(q.doorbell, 256u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(q.slots[i][0], 15u << 16) << "nothing, 16 dwords of it";
  EXPECT_PAIRS((q.slots[3][0], 0x8u), (q.slots[3][15], 4u));
}

TEST_F(hdp_flush_test, a_dead_engine_is_a_timeout_and_then_a_failed_ring) {
  copy_queue q;
  use_ring(q.view);
  set_timeout(30);
  *flag = 1;
  EXPECT_EQ(xio_signal_wait_until(ctx(), flag, XIO_CMP_EQ, 1), XIO_ERR_TIMEOUT);
  const auto start = steady_clock::now();
  EXPECT_EQ(xio_hdp_flush(ctx()), XIO_ERR_TIMEOUT);
  EXPECT_LT(steady_clock::now() - start, milliseconds(25)) << "the ring refuses work at once";
  c.flush_ring_count = 0;
  EXPECT_EQ(xio_hdp_flush(ctx()), XIO_ERR_NO_ROUTE);
}

TEST_F(hdp_flush_test, refuses_no_ctx) { EXPECT_EQ(xio_hdp_flush(xio_ctx_t{}), XIO_ERR_STATE); }

}  // namespace
