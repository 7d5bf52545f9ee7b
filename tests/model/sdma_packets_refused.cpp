// SPDX-License-Identifier: MIT
// Packets that the software SDMA engine refuses, each mistake by itself and at random.
#include <random>

#include "model/sdma/decode.hpp"
#include "sdma_rig.hpp"

extern "C" void __sanitizer_set_report_fd(void* fd) __attribute__((weak));

namespace xio::model::sdma {
namespace {

using g = wire::generation;

// --- One mistake each -------------------------------------------------------------------------------
// What stops a queue of the software SDMA engine: one thing wrong at a time, and the dword that is.

struct wrong_packet {
  const char* name;
  g generation;
  std::function<dwords(arena&)> packet;
  fault why;
  std::uint32_t dword, granule = 1;
};

dwords copy_8(arena& m) { return copy(m.dst, m.src, 8); }
dwords fence_1(arena& m) { return fence(&m.words[0], 1); }
dwords add_1(arena& m) { return atomic(0x2f, &m.words[0], 1); }
dwords fill(std::uint32_t header, void* at, std::uint32_t last) { return {header, lo(at), hi(at), 0, last}; }
dwords fill_4(arena& m) { return fill(0x8000000b, m.dst, 0); }
dwords write(void* at) { return {0x00000002, lo(at), hi(at), 0, 0x11111111}; }
dwords write_4(arena& m) { return write(m.dst); }
dwords poll_0(arena& m) { return poll(3, &m.words[0], 0); }
dwords stamp_at(void* at) { return {0x0000020d, lo(at), hi(at)}; }
dwords stamp(arena& m) { return stamp_at(m.words); }
dwords gcr() { return {0x00000111, 0, 0x80400000, 0, 0}; }
// 5 x 3 bytes with pitches of 16 and 32.
dwords tile_8(arena& m, g generation) {
  return tile(generation, 0, corner{m.src, 0, 0, 0, 16, 256}, corner{m.dst, 0, 0, 0, 32, 256}, 5, 3);
}
// Pitch and slice of the source; x, y, pitch and slice of the destination.
dwords rows(const void* src, std::uint32_t pitch, std::uint32_t slice, const void* dst, std::uint32_t x,
            std::uint32_t y, std::uint32_t dst_pitch, std::uint32_t dst_slice, std::uint32_t depth = 1) {
  return tile(g::gen_9_0, 0, corner{src, 0, 0, 0, pitch, slice}, corner{dst, x, y, 0, dst_pitch, dst_slice}, 5, 3,
              depth);
}
dwords cut(dwords d) {
  d.pop_back();
  return d;
}
// The packet with bits of one of its dwords turned over.
template <class F>
std::function<dwords(arena&)> turned(F packet, std::size_t at, std::uint32_t bits) {
  return [=](arena& m) { return with(packet(m), at, bits); };
}
std::function<dwords(arena&)> turned_tile(g generation, std::size_t at, std::uint32_t bits) {
  return [=](arena& m) { return with(tile_8(m, generation), at, bits); };
}
std::function<dwords(arena&)> plain(const dwords& d) {
  return [=](arena&) { return d; };
}

const std::vector<wrong_packet>& wrong_copies() {
  static const std::vector<wrong_packet> all = {
      {"copy_sub_op", g::gen_9_0, turned(copy_8, 0, 0x100), fault::bad_op, 0},
      {"copy_backwards", g::gen_10_1, turned(copy_8, 0, 1u << 25), fault::unsupported, 0},
      {"copy_cpv_brings_a_dword", g::gen_12, turned(copy_8, 0, 1u << 19), fault::unsupported, 0},
      {"copy_broadcast", g::gen_9_0, turned(copy_8, 0, 1u << 27), fault::unsupported, 0},
      {"copy_tmz", g::gen_9_0, turned(copy_8, 0, 1u << 18), fault::unsupported, 0},
      {"copy_swap", g::gen_9_0, turned(copy_8, 2, 1u << 16), fault::unsupported, 2},
      {"copy_count_22", g::gen_9_0, turned(copy_8, 1, 1u << 22), fault::bad_count, 1},
      {"copy_src_end", g::gen_9_0, [](arena& m) { return copy(m.dst, m.src + 4090, 7); }, fault::not_mapped, 3},
      {"copy_src_high", g::gen_9_0, turned(copy_8, 4, 0x10000), fault::not_mapped, 3},
      {"copy_dst_stranger", g::gen_9_0, [](arena& m) { return copy(m.stranger, m.src, 8); }, fault::not_mapped, 5},
      {"copy_overlap", g::gen_9_0, [](arena& m) { return copy(m.dst, m.dst + 4, 8); }, fault::overlap, 5},
      {"copy_overlap_below", g::gen_9_0, [](arena& m) { return copy(m.dst + 7, m.dst, 8); }, fault::overlap, 5},
      {"copy_granule_count", g::gen_9_0a, [](arena& m) { return copy(m.dst, m.src, 6); }, fault::unaligned, 1, 4},
      {"copy_granule_src", g::gen_9_0a, [](arena& m) { return copy(m.dst, m.src + 2, 8); }, fault::unaligned, 3, 4},
      {"copy_granule_dst", g::gen_9_0a, [](arena& m) { return copy(m.dst + 1, m.src, 8); }, fault::unaligned, 5, 4},
      {"copy_cut", g::gen_9_0, [](arena& m) { return cut(copy_8(m)); }, fault::cut_short, 0},
      {"write_sub_op", g::gen_9_0, turned(write_4, 0, 0x100), fault::bad_op, 0},
      {"write_tmz", g::gen_9_0, turned(write_4, 0, 1u << 18), fault::unsupported, 0},
      {"write_swap", g::gen_9_0, turned(write_4, 3, 1u << 24), fault::unsupported, 3},
      {"write_longer_than_rung", g::gen_9_0, turned(write_4, 3, 1), fault::cut_short, 3},
      {"write_longer_than_the_ring", g::gen_9_0, turned(write_4, 3, 0xfffff), fault::straddle, 3},
      {"write_unaligned", g::gen_9_0, turned(write_4, 1, 2), fault::unaligned, 1},
      {"write_stranger", g::gen_9_0, [](arena& m) { return write(m.stranger); }, fault::not_mapped, 1},
      {"fill_size_3", g::gen_9_0, turned(fill_4, 0, 1u << 30), fault::bad_op, 0},
      {"fill_swap", g::gen_9_0, turned(fill_4, 0, 1u << 16), fault::unsupported, 0},
      {"fill_ends_within_a_dword", g::gen_9_0, turned(fill_4, 4, 5), fault::unaligned, 4},
      {"fill_count_30", g::gen_11, turned(fill_4, 4, 1u << 30), fault::bad_count, 4},
      {"fill_dwords_unaligned", g::gen_9_0, turned(fill_4, 1, 2), fault::unaligned, 1},
      {"fill_halves_unaligned", g::gen_9_0, [](arena& m) { return fill(0x4000000b, m.dst + 1, 1); }, fault::unaligned,
       1},
      {"fill_end", g::gen_9_0, [](arena& m) { return fill(11, m.dst + 4090, 6); }, fault::not_mapped, 1},
  };
  return all;
}

const std::vector<wrong_packet>& wrong_tiles() {
  static const std::vector<wrong_packet> all = {
      {"tile_element_32", g::gen_9_0, turned_tile(g::gen_9_0, 0, 5u << 29), fault::reserved_bit, 0},
      {"tile_tmz", g::gen_9_0, turned_tile(g::gen_9_0, 0, 1u << 18), fault::unsupported, 0},
      {"tile_src_base", g::gen_9_0, turned_tile(g::gen_9_0, 1, 1), fault::unaligned, 1},
      {"tile_dst_base", g::gen_9_0, turned_tile(g::gen_9_0, 6, 2), fault::unaligned, 6},
      {"tile_swap", g::gen_9_0, turned_tile(g::gen_9_0, 12, 1u << 16), fault::unsupported, 12},
      {"tile_src_pitch_odd", g::gen_9_0, turned_tile(g::gen_9_0, 4, 1u << 13), fault::unaligned, 4},
      {"tile_dst_pitch_odd", g::gen_12, turned_tile(g::gen_12, 9, 2u << 16), fault::unaligned, 9},
      {"tile_src_pitch_small", g::gen_9_0, turned_tile(g::gen_9_0, 4, 12u << 13), fault::bad_pitch, 4},
      {"tile_dst_pitch_small", g::gen_9_0, turned_tile(g::gen_9_0, 9, 28u << 13), fault::bad_pitch, 9},
      {"tile_x_over_the_pitch", g::gen_9_0, turned_tile(g::gen_9_0, 3, 12), fault::bad_pitch, 4},
      {"tile_slice_odd", g::gen_9_0, [](arena& m) { return rows(m.src, 16, 254, m.dst, 0, 0, 32, 256, 2); },
       fault::unaligned, 5},
      {"tile_slice_small", g::gen_9_0, [](arena& m) { return rows(m.src, 16, 256, m.dst, 0, 0, 32, 68, 2); },
       fault::bad_pitch, 10},
      {"tile_src_row_unmapped", g::gen_9_0, [](arena& m) { return rows(m.src + 4076, 16, 256, m.dst, 0, 0, 32, 256); },
       fault::not_mapped, 1},
      {"tile_dst_byte_unmapped", g::gen_9_0, [](arena& m) { return rows(m.src, 16, 256, m.dst + 4028, 0, 0, 32, 256); },
       fault::not_mapped, 6},
      {"tile_overlap_by_a_byte", g::gen_9_0, [](arena& m) { return rows(m.dst, 32, 256, m.dst, 4, 1, 32, 256); },
       fault::overlap, 6},
      {"tile_overlap_of_pitches", g::gen_9_0, [](arena& m) { return rows(m.dst, 32, 256, m.dst, 12, 0, 28, 256); },
       fault::overlap, 6},
      {"tile_large_before_gfx11", g::gen_10_3, plain(dwords{0x00002401}), fault::bad_op, 0},
      {"tile_large_of_gfx12", g::gen_12, plain(dwords{0x00002401}), fault::bad_op, 0},
      {"tile_large_pitch", g::gen_11,
       [](arena& m) {
         return dwords{0x00002401, lo(m.src), hi(m.src), 0, 0, 0, 3, 0, 0, lo(m.dst),
                       hi(m.dst),  0,         0,         0, 9, 0, 0, 4, 2, 0};
       },
       fault::bad_pitch, 6},
      {"tile_large_wraps", g::gen_11,
       [](arena& m) {
         return dwords{0x00002401, lo(m.src), hi(m.src), 0, 0,   0, ~0u,    ~0u, 0xffff, lo(m.dst),
                       hi(m.dst),  0,         0,         0, ~0u, 0, 0xffff, ~0u, ~0u,    ~0u};
       },
       fault::bad_pitch, 6},
  };
  return all;
}

const std::vector<wrong_packet>& wrong_words() {
  static const std::vector<wrong_packet> all = {
      {"op_semaphore", g::gen_9_0, plain({7, 0, 0}), fault::bad_op, 0},
      {"op_indirect", g::gen_9_0, plain({4, 0, 0, 0, 0, 0}), fault::bad_op, 0},
      {"op_200", g::gen_12, plain({200}), fault::bad_op, 0},
      {"nop_bit_30", g::gen_9_0, plain({1u << 30}), fault::reserved_bit, 0},
      {"nop_sub_op", g::gen_9_0, plain({1u << 8}), fault::bad_op, 0},
      {"nop_beyond_doorbell", g::gen_9_0, plain({0x00020000, 0}), fault::cut_short, 0},
      {"fence_unaligned", g::gen_9_0, turned(fence_1, 1, 2), fault::unaligned, 1},
      {"fence_stranger", g::gen_9_0, [](arena& m) { return fence(m.stranger, 1); }, fault::not_mapped, 1},
      {"fence_physical", g::gen_11, turned(fence_1, 0, 1u << 23), fault::unsupported, 0},
      {"fence_64b_of_newer_engines", g::gen_12, turned(fence_1, 0, 2u << 8), fault::bad_op, 0},
      {"atomic_float", g::gen_9_0, [](arena& m) { return atomic(0x22, &m.words[0], 1); }, fault::bad_op, 0},
      {"atomic_unaligned", g::gen_9_0, turned(add_1, 1, 4), fault::unaligned, 1},
      {"atomic_loop", g::gen_9_0, turned(add_1, 0, 1u << 16), fault::unsupported, 0},
      {"atomic_tmz", g::gen_9_0, turned(add_1, 0, 1u << 18), fault::unsupported, 0},
      {"atomic_interval_without_loop", g::gen_9_0, turned(add_1, 7, 1), fault::unsupported, 7},
      {"atomic_stranger", g::gen_9_0, [](arena& m) { return atomic(0x2f, m.stranger, 1); }, fault::not_mapped, 1},
      {"poll_register", g::gen_9_0, turned(poll_0, 0, 1u << 31), fault::bad_op, 0},
      {"poll_hdp_registers", g::gen_9_0, turned(poll_0, 0, 1u << 26), fault::unsupported, 0},
      {"poll_function_7", g::gen_9_0, turned(poll_0, 0, 4u << 28), fault::bad_op, 0},
      {"poll_unaligned", g::gen_9_0, turned(poll_0, 1, 1), fault::unaligned, 1},
      {"poll_stranger", g::gen_9_0, [](arena& m) { return poll(3, m.stranger, 0); }, fault::not_mapped, 1},
      {"poll_of_64_bits", g::gen_12, turned(poll_0, 0, 5u << 8), fault::bad_op, 0},
      {"hdp_flush_with_a_value", g::gen_9_0, plain({8, 0, 0x80000000, 1, 0, 0}), fault::bad_op, 0},
      {"hdp_flush_on_gfx10_1", g::gen_10_1, plain({8, 0, 0x80000000, 0, 0, 0}), fault::bad_op, 0},
      {"timestamp_unaligned", g::gen_9_0, turned(stamp, 1, 8), fault::unaligned, 1},
      {"timestamp_sub_op", g::gen_9_0, turned(stamp, 0, 1u << 8), fault::bad_op, 0},
      {"timestamp_stranger", g::gen_9_0, [](arena& m) { return stamp_at(m.stranger); }, fault::not_mapped, 1},
      {"gcr_on_gfx9", g::gen_9_4, plain(gcr()), fault::bad_op, 0},
      {"gcr_of_the_kernel", g::gen_11, plain(with(gcr(), 0, 0x100)), fault::bad_op, 0},
      {"gcr_physical", g::gen_11, plain(with(gcr(), 3, 4)), fault::unsupported, 3},
      {"gcr_vmid", g::gen_11, plain(with(gcr(), 4, 1u << 24)), fault::unsupported, 4},
      {"gcr_ends_before_it_begins", g::gen_10_1, plain(with(gcr(), 1, 1u << 7)), fault::bad_count, 3},
  };
  return all;
}

void PrintTo(const wrong_packet& p, std::ostream* out) { *out << p.name; }

struct sdma_refuses : testing::TestWithParam<wrong_packet> {};

TEST_P(sdma_refuses, and_names_the_dword_and_lives_on) {
  bench b{GetParam().generation, 64, 1, GetParam().granule};
  hand_queue other{b.device, 64};
  b.queue.submit(copy(b.memory.dst + 2048, b.memory.src, 16), GetParam().packet(b.memory));
  EXPECT_EQ(b.queue.stopped_by(), GetParam().why) << text_of(b.queue.stopped_by());
  EXPECT_EQ(b.queue.stopped_at(), 7 + GetParam().dword);
  // The packets before it are done, it and those after it are not, and the other queue works.
  EXPECT_EQ(std::memcmp(b.memory.dst + 2048, b.memory.src, 16), 0);
  for (std::size_t i = 0; i < arena::k_bytes; ++i) ASSERT_TRUE((i >= 2048 && i < 2064) || b.memory.dst[i] == 0xcd) << i;
  b.queue.submit(fence(&b.memory.words[3], 9));
  EXPECT_PAIRS((b.memory.words[0], 0u), (b.memory.words[3], 0u));
  other.submit(fence(&b.memory.words[4], 9));
  EXPECT_PAIRS((b.memory.words[4], 9u), (other.stopped_by(), fault::none));
}

std::string name_of(const testing::TestParamInfo<wrong_packet>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(copies, sdma_refuses, testing::ValuesIn(wrong_copies()), name_of);
INSTANTIATE_TEST_SUITE_P(tiles, sdma_refuses, testing::ValuesIn(wrong_tiles()), name_of);
INSTANTIATE_TEST_SUITE_P(words, sdma_refuses, testing::ValuesIn(wrong_words()), name_of);

// The same packets without their mistake are done, or the mistakes prove nothing.
std::vector<dwords> sound(arena& m, g generation) {
  std::vector<dwords> all{poll_0(m), copy_8(m), fence_1(m),           add_1(m), fill_4(m), write_4(m),
                          stamp(m),  {6, 0},    tile_8(m, generation)};
  if (generation >= g::gen_10_1) all.push_back(gcr());
  return all;
}

TEST(sdma_refuses_nothing, of_what_they_are_made_from) {
  for (const g generation : k_generations) {
    bench b{generation, 256, 1, 4};
    for (const dwords& d : sound(b.memory, generation)) b.queue.submit(d);
    EXPECT_EQ(b.queue.stopped_by(), fault::none) << generation << " " << b.queue.stopped_at();
  }
}

// --- At random --------------------------------------------------------------------------------------
// Nonsense and near sense for the software SDMA engine: with any content of a ring, nothing outside mapped memory is
// touched and every turn ends. The same numbers in every run.

constexpr std::size_t k_blocks = 6, k_block = 512;

// Mapped blocks, each an allocation of its own, so that a sanitizer sees a step over its end; the agent sees any other.
struct blocks {
  std::vector<std::unique_ptr<unsigned char[]>> all;

  blocks() {
    for (std::size_t i = 0; i < k_blocks; ++i) all.push_back(std::make_unique<unsigned char[]>(k_block));
  }
  bool hold(const void* p, std::size_t bytes) const {
    const auto at = reinterpret_cast<std::uintptr_t>(p);
    return std::any_of(all.begin(), all.end(), [&](const auto& b) {
      const auto base = reinterpret_cast<std::uintptr_t>(b.get());
      return at >= base && bytes <= k_block && at - base <= k_block - bytes;
    });
  }
};
blocks* g_blocks = nullptr;
std::uint64_t g_copies = 0, g_strays = 0;

// Data of WRITE and CONST_FILL comes from the engine itself, so only where bytes go can be checked here; where they
// come from, the sanitizer checks.
const payload_agent k_watched{[](void* to, const void* from, std::size_t bytes) {
                                ++g_copies;
                                if (!g_blocks->hold(to, bytes)) {
                                  ++g_strays;
                                  return;
                                }
                                std::memmove(to, from, bytes);
                              },
                              [](void* p, unsigned width, atomic_op op, std::uint64_t operand, std::uint64_t compare) {
                                if (!g_blocks->hold(p, width)) {
                                  ++g_strays;
                                  return std::uint64_t{0};
                                }
                                return change_host_word(p, width, op, operand, compare);
                              },
                              [] {}};

// A line for every stopped queue is too much here. A sanitizer's report still comes through: to its log, or where
// standard error was.
struct hushed {
  int before = dup(2);
  bool reports = __sanitizer_set_report_fd != nullptr;

  hushed() {
    for (const char* name : {"ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"}) {
      const char* set = getenv(name);
      if (set != nullptr && std::strstr(set, "log_path") != nullptr) reports = false;
    }
    report_to(before);
    const int nothing = open("/dev/null", O_WRONLY);
    dup2(nothing, 2);
    close(nothing);
  }
  ~hushed() {
    dup2(before, 2);
    report_to(2);
    close(before);
  }
  void report_to(int fd) const {
    if (reports) __sanitizer_set_report_fd(reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)));
  }
};

// Which bits a generation defines is judged in sdma_wire.cpp.
TEST(sdma_refuses_bits, that_the_generation_does_not_define) {
  const hushed quiet;
  for (const g generation : k_generations) {
    bench b{generation};
    for (const dwords& d : sound(b.memory, generation))
      for (std::uint32_t at = 0; at < d.size(); ++at)
        for (std::uint32_t bit = 0; bit < 32; ++bit) {
          const std::uint32_t defined = at == 0 ? defined_header(generation, d[0]) : defined_bits(generation, d[0], at);
          if ((defined >> bit & 1) != 0) continue;
          hand_queue q{b.device, 64};
          q.submit(with(d, at, 1u << bit));
          EXPECT_PAIRS((q.stopped_by(), fault::reserved_bit) << d[0], (q.stopped_at(), at) << d[0] << " bit " << bit);
        }
  }
}

// Packets that are right, and of eight one with something turned over.
struct writer {
  std::mt19937 random;

