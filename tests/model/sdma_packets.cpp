// SPDX-License-Identifier: MIT
// What the software SDMA engine makes of every packet, in every generation.
#include "sdma_rig.hpp"

namespace xio::model::sdma {
namespace {

struct sdma_model : testing::TestWithParam<wire::generation> {
  bench b{GetParam()};
  engine& device = b.device;
  arena& memory = b.memory;
  hand_queue& queue = b.queue;
};

std::string name_of(const testing::TestParamInfo<wire::generation>& info) {
  const char* const names[] = {"none", "9_0", "9_0a", "9_4", "10_1", "10_3", "11", "12"};
  return names[info.param];
}
INSTANTIATE_TEST_SUITE_P(sdma, sdma_model, testing::ValuesIn(k_generations), name_of);

TEST_P(sdma_model, copies_every_small_size_and_touches_nothing_else) {
  for (std::uint32_t bytes = 1; bytes <= 300; ++bytes) {
    std::memset(memory.dst, 0xcd, sizeof memory.dst);
    unsigned char* to = memory.dst + 64 + bytes % 16;
    queue.submit_whole(copy(to, memory.src + bytes % 7, bytes));
    ASSERT_EQ(std::memcmp(to, memory.src + bytes % 7, bytes), 0) << bytes;
    ASSERT_EQ(to[-1], 0xcd) << bytes;
    ASSERT_EQ(to[bytes], 0xcd) << bytes;
  }
  EXPECT_EQ(queue.stopped_by(), fault::none);
}

TEST_P(sdma_model, pads_in_one_packet_or_in_many) {
  // The header says 8 more; what follows it is not looked at.
  queue.submit({0x00080000, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u});
  queue.submit(dwords(20, 0));
  queue.submit(fence(&memory.words[0], 7));
  EXPECT_EQ(memory.words[0], 7u);
}

// XIO_MODEL_FAULTS=sdma_skip@1: the fence behind it comes all the same, which is the lie.
TEST(sdma_model_faults, a_move_that_only_seems_done) {
  engine device(plain_memory(), wire::gen_9_4, 1);
  device.inject({{1}, {}});
  arena memory(device);
  hand_queue queue(device, 256);
  for (int i = 0; i < 3; ++i) queue.submit(copy(memory.dst + i * 8, memory.src + i * 8, 8));
  queue.submit(fence(memory.words, 7));
  EXPECT_EQ(queue.stopped_by(), fault::none);
  EXPECT_EQ(static_cast<std::uint32_t>(memory.words[0]), 7u);
  for (int i = 0; i < 24; ++i) EXPECT_EQ(memory.dst[i], i / 8 == 1 ? 0xcd : memory.src[i]) << i;
}

// XIO_MODEL_FAULTS=sdma_delay@0=...: the fence waits for it, unless the queue goes before it comes.
TEST(sdma_model_faults, a_move_that_comes_late_or_never) {
  engine device(plain_memory(), wire::gen_9_4, 1);
  device.inject({{}, {{0, std::chrono::milliseconds(30)}}});
  arena memory(device);
  const auto start = std::chrono::steady_clock::now();
  {
    hand_queue queue(device, 256);
    queue.submit(copy(memory.dst, memory.src, 8), fence(memory.words, 7));
    EXPECT_EQ(memory.dst[0], 0xcd);
    while (memory.words[0] != 7 && std::chrono::steady_clock::now() - start < std::chrono::seconds(20)) queue.run();
    EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(30));
    EXPECT_EQ(std::memcmp(memory.dst, memory.src, 8), 0);
  }
  {
    hand_queue queue(device, 256);
    queue.submit(copy(memory.dst + 64, memory.src, 8));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(40));
  for (int i = 0; i < 100; ++i) device.poll();
  EXPECT_EQ(memory.dst[64], 0xcd);
}

TEST_P(sdma_model, fences_write_one_word) {
  memory.words[2] = 0xaaaaaaaaaaaaaaaa;
  queue.submit(fence(&memory.words[2], 0x87654321));
  EXPECT_EQ(memory.words[2], 0xaaaaaaaa87654321u);
  queue.submit(fence(memory.dst + 8, 0x04030201));
  const unsigned char wrote[6] = {0xcd, 1, 2, 3, 4, 0xcd};
  EXPECT_EQ(std::memcmp(memory.dst + 7, wrote, 6), 0);
}

// --- ATOMIC -----------------------------------------------------------------------------------------------------

struct atomic_case {
  std::uint32_t code;  // the 32-bit form, with a value handed back
  std::uint64_t old, operand, compare, now32, now64;
};
constexpr std::uint64_t k_minus_3 = 0xfffffffffffffffd;

// TC_OP in linux drivers/gpu/drm/amd/include/vega10_enum.h.
const atomic_case k_atomics[] = {
    {0x07, 5, 9, 0, 9, 9},                                            // SWAP
    {0x08, 5, 9, 5, 9, 9},                                            // CMPSWAP
    {0x08, 5, 9, 6, 5, 5},                                            //
    {0x0f, 5, 0xffffffffffffffff, 0, 4, 4},                           // ADD
    {0x0f, 0xffffffff, 2, 0, 1, 0x100000001},                         //
    {0x10, 5, 7, 0, 0xfffffffe, 0xfffffffffffffffe},                  // SUB
    {0x11, 5, k_minus_3, 0, 0xfffffffd, k_minus_3},                   // SMIN
    {0x11, k_minus_3, 5, 0, 0xfffffffd, k_minus_3},                   //
    {0x12, 5, k_minus_3, 0, 5, 5},                                    // UMIN
    {0x12, 5, 4, 0, 4, 4},                                            //
    {0x13, k_minus_3, 5, 0, 5, 5},                                    // SMAX
    {0x13, 5, k_minus_3, 0, 5, 5},                                    //
    {0x14, 5, k_minus_3, 0, 0xfffffffd, k_minus_3},                   // UMAX
    {0x15, 0xff00ff00ff00ff, 0xffff0000ffff, 0, 0xff, 0xff000000ff},  // AND
    {0x16, 0x100000001, 0x200000002, 0, 3, 0x300000003},              // OR
    {0x17, 0x300000003, 0x200000002, 0, 1, 0x100000001},              // XOR
    {0x18, 5, 9, 0, 6, 6},                                            // INC
    {0x18, 9, 9, 0, 0, 0},                                            //
    {0x19, 5, 9, 0, 4, 4},                                            // DEC
    {0x19, 0, 9, 0, 9, 9},                                            //
    {0x19, 10, 9, 0, 9, 9},                                           //
};

TEST_P(sdma_model, atomics_do_as_their_codes_say) {
  for (const atomic_case& c : k_atomics) {
    for (const std::uint32_t no_return : {0u, 0x40u}) {
      for (std::uint64_t* word : {&memory.words[1], reinterpret_cast<std::uint64_t*>(memory.dst + 64)}) {
        SCOPED_TRACE(testing::Message() << "code " << c.code + no_return << " old " << c.old);
        *word = c.old;
        queue.submit_whole(atomic(c.code + 0x20 + no_return, word, c.operand, c.compare));
        EXPECT_EQ(*word, c.now64);
        // The 32-bit form leaves the other half alone.
        *word = 0xabcdef0100000000 | (c.old & 0xffffffff);
        queue.submit_whole(atomic(c.code + no_return, word, c.operand, c.compare));
        EXPECT_EQ(*word, 0xabcdef0100000000 | c.now32);
      }
    }
  }
  EXPECT_PAIRS((memory.words[0], 0u), (memory.words[2], 0u), (queue.stopped_by(), fault::none));
}

TEST_P(sdma_model, knows_no_code_but_those_of_integers) {
  // 7, 8 and 0xf to 0x19, in four rows of 32.
  for (std::uint32_t code = 0; code < 128; ++code) {
    const std::uint32_t kind = code % 32;
    const bool known = kind == 7 || kind == 8 || (kind >= 0xf && kind <= 0x19);
    hand_queue q{device, 64};
    q.submit(atomic(code, &memory.words[0], 1));
    EXPECT_EQ(q.stopped_by(), known ? fault::none : fault::bad_op) << code;
  }
}

// --- Fills, writes and stamps -----------------------------------------------------------------------------------

TEST_P(sdma_model, fills_bytes_halves_and_dwords) {
  struct fill {
    std::uint32_t header, value, count, bytes;
    unsigned char pattern[4];
  };
  // fillsize [31:30]: 0 bytes, 1 halves, 2 dwords. The count may name the last byte or the last unit.
  const fill fills[] = {{0x0000000b, 0x44332211, 9, 10, {0x11, 0x11, 0x11, 0x11}},
                        {0x4000000b, 0x44332211, 9, 10, {0x11, 0x22, 0x11, 0x22}},
                        {0x4000000b, 0x44332211, 8, 10, {0x11, 0x22, 0x11, 0x22}},
                        {0x8000000b, 0x44332211, 2047, 2048, {0x11, 0x22, 0x33, 0x44}},
                        {0x8000000b, 0x44332211, 2044, 2048, {0x11, 0x22, 0x33, 0x44}}};
  for (const fill& f : fills) {
    std::memset(memory.dst, 0xcd, sizeof memory.dst);
    unsigned char* to = memory.dst + (f.header == 0x0000000b ? 5 : 4);
    queue.submit({f.header, lo(to), hi(to), f.value, f.count});
    for (std::uint32_t i = 0; i < f.bytes; ++i) ASSERT_EQ(to[i], f.pattern[i % 4]) << f.header << " " << i;
    EXPECT_PAIRS((to[-1], 0xcd), (to[f.bytes], 0xcd));
  }
  EXPECT_EQ(queue.stopped_by(), fault::none);
}

TEST_P(sdma_model, fills_many_pages_of_a_byte) {
  std::vector<unsigned char> big(3 * 4096 + 7, 0xcd);
  EXPECT_TRUE(device.map(big.data(), big.size(), memory_kind::payload));
  queue.submit({0x0000000b, lo(big.data() + 1), hi(big.data() + 1), 0x5a, static_cast<std::uint32_t>(big.size()) - 3});
  EXPECT_PAIRS((big.front(), 0xcd), (big.back(), 0xcd));
  for (std::size_t i = 1; i + 1 < big.size(); ++i) ASSERT_EQ(big[i], 0x5a) << i;
  EXPECT_TRUE(device.unmap(big.data()));
}

TEST_P(sdma_model, writes_what_follows_the_head) {
  queue.submit({0x00000002, lo(memory.dst + 4), hi(memory.dst + 4), 1, 0x11111111, 0x22222222});
  const unsigned char wrote[10] = {0xcd, 0x11, 0x11, 0x11, 0x11, 0x22, 0x22, 0x22, 0x22, 0xcd};
  EXPECT_EQ(std::memcmp(memory.dst + 3, wrote, 10), 0);
}

TEST_P(sdma_model, stamps_global_and_local_time) {
  const auto now = [] {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                      std::chrono::nanoseconds(1));
  };
  auto* stamp = &memory.words[4];
  const std::uint64_t before = now();
  queue.submit({0x0000020d, lo(stamp), hi(stamp)});
  EXPECT_GE(*stamp, before);
  EXPECT_LE(*stamp, now());
  // The local one counts from what was set.
  queue.submit({0x0000000d, 0x00000064, 0x00000001});
  queue.submit({0x0000010d, lo(stamp), hi(stamp)});
  EXPECT_GE(*stamp, 0x100000064u);
  EXPECT_LE(*stamp, 0x100000064u + (now() - before));
  EXPECT_PAIRS((memory.words[3], 0u), (memory.words[5], 0u));
}

