// SPDX-License-Identifier: MIT
// Completion queue entries as a drive might write them, also a wrong one, against the codec that takes them: dw3 is the
// command id, the phase tag at bit 16 and the status above (NVMe base 2.0, 4.6.1).
#include "../gtest.hpp"
#include "xio/device/impl/nvme.hpp"

namespace {

using namespace xio::dev;

constexpr u32 k_depth = 8, k_ids = 32, k_entries = 16;

// A queue with `posted` commands, of which the first has ticket `start`.
class queue {
 public:
  queue(u64 start, u64 posted) {
    state.issued = state.published = start + posted;
    state.completed = state.cq_head = state.cq_announced = start;
    state.credits = k_depth - 1 - static_cast<i64>(posted);
    state.granted = start + k_depth - 1;
    r.state = &state;
    r.kind = ring_kind::nvme;
    r.depth = k_depth;
    r.nvme.op_words = words;
    r.nvme.op_count = k_ids;
    r.nvme.op_count_log2 = 5;
    r.nvme.completions = reinterpret_cast<unsigned char*>(cq);
    r.nvme.cq_depth = k_entries;
    r.nvme.cq_depth_log2 = 4;
    r.nvme.cq_doorbell = &bell;
    at_ = start;
    // The entries that the laps before have left.
    for (u32 i = 0; i < k_entries; ++i)
      cq[i][3] = static_cast<u32>(((start + k_entries - 1 - i) / k_entries) & 1) << 16;
    for (u64 t = start < k_ids ? 0 : start - k_ids; t < start; ++t) words[t % k_ids] = t / k_ids << 16 | 0x8000;
  }
  void complete(u32 id, u32 status = 0) {
    const u32 phase = (at_ / k_entries) % 2 == 0 ? 1 : 0;
    cq[at_ % k_entries][3] = id | phase << 16 | status << 17;
    ++at_;
  }
  void drain() { ring_reap<nvme_codec>(r); }
  void finish(u32 id, u32 status = 0) {
    complete(id, status);
    drain();
  }
  void pass(u32 id) {
    post();
    finish(id);
  }
  void post(u64 count = 1) {
    state.issued = state.published = state.issued + count;
    state.credits -= static_cast<i64>(count);
  }
  u32 cq_head_bell() const { return bell; }
  void expect_refused(u32 id) {
    EXPECT_EQ(static_cast<int>(state.failed), XIO_ERR_TRANSPORT);
    EXPECT_EQ(state.vendor & 0xffff, id);
    EXPECT_EQ(state.completed >> 63, 0u) << "nobody drains any more";
  }
  // Every ticket below is complete: without the flags at bits 63 and 62.
  u64 completed() const { return state.completed & ((u64{1} << 62) - 1); }

  ring_state state{};
  ring_view r{};

 private:
  u64 at_;
  alignas(16) u64 words[op_words_bytes(k_ids) / 8] = {};
  alignas(64) u32 cq[k_entries][4] = {};
  u32 bell = 0;
};

struct nvme_completions : testing::TestWithParam<u64> {
  nvme_completions() { world.timeout_ticks = 1000000; }
  static u32 id_of(u64 ticket) { return static_cast<u32>(ticket % k_ids); }

  const u64 t = GetParam();
  world_view world{};
};
// The first tickets; some whose ids begin anew within the test, in the second lap of the CQ and of the generations.
INSTANTIATE_TEST_SUITE_P(from, nvme_completions, testing::Values(0, 29, 30, 63, 1048573));

TEST_P(nvme_completions, come_in_any_order) {
  queue q(t, 4);
  const auto id = [&](u64 i) { return id_of(t + i); };
  q.finish(id(2));
  EXPECT_EQ(q.completed(), t) << "the oldest is still under way";
  EXPECT_PAIRS((nvme_codec::test(q.r, t + 2), XIO_OK), (nvme_codec::test(q.r, t), XIO_PENDING));
  q.complete(id(0));
  q.finish(id(3), 0x281);
  EXPECT_PAIRS((q.completed(), t + 1), (nvme_codec::test(q.r, t), XIO_OK), (nvme_codec::test(q.r, t + 1), XIO_PENDING),
               (nvme_codec::test(q.r, t + 3), XIO_ERR_STORAGE));
  q.finish(id(1));
  EXPECT_PAIRS((q.completed(), t + 4), (nvme_codec::test(q.r, t + 1), XIO_OK),
               (nvme_codec::test(q.r, t + 3), XIO_ERR_STORAGE), (q.state.failed, 0u), (q.state.cq_head, t + 4),
               (q.state.credits, static_cast<i64>(k_depth - 1)));
}

// A thread that waits drains by itself, and gets the status of its own command, even if others came before or after it
// in the same poll.
TEST_P(nvme_completions, are_reported_to_the_waiter) {
  const auto id = [&](u64 i) { return id_of(t + i); };
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
    EXPECT_PAIRS((q.state.completed >> 63, 0u), (q.state.failed, 0u));
  }
}

