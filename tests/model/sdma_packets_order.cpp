// SPDX-License-Identifier: MIT
// Order: what an engine promises and what it does not, within a queue, between queues and between engines.
#include "progress/machine.hpp"
#include "sdma_rig.hpp"

namespace xio::model::sdma {
namespace {

// --- Within a queue -----------------------------------------------------------------------------------------------

enum class between { nothing, nop, fence, atomic, poll, stamp, trap, hdp_flush };

// A chain of two moves, the second of which needs the first, with something between them. True if its data is right.
bool chain_is_right(std::uint64_t seed, between what, bool tiles) {
  bench b{wire::gen_9_0a, 256, seed};
  arena& m = b.memory;
  const auto move = [&](void* to, const void* from) {
    return tiles ? tile(wire::gen_9_0a, 2, corner{from, 0, 0, 0, 16, 1}, corner{to, 0, 0, 0, 16, 1}, 16, 8)
                 : copy(to, from, 512);
  };
  b.queue.write(move(m.dst, m.src));
  switch (what) {
    case between::nothing: break;
    case between::nop: b.queue.write({0}); break;
    case between::fence: b.queue.write(fence(&m.words[0], 1)); break;
    case between::atomic: b.queue.write(atomic(0x2f, &m.words[0], 1)); break;
    case between::poll: b.queue.write(poll(3, &m.words[0], 0)); break;
    case between::stamp: b.queue.write({0x20d, lo(&m.words[4]), hi(&m.words[4])}); break;
    case between::trap: b.queue.write({6, 0}); break;
    case between::hdp_flush: b.queue.write({8, 0, 0x80000000, 0, 0, 0}); break;
  }
  b.queue.submit(move(m.dst + 1024, m.dst), fence(&m.words[1], 1));
  EXPECT_PAIRS((b.queue.stopped_by(), fault::none), (m.words[1], 1u));
  return std::memcmp(m.dst + 1024, m.src, 512) == 0;
}

int wrong_of_32(between what, bool tiles) {
  int wrong = 0;
  for (std::uint64_t seed = 1; seed <= 32; ++seed) wrong += chain_is_right(seed, what, tiles) ? 0 : 1;
  return wrong;
}

// A program that needs an order and does not ask for it goes wrong for some seed, one that asks for none.
TEST(sdma_order, moves_overlap_unless_something_waits_for_them) {
  for (const bool tiles : {false, true}) {
    for (const between what : {between::nothing, between::nop}) {
      const int wrong = wrong_of_32(what, tiles);
      EXPECT_GT(wrong, 4);
      EXPECT_LT(wrong, 28);
    }
    for (const between what :
         {between::fence, between::atomic, between::poll, between::stamp, between::trap, between::hdp_flush})
      EXPECT_EQ(wrong_of_32(what, tiles), 0) << static_cast<int>(what);
  }
}

TEST(sdma_order, fills_and_writes_overlap_too) {
  int fill_first = 0, write_first = 0;
  for (std::uint64_t seed = 1; seed <= 32; ++seed) {
    bench b{wire::gen_11, 64, seed};
    b.queue.write({0x8000000b, lo(b.memory.dst), hi(b.memory.dst), 0x11111111, 3});
    b.queue.submit({0x00000002, lo(b.memory.dst), hi(b.memory.dst), 0, 0x22222222});
    ++(b.memory.dst[0] == 0x22 ? fill_first : write_first);
  }
  EXPECT_GT(fill_first, 4);
  EXPECT_GT(write_first, 4);
}

TEST(sdma_order, the_same_seed_is_the_same_order) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed)
    EXPECT_EQ(chain_is_right(seed, between::nothing, false), chain_is_right(seed, between::nothing, false));
}

TEST(sdma_order, an_atomic_comes_after_the_copies_before_it) {
  // A value that the copy carries to the word and the atomic adds to.
  for (std::uint64_t seed = 1; seed <= 32; ++seed) {
    bench b{wire::gen_12, 64, seed};
    const std::uint64_t forty = 40;
    std::memcpy(b.memory.src, &forty, 8);
    b.queue.submit(copy(b.memory.dst, b.memory.src, 8), atomic(0x2f, b.memory.dst, 2));
    std::uint64_t found;
    std::memcpy(&found, b.memory.dst, 8);
    ASSERT_EQ(found, 42u);
  }
}