// --- Packets without a trace ------------------------------------------------------------------------------------

TEST_P(sdma_model, counts_traps_flushes_and_cache_controls) {
  queue.submit({0x00000006, 0x0fffffff});
  EXPECT_EQ(device.events().traps, 1u);
  hand_queue flusher{device, 64};
  flusher.submit({0x8, 0, 0x80000000, 0, 0, 0});
  // ROCR leaves gfx10.1 out: "seems to have issues".
  const bool flushes = GetParam() != wire::gen_10_1;
  EXPECT_EQ(device.events().hdp_flushes, flushes ? 1u : 0u);
  EXPECT_EQ(flusher.stopped_by(), flushes ? fault::none : fault::bad_op);
  // GL2 and GLK written back: control bits 15 and 6, which stand in dword 2 from bit 16 on.
  hand_queue rinser{device, 64};
  rinser.submit({0x00000111, 0, 0x80400000, 0, 0});
  const bool rinses = GetParam() >= wire::gen_10_1;
  EXPECT_EQ(device.events().cache_controls, rinses ? 1u : 0u);
  EXPECT_EQ(rinser.stopped_by(), rinses ? fault::none : fault::bad_op);
}

TEST_P(sdma_model, reports_traps_time_and_its_read_pointer) {
  std::vector<std::uint32_t> heard;
  device.listen([&](std::uint32_t context) { heard.push_back(context); });
  device.tell_time_by([] { return std::uint64_t{0x123456789abcdefu}; });
  std::vector<std::uint32_t> ring(64, 0);
  std::uint64_t wptr = 0, doorbell = 0, rptr = ~std::uint64_t{0};
  const std::uint32_t number = device.add_queue(queue_memory{ring.data(), 256, &wptr, &doorbell, nullptr, 0, &rptr});
  alignas(32) std::uint64_t stamp = 0;
  device.map(&stamp, sizeof stamp, memory_kind::host);
  const dwords packets{0x0000020d, lo(&stamp), hi(&stamp), 0x00000006, 77};
  std::copy(packets.begin(), packets.end(), ring.begin());
  __atomic_store_n(&wptr, packets.size() * 4, __ATOMIC_RELEASE);
  __atomic_store_n(&doorbell, packets.size() * 4, __ATOMIC_RELEASE);
  for (int i = 0; i < 100 && device.poll(); ++i) {
  }
  EXPECT_PAIRS((heard, std::vector<std::uint32_t>{77}), (stamp, 0x123456789abcdefu), (rptr, packets.size() * 4));
  device.remove_queue(number);
  device.unmap(&stamp);
}