// Without another look at the word: generation, done, status.
TEST_P(nvme_completions, are_in_the_hand_of_who_drains) {
  queue q(t, 4);
  q.complete(id_of(t + 2));
  q.complete(id_of(t + 1), 0x281);
  u64 word = 7, completed = 0;
  ASSERT_TRUE(ring_try_reaping(q.r, &completed));
  completed = nvme_codec::drain(q.r, completed, t + 1, &word);
  EXPECT_EQ(word, (t + 1) / k_ids << 16 | 0x8281);
  q.complete(id_of(t));
  word = 7;
  completed = nvme_codec::drain(q.r, completed, t + 3, &word);
  EXPECT_EQ(word, 7u) << "not come yet";
  ring_end_reaping(q.r, completed);
  EXPECT_EQ(q.completed(), t + 3);
}

// Tells whether the queue is as if nothing had ever been posted, but for the count.
void expect_idle(const queue& q, u64 count) {
  EXPECT_PAIRS((q.completed(), count), (q.state.issued, count), (q.state.credits, static_cast<i64>(k_depth - 1)),
               (q.state.failed, 0u));
}

// They are drained by the thread that waits for them or by others, and by other calls in between: the count is always
// the same, and the doorbell is written twice a lap.
TEST_P(nvme_completions, one_at_a_time) {
  queue q(t, 0);
  u64 next = t;
  u32 cq_head_bell = q.cq_head_bell();
  for (u64 i = 0; i < 5 * k_ids; ++i) {
    q.post();
    EXPECT_EQ(nvme_codec::test(q.r, next), XIO_PENDING) << i;
    q.complete(id_of(next));
    if (i % 3 == 0)
      q.drain();
    else
      ASSERT_EQ(nvme_codec::wait(q.r, world, next), XIO_OK) << i;
    ++next;
    if (next % (k_entries / 2) == 0) cq_head_bell = static_cast<u32>(next % k_entries);
    ASSERT_EQ(q.cq_head_bell(), cq_head_bell) << i;
    for (u64 before = next - (i < 3 ? i + 1 : 3); before < next; ++before)
      ASSERT_EQ(nvme_codec::test(q.r, before), XIO_OK) << i;
    ASSERT_EQ(nvme_codec::code(q.r, next - 1), 0u);
    expect_idle(q, next);
    if (i % 7 != 6) continue;
    q.post(3);
    q.finish(id_of(next + 1));
    EXPECT_PAIRS((nvme_codec::test(q.r, next), XIO_PENDING), (nvme_codec::test(q.r, next + 1), XIO_OK));
    q.complete(id_of(next));
    q.finish(id_of(next + 2));
    const u64 turn = k_entries / 2;
    if ((next + 3) / turn != next / turn) cq_head_bell = q.cq_head_bell();
    next += 3;
    expect_idle(q, next);
  }
}

// One that fails among those that come one at a time: its owner hears of it, also when others have come since.
TEST_P(nvme_completions, one_at_a_time_with_failures) {
  queue q(t, 0);
  for (u64 i = 0; i < 3 * k_ids; ++i) {
    const bool fails = i % 11 == 5;
    q.post();
    q.complete(id_of(t + i), fails ? 0x281 : 0);
    if (i % 2 == 0)
      q.drain();
    else
      EXPECT_EQ(nvme_codec::wait(q.r, world, t + i), fails ? XIO_ERR_STORAGE : XIO_OK) << i;
    expect_idle(q, t + i + 1);
    EXPECT_EQ(q.state.op_errors, (i + 6) / 11);
    EXPECT_EQ(q.state.completed >> 62, i < 5 ? 1u : 0u) << "words are kept, or each op would look through the log";
    for (u64 k = i < k_ids ? 0 : i - k_ids; k <= i; ++k) {
      ASSERT_EQ(nvme_codec::test(q.r, t + k), k % 11 == 5 ? XIO_ERR_STORAGE : XIO_OK) << i << " " << k;
      ASSERT_EQ(nvme_codec::wait(q.r, world, t + k), k % 11 == 5 ? XIO_ERR_STORAGE : XIO_OK) << i << " " << k;
    }
  }
}

