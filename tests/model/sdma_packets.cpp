// SPDX-License-Identifier: MIT
// The software SDMA engine executes gfx9 packets and refuses wrong ones. Packets are dwords written by hand from the
// layouts (vega10_sdma_pkt_open.h), not by XIO's encoder.
#include <functional>

#include "sdma_rig.hpp"

namespace xio::model::sdma {
namespace {

using dwords = std::vector<std::uint32_t>;

dwords copy(void* dst, const void* src, std::uint32_t bytes) {
  return {0x00000001, bytes - 1, 0, lo(src), hi(src), lo(dst), hi(dst)};
}
dwords fence(void* word, std::uint32_t value) { return {0x00000005, lo(word), hi(word), value}; }
dwords atomic(std::uint32_t code, void* word, std::uint64_t operand, std::uint64_t compare = 0) {
  return {(code << 25) | 10u,
          lo(word),
          hi(word),
          static_cast<std::uint32_t>(operand),
          static_cast<std::uint32_t>(operand >> 32),
          static_cast<std::uint32_t>(compare),
          static_cast<std::uint32_t>(compare >> 32),
          0};
}

struct sdma_model : testing::Test {
  engine device{plain_memory(), std::uint64_t{1} << 22, 1};
  arena memory{device};
  hand_queue queue{device, 256};