// --- POLL_REGMEM ------------------------------------------------------------------------------------------------

TEST_P(sdma_model, polls_until_the_word_is_right) {
  struct poll_case {
    std::uint32_t function;
    std::uint32_t no, yes;  // of a word that is compared with 5 under a mask of 0xff
  };
  for (const poll_case& c : {poll_case{1, 0x105, 0x704},
                             {2, 0x106, 0x705},
                             {3, 0x104, 0x705},
                             {4, 0x705, 0x706},
                             {5, 0x704, 0x705},
                             {6, 0x705, 0x706}}) {
    memory.words[0] = c.no;
    memory.words[1] = 0;
    queue.submit(poll(c.function, &memory.words[0], 5, 0xff), fence(&memory.words[1], 1));
    EXPECT_EQ(memory.words[1], 0u) << c.function;
    memory.words[0] = c.yes;
    for (int i = 0; i < 1000 && memory.words[1] == 0; ++i) device.poll();
    EXPECT_EQ(memory.words[1], 1u) << c.function;
  }
  queue.write(poll(0, &memory.words[0], 77));  // always
  queue.submit(fence(&memory.words[1], 2));
  EXPECT_PAIRS((memory.words[1], 2u), (queue.stopped_by(), fault::none));
}

TEST_P(sdma_model, a_poll_without_hope_stops_the_queue_when_its_retries_are_over) {
  // An interval of 65535 units of 16 clocks, 3 times: 3 ms at 1 GHz.
  const auto begin = std::chrono::steady_clock::now();
  queue.submit(poll(3, &memory.words[0], 5, ~0u, 0x0003ffff));
  while (queue.stopped_by() == fault::none && std::chrono::steady_clock::now() - begin < std::chrono::seconds(10))
    device.poll();
  EXPECT_PAIRS((queue.stopped_by(), fault::poll_gave_up), (queue.stopped_at(), 0u));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::microseconds(3140));
}