TEST_P(nvme_completions, one_at_a_time_and_a_wrong_one) {
  // 0: the next one, which was not posted.
  for (const u64 before : {u64{0}, u64{1}, u64{2}, u64{k_ids - 1}}) {
    queue q(t, 0);
    u64 next = t;
    for (; next < t + k_ids; ++next) {
      q.pass(id_of(next));
    }
    expect_idle(q, next);
    const u32 id = id_of(next - before);
    if (before != 0) q.post();
    q.complete(id);
    if (before != 0)
      EXPECT_EQ(nvme_codec::wait(q.r, world, next), XIO_ERR_TRANSPORT);
    else
      q.drain();
    q.expect_refused(id);
    EXPECT_EQ(q.completed(), next);
  }
}

// Ids would be taken again where one command stays under way while three depths of others come and go.
TEST_P(nvme_completions, one_at_a_time_behind_a_slow_one) {
  queue q(t, 0);
  u64 next = t;
  for (; next < t + k_entries; ++next) {  // the count alone, first
    q.pass(id_of(next));
  }
  expect_idle(q, next);
  const u64 slow = next;
  q.post();
  u64 posted = 0;
  for (next = slow + 1; q.state.credits > 0 && posted < 10 * k_ids; ++next, ++posted) {
    q.pass(id_of(next));
    EXPECT_EQ(q.completed(), slow);
  }
  EXPECT_EQ(posted, k_ids - 1) << "the next one would have the slow one's id";
  EXPECT_EQ(q.state.kept_back, k_depth - 2);
  q.finish(id_of(slow));
  expect_idle(q, next);
}

// A wrong entry is no completion of the command whose ticket it would have.
TEST_P(nvme_completions, of_an_id_that_there_is_not_fail_who_waits) {
  queue q(t, 2);
  q.complete(id_of(t) + k_ids);
  EXPECT_EQ(nvme_codec::wait(q.r, world, t), XIO_ERR_TRANSPORT);
  EXPECT_EQ(q.completed(), t);
}

TEST_P(nvme_completions, that_come_twice_keep_the_first_status) {
  queue q(t, 4);
  q.complete(id_of(t));
  q.complete(id_of(t), 0x281);
  EXPECT_EQ(nvme_codec::wait(q.r, world, t), XIO_OK);
  q.expect_refused(id_of(t));
}

TEST_P(nvme_completions, of_a_command_twice_fail_who_waits_for_another) {
  for (const u64 which : {u64{0}, u64{1}}) {
    queue q(t, 4);
    const u32 id = id_of(t + which);
    q.complete(id);
    q.complete(id);
    EXPECT_EQ(nvme_codec::wait(q.r, world, t + 2), XIO_ERR_TRANSPORT);
    q.expect_refused(id);
    EXPECT_EQ(nvme_codec::wait(q.r, world, t + which), XIO_OK) << "it did complete";
  }
}

TEST_P(nvme_completions, that_never_come_end_in_time) {
  queue q(t, 4);
  q.complete(id_of(t + 1));
  EXPECT_EQ(nvme_codec::wait(q.r, world, t), XIO_ERR_TIMEOUT);
  EXPECT_EQ(q.completed(), t) << "and nobody drains any more";
}

TEST_P(nvme_completions, that_cannot_be_are_refused) {
  const struct {
    const char* name;
    u64 posted;
    std::vector<u64> of;  // counted from the first command
    u32 beyond;           // added to the id
    u64 completed;
  } rows[] = {
      {"the oldest command twice in one look", 4, {0, 0}, 0, 1},
      {"another command twice in one look", 4, {1, 1}, 0, 0},
      {"a command that was never posted", 2, {2}, 0, 0},
      {"an id that there is not", 2, {0}, k_ids, 0},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    queue q(t, row.posted);
    for (const u64 i : row.of) q.finish(id_of(t + i) + row.beyond);
    q.expect_refused(id_of(t + row.of[0]) + row.beyond);
    EXPECT_EQ(q.completed(), t + row.completed);
  }
}

TEST_P(nvme_completions, of_a_command_twice_in_two_looks) {
  for (const u64 which : {u64{0}, u64{1}}) {
    queue q(t, 4);
    const u32 id = id_of(t + which);
    q.finish(id);
    EXPECT_EQ(q.state.failed, 0u);
    q.finish(id);
    q.expect_refused(id);
  }
}

// The status of every ticket, in a book that forgets none.
class ledger {
 public:
  static constexpr u64 k_row = u64{1} << failure_word::k_row_log2;