  std::uint32_t word32(int i) const { return static_cast<std::uint32_t>(memory.words[i]); }
};

TEST_F(sdma_model, copies_every_small_size_and_touches_nothing_else) {
  for (std::uint32_t bytes = 1; bytes <= 300; ++bytes) {
    std::memset(memory.dst, 0xcd, sizeof memory.dst);
    unsigned char* to = memory.dst + 64 + bytes % 16;
    queue.submit(copy(to, memory.src + bytes % 7, bytes));
    ASSERT_EQ(std::memcmp(to, memory.src + bytes % 7, bytes), 0) << bytes;
    ASSERT_EQ(to[-1], 0xcd) << bytes;
    ASSERT_EQ(to[bytes], 0xcd) << bytes;
    // 9 dwords of padding: the header says 8 more. What follows it is not looked at.
    queue.submit({0x00080000, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u});
    ASSERT_EQ(queue.stopped_by(), fault::none);
  }
}

TEST_F(sdma_model, atomics_and_fences_do_as_their_codes_say) {
  memory.words[0] = 0xffffffffffffffff;
  queue.submit(atomic(0x2f, &memory.words[0], 3));
  EXPECT_EQ(memory.words[0], 2u);
  queue.submit(atomic(0x27, &memory.words[0], 0x123456789abcdef0));
  EXPECT_EQ(memory.words[0], 0x123456789abcdef0u);
  queue.submit(atomic(0x28, &memory.words[0], 7, 1));
  EXPECT_EQ(memory.words[0], 0x123456789abcdef0u);
  queue.submit(atomic(0x28, &memory.words[0], 7, 0x123456789abcdef0));
  EXPECT_EQ(memory.words[0], 7u);
  memory.words[1] = 0xaaaaaaaaffffffff;
  queue.submit(atomic(0x0f, &memory.words[1], 2));
  EXPECT_EQ(memory.words[1], 0xaaaaaaaa00000001u);
  queue.submit(fence(&memory.words[2], 0x87654321));
  EXPECT_EQ(memory.words[2], 0x87654321u);
  EXPECT_EQ(queue.stopped_by(), fault::none);
}

TEST_F(sdma_model, fills_writes_stamps_and_polls) {
  queue.submit({0x8000000b, lo(memory.dst + 4), hi(memory.dst + 4), 0x01020304, 8191 & 2047});
  for (int i = 4; i < 4 + 2048; i += 4) {
    std::uint32_t v;
    std::memcpy(&v, memory.dst + i, 4);
    ASSERT_EQ(v, 0x01020304u) << i;
  }
  EXPECT_EQ(memory.dst[3], 0xcd);
  EXPECT_EQ(memory.dst[4 + 2048], 0xcd);
  queue.submit({0x00000002, lo(memory.dst), hi(memory.dst), 1, 0x11111111, 0x22222222});
  const unsigned char wrote[8] = {0x11, 0x11, 0x11, 0x11, 0x22, 0x22, 0x22, 0x22};
  EXPECT_EQ(std::memcmp(memory.dst, wrote, 8), 0);
  queue.submit({0x0000020d, lo(&memory.words[4]), hi(&memory.words[4])});
  EXPECT_NE(memory.words[4], 0u);
  // Wait for words[0] & 0xff == 5, then fence.
  queue.write({0xb0000008, lo(&memory.words[0]), hi(&memory.words[0]), 5, 0xff, 0x0fff0001});
  queue.submit(fence(&memory.words[1], 1));
  EXPECT_EQ(word32(1), 0u);
  memory.words[0] = 0x705;
  queue.run();
  EXPECT_EQ(word32(1), 1u);
  EXPECT_EQ(queue.stopped_by(), fault::none);
}

TEST_F(sdma_model, a_poll_without_hope_stops_the_queue) {
  queue.submit({0xb0000008, lo(&memory.words[0]), hi(&memory.words[0]), 5, 0xff, 0x00030001});
  for (int i = 0; i < 10; ++i) device.poll();
  EXPECT_EQ(queue.stopped_by(), fault::poll_gave_up);
}

// A copy chain without fences must go wrong for some seed, and with fences for none.
bool chain_is_right(std::uint64_t seed, bool fenced) {
  engine device{plain_memory(), std::uint64_t{1} << 22, seed};
  arena memory{device};
  hand_queue queue{device, 256};
  queue.write(copy(memory.dst, memory.src, 512));
  if (fenced) queue.write(fence(&memory.words[0], 1));
  queue.write(copy(memory.dst + 1024, memory.dst, 512));
  queue.submit(fence(&memory.words[1], 1));
  return std::memcmp(memory.dst + 1024, memory.src, 512) == 0;
}

TEST(sdma_model_order, copies_overlap_unless_a_fence_is_between) {
  int wrong = 0;
  for (std::uint64_t seed = 1; seed <= 32; ++seed) {
    EXPECT_TRUE(chain_is_right(seed, true)) << seed;
    wrong += chain_is_right(seed, false) ? 0 : 1;
  }
  EXPECT_GT(wrong, 4);
  EXPECT_LT(wrong, 28);
}

TEST_F(sdma_model, an_atomic_comes_after_the_copies_before_it) {
  // A value that the copy carries to the word and the atomic adds to.
  std::uint64_t forty = 40;
  std::memcpy(memory.src, &forty, 8);
  queue.write(copy(memory.dst, memory.src, 8));
  queue.submit(atomic(0x2f, memory.dst, 2));
  std::uint64_t found;
  std::memcpy(&found, memory.dst, 8);
  EXPECT_EQ(found, 42u);
}

// --- Refusals: one thing wrong at a time ----------------------------------------------------------------------------

struct wrong_packet {
  const char* name;
  std::function<dwords(arena&)> packet;
  fault why;
  std::uint32_t dword;
};

dwords with(dwords d, std::size_t at, std::uint32_t bits) {
  d[at] ^= bits;
  return d;
}

const std::vector<wrong_packet>& wrong_packets() {
  static const std::vector<wrong_packet> all = {
      {"op_11_on_gfx9",
       [](arena&) {
         return dwords{0x00000011, 0, 0, 0, 0};
       },
       fault::bad_op, 0},
      {"copy_sub_op", [](arena& m) { return with(copy(m.dst, m.src, 8), 0, 0x100); }, fault::bad_op, 0},
      {"copy_broadcast", [](arena& m) { return with(copy(m.dst, m.src, 8), 0, 1u << 27); }, fault::reserved_bit, 0},
      {"copy_bit_31", [](arena& m) { return with(copy(m.dst, m.src, 8), 0, 1u << 31); }, fault::reserved_bit, 0},
      {"copy_parameter", [](arena& m) { return with(copy(m.dst, m.src, 8), 2, 1u << 16); }, fault::reserved_bit, 2},
      {"copy_count", [](arena& m) { return with(copy(m.dst, m.src, 8), 1, 1u << 22); }, fault::bad_count, 1},
      {"copy_src_end", [](arena& m) { return copy(m.dst, m.src + 4090, 7); }, fault::not_mapped, 3},
      {"copy_src_high", [](arena& m) { return with(copy(m.dst, m.src, 8), 4, 0x10000); }, fault::not_mapped, 3},
      {"copy_dst_stranger", [](arena& m) { return copy(m.stranger, m.src, 8); }, fault::not_mapped, 5},
      {"copy_overlap", [](arena& m) { return copy(m.dst, m.dst + 4, 8); }, fault::overlap, 5},
      {"fence_unaligned", [](arena& m) { return with(fence(&m.words[0], 1), 1, 2); }, fault::unaligned, 1},
      {"fence_stranger", [](arena& m) { return fence(m.stranger, 1); }, fault::not_mapped, 1},
      {"fence_mtype_of_gfx10", [](arena& m) { return with(fence(&m.words[0], 1), 0, 3u << 16); }, fault::reserved_bit,
       0},
      {"atomic_code", [](arena& m) { return atomic(0x3f, &m.words[0], 1); }, fault::bad_op, 0},
      {"atomic_unaligned", [](arena& m) { return with(atomic(0x2f, &m.words[0], 1), 1, 4); }, fault::unaligned, 1},
      {"atomic_loop_bit", [](arena& m) { return with(atomic(0x2f, &m.words[0], 1), 0, 1u << 16); }, fault::reserved_bit,
       0},
      {"atomic_interval", [](arena& m) { return with(atomic(0x2f, &m.words[0], 1), 7, 1); }, fault::reserved_bit, 7},
      {"atomic_stranger", [](arena& m) { return atomic(0x2f, m.stranger, 1); }, fault::not_mapped, 1},
      {"nop_bit_30", [](arena&) { return dwords{1u << 30}; }, fault::reserved_bit, 0},
      {"nop_beyond_doorbell",
       [](arena&) {
         return dwords{0x00020000, 0};
       },
       fault::cut_short, 0},
      {"copy_cut",
       [](arena& m) {
         dwords d = copy(m.dst, m.src, 8);
         d.pop_back();
         return d;
       },
       fault::cut_short, 0},
      {"poll_register", [](arena& m) { return dwords{0x30000008, lo(m.words), hi(m.words), 0, 0, 0}; }, fault::bad_op,
       0},
      {"trap_context",
       [](arena&) {
         return dwords{6, 1u << 28};
       },
       fault::reserved_bit, 1},
      {"timestamp_unaligned",
       [](arena& m) {
         return dwords{0x20d, lo(m.words) + 8, hi(m.words)};
       },
       fault::unaligned, 1},
      {"fill_of_bytes",
       [](arena& m) {
         return dwords{0x0000000b, lo(m.dst), hi(m.dst), 0, 3};
       },
       fault::bad_op, 0},
      {"fill_odd",
       [](arena& m) {
         return dwords{0x8000000b, lo(m.dst), hi(m.dst), 0, 4};
       },
       fault::bad_count, 4},
  };
  return all;
}

struct sdma_refuses : testing::TestWithParam<wrong_packet> {};

TEST_P(sdma_refuses, and_names_the_dword_and_lives_on) {
  engine device{plain_memory(), std::uint64_t{1} << 22, 1};
  arena memory{device};
  hand_queue queue{device, 64};
  hand_queue other{device, 64};
  queue.write(copy(memory.dst + 2048, memory.src, 16));
  queue.submit(GetParam().packet(memory));
  EXPECT_EQ(queue.stopped_by(), GetParam().why);
  EXPECT_EQ(queue.stopped_at(), 7 + GetParam().dword);
  // What came before is done, what comes after is not, and the other queue works.
  EXPECT_EQ(std::memcmp(memory.dst + 2048, memory.src, 16), 0);
  queue.submit(fence(&memory.words[3], 9));
  EXPECT_EQ(memory.words[3], 0u);
  other.submit(fence(&memory.words[4], 9));
  EXPECT_EQ(memory.words[4], 9u);
  EXPECT_EQ(other.stopped_by(), fault::none);
}

INSTANTIATE_TEST_SUITE_P(sdma, sdma_refuses, testing::ValuesIn(wrong_packets()),
                         [](const auto& info) { return info.param.name; });

// --- The ring and its pointers --------------------------------------------------------------------------------------

TEST_F(sdma_model, a_packet_may_not_go_over_the_end) {
  queue.submit(dwords(250, 0));
  queue.submit(copy(memory.dst, memory.src, 8));
  EXPECT_EQ(queue.stopped_by(), fault::straddle);
  EXPECT_EQ(queue.stopped_at(), 250u);
}

TEST_F(sdma_model, the_counters_are_64_bit) {
  hand_queue late{device, 64, (std::uint64_t{1} << 34) - 64};
  for (int i = 0; i < 4; ++i) {
    late.submit(fence(&memory.words[0], static_cast<std::uint32_t>(i + 1)));
    EXPECT_EQ(word32(0), static_cast<std::uint32_t>(i + 1));
  }
  late.submit({0x7});
  EXPECT_EQ(late.stopped_at(), 0u);  // 2^32 dwords and nothing: the low word of its place
}

TEST_F(sdma_model, doorbells_that_lie) {
  struct lie {
    fault why;
    std::uint64_t wptr, doorbell;
  };
  for (const lie& l : {lie{fault::pointer_backwards, 60, 60}, lie{fault::pointer_unaligned, 130, 130},
                       lie{fault::pointer_too_far, 64 + 260, 64 + 260}, lie{fault::pointer_not_stored, 64, 128}}) {
    hand_queue q{device, 64};
    q.submit(dwords(16, 0));
    q.wptr = l.wptr;
    q.doorbell = l.doorbell;
    q.run();
    EXPECT_EQ(q.stopped_by(), l.why);
  }
}

TEST_F(sdma_model, memory_that_went_away_is_refused) {
  queue.submit(copy(memory.dst, memory.src, 8));
  EXPECT_TRUE(device.unmap(memory.dst));
  EXPECT_FALSE(device.unmap(memory.dst));
  queue.submit(copy(memory.dst, memory.src, 8));
  EXPECT_EQ(queue.stopped_by(), fault::not_mapped);
}

TEST_F(sdma_model, maps_no_empty_or_wrapping_range) {
  EXPECT_FALSE(device.map(memory.stranger, 0, memory_kind::payload));
  EXPECT_FALSE(device.map(memory.stranger, ~std::size_t{0}, memory_kind::payload));
}

}  // namespace
}  // namespace xio::model::sdma