  std::uint32_t any() { return static_cast<std::uint32_t>(random()); }
  bool once_in(std::uint32_t n) { return any() % n == 0; }
  std::uint64_t address(std::uint32_t grain) {
    const auto base = reinterpret_cast<std::uint64_t>(g_blocks->all[any() % k_blocks].get());
    return base + any() % (k_block - 400) / grain * grain;
  }
  static void put(dwords& d, std::size_t at, std::uint64_t a) {
    d[at] = low_half(a);
    d[at + 1] = high_half(a);
  }

  dwords right(wire::generation g) {
    dwords d(8, 0);
    switch (any() % (g >= wire::gen_10_1 ? 11 : 10)) {
      case 0: return dwords(1 + any() % 4, 0);
      case 1: d = {0x00000001, any() % 100, 0, 0, 0, 0, 0}, put(d, 3, address(1)), put(d, 5, address(1)); break;
      case 2: d = right_tile(g); break;
      case 3:
        d = {0x00000002, 0, 0, any() % 12};
        put(d, 1, address(4));
        for (std::uint32_t i = 0; i <= d[3]; ++i) d.push_back(any());
        break;
      case 4: d = {0x00000005, 0, 0, any()}, put(d, 1, address(4)); break;
      case 5: d = {0x00000006, any() >> 4}; break;
      case 6: d = {0x80000008, 0, 0, any(), any(), 0x0fff0000}, put(d, 1, address(4)); break;
      case 7: d = atomic(0x0f + any() % 11 + any() % 4 * 32, nullptr, any()), put(d, 1, address(8)); break;
      case 8: d = {any() % 3 << 30 | 11u, 0, 0, any(), any() % 25 * 4 + 3}, put(d, 1, address(4)); break;
      case 9: d = {(any() % 3) << 8 | 13u, 0, 0}, put(d, 1, address(32)); break;
      default: d = {0x00000111, 0, any() << 16, 0, 0}; break;
    }
    return d;
  }
  dwords right_tile(wire::generation g) {
    const std::uint32_t log2 = any() % 5;
    const std::uint32_t width = 1 + any() % 3, height = 1 + any() % 4;
    if (wire::has_large_tiles(g) && once_in(3)) {
      dwords d(20, 0);
      d[0] = 0x00002401;
      put(d, 1, address(1));
      put(d, 9, address(1));
      d[6] = 9 + any() % 20, d[14] = 9 + any() % 20;
      d[17] = any() % 10, d[18] = any() % 10;
      return d;
    }
    const auto side = [&] {
      const std::uint32_t x = any() % 2;
      return corner{reinterpret_cast<void*>(address(16)), x, 0, 0, 4 + any() % 2 * 4, 1};
    };
    return tile(g, log2, side(), side(), width, height);
  }

