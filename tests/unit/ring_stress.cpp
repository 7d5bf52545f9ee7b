// SPDX-License-Identifier: MIT
// The ring under stress: many waves, tiny rings, mixed entries per lane, holes and slow devices, tickets that cross
// 2^32. The device here is a thread that checks every entry: complete, in order, covered by exactly one doorbell.
#include "ring_stress.hpp"
#include "../gtest.hpp"
#include "gpu/gpu.hpp"

namespace {

using namespace xio::test;
using namespace xio::dev;

u32 count_in(const xio::gpu::buffer& b) {
  u32 count = 0;
  xio::gpu::copy(&count, b.data(), sizeof count);
  return count;
}

// One ring's memory, and the thread that consumes it.
class ring_under_test {
 public:
  ring_under_test(u32 depth, u64 start, u32 ops)
      : state_(sizeof(ring_state), xio::gpu::place::device),
        marks_(depth * sizeof(u64), xio::gpu::place::device),
        slots_(depth * 64, xio::gpu::place::shared),
        words_(sizeof(shared_words), xio::gpu::place::shared),
        bad_doorbells_(sizeof(u32), xio::gpu::place::device),
        consumed_(start),
        start_(start),
        seen_(ops) {
    view_.state = state_.as<ring_state>();
    view_.marks = marks_.as<u64>();
    view_.slots = slots_.as<unsigned char>();
    view_.rdma.completions = words_.as<unsigned char>();
    view_.depth = depth;
    view_.rdma.depth_log2 = static_cast<u32>(__builtin_ctz(depth));
    ring_state state{};
    state.issued = state.published = state.completed = start;
    state.credits = depth;
    xio::gpu::put_value(view_.state, state);
    words()->doorbell = start;
    words()->fence = static_cast<u32>(start);
    words()->bad_doorbells = bad_doorbells_.as<u32>();
    thread_ = std::thread([this] { consume(); });
  }
  ~ring_under_test() {
    if (thread_.joinable()) stop();
  }

  const ring_view& view() const { return view_; }
  void stop() {
    stop_ = true;
    thread_.join();
  }

  // After stop(): what the device saw must be what was posted.
  void check(u32 ops, u32 rings, u32 which, u32 most) {
    ring_state state;
    xio::gpu::copy(&state, view_.state, sizeof state);
    EXPECT_PAIRS((wrong_entries_, 0u), (count_in(bad_doorbells_), 0u), (state.failed, 0u));
    u64 slots = 0, posted = 0;
    for (u32 op = 0; op < ops; ++op) {
      const u32 wanted = ring_of(op, rings) == which ? slots_of(op, most) : 0;
      ASSERT_EQ(seen_[op], wanted) << "entries of op " << op;
      slots += wanted;
      posted += wanted != 0 ? 1 : 0;
    }
    EXPECT_PAIRS((consumed_, start_ + slots), (state.issued, start_ + slots), (state.published, start_ + slots),
                 (state.completed, start_ + slots), (state.credits, static_cast<std::int64_t>(view_.depth)),
                 (state.pending, 0u), (state.ops, posted), (state.bytes, posted * 5));
    EXPECT_GE(state.doorbells, slots / view_.depth);
    EXPECT_LE(state.doorbells, posted);
  }

 private:
  shared_words* words() { return words_.as<shared_words>(); }

  void consume() {
    u32 luck = 1;
    while (!stop_) {
      const u64 doorbell = __atomic_load_n(&words()->doorbell, __ATOMIC_ACQUIRE);
      luck = mix(luck + 1);
      if (doorbell == consumed_ || luck % 8 == 0) {
        std::this_thread::yield();
        continue;
      }
      for (; consumed_ != doorbell; ++consumed_) look_at(consumed_, luck % 4 == 0);
    }
  }