TEST_P(sdma_model, a_poll_for_ever_lives_as_long_as_its_queue) {
  {
    hand_queue waits{device, 64};
    waits.submit(poll(3, &memory.words[0], 5, ~0u, 0x0fff0000));
    for (int i = 0; i < 10000; ++i) device.poll();
    EXPECT_EQ(waits.stopped_by(), fault::none);
    // Others are not held up.
    queue.submit(fence(&memory.words[1], 3));
    EXPECT_EQ(memory.words[1], 3u);
  }
  EXPECT_FALSE(device.poll());
}

// --- Generations ------------------------------------------------------------------------------------------------

TEST_P(sdma_model, takes_the_cache_bits_of_its_generation) {
  const bool gfx10 = GetParam() >= wire::gen_10_1;
  const bool policies = GetParam() == wire::gen_10_3 || GetParam() == wire::gen_11;
  struct bits {
    dwords packet;
    bool taken;
  };
  auto* word = &memory.words[0];
  const bits all[] = {
      {with(fence(word, 1), 0, 0x00030000), gfx10},       // mtype UC
      {with(fence(word, 1), 0, 0x03500000), gfx10},       // SYS, SNP, L2 policy
      {with(fence(word, 1), 0, 0x14000000), policies},    // LLC policy, CPV
      {with(poll(0, word, 0), 0, 0x01700000), policies},  // cache policy, CPV
      {with(atomic(0x2f, word, 1), 0, 0x01700000), policies},
      {with(copy(memory.dst, memory.src, 8), 2, 0x1c1c0000), policies},
      {with(with(copy(memory.dst, memory.src, 8), 0, 0x00080000), 2, 0x1c1c0000), policies},
      {{0x1700020d, lo(word), hi(word)}, policies},
      {{0x97000000 | 11u, lo(memory.dst), hi(memory.dst), 0, 3}, policies},
      {{0x10000002, lo(memory.dst), hi(memory.dst), 0x1c000000, 0}, policies},
  };
  for (const bits& one : all) {
    hand_queue q{device, 64};
    q.submit(one.packet);
    EXPECT_EQ(q.stopped_by() == fault::none, one.taken) << std::hex << one.packet[0];
  }
}