  dwords packet(wire::generation g) {
    dwords d = right(g);
    if (!once_in(8)) return d;
    if (once_in(6)) return d[0] = any(), d;
    if (once_in(6)) return d.pop_back(), d.empty() ? dwords{0} : d;
    for (std::uint32_t i = any() % 3; i < 3; ++i) {
      std::uint32_t& dw = d[any() % d.size()];
      dw = once_in(3) ? any() : dw ^ 1u << any() % 32;
    }
    return d;
  }
};

struct sdma_fuzz : testing::TestWithParam<wire::generation> {
  blocks mine;
  engine device{k_watched, GetParam(), 3};
  writer w{std::mt19937(GetParam() * 7919u)};
  hushed quiet;

  void SetUp() override {
    g_blocks = &mine;
    g_copies = g_strays = 0;
    for (std::size_t i = 0; i < k_blocks; ++i)
      ASSERT_TRUE(device.map(mine.all[i].get(), k_block, i % 2 == 0 ? memory_kind::payload : memory_kind::host));
  }
  void TearDown() override { g_blocks = nullptr; }
  // True if the queue came to the end of what it holds.
  bool run(hand_queue& q) {
    q.ring_doorbell();
    for (int i = 0; i < 50; ++i) device.poll();
    return q.stopped_by() == fault::none;
  }
};
INSTANTIATE_TEST_SUITE_P(sdma, sdma_fuzz, testing::ValuesIn(k_generations));

TEST_P(sdma_fuzz, random_dwords) {
  for (int round = 0; round < 20000; ++round) {
    hand_queue q{device, 64};
    dwords all(w.any() % 64 + 1);
    for (auto& dw : all) dw = w.once_in(2) ? w.any() : w.any() % 0x1200;
    q.write(all);
    run(q);
  }
  EXPECT_EQ(g_strays, 0u);
}

TEST_P(sdma_fuzz, packets_that_are_almost_right) {
  int whole = 0, faults[16] = {};
  for (int round = 0; round < 20000; ++round) {
    hand_queue q{device, 64, std::uint64_t{w.any() % 16} * 4};
    while (true) {
      const dwords d = w.packet(GetParam());
      if ((q.written - q.wptr) / 4 + d.size() > 64) break;
      q.write(d);
    }
    if (run(q))
      ++whole;
    else
      ++faults[static_cast<std::uint32_t>(q.stopped_by()) % 16];
  }
  EXPECT_EQ(g_strays, 0u);
  // Else this shoots beside the mark.
  EXPECT_GT(g_copies, 20000u);
  EXPECT_GT(whole, 200);
  for (const fault f : {fault::bad_op, fault::reserved_bit, fault::straddle, fault::unaligned, fault::not_mapped,
                        fault::overlap, fault::unsupported, fault::bad_pitch})
    EXPECT_GT(faults[static_cast<std::uint32_t>(f)], 0) << text_of(f);
}

TEST_P(sdma_fuzz, pointers_that_lie) {
  for (int round = 0; round < 5000; ++round) {
    hand_queue q{device, 64};
    q.write(dwords(64, 0));
    for (int i = 0; i < 4; ++i) {
      q.wptr = w.once_in(2) ? w.any() % 600 : (std::uint64_t{w.any()} << 32) | w.any();
      q.doorbell = w.once_in(2) ? q.wptr : w.any() % 600;
      for (int turn = 0; turn < 4; ++turn) device.poll();
    }
  }
  EXPECT_EQ(g_strays, 0u);
}

}  // namespace
}  // namespace xio::model::sdma
