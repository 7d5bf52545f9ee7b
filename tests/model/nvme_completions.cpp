// SPDX-License-Identifier: MIT
// Completion queue entries as a drive might write them, also a wrong one, against the codec that takes them: dw3 is the
// command id, the phase tag at bit 16 and the status above (NVMe base 2.0, 4.6.1).
#include <gtest/gtest.h>

#include <cstdint>

#include "xio/device/nvme.hpp"

namespace {

using namespace xio::dev;

constexpr u32 k_depth = 4, k_ids = 16, k_entries = 8;

// A queue with `posted` commands, of which the first has ticket `start`.
class queue {
 public:
  queue(u64 start, u64 posted) {
    state.issued = state.published = start + posted;
    state.completed = state.cq_head = state.cq_rung = start;
    state.credits = k_depth - static_cast<i64>(posted);
    state.granted = start + k_depth;
    r.state = &state;
    r.kind = ring_kind::nvme;
    r.depth = k_depth;
    r.depth_log2 = 2;
    r.op_words = words;
    r.op_count = k_ids;
    r.op_count_log2 = 4;
    r.completion = reinterpret_cast<unsigned char*>(cq);
    r.cq_depth = k_entries;
    r.cq_depth_log2 = 3;
    r.cq_doorbell = &bell;
    at_ = start;
    // What the laps before have left.
    for (u32 i = 0; i < k_entries; ++i)
      cq[i][3] = static_cast<u32>(((start + k_entries - 1 - i) / k_entries) & 1) << 16;
    for (u64 t = start < k_ids ? 0 : start - k_ids; t < start; ++t)
      words[t % k_ids] = static_cast<u32>(t / k_ids) << 16 | 0x8000;
  }
  void complete(u32 id, u32 status = 0) {
    const u32 phase = (at_ / k_entries) % 2 == 0 ? 1 : 0;
    cq[at_ % k_entries][3] = id | phase << 16 | status << 17;
    ++at_;
  }
  void drain() { ring_reap<nvme_codec>(r); }
  void expect_refused(u32 id) {
    EXPECT_EQ(static_cast<int>(state.failed), XIO_ERR_TRANSPORT);
    EXPECT_EQ(state.vendor & 0xffff, id);
    EXPECT_EQ(state.completed >> 63, 0u) << "nobody drains any more";
  }

  ring_state state{};
  ring_view r{};