TEST_P(sdma_model, counts_up_to_its_field) {
  // Memory of that size there is none here: what is beyond the field says so before anybody looks for it.
  const bool wide = GetParam() != wire::gen_9_0 && GetParam() != wire::gen_10_1;
  const std::uint32_t most = wide ? 0x3fffffff : 0x003fffff;
  const auto stopped = [&](dwords d) {
    hand_queue q{device, 64};
    q.submit(d);
    return q.stopped_by();
  };
  EXPECT_EQ(stopped(with(copy(memory.dst, memory.src, 1), 1, most)), fault::not_mapped);
  EXPECT_EQ(stopped(with(copy(memory.dst, memory.src, 1), 1, most + 1)), fault::bad_count);
  EXPECT_EQ(stopped(with(copy(memory.dst, memory.src, 1), 1, 0x40000000)), fault::bad_count);
  const std::uint32_t most_filled = wide && GetParam() != wire::gen_10_3 ? 0x3fffffff : 0x003fffff;
  EXPECT_EQ(stopped({0x8000000b, lo(memory.dst), hi(memory.dst), 0, most_filled}), fault::not_mapped);
  EXPECT_EQ(stopped({0x8000000b, lo(memory.dst), hi(memory.dst), 0, most_filled + 4}), fault::bad_count);
}