  void look_at(u64 ticket, bool slowly) {
    unsigned char* slot = view_.slots + (ticket & (view_.depth - 1)) * 64;
    u32 e[16];
    std::memcpy(e, slot, sizeof e);
    bool good = e[0] == static_cast<u32>(ticket) && e[1] == static_cast<u32>(ticket >> 32);
    for (u32 k = 4; k < 16; ++k) good = good && e[k] == filler(ticket, k);
    if (!good || e[2] >= seen_.size()) {
      ++wrong_entries_;
    } else {
      ++seen_[e[2]];
    }
    std::memset(slot, 0xff, 64);  // so that an old entry never passes for a new one
    if (slowly) std::this_thread::yield();
    if (e[3] == k_ends_batch) __atomic_store_n(&words()->fence, static_cast<u32>(ticket + 1), __ATOMIC_RELEASE);
  }

  xio::gpu::buffer state_, marks_, slots_, words_, bad_doorbells_;
  ring_view view_{};
  u64 consumed_, start_;
  std::vector<u32> seen_;  // entries of each op
  u32 wrong_entries_ = 0;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

struct shape {
  u32 depth;
  u64 start;
  u32 rings, most_slots;
  bool waves = true;  // else every lane has a workgroup of its own
};

struct ring_stress : testing::TestWithParam<shape> {};

TEST_P(ring_stress, every_entry_is_rung_once_in_order_and_whole) {
  const shape s = GetParam();
  // Threads of the system are dearer than fibers.
  const char* exec = std::getenv("XIO_HOST_EXEC");
  const bool many_threads = exec != nullptr && std::string(exec) == "threads";
  const u32 lanes_each = s.waves ? (many_threads ? 24 : 160) : 1;
  const u32 groups = (many_threads ? 48 : s.waves ? 960 : 96) / lanes_each;
  const u32 ops_each = many_threads ? 10 : 12;
  const u32 ops = groups * lanes_each * ops_each;

  xio::gpu::buffer world(sizeof(world_view), xio::gpu::place::shared);
  xio::gpu::buffer failures(sizeof(u32), xio::gpu::place::device);
  xio::gpu::buffer work(sizeof(job), xio::gpu::place::shared);
  world.as<world_view>()->timeout_ticks = xio::gpu::ticks_per_ms() * 100000;
  std::vector<std::unique_ptr<ring_under_test>> rings;
  job* j = work.as<job>();
  for (u32 k = 0; k < s.rings; ++k) {
    rings.push_back(std::make_unique<ring_under_test>(s.depth, s.start, ops));
    j->rings[k] = rings[k]->view();
    j->rings[k].index = k;
  }
  j->world = world.as<world_view>();
  j->failures = failures.as<u32>();
  j->ops = ops_each;
  j->rings_used = s.rings;
  j->most_slots = s.most_slots;

  ASSERT_TRUE(post_from_kernel(j, groups, lanes_each));
  for (auto& r : rings) r->stop();
  EXPECT_EQ(count_in(failures), 0u);
  for (u32 k = 0; k < s.rings; ++k) rings[k]->check(ops, s.rings, k, s.most_slots);
}

constexpr u64 k_wrap = u64{1} << 32;
// Laps, not tickets, are 32 bits in the marks: this start makes them wrap.
constexpr u64 lap_wrap(u32 depth) { return k_wrap * depth - 2 * depth; }

INSTANTIATE_TEST_SUITE_P(sizes, ring_stress,
                         testing::Values(shape{4, 0, 1, 1}, shape{4, k_wrap - 8, 1, 2}, shape{4, lap_wrap(4), 2, 2},
                                         shape{8, k_wrap - 8, 2, 3}, shape{64, k_wrap - 64, 2, 2},
                                         shape{256, lap_wrap(256), 1, 4}, shape{4, k_wrap - 8, 2, 2, false},
                                         shape{8, lap_wrap(8), 2, 3, false}),
                         [](const auto& info) {
                           const shape& s = info.param;
                           return "depth" + std::to_string(s.depth) + "_rings" + std::to_string(s.rings) + "_slots" +
                                  std::to_string(s.most_slots) + (s.waves ? "_waves_" : "_lanes_") +
                                  std::to_string(info.index);
                         });

}  // namespace
