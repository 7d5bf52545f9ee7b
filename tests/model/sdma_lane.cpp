// SPDX-License-Identifier: MIT
// The SDMA lane from device functions to data: the same calls that a kernel makes, over real queues of the software
// engine. Host threads outside any kernel are waves of one lane; tests/mpi has kernels.
#include "xio/device/impl/sdma_lane.hpp"
#include "../unit/refusal.hpp"
#include "gpu/gpu.hpp"
#include "transport/sdma/sdma.hpp"

namespace xio {
namespace {

using dev::u64;
constexpr std::size_t k_heap = std::size_t{1} << 20;
constexpr unsigned char k_poison = 0xcd;

// One PE that is its own peer: heap at `heap`, and local memory at `local`, all mapped.
struct node {
  progress::machine machine{1};
  std::unique_ptr<sdma::engine> engine;
  std::vector<unsigned char> heap, local, stranger;
  std::unique_ptr<sdma::queue> queue;
  dev::ring_view ring{};
  dev::peer_view peer{};
  dev::world_view world{};
  dev::ctx_view ctx{};

  u64 word(std::size_t at) const {
    u64 value;
    std::memcpy(&value, heap.data() + at, 8);
    return value;
  }
  explicit node(std::uint32_t depth = 256, u64 ticket_start = 0, std::uint32_t chunk = 0, bool alone = false)
      : heap(k_heap, k_poison), local(k_heap), stranger(4096) {
    engine = sdma::open_engine(options::defaults(), machine, gpu::payload());
    engine->map(heap.data(), heap.size());
    engine->map(local.data(), local.size());
    for (std::size_t i = 0; i < local.size(); ++i) local[i] = static_cast<unsigned char>((i * 2654435761u) >> 13);
    queue = engine->create_queue({depth, ticket_start, -1, 0, alone});
    ring = queue->view();
    if (chunk != 0) ring.chunk = chunk;
    world.n_pes = 1;
    world.timeout_ticks = gpu::ticks_per_ms() * 20000;
    world.regions[0] = dev::region_view{reinterpret_cast<u64>(heap.data()), heap.size(), {}, {}, 1, 0, 0, {}, {}};
    world.regions[7] = dev::region_view{reinterpret_cast<u64>(local.data()), local.size(), {}, {}, 1, 0, 0, {}, {}};
    peer.direct = heap.data();
    peer.sdma = &ring;
    peer.sdma_count = 1;
    ctx.world = &world;
    ctx.peers = &peer;
    ctx.rings = &ring;
    ctx.ring_count = 1;
  }

