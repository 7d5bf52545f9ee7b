// SPDX-License-Identifier: MIT
// Shadow doorbells of the software drive (NVMe base 2.0, 5.8 and B.5), with a driver that keeps the rule and with some
// that do not.
#include "nvme_hand.hpp"

using namespace xio::test;
namespace w = xio::wire::nvme;

namespace {

constexpr std::uint64_t k_shadow = 0x60000, k_event = 0x61000;

std::uint32_t& word(hand& h, std::uint64_t page, std::uint32_t offset) {
  return *reinterpret_cast<std::uint32_t*>(h.memory() + page + offset);
}

class driver {
 public:
  driver(std::uint32_t entries, std::uint32_t turns) : h({.shape = {.shadow_turns = turns}}) {
    EXPECT_EQ(h.admin(w::make_doorbell_buffer_config(h.bus(k_shadow), h.bus(k_event))), 0u);
    h.make_queues(entries);
  }
  // 5.8: the word, then the register if EventIdx was passed.
  bool tail() { return move(w::shadow_sq_tail(1, 0), h.io_queue().tail, h.tail_doorbell(h.io_queue())); }
  bool head() { return move(w::shadow_cq_head(1, 0), h.io_queue().head, h.head_doorbell(h.io_queue())); }
  void put_read(std::uint32_t cid) {
    h.put(h.io_queue(), w::make_io(w::opcode::read, cid, 1, h.data_bus(), 0, cid, 1));
  }

  hand h;
  std::uint64_t ring_count = 0;

 private:
  bool move(std::uint32_t at, std::uint32_t now, std::uint32_t* doorbell) {
    const std::uint32_t before = word(h, k_shadow, at);
    word(h, k_shadow, at) = now;
    if (!w::shadow_wants_doorbell(now, before, word(h, k_event, at))) return false;
    *doorbell = now;
    ++ring_count;
    return true;
  }
};

}  // namespace

TEST(nvme_shadow, configuration) {
  hand h;
  const auto configure = [&](std::uint64_t one, std::uint64_t two) {
    return h.admin(w::make_doorbell_buffer_config(one, two));
  };
  EXPECT_PAIRS((configure(h.bus(k_shadow + 8), h.bus(k_event)), 0x002u),
               (configure(h.bus(k_shadow), h.bus(k_event + 2048)), 0x002u),
               (configure(h.bus(k_shadow), h.bus(k_shadow)), 0x002u), (configure(0x1000, h.bus(k_event)), 0x004u),
               (configure(h.bus(k_shadow), h.bus(k_event)), 0u));
  // Admin queues go on by their registers, and a reset forgets the buffers.
  EXPECT_EQ(h.admin(w::make_identify(w::cns::controller, 0, h.data_bus())), 0u);
  h.restart();
  h.make_queues();
  EXPECT_EQ(h.io(w::make_io(w::opcode::read, 0, 1, h.data_bus(), 0, 0, 1)), 0u);
}

// Many laps of a small queue, one command at a time and in runs: every command is done, and the register is written
// only when the drive sleeps.
TEST(nvme_shadow, many_laps) {
  for (const std::uint32_t run : {1u, 3u, 7u}) {
    driver d(8, 1u << 30);  // never sleeps
    std::uint32_t done = 0;
    for (std::uint32_t i = 0; i < 300; ++i) {
      for (std::uint32_t k = 0; k < run; ++k) d.put_read(k);
      d.tail();
      for (std::uint32_t k = 0; k < run; ++k) {
        const w::cqe e = d.h.next(d.h.io_queue());
        ASSERT_EQ(d.h.status(e), 0u);
        ++done;
      }
      d.head();
    }
    EXPECT_EQ(done, 300 * run);
    EXPECT_EQ(d.ring_count, 0u) << run;
    EXPECT_EQ(d.h.device().invalid_doorbells(), 0u);
  }
}

// A drive that has fallen asleep does not look, and wants its register.
TEST(nvme_shadow, sleeps_and_wakes) {
  driver d(8, 10);
  for (std::uint32_t i = 0; i < 50; ++i) {
    d.h.turn(100);  // asleep by now
    d.put_read(i);
    EXPECT_EQ(word(d.h, k_event, w::shadow_sq_tail(1, 0)), i % 8) << i;
    EXPECT_TRUE(d.tail());
    ASSERT_EQ(d.h.status(d.h.next(d.h.io_queue())), 0u);
    d.head();
  }
  d.h.turn(100);
  d.put_read(0);
  const std::uint32_t at = w::shadow_sq_tail(1, 0);
  word(d.h, k_shadow, at) = d.h.io_queue().tail;  // and no register
  d.h.turn(2000);
  EXPECT_FALSE(d.h.ready(d.h.io_queue()));
  // Any register write in range wakes it; the shadow tells the tail.
  *d.h.tail_doorbell(d.h.io_queue()) = 0;
  ASSERT_EQ(d.h.status(d.h.next(d.h.io_queue())), 0u);
  EXPECT_EQ(d.h.device().invalid_doorbells(), 0u);
}

// The completion side: a full queue waits for the shadow's head, and when it sleeps for the register.
TEST(nvme_shadow, a_full_completion_queue) {
  driver d(8, 10);
  for (std::uint32_t i = 0; i < 7; ++i) d.put_read(i);
  d.tail();
  auto& q = d.h.io_queue();
  for (std::uint32_t i = 0; i < 7; ++i) ASSERT_EQ(d.h.status(d.h.next(q)), 0u);
  d.put_read(7);
  d.tail();
  d.h.turn(500);
  EXPECT_FALSE(d.h.ready(q));
  EXPECT_EQ(word(d.h, k_event, w::shadow_cq_head(1, 0)), 0u);
  EXPECT_TRUE(d.head());
  ASSERT_EQ(d.h.status(d.h.next(q)), 0u);
  EXPECT_EQ(d.h.device().invalid_doorbells(), 0u);
}

TEST(nvme_shadow, values_that_cannot_be) {
  driver d(8, 1u << 30);
  const std::uint32_t at = w::shadow_sq_tail(1, 0);
  word(d.h, k_shadow, at) = 8;
  d.h.turn(100);
  EXPECT_EQ(d.h.device().invalid_doorbells(), 1u);  // told once
  word(d.h, k_shadow, at) = 0xffffffff;
  d.h.turn(100);
  EXPECT_EQ(d.h.device().invalid_doorbells(), 1u + 1u);
  *d.h.tail_doorbell(d.h.io_queue()) = 8;
  d.h.turn(100);
  EXPECT_EQ(d.h.device().invalid_doorbells(), 3u);
  EXPECT_EQ(d.h.device().commands(), 4u);  // the admin commands of the set-up
  word(d.h, k_shadow, at) = 0;
  d.put_read(1);
  d.tail();
  EXPECT_EQ(d.h.status(d.h.next(d.h.io_queue())), 0u);
}