 private:
  u64 at_;
  alignas(16) u32 words[op_words_bytes(k_ids) / 4] = {};
  alignas(64) u32 cq[k_entries][4] = {};
  u32 bell = 0;
};

class nvme_completions : public testing::TestWithParam<u64> {};
// The first tickets; some whose ids begin anew within the test, in the second lap of the CQ and of the generations.
INSTANTIATE_TEST_SUITE_P(from, nvme_completions, testing::Values(0, 13, 14, 31, 1048573));

TEST_P(nvme_completions, come_in_any_order) {
  const u64 t = GetParam();
  queue q(t, 4);
  const auto id = [&](u64 i) { return static_cast<u32>((t + i) % k_ids); };
  q.complete(id(2));
  q.drain();
  EXPECT_EQ(q.state.completed, t) << "the oldest is still under way";
  EXPECT_EQ(nvme_codec::test(q.r, t + 2), XIO_OK);
  EXPECT_EQ(nvme_codec::test(q.r, t), XIO_PENDING);
  q.complete(id(0));
  q.complete(id(3), 0x281);
  q.drain();
  EXPECT_EQ(q.state.completed, t + 1);
  EXPECT_EQ(nvme_codec::test(q.r, t), XIO_OK);
  EXPECT_EQ(nvme_codec::test(q.r, t + 1), XIO_PENDING);
  EXPECT_EQ(nvme_codec::test(q.r, t + 3), XIO_ERR_STORAGE);
  q.complete(id(1));
  q.drain();
  EXPECT_EQ(q.state.completed, t + 4);
  EXPECT_EQ(nvme_codec::test(q.r, t + 1), XIO_OK);
  EXPECT_EQ(nvme_codec::test(q.r, t + 3), XIO_ERR_STORAGE);
  EXPECT_EQ(q.state.failed, 0u);
  EXPECT_EQ(q.state.cq_head, t + 4);
  EXPECT_EQ(q.state.credits, static_cast<i64>(k_depth));
}

// Who waits drains by itself, and hears of its own command, whatever came before or after it in the same look.
TEST_P(nvme_completions, are_told_to_who_waits) {
  const u64 t = GetParam();
  const auto id = [&](u64 i) { return static_cast<u32>((t + i) % k_ids); };
  world_view world{};
  world.timeout_ticks = 1000000;
  const struct {
    u64 first, second, third, awaited;
    xio_status_t status;
  } cases[] = {{0, 1, 2, 0, XIO_OK}, {0, 1, 2, 1, XIO_ERR_STORAGE}, {2, 1, 0, 0, XIO_OK},
               {1, 3, 2, 1, XIO_OK}, {1, 3, 2, 3, XIO_ERR_STORAGE}, {3, 2, 1, 1, XIO_OK}};
  for (const auto& c : cases) {
    queue q(t, 4);
    q.complete(id(c.first));
    q.complete(id(c.second), 0x281);
    q.complete(id(c.third));
    EXPECT_EQ(nvme_codec::wait(q.r, world, t + c.awaited), c.status) << c.first << " " << c.awaited;
    EXPECT_EQ(nvme_codec::wait(q.r, world, t + c.second), XIO_ERR_STORAGE) << "drained before";
    EXPECT_EQ(q.state.completed >> 63, 0u);
    EXPECT_EQ(q.state.failed, 0u);
  }
}

// Without another look at the word: generation, done, status.
TEST_P(nvme_completions, are_in_the_hand_of_who_drains) {
  const u64 t = GetParam();
  queue q(t, 4);
  q.complete(static_cast<u32>((t + 2) % k_ids));
  q.complete(static_cast<u32>((t + 1) % k_ids), 0x281);
  u32 word = 7;
  u64 completed = 0;
  ASSERT_TRUE(ring_try_reaping(q.r, &completed));
  completed = nvme_codec::drain(q.r, completed, t + 1, &word);
  EXPECT_EQ(word, static_cast<u32>((t + 1) / k_ids) << 16 | 0x8281);
  q.complete(static_cast<u32>(t % k_ids));
  word = 7;
  completed = nvme_codec::drain(q.r, completed, t + 3, &word);
  EXPECT_EQ(word, 7u) << "not come yet";
  ring_end_reaping(q.r, completed);
  EXPECT_EQ(q.state.completed, t + 3);
}

// What is wrong is no completion of the command whose ticket it would have.
TEST_P(nvme_completions, of_an_id_that_there_is_not_fail_who_waits) {
  const u64 t = GetParam();
  queue q(t, 2);
  world_view world{};
  world.timeout_ticks = 1000000;
  q.complete(static_cast<u32>(t % k_ids) + k_ids);
  EXPECT_EQ(nvme_codec::wait(q.r, world, t), XIO_ERR_TRANSPORT);
  EXPECT_EQ(q.state.completed, t);
}

TEST_P(nvme_completions, that_come_twice_keep_the_first_status) {
  const u64 t = GetParam();
  queue q(t, 4);
  world_view world{};
  world.timeout_ticks = 1000000;
  q.complete(static_cast<u32>(t % k_ids));
  q.complete(static_cast<u32>(t % k_ids), 0x281);
  EXPECT_EQ(nvme_codec::wait(q.r, world, t), XIO_OK);
  q.expect_refused(static_cast<u32>(t % k_ids));
}

TEST_P(nvme_completions, of_a_command_twice_fail_who_waits_for_another) {
  const u64 t = GetParam();
  world_view world{};
  world.timeout_ticks = 1000000;
  for (const u64 which : {u64{0}, u64{1}}) {
    queue q(t, 4);
    const u32 id = static_cast<u32>((t + which) % k_ids);
    q.complete(id);
    q.complete(id);
    EXPECT_EQ(nvme_codec::wait(q.r, world, t + 2), XIO_ERR_TRANSPORT);
    q.expect_refused(id);
    EXPECT_EQ(nvme_codec::wait(q.r, world, t + which), XIO_OK) << "it did complete";
  }
}

TEST_P(nvme_completions, that_never_come_end_in_time) {
  const u64 t = GetParam();
  queue q(t, 4);
  world_view world{};
  world.timeout_ticks = 1000000;
  q.complete(static_cast<u32>((t + 1) % k_ids));
  EXPECT_EQ(nvme_codec::wait(q.r, world, t), XIO_ERR_TIMEOUT);
  EXPECT_EQ(q.state.completed, t) << "and nobody drains any more";
}

TEST_P(nvme_completions, of_the_oldest_command_twice_in_one_look) {
  const u64 t = GetParam();
  queue q(t, 4);
  q.complete(static_cast<u32>(t % k_ids));
  q.complete(static_cast<u32>(t % k_ids));
  q.drain();
  q.expect_refused(static_cast<u32>(t % k_ids));
  EXPECT_EQ(q.state.completed, t + 1);
}

TEST_P(nvme_completions, of_another_command_twice_in_one_look) {
  const u64 t = GetParam();
  queue q(t, 4);
  q.complete(static_cast<u32>((t + 1) % k_ids));
  q.complete(static_cast<u32>((t + 1) % k_ids));
  q.drain();
  q.expect_refused(static_cast<u32>((t + 1) % k_ids));
  EXPECT_EQ(q.state.completed, t);
}

TEST_P(nvme_completions, of_a_command_twice_in_two_looks) {
  const u64 t = GetParam();
  for (const u64 which : {u64{0}, u64{1}}) {
    queue q(t, 4);
    const u32 id = static_cast<u32>((t + which) % k_ids);
    q.complete(id);
    q.drain();
    EXPECT_EQ(q.state.failed, 0u);
    q.complete(id);
    q.drain();
    q.expect_refused(id);
  }
}

TEST_P(nvme_completions, of_a_command_that_was_never_posted) {
  const u64 t = GetParam();
  queue q(t, 2);
  const u32 id = static_cast<u32>((t + 2) % k_ids);
  q.complete(id);
  q.drain();
  q.expect_refused(id);
  EXPECT_EQ(q.state.completed, t);
}

TEST_P(nvme_completions, of_an_id_that_there_is_not) {
  const u64 t = GetParam();
  queue q(t, 2);
  const u32 id = static_cast<u32>(t % k_ids) + k_ids;
  q.complete(id);
  q.drain();
  q.expect_refused(id);
  EXPECT_EQ(q.state.completed, t);
}

}  // namespace