  explicit ledger(u64 start) : start_(start), first_(k_row, ~u64{0}), last_(k_row, 0) {}

  // Of one row in eight none fails, of another all do, of the others a third.
  static u32 status_of(u64 ticket) {
    const u64 row = ticket % k_row % 8;
    const bool fails = row == 1 || (row != 0 && ticket * 0x9e3779b97f4a7c15u >> 32 < 0x55555555);
    return fails ? 0x280 + static_cast<u32>(ticket % 5) : 0;
  }
  void note(u64 ticket) {
    if (status_of(ticket) == 0) return;
    u64& first = first_[ticket % k_row];
    if (first == ~u64{0}) first = ticket;
    last_[ticket % k_row] = ticket;
  }
  // Whether the row has room for what is asked: only where it has none may a ticket that was well be an error.
  bool is_exact(u64 ticket) const {
    const u64 first = first_[ticket % k_row], last = last_[ticket % k_row];
    return first == ~u64{0} || ticket > last || last - ticket <= 16 * k_row || last - first <= 16 * k_row;
  }
  bool is_last(u64 ticket) const { return last_[ticket % k_row] == ticket; }
  void expect(const queue& q, u64 ticket) const {
    const u32 status = status_of(ticket);
    const u32 code = nvme_codec::code(q.r, ticket);
    if (status == 0 && is_exact(ticket)) {
      ASSERT_EQ(nvme_codec::test(q.r, ticket), XIO_OK) << ticket - start_;
      ASSERT_EQ(code, 0u) << ticket - start_;
      return;
    }
    ASSERT_EQ(nvme_codec::test(q.r, ticket), XIO_ERR_STORAGE) << ticket - start_;
    ASSERT_EQ(code, status != 0 && is_last(ticket) ? status : XIO_STORAGE_CODE_UNKNOWN) << ticket - start_;
  }

 private:
  u64 start_;
  std::vector<u64> first_, last_;
};

// However many fail, and however late somebody asks: what failed is never well, and what was well is an error only
// where a failure had to be forgotten that may have been this one.
TEST_P(nvme_completions, that_fail_are_known_for_long) {
  const u64 start = GetParam();
  auto q = std::make_unique<queue>(start, 0);
  ledger all(start);
  constexpr u64 end = 36 * ledger::k_row;
  for (u64 i = 0; i < end; i += 4) {
    q->post(4);
    for (u64 k : {2u, 0u, 3u, 1u}) {
      const u64 ticket = start + i + k;
      q->complete(id_of(ticket), ledger::status_of(ticket));
      all.note(ticket);
    }
    q->drain();
    for (u64 ago = 1; ago <= end; ago *= 3)
      if (ago <= i) all.expect(*q, start + i - ago);
    if (HasFatalFailure()) return;
  }
  ASSERT_EQ(q->completed(), start + end);
  for (u64 i = 0; i < end && !HasFatalFailure(); ++i) all.expect(*q, start + i);
}

// A row in which one failed long ago has forgotten nothing.
TEST(nvme_failure_word, of_few_failures_forgets_none) {
  constexpr u64 row = ledger::k_row;
  const u64 one = failure_word::with(0, 40 * row + 3, 0x281);
  EXPECT_EQ(failure_word::says(one, 40 * row + 3), 0x281u);
  for (const u64 lap : {u64{0}, u64{23}, u64{24}, u64{39}, u64{41}, u64{1} << 20})
    EXPECT_EQ(failure_word::says(one, lap * row + 3), 0u) << lap;
  const u64 two = failure_word::with(one, 56 * row + 3, 0x7fff);
  EXPECT_EQ(failure_word::says(two, 56 * row + 3), 0x7fffu);
  EXPECT_EQ(failure_word::says(two, 40 * row + 3), failure_word::k_not_known);
  for (const u64 lap : {0, 39, 41, 55, 57}) EXPECT_EQ(failure_word::says(two, lap * row + 3), 0u) << lap;
  // One lap more, and the first has to be forgotten: of all before the 16 laps nothing is known from then on.
  const u64 three = failure_word::with(two, 57 * row + 3, 0x280);
  for (const u64 lap : {0, 39, 40})
    EXPECT_EQ(failure_word::says(three, lap * row + 3), failure_word::k_not_known) << lap;
  for (const u64 lap : {41, 55}) EXPECT_EQ(failure_word::says(three, lap * row + 3), 0u) << lap;
  EXPECT_EQ(failure_word::says(three, 56 * row + 3), failure_word::k_not_known);
}

}  // namespace