  xio_status_t quiet() { return dev::ring_quiet<dev::sdma_codec>(ring, world); }
  // Everything in the heap outside [at, at + bytes) is still poison.
  void expect_guards(std::size_t at, std::size_t bytes) {
    for (std::size_t i = at - 64; i < at; ++i) ASSERT_EQ(heap[i], k_poison) << i;
    for (std::size_t i = at + bytes; i < at + bytes + 64; ++i) ASSERT_EQ(heap[i], k_poison) << i;
  }
};

TEST(sdma_lane, puts_and_gets_every_size_from_0_to_300) {
  node n;
  for (u64 bytes = 0; bytes <= 300; ++bytes) {
    std::memset(n.heap.data(), k_poison, 1024);
    const u64 offset = 128 + bytes % 13;
    const unsigned char* src = n.local.data() + bytes % 5;
    xio_req_t request = 77;
    ASSERT_EQ(dev::sdma::put(n.ctx, 0, offset, src, bytes, &request), XIO_OK);
    EXPECT_EQ(request == 0, bytes == 0);
    ASSERT_EQ(n.quiet(), XIO_OK);
    ASSERT_EQ(std::memcmp(n.heap.data() + offset, src, bytes), 0) << bytes;
    n.expect_guards(offset, bytes);
    unsigned char back[302];
    std::memset(n.local.data() + 8192, 0xee, sizeof back);
    ASSERT_EQ(dev::sdma::get(n.ctx, 0, n.local.data() + 8193, offset, bytes, nullptr), XIO_OK);
    ASSERT_EQ(n.quiet(), XIO_OK);
    std::memcpy(back, n.local.data() + 8192, sizeof back);
    ASSERT_EQ(std::memcmp(back + 1, src, bytes), 0) << bytes;
    ASSERT_EQ(back[0], 0xee);
    ASSERT_EQ(back[1 + bytes], 0xee);
  }
  EXPECT_EQ(n.ring.state->bytes, 2u * 300 * 301 / 2);
}

TEST(sdma_lane, splits_at_the_chunk_and_goes_round_a_ring_of_four_at_a_32_bit_wrap) {
  for (const std::uint32_t chunk : {1u, 64u, 100u, 4096u}) {
    node n(4, (u64{1} << 32) - 8, chunk);
    for (const u64 bytes : {u64{1}, u64{chunk} - 1, u64{chunk}, u64{chunk} + 1, u64{37} * chunk + chunk / 2}) {
      if (bytes == 0) continue;
      std::memset(n.heap.data(), k_poison, n.heap.size());
      ASSERT_EQ(dev::sdma::put(n.ctx, 0, 200, n.local.data() + 3, bytes, nullptr), XIO_OK);
      ASSERT_EQ(n.quiet(), XIO_OK);
      ASSERT_EQ(std::memcmp(n.heap.data() + 200, n.local.data() + 3, bytes), 0) << chunk << " " << bytes;
      n.expect_guards(200, bytes);
    }
    EXPECT_GT(n.ring.state->completed, u64{1} << 32);
    EXPECT_PAIRS((n.ring.state->completed, n.ring.state->issued), (n.ring.state->credits, 4));
  }
}

TEST(sdma_lane, signals_set_and_add) {
  node n;
  auto* word = reinterpret_cast<u64*>(n.heap.data() + 512);
  ASSERT_EQ(dev::sdma::signal(n.ctx, 0, {512, 0x100000001, XIO_SIGNAL_SET}, nullptr), XIO_OK);
  ASSERT_EQ(dev::sdma::signal(n.ctx, 0, {512, 41, XIO_SIGNAL_ADD}, nullptr), XIO_OK);
  ASSERT_EQ(n.quiet(), XIO_OK);
  EXPECT_EQ(*word, 0x10000002au);
  n.expect_guards(512, 8);
  EXPECT_EQ(dev::sdma::signal(n.ctx, 0, {516, 1, XIO_SIGNAL_ADD}, nullptr), XIO_ERR_ARG);
  EXPECT_EQ(dev::sdma::signal(n.ctx, 0, {512, 1, 2}, nullptr), XIO_ERR_ARG);
}

// A thread that sees the signal sees all of the data, of every chunk.
TEST(sdma_lane, a_signal_is_visible_after_its_data) {
  node n(8, 0, 1000);
  auto* signal = reinterpret_cast<u64*>(n.heap.data() + 64);
  std::memset(signal, 0, 8);
  std::atomic<int> wrong{0};
  std::atomic<u64> looked{0};
  constexpr u64 k_rounds = 200, k_bytes = 3500;
  std::thread watcher([&] {
    for (u64 round = 1; round <= k_rounds; ++round) {
      while (__atomic_load_n(signal, __ATOMIC_ACQUIRE) < round) std::this_thread::yield();
      const unsigned char* at = n.heap.data() + 4096 + (round % 2) * 8192;
      for (u64 i = 0; i < k_bytes; ++i) wrong += at[i] != static_cast<unsigned char>(round) ? 1 : 0;
      looked = round;
    }
  });
  for (u64 round = 1; round <= k_rounds; ++round) {
    unsigned char* src = n.local.data() + (round % 2) * 8192;
    std::memset(src, static_cast<int>(round & 0xff), k_bytes);
    ASSERT_EQ(dev::sdma::put_signal(n.ctx, 0, {4096 + (round % 2) * 8192, src, k_bytes}, {64, 1, XIO_SIGNAL_ADD},
                                    nullptr, nullptr),
              XIO_OK);
    while (looked < round) std::this_thread::yield();
  }
  EXPECT_EQ(n.quiet(), XIO_OK);
  watcher.join();
  EXPECT_EQ(wrong, 0);
}

TEST(sdma_lane, many_threads_share_a_ring_of_four) {
  node n(4, (u64{1} << 32) - 8, 64);
  constexpr int k_threads = 4;
  constexpr u64 k_ops = 150;
  std::atomic<int> failures{0};
  std::memset(n.heap.data() + 64, 0, 8);
  xio::test::at_once(k_threads, [&](int t) {
    for (u64 i = 0; i < k_ops; ++i) {
      const u64 at = 4096 + (static_cast<u64>(t) * k_ops + i) * 160;
      const u64 bytes = (i * 7 + static_cast<u64>(t)) % 150;
      if (dev::sdma::put_signal(n.ctx, 0, {at, n.local.data() + at, bytes}, {64, 1, XIO_SIGNAL_ADD}, nullptr,
                                nullptr) != XIO_OK)
        ++failures;
    }
    if (n.quiet() != XIO_OK) ++failures;
  });
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(n.word(64), k_threads * k_ops);
  for (u64 op = 0; op < k_threads * k_ops; ++op) {
    const u64 at = 4096 + op * 160;
    const u64 bytes = ((op % k_ops) * 7 + op / k_ops) % 150;
    ASSERT_EQ(std::memcmp(n.heap.data() + at, n.local.data() + at, bytes), 0) << op;
    for (u64 i = bytes; i < 160; ++i) ASSERT_EQ(n.heap[at + i], k_poison) << op;
  }
}

// Signal and counter ride behind the data, also where a ring of four slots makes the counter wait for room.
TEST(sdma_lane, counts_when_the_source_is_free) {
  for (const std::uint32_t depth : {4u, 256u}) {
    node n(depth, (u64{1} << 32) - 256, 1000);
    auto* counter = reinterpret_cast<u64*>(n.local.data() + 64);
    *counter = 0x1ffffffff;
    std::memset(n.heap.data() + 512, 0, 8);
    for (u64 i = 0; i < 50; ++i) {
      const u64 at = 4096 + i * 4096, bytes = i * 61;
      ASSERT_EQ(dev::sdma::put_counter(n.ctx, 0, {at, n.local.data() + at, bytes}, counter, nullptr), XIO_OK);
      ASSERT_EQ(dev::sdma::put_signal(n.ctx, 0, {at + 3072, n.local.data() + at + 3072, bytes % 512},
                                      {512, 3, XIO_SIGNAL_ADD}, counter, nullptr),
                XIO_OK);
    }
    ASSERT_EQ(n.quiet(), XIO_OK);
    EXPECT_EQ(*counter, 0x1ffffffffu + 100);
    EXPECT_EQ(n.word(512), 150u);
    for (u64 i = 0; i < 50; ++i) {
      const u64 at = 4096 + i * 4096;
      ASSERT_EQ(std::memcmp(n.heap.data() + at, n.local.data() + at, i * 61), 0);
      n.expect_guards(at + 3072, (i * 61) % 512);
    }
    EXPECT_EQ(n.ring.state->credits, depth);
  }
}

// One thread at a time: no credits, no marks; the ring goes round many times and a wrong order would show.
TEST(sdma_lane, one_poster_alone_goes_round_a_ring_of_four) {
  node n(4, (u64{1} << 32) - 8, 64, true);
  std::memset(n.heap.data() + 64, 0, 8);
  for (u64 i = 0; i < 300; ++i) {
    const u64 at = 4096 + i * 192, bytes = (i * 7) % 150;
    ASSERT_EQ(
        dev::sdma::put_signal(n.ctx, 0, {at, n.local.data() + at, bytes}, {64, 1, XIO_SIGNAL_ADD}, nullptr, nullptr),
        XIO_OK);
  }
  ASSERT_EQ(n.quiet(), XIO_OK);
  EXPECT_EQ(n.word(64), 300u);
  for (u64 i = 0; i < 300; ++i) {
    const u64 at = 4096 + i * 192, bytes = (i * 7) % 150;
    ASSERT_EQ(std::memcmp(n.heap.data() + at, n.local.data() + at, bytes), 0) << i;
    ASSERT_EQ(n.heap[at + bytes], k_poison);
  }
  EXPECT_PAIRS((n.ring.state->ops, n.ring.state->doorbells), (n.ring.state->published, n.ring.state->issued));
}

TEST(sdma_lane, one_poster_alone_times_out_when_nobody_takes_its_work) {
  node n(4, 0, 0, true);
  n.world.timeout_ticks = gpu::ticks_per_ms() * 30;
  u64 nowhere = 0;
  n.ring.sdma.doorbell = &nowhere;
  for (int i = 0; i < 4; ++i) ASSERT_EQ(dev::sdma::put(n.ctx, 0, 0, n.local.data(), 8, nullptr), XIO_OK);
  EXPECT_EQ(dev::sdma::put(n.ctx, 0, 0, n.local.data(), 8, nullptr), XIO_ERR_TIMEOUT);
  EXPECT_EQ(dev::sdma::put(n.ctx, 0, 0, n.local.data(), 8, nullptr), XIO_ERR_TIMEOUT);
}

// The engine sees multiples of 4 only; every byte arrives all the same.
TEST(sdma_lane, moves_head_and_tail_itself_where_the_engine_takes_only_dwords) {
  node n;
  n.ring.sdma.granule = 4;
  for (u64 to = 0; to < 4; ++to)
    for (u64 from = 0; from < 4; ++from)
      for (u64 bytes = 0; bytes <= 21; ++bytes) {
        std::memset(n.heap.data(), k_poison, 512);
        const unsigned char* src = n.local.data() + 1024 + from;
        const u64 posted = n.ring.state->bytes;
        ASSERT_EQ(dev::sdma::put(n.ctx, 0, 200 + to, src, bytes, nullptr), XIO_OK);
        ASSERT_EQ(n.quiet(), XIO_OK);
        ASSERT_EQ(std::memcmp(n.heap.data() + 200 + to, src, bytes), 0) << to << from << " " << bytes;
        n.expect_guards(200 + to, bytes);
        ASSERT_EQ((n.ring.state->bytes - posted) % 4, 0u);
        ASSERT_GE(n.ring.state->bytes - posted, to == from && bytes >= 8 ? bytes - 6 : 0);
        ASSERT_LE(n.ring.state->bytes - posted, to == from ? bytes : 0);
      }
}

// The same of gets, whose ends are read of a peer, at every alignment within a word: what lies on both sides of either
// place stays.
TEST(sdma_lane, gets_head_and_tail_itself_where_the_engine_takes_only_dwords) {
  node n;
  n.ring.sdma.granule = 4;
  std::vector<u64> lengths;
  for (u64 bytes = 0; bytes <= 40; ++bytes) lengths.push_back(bytes);
  for (u64 bytes = 4090; bytes <= 4102; ++bytes) lengths.push_back(bytes);
  const std::vector<unsigned char> theirs = n.local;
  n.heap = theirs;
  unsigned char* const area = n.local.data() + 8192;
  std::vector<unsigned char> wanted(8192);
  for (u64 to = 0; to < 8; ++to)
    for (u64 from = 0; from < 8; ++from)
      for (const u64 bytes : lengths) {
        std::fill(wanted.begin(), wanted.end(), k_poison);
        std::memcpy(area, wanted.data(), wanted.size());
        std::memcpy(wanted.data() + 64 + to, theirs.data() + 1024 + from, bytes);
        const u64 posted = n.ring.state->bytes;
        ASSERT_EQ(dev::sdma::get(n.ctx, 0, area + 64 + to, 1024 + from, bytes, nullptr), XIO_OK);
        ASSERT_EQ(n.quiet(), XIO_OK);
        ASSERT_EQ(std::memcmp(area, wanted.data(), wanted.size()), 0) << to << " " << from << " " << bytes;
        const u64 by_engine = n.ring.state->bytes - posted;
        ASSERT_EQ(by_engine % 4, 0u);
        ASSERT_GE(by_engine, to % 4 == from % 4 && bytes >= 8 ? bytes - 6 : 0) << to << " " << from << " " << bytes;
        ASSERT_LE(by_engine, to % 4 == from % 4 ? bytes : 0) << to << " " << from << " " << bytes;
      }
  EXPECT_TRUE(n.heap == theirs);
}

// Engines of gfx900 get 256 bytes at least at a time.
TEST(sdma_lane, pads_what_it_submits) {
  node n(16);
  n.ring.sdma.least_slots = 4;
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(dev::sdma::put(n.ctx, 0, 256, n.local.data(), 100, nullptr), XIO_OK);
    ASSERT_EQ(dev::sdma::signal(n.ctx, 0, {512, 5, XIO_SIGNAL_SET}, nullptr), XIO_OK);
  }
  ASSERT_EQ(n.quiet(), XIO_OK);
  EXPECT_EQ(n.ring.state->issued, 160u);
  EXPECT_EQ(std::memcmp(n.heap.data() + 256, n.local.data(), 100), 0);
}

TEST(sdma_lane, refuses_what_no_engine_can_do) {
  node n;
  EXPECT_EQ(dev::sdma::put(n.ctx, 0, 0, n.stranger.data(), 8, nullptr), XIO_ERR_NOT_REGISTERED);
  EXPECT_EQ(dev::sdma::get(n.ctx, 0, n.stranger.data(), 0, 8, nullptr), XIO_ERR_NOT_REGISTERED);
  EXPECT_EQ(dev::sdma::put(n.ctx, 0, 0, n.local.data() + k_heap - 4, 8, nullptr), XIO_ERR_NOT_REGISTERED);
  EXPECT_EQ(dev::sdma::put(n.ctx, 0, 256, n.heap.data() + 260, 8, nullptr), XIO_ERR_ARG);
  n.peer.sdma = nullptr;
  EXPECT_EQ(dev::sdma::put(n.ctx, 0, 0, n.local.data(), 8, nullptr), XIO_ERR_NO_ROUTE);
}

// The engine refuses a packet: the status, the fault and the op come back, and the ring takes no more.
TEST(sdma_lane, a_fault_of_the_engine_comes_back_from_waits) {
  node n(4, (u64{1} << 32) - 8);
  ASSERT_EQ(dev::sdma::put(n.ctx, 0, 0, n.local.data(), 8, nullptr), XIO_OK);
  ASSERT_EQ(dev::sdma::put(n.ctx, 0, 0, n.local.data(), 8, nullptr), XIO_OK);
  xio_req_t request = 0;
  ASSERT_EQ(dev::sdma::copy(n.ctx, n.ring, n.heap.data(), n.stranger.data(), 8, &request), XIO_OK);
  EXPECT_EQ(n.quiet(), XIO_ERR_TRANSPORT);
  EXPECT_EQ(n.ring.state->vendor, 11u);  // not_mapped, src/model/sdma/fault.hpp
  EXPECT_EQ(n.ring.state->failed_ticket, (u64{1} << 32) - 8 + 2);
  EXPECT_EQ(n.ring.state->completed, (u64{1} << 32) - 8 + 2);
  EXPECT_EQ(dev::request_ticket(n.ring, request), n.ring.state->failed_ticket);
  EXPECT_EQ(dev::ring_test(n.ring, n.ring.state->failed_ticket), XIO_ERR_TRANSPORT);
  EXPECT_EQ(dev::sdma::put(n.ctx, 0, 0, n.local.data(), 8, nullptr), XIO_ERR_TRANSPORT);
}

TEST(sdma_lane, an_engine_that_sleeps_is_a_timeout) {
  node n;
  n.world.timeout_ticks = gpu::ticks_per_ms() * 50;
  u64 nowhere = 0;
  n.ring.sdma.doorbell = &nowhere;
  ASSERT_EQ(dev::sdma::put(n.ctx, 0, 0, n.local.data(), 8, nullptr), XIO_OK);
  EXPECT_PAIRS((n.quiet(), XIO_ERR_TIMEOUT), (n.quiet(), XIO_ERR_TIMEOUT));
}

TEST(sdma_open, says_what_is_wrong) {
  progress::machine machine(1);
  options o = options::defaults();
  o.backend = option::backend::hw;
  test::expect_words(test::refusal(XIO_ERR_UNSUPPORTED, [&] { sdma::open_engine(o, machine, gpu::payload()); }),
                     {"XIO_BACKEND=auto"});
  o.backend = option::backend::model;
  auto engine = sdma::open_engine(o, machine, gpu::payload());
  EXPECT_STREQ(engine->backend(), "model gfx90a");
  EXPECT_THROW(engine->create_queue({3, 0, -1, 0, false}), error);
  EXPECT_THROW(engine->create_queue({2, 0, -1, 0, false}), error);
  EXPECT_THROW(engine->create_queue({8, 4, -1, 0, false}), error);
  EXPECT_THROW(engine->map(nullptr, 0), error);
  auto queue = engine->create_queue({8, 16, -1, 0, false});
  engine.reset();  // a queue may outlive it
  EXPECT_EQ(queue->view().depth, 8u);
}

}  // namespace
}  // namespace xio