// --- Between engines, each on a thread of its own -----------------------------------------------------------------

constexpr std::chrono::seconds k_patience{20};

template <class F>
bool comes_true(F&& f) {
  const auto end = std::chrono::steady_clock::now() + k_patience;
  while (!f()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

// Engines on a machine with as many threads; all reach all memory.
struct running {
  static constexpr std::size_t k_engines = 4;
  xio::progress::machine threads{k_engines};
  std::vector<std::unique_ptr<engine>> engines;

  explicit running(const payload_agent& payload) {
    for (std::size_t i = 0; i < k_engines; ++i) {
      engines.push_back(std::make_unique<engine>(payload, wire::gen_9_4, i + 1));
      threads.add(engines.back().get());
    }
  }
  ~running() {
    for (auto& e : engines) threads.remove(e.get());
  }
  void map(void* base, std::size_t bytes, memory_kind kind) {
    for (auto& e : engines) EXPECT_TRUE(e->map(base, bytes, kind));
  }
};

// Data goes from engine to engine: each polls the word that the one before it fences.
TEST(sdma_engines, hand_data_on_by_fence_and_poll) {
  running r{plain_memory()};
  constexpr std::size_t k_bytes = 40000;
  std::vector<std::vector<unsigned char>> stages(running::k_engines + 1, std::vector<unsigned char>(k_bytes));
  alignas(64) std::uint64_t words[8] = {};
  for (auto& s : stages) r.map(s.data(), s.size(), memory_kind::payload);
  r.map(words, sizeof words, memory_kind::host);
  std::vector<std::unique_ptr<hand_queue>> queues;
  for (auto& e : r.engines) queues.push_back(std::make_unique<hand_queue>(*e, 64));

  for (std::uint32_t round = 1; round <= 50; ++round) {
    for (std::size_t i = 0; i < k_bytes; ++i) stages[0][i] = static_cast<unsigned char>(i * 31 + round);
    // The last first, so that each has to wait.
    for (std::size_t i = running::k_engines; i-- > 0;) {
      hand_queue& q = *queues[i];
      dwords batch = poll(3, &words[i], round);
      const auto append = [&](const dwords& d) { batch.insert(batch.end(), d.begin(), d.end()); };
      append(copy(stages[i + 1].data(), stages[i].data(), k_bytes));
      append(fence(&words[i + 1], round));
      while (batch.size() < 32) batch.push_back(0);
      q.write(batch);
      q.ring_doorbell();
    }
    __atomic_store_n(&words[0], round, __ATOMIC_RELEASE);
    ASSERT_TRUE(comes_true([&] { return __atomic_load_n(&words[running::k_engines], __ATOMIC_ACQUIRE) == round; }))
        << round;
    ASSERT_TRUE(stages.back() == stages.front()) << round;
  }
  for (auto& q : queues) EXPECT_EQ(q->stopped_by(), fault::none);
}

TEST(sdma_engines, add_to_one_word_without_losing_any) {
  running r{plain_memory()};
  alignas(64) std::uint64_t words[8] = {};
  r.map(words, sizeof words, memory_kind::payload);
  {
    std::vector<std::unique_ptr<hand_queue>> queues;
    for (auto& e : r.engines) queues.push_back(std::make_unique<hand_queue>(*e, 1024));
    for (auto& q : queues) {
      // ADD, and INC, which the model does by compare and swap.
      for (int i = 0; i < 60; ++i) {
        q->write(atomic(0x2f, &words[0], 1));
        q->write(atomic(0x38, &words[1], ~std::uint64_t{0}));
      }
      q->ring_doorbell();
    }
    EXPECT_TRUE(comes_true([&] {
      return __atomic_load_n(&words[0], __ATOMIC_ACQUIRE) == 240 && __atomic_load_n(&words[1], __ATOMIC_ACQUIRE) == 240;
    }));
    for (auto& q : queues) EXPECT_EQ(q->stopped_by(), fault::none);
  }
}

// Each engine's copy waits until another is in a copy too: none holds the others up.
std::atomic<int> g_inside{0};
std::atomic<bool> g_met{false};
const payload_agent k_waits_for_another{[](void* to, const void* from, std::size_t bytes) {
                                          if (g_inside.fetch_add(1) + 1 >= 2) g_met = true;
                                          comes_true([] { return g_met.load(); });
                                          std::memcpy(to, from, bytes);
                                        },
                                        &change_host_word, [] {}};

TEST(sdma_engines, run_at_the_same_time) {
  running r{k_waits_for_another};
  alignas(64) unsigned char src[64] = {1, 2, 3}, dst[2][64] = {};
  alignas(64) std::uint64_t words[8] = {};
  r.map(src, sizeof src, memory_kind::payload);
  r.map(dst, sizeof dst, memory_kind::payload);
  r.map(words, sizeof words, memory_kind::host);
  hand_queue a{*r.engines[0], 64}, b{*r.engines[1], 64};
  hand_queue* const both[] = {&a, &b};
  for (int i = 0; i < 2; ++i) {
    both[i]->write(copy(dst[i], src, 64));
    both[i]->write(fence(&words[i], 1));
    both[i]->ring_doorbell();
  }
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE(comes_true([&] { return __atomic_load_n(&words[i], __ATOMIC_ACQUIRE) == 1; }));
  EXPECT_TRUE(g_met);
  EXPECT_PAIRS((dst[0][2], 3), (dst[1][2], 3));
}

// Queues come and go while their engine is busy with a poll for a value that never comes.
TEST(sdma_engines, lose_queues_that_wait_for_ever) {
  running r{plain_memory()};
  alignas(64) std::uint64_t words[8] = {};
  r.map(words, sizeof words, memory_kind::host);
  for (int i = 0; i < 50; ++i) {
    hand_queue waits{*r.engines[0], 64}, works{*r.engines[0], 64};
    waits.write(poll(3, &words[0], 5, ~0u, 0x0fff0000));
    waits.ring_doorbell();
    works.write(fence(&words[1], static_cast<std::uint32_t>(i) + 1));
    works.ring_doorbell();
    ASSERT_TRUE(comes_true([&] { return __atomic_load_n(&words[1], __ATOMIC_ACQUIRE) == std::uint64_t(i) + 1; }));
  }
}

// --- Copies that travel by themselves -----------------------------------------------------------------------------

struct journey {
  void* to;
  const void* from;
  std::size_t bytes;
};
std::vector<journey> g_under_way;

// Nothing arrives before it is waited for, and then the last begun comes first.
const payload_agent& travelling_memory() {
  static const payload_agent agent{plain_memory().copy,
                                   &change_host_word,
                                   [] {},
                                   false,
                                   [](void* to, const void* from, std::size_t bytes) {
                                     g_under_way.push_back({to, from, bytes});
                                   },
                                   [] {
                                     for (; !g_under_way.empty(); g_under_way.pop_back()) {
                                       const journey& j = g_under_way.back();
                                       std::memcpy(j.to, j.from, j.bytes);
                                     }
                                   }};
  return agent;
}

TEST(sdma_travelling, every_packet_that_waits_finds_them_arrived) {
  const char* const waiting[] = {"fence", "atomic", "poll"};
  for (std::size_t which = 0; which < 3; ++which) {
    engine device{travelling_memory(), wire::gen_9_0a, 1};
    arena m{device};
    hand_queue q{device, 256};
    q.write(copy(m.dst, m.src, 512));
    q.write(tile(wire::gen_9_0a, 2, corner{m.src, 0, 0, 0, 16, 1}, corner{m.dst + 1024, 0, 0, 0, 16, 1}, 16, 8));
    if (which == 0) q.write(fence(&m.words[0], 1));
    if (which == 1) q.write(atomic(0x2f, &m.words[0], 1));
    if (which == 2) q.write(poll(3, &m.words[1], 0));
    q.submit(copy(m.dst + 2048, m.dst, 512), fence(&m.words[2], 1));
    EXPECT_EQ(q.stopped_by(), fault::none) << waiting[which];
    EXPECT_EQ(m.words[2], 1u);
    for (const std::size_t at : {0, 1024, 2048})
      EXPECT_EQ(std::memcmp(m.dst + at, m.src, 512), 0) << waiting[which] << " " << at;
  }
}

// As above, but in order, and one copy arrives at each look.
std::uint64_t g_begun = 0, g_arrived = 0, g_most_under_way = 0;

// A word that fences count up, one for each copy.
const std::uint64_t* g_counted = nullptr;

void arrive() {
  if (g_counted != nullptr) {
    EXPECT_LE(*g_counted, g_arrived);
  }
  const journey j = g_under_way.front();
  g_under_way.erase(g_under_way.begin());
  std::memcpy(j.to, j.from, j.bytes);
  ++g_arrived;
}

const payload_agent& marking_memory() {
  static const payload_agent agent{plain_memory().copy,
                                   &change_host_word,
                                   [] {},
                                   false,
                                   [](void* to, const void* from, std::size_t bytes) {
                                     g_under_way.push_back({to, from, bytes});
                                     ++g_begun;
                                     g_most_under_way = std::max(g_most_under_way, g_begun - g_arrived);
                                   },
                                   [] {
                                     while (!g_under_way.empty()) arrive();
                                   },
                                   [] { return g_begun; },
                                   [](std::uint64_t mark) {
                                     if (g_arrived < mark) arrive();
                                     return g_arrived >= mark;
                                   }};
  return agent;
}

struct marking_bench {
  engine device{marking_memory(), wire::gen_9_0a, 1};
  arena m{device};
  hand_queue q{device, 1024};
  marking_bench() {
    g_begun = g_arrived = g_most_under_way = 0;
    g_counted = &m.words[0];
  }
  ~marking_bench() { g_counted = nullptr; }
};

// A chain: each copy needs the one before it, and is begun before that has arrived.
TEST(sdma_travelling, a_fence_comes_behind_its_copies_and_holds_nobody_up) {
  marking_bench b;
  for (std::uint32_t i = 0; i < 40; ++i) {
    b.q.write(copy(b.m.dst + i * 32, i == 0 ? b.m.src : b.m.dst + (i - 1) * 32, 32));
    b.q.write(fence(&b.m.words[0], i + 1));
  }
  b.q.ring_doorbell();
  for (int turn = 0; turn < 1000 && b.device.poll(); ++turn) EXPECT_TRUE(g_under_way.empty()) << turn;
  EXPECT_PAIRS((b.q.stopped_by(), fault::none), (b.m.words[0], 40u));
  EXPECT_GE(g_most_under_way, 2u);
  EXPECT_EQ(std::memcmp(b.m.dst + 39 * 32, b.m.src, 32), 0);
}

// A packet that does not travel would overtake.
TEST(sdma_travelling, what_is_done_at_once_waits_behind_a_fence) {
  for (const bool by_write : {true, false}) {
    marking_bench b;
    b.q.write(copy(b.m.dst, b.m.src, 512));
    b.q.write(fence(&b.m.words[0], 1));
    if (by_write) b.q.write({0x00000002, lo(b.m.dst), hi(b.m.dst), 0, 0x22222222});
    if (!by_write) b.q.write(atomic(0x2f, b.m.dst, 0));
    b.q.submit(fence(&b.m.words[1], 1));
    EXPECT_PAIRS((b.q.stopped_by(), fault::none), (b.m.words[1], 1u));
    if (by_write) {
      EXPECT_EQ(b.m.dst[0], 0x22);
    }
    EXPECT_EQ(std::memcmp(b.m.dst + 4, b.m.src + 4, 508), 0);
  }
}

TEST(sdma_travelling, a_fault_comes_behind_the_fences_before_it) {
  marking_bench b;
  b.q.write(copy(b.m.dst, b.m.src, 512));
  b.q.write(fence(&b.m.words[0], 1));
  b.q.submit({0x000000ff});
  EXPECT_PAIRS((b.q.stopped_by(), fault::bad_op), (b.m.words[0], 1u), (std::memcmp(b.m.dst, b.m.src, 512), 0));
}

// A thread that unmaps memory after the engine's turn finds nothing under way to it.
TEST(sdma_travelling, none_outlives_its_turn) {
  engine device{travelling_memory(), wire::gen_9_0a, 1};
  arena m{device};
  hand_queue q{device, 1024};
  // More than a turn takes, so that it ends with copies begun.
  for (int i = 0; i < 100; ++i) q.write(copy(m.dst + i * 32, m.src, 32));
  q.ring_doorbell();
  for (int turn = 0; turn < 100 && device.poll(); ++turn) EXPECT_TRUE(g_under_way.empty()) << turn;
  EXPECT_EQ(std::memcmp(m.dst + 99 * 32, m.src, 32), 0);
}

}  // namespace
}  // namespace xio::model::sdma
