// SPDX-License-Identifier: MIT
// Nonsense and near sense for the software SDMA engine: with any content of a ring, nothing outside mapped memory is
// touched and every turn ends. The same numbers in every run.
#include <random>

#include "model/sdma/decode.hpp"
#include "sdma_rig.hpp"

extern "C" void __sanitizer_set_report_fd(void* fd) __attribute__((weak));

namespace xio::model::sdma {
namespace {

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