TEST(sdma_model_sizes, copies_as_much_as_22_bits_say) {
  bench b{wire::gen_9_0};
  std::vector<unsigned char> from((1u << 22) + 64), to(from.size(), 0xcd);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<unsigned char>((i * 2654435761u) >> 13);
  EXPECT_TRUE(b.device.map(from.data(), from.size(), memory_kind::payload));
  EXPECT_TRUE(b.device.map(to.data(), to.size(), memory_kind::payload));
  b.queue.submit(copy(to.data() + 32, from.data() + 1, 1u << 22));
  EXPECT_PAIRS((std::memcmp(to.data() + 32, from.data() + 1, 1u << 22), 0), (to[31], 0xcd),
               (to[32 + (1u << 22)], 0xcd));
}

// --- The ring and its pointers ----------------------------------------------------------------------------------

TEST_P(sdma_model, a_packet_may_not_go_over_the_end) {
  queue.submit(dwords(250, 0));
  queue.submit(copy(memory.dst, memory.src, 8));
  EXPECT_PAIRS((queue.stopped_by(), fault::straddle), (queue.stopped_at(), 250u));
}

TEST_P(sdma_model, goes_round_a_ring_of_256_bytes) {
  hand_queue small{device, 64};
  for (std::uint32_t i = 0; i < 2000; ++i) {
    unsigned char* to = memory.dst + i % 1000;
    const std::uint32_t bytes = 1 + i % 90;
    small.submit_whole(copy(to, memory.src + i % 31, bytes));
    small.submit_whole(fence(&memory.words[0], i + 1));
    ASSERT_EQ(memory.words[0], i + 1);
    ASSERT_EQ(std::memcmp(to, memory.src + i % 31, bytes), 0) << i;
  }
  EXPECT_GT(small.written, 64u * 4 * 300);
}

TEST_P(sdma_model, one_packet_may_fill_the_ring) {
  hand_queue small{device, 64};
  for (std::uint32_t round = 1; round <= 3; ++round) {
    dwords packet{0x00000002, lo(memory.dst), hi(memory.dst), 59};
    for (std::uint32_t i = 0; i < 60; ++i) packet.push_back(round * 1000 + i);
    small.submit(packet);
    EXPECT_EQ(std::memcmp(memory.dst, packet.data() + 4, 240), 0);
    EXPECT_EQ(memory.dst[240], 0xcd);
  }
  EXPECT_EQ(small.stopped_by(), fault::none);
}

TEST_P(sdma_model, the_counters_are_64_bit) {
  hand_queue late{device, 64, (std::uint64_t{1} << 34) - 64};
  for (std::uint32_t i = 1; i <= 4; ++i) {
    late.submit(fence(&memory.words[0], i));
    EXPECT_EQ(memory.words[0], i);
  }
  late.submit({0x7});
  EXPECT_EQ(late.stopped_at(), 0u);  // 2^32 dwords and nothing: the low word of its place
}

TEST_P(sdma_model, doorbells_that_lie) {
  struct lie {
    fault why;
    std::uint64_t wptr, doorbell;
  };
  for (const lie& l : {lie{fault::pointer_backwards, 60, 60}, lie{fault::pointer_unaligned, 130, 130},
                       lie{fault::pointer_beyond_ring, 64 + 260, 64 + 260}, lie{fault::pointer_not_stored, 64, 128}}) {
    hand_queue q{device, 64};
    q.submit(dwords(16, 0));
    q.wptr = l.wptr;
    q.doorbell = l.doorbell;
    q.run();
    EXPECT_EQ(q.stopped_by(), l.why);
  }
}

TEST_P(sdma_model, memory_that_went_away_is_refused) {
  queue.submit(copy(memory.dst, memory.src, 8));
  EXPECT_TRUE(device.unmap(memory.dst));
  EXPECT_FALSE(device.unmap(memory.dst));
  queue.submit(copy(memory.dst, memory.src, 8));
  EXPECT_EQ(queue.stopped_by(), fault::not_mapped);
}

TEST_P(sdma_model, maps_no_empty_or_wrapping_range) {
  EXPECT_FALSE(device.map(memory.stranger, 0, memory_kind::payload));
  EXPECT_FALSE(device.map(memory.stranger, ~std::size_t{0}, memory_kind::payload));
}

}  // namespace
}  // namespace xio::model::sdma
