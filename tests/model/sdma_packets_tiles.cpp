// SPDX-License-Identifier: MIT
// Sub-window copies of the software SDMA engine against the plain loops that they stand for, element by element.
#include <random>

#include "model/sdma/pitched.hpp"
#include "sdma_rig.hpp"

namespace xio::model::sdma {
namespace {

constexpr unsigned char k_poison = 0xcd;

// Two buffers, all mapped, and an engine over them.
struct field {
  engine device;
  std::vector<unsigned char> src, dst;
  hand_queue queue;

  field(wire::generation g, std::size_t bytes)
      : device(plain_memory(), g, 7), src(bytes), dst(bytes, k_poison), queue(device, 64) {
    for (std::size_t i = 0; i < bytes; ++i) src[i] = static_cast<unsigned char>((i * 2654435761u) >> 11);
    EXPECT_TRUE(device.map(src.data(), bytes, memory_kind::payload));
    EXPECT_TRUE(device.map(dst.data(), bytes, memory_kind::payload));
  }
};

// Everything in elements of `log2`; offsets are where the bases lie in the buffers, in bytes.
struct shape {
  std::uint32_t log2;
  std::size_t src_offset, dst_offset;
  corner src, dst;
  std::uint32_t width, height, depth;
};

std::size_t place_of(std::size_t offset, const corner& c, std::uint32_t log2, std::size_t x, std::size_t y,
                     std::size_t z) {
  return offset + (((z + c.z) * c.slice + (y + c.y) * c.pitch + x + c.x) << log2);
}

// Returns the bytes that dst must have afterwards.
std::vector<unsigned char> copied(const field& f, const shape& s) {
  std::vector<unsigned char> out = f.dst;
  const std::size_t element = std::size_t{1} << s.log2;
  for (std::size_t z = 0; z < s.depth; ++z)
    for (std::size_t y = 0; y < s.height; ++y)
      for (std::size_t x = 0; x < s.width; ++x)
        std::memcpy(&out[place_of(s.dst_offset, s.dst, s.log2, x, y, z)],
                    &f.src[place_of(s.src_offset, s.src, s.log2, x, y, z)], element);
  return out;
}

void check(wire::generation g, field& f, shape s) {
  std::fill(f.dst.begin(), f.dst.end(), k_poison);
  const auto expected = copied(f, s);
  s.src.base = f.src.data() + s.src_offset;
  s.dst.base = f.dst.data() + s.dst_offset;
  f.queue.submit_whole(tile(g, s.log2, s.src, s.dst, s.width, s.height, s.depth));
  ASSERT_EQ(f.queue.stopped_by(), fault::none) << text_of(f.queue.stopped_by()) << " at " << f.queue.stopped_at();
  ASSERT_TRUE(f.dst == expected) << s.width << " x " << s.height << " x " << s.depth << " of " << (1 << s.log2);
}

struct sdma_tiles : testing::TestWithParam<wire::generation> {};
INSTANTIATE_TEST_SUITE_P(sdma, sdma_tiles, testing::ValuesIn(k_generations));

TEST_P(sdma_tiles, every_element_of_small_and_odd_sizes) {
  field f{GetParam(), 1 << 15};
  for (std::uint32_t log2 = 0; log2 <= 4; ++log2)
    for (std::uint32_t width : {1u, 2u, 3u, 7u, 16u})
      for (std::uint32_t height : {1u, 2u, 5u, 13u})
        check(GetParam(), f, {log2, 64, 128, {nullptr, 0, 0, 0, 20, 1}, {nullptr, 0, 0, 0, 36, 1}, width, height, 1});
}

TEST_P(sdma_tiles, one_byte_anywhere_in_a_dword) {
  field f{GetParam(), 4096};
  for (std::uint32_t from = 0; from < 4; ++from)
    for (std::uint32_t to = 0; to < 4; ++to)
      check(GetParam(), f, {0, 512, 1024, {nullptr, from, 0, 0, 4, 1}, {nullptr, to, 0, 0, 8, 1}, 1, 1, 1});
}

TEST_P(sdma_tiles, rows_without_a_gap) {
  field f{GetParam(), 1 << 14};
  check(GetParam(), f, {2, 64, 64, {nullptr, 0, 0, 0, 25, 1}, {nullptr, 0, 0, 0, 25, 1}, 25, 40, 1});
}

TEST_P(sdma_tiles, slices_and_corners) {
  field f{GetParam(), 1 << 16};
  check(GetParam(), f, {1, 4, 8, {nullptr, 3, 2, 1, 32, 640}, {nullptr, 1, 4, 3, 20, 300}, 13, 9, 5});
  // ROCR's way to pitches that are no pitch: rows are slices of one row.
  check(GetParam(), f, {0, 0, 0, {nullptr, 0, 0, 0, 16, 1000}, {nullptr, 0, 0, 0, 16, 500}, 16, 1, 50});
}

TEST_P(sdma_tiles, anything_at_random) {
  std::mt19937 random(GetParam());
  field f{GetParam(), 1 << 18};
  const auto pick = [&](std::uint32_t from, std::uint32_t to) {
    return std::uniform_int_distribution<std::uint32_t>(from, to)(random);
  };
  for (int i = 0; i < 300; ++i) {
    shape s{};
    s.log2 = pick(0, 4);
    s.width = pick(1, 40), s.height = pick(1, 40), s.depth = pick(1, 3);
    const std::uint32_t grain = s.log2 == 0 ? 4 : s.log2 == 1 ? 2 : 1;
    for (corner* c : {&s.src, &s.dst}) {
      c->x = pick(0, 5), c->y = pick(0, 5), c->z = pick(0, 2);
      c->pitch = (c->x + s.width + pick(0, 9) + grain - 1) / grain * grain;
      c->slice = (c->y + s.height + pick(0, 3)) * c->pitch;
    }
    s.src_offset = pick(0, 1000) * 4, s.dst_offset = pick(0, 1000) * 4;
    const auto end = [&](const corner& c) { return ((std::size_t{c.z} + s.depth) * c.slice << s.log2) + 4000; };
    if (end(s.src) > f.src.size() || end(s.dst) > f.dst.size()) continue;
    check(GetParam(), f, s);
    if (HasFatalFailure()) FAIL() << "round " << i;
  }
}

TEST_P(sdma_tiles, extents_at_their_limit) {
  const std::uint32_t most = GetParam() == wire::gen_12 ? 65536 : 16384;
  field f{GetParam(), std::size_t{most} * 40};
  check(GetParam(), f,
        {0, 0, 16, {nullptr, 0, 0, 0, most, 1}, {nullptr, 0, 0, 0, most + (most < 65536 ? 4 : 0), 1}, most, 3, 1});
  check(GetParam(), f, {0, 8, 4, {nullptr, 3, 0, 0, 4, 1}, {nullptr, 0, 0, 0, 8, 1}, 1, most, 1});
}

TEST_P(sdma_tiles, pitches_at_their_limit) {
  const std::uint32_t most = GetParam() == wire::gen_12 ? 65536 : 524288;
  field f{GetParam(), std::size_t{most} * 16 + 4096};
  check(GetParam(), f, {4, 0, 16, {nullptr, 0, 0, 0, most, 1}, {nullptr, 0, 0, 0, 16, 1}, 7, 2, 1});
  check(GetParam(), f, {4, 32, 0, {nullptr, 0, 0, 0, 8, 1}, {nullptr, 0, 0, 0, most, 1}, 7, 2, 1});
}

TEST_P(sdma_tiles, within_one_matrix_beside_each_other) {
  // Columns 0 to 99 to columns 100 to 199 of a matrix of 200: the spans overlap, no byte does.
  field f{GetParam(), 1 << 16};
  std::vector<unsigned char> expected = f.src;
  for (std::size_t y = 0; y < 100; ++y) std::memcpy(&expected[y * 200 + 100], &expected[y * 200], 100);
  const corner from{f.src.data(), 0, 0, 0, 200, 1}, to{f.src.data(), 100, 0, 0, 200, 1};
  f.queue.submit(tile(GetParam(), 0, from, to, 100, 100));
  EXPECT_EQ(f.queue.stopped_by(), fault::none);
  EXPECT_TRUE(f.src == expected);
  // Onto itself changes nothing; a byte further is an overlap.
  f.queue.submit_whole(tile(GetParam(), 0, from, from, 100, 100));
  EXPECT_EQ(f.queue.stopped_by(), fault::none);
  EXPECT_TRUE(f.src == expected);
  f.queue.submit_whole(tile(GetParam(), 0, corner{f.src.data(), 1, 0, 0, 200, 1}, to, 100, 100));
  EXPECT_EQ(f.queue.stopped_by(), fault::overlap);
}

TEST_P(sdma_tiles, what_lies_between_rows_need_not_be_mapped) {
  engine device{plain_memory(), GetParam(), 1};
  std::vector<unsigned char> src(4096, 0x11), dst(4096, k_poison);
  EXPECT_TRUE(device.map(src.data(), src.size(), memory_kind::payload));
  for (std::size_t row = 0; row < 4; ++row) EXPECT_TRUE(device.map(&dst[row * 1024], 20, memory_kind::payload));
  hand_queue queue{device, 64};
  const corner from{src.data(), 0, 0, 0, 32, 1}, to{dst.data(), 0, 0, 0, 1024, 1};
  queue.submit(tile(GetParam(), 0, from, to, 20, 4));
  EXPECT_EQ(queue.stopped_by(), fault::none);
  for (std::size_t i = 0; i < dst.size(); ++i) ASSERT_EQ(dst[i], i % 1024 < 20 ? 0x11 : k_poison) << i;
  queue.submit(tile(GetParam(), 0, from, to, 21, 4));
  EXPECT_PAIRS((queue.stopped_by(), fault::not_mapped), (queue.stopped_at(), 13u + 6));
}

// --- The arithmetic, against counting bytes ----------------------------------------------------------------------

std::set<std::uint64_t> bytes_of(const pitched& p, const extent& e) {
  std::set<std::uint64_t> all;
  for (std::uint64_t z = 0; z < e.depth; ++z)
    for (std::uint64_t y = 0; y < e.height; ++y)
      for (std::uint64_t x = 0; x < e.width; ++x) all.insert(p.start + z * p.slice + y * p.pitch + x);
  return all;
}

TEST(sdma_pitched, overlaps_where_a_byte_is_in_both) {
  std::mt19937 random(11);
  const auto pick = [&](std::uint64_t from, std::uint64_t to) {
    return std::uniform_int_distribution<std::uint64_t>(from, to)(random);
  };
  int together = 0, apart = 0;
  for (int round = 0; round < 20000; ++round) {
    const extent e{pick(1, 5), pick(1, 4), pick(1, 2)};
    const auto side = [&](std::uint64_t start) {
      const std::uint64_t pitch = e.width + pick(0, 4);
      return pitched{start, pitch, (e.height - 1) * pitch + e.width + pick(0, 5)};
    };
    const pitched a = side(100);
    pitched b = side(pick(60, 140));
    if (pick(0, 1) == 0) b.pitch = a.pitch, b.slice = a.slice;
    const auto in_a = bytes_of(a, e), in_b = bytes_of(b, e);
    const bool both = std::any_of(in_b.begin(), in_b.end(), [&](std::uint64_t at) { return in_a.count(at) != 0; });
    ++(both ? together : apart);
    ASSERT_EQ(overlap(a, b, e), both) << round;
    ASSERT_EQ(overlap(b, a, e), both) << round;
    ASSERT_EQ(span(a, e), *in_a.rbegin() - *in_a.begin() + 1);
  }
  EXPECT_GT(together, 2000);
  EXPECT_GT(apart, 2000);
}

TEST(sdma_pitched, is_covered_where_each_row_lies_in_one_range) {
  std::mt19937 random(12);
  const auto pick = [&](std::uint64_t from, std::uint64_t to) {
    return std::uniform_int_distribution<std::uint64_t>(from, to)(random);
  };
  int inside = 0, outside = 0;
  for (int round = 0; round < 20000; ++round) {
    memory_map map;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
    for (std::uint64_t at = pick(80, 110); at < 260;) {
      const std::uint64_t bytes = pick(5, 120);
      ranges.emplace_back(at, at + bytes);
      EXPECT_TRUE(map.add(at, bytes, memory_kind::payload));
      at += bytes + pick(0, 4);
    }
    const extent e{pick(1, 4), pick(1, 5), pick(1, 3)};
    const std::uint64_t pitch = e.width + pick(0, 12);
    const pitched p{pick(90, 130), pitch, (e.height - 1) * pitch + e.width + pick(0, 9)};
    bool all = true;
    for (std::uint64_t i = 0; i < e.height * e.depth; ++i) {
      const std::uint64_t row = p.row(i, e);
      all &= std::any_of(ranges.begin(), ranges.end(),
                         [&](const auto& r) { return row >= r.first && row + e.width <= r.second; });
    }
    ++(all ? inside : outside);
    ASSERT_EQ(covered(map, p, e), all) << round;
  }
  EXPECT_GT(inside, 2000);
  EXPECT_GT(outside, 2000);
}

TEST(sdma_pitched, knows_what_is_no_address) {
  constexpr std::uint64_t k_most = ~std::uint64_t{0};
  EXPECT_PAIRS((span({0, 0, 0}, {k_most, 1, 1}), k_most), (span({1, 0, 0}, {k_most, 1, 1}), k_most),
               (span({2, 0, 0}, {k_most, 1, 1}), 0u),
               (span({0, std::uint64_t{1} << 33, 0}, {1, std::uint64_t{1} << 32, 1}), 0u),
               (span({0, 1, std::uint64_t{1} << 48}, {1, 1, std::uint64_t{1} << 32}), 0u));
}

TEST(sdma_large_tiles, say_bytes_in_32_bits) {
  for (const wire::generation g : {wire::gen_9_4, wire::gen_11}) {
    field f{g, 1 << 16};
    std::vector<unsigned char> expected = f.dst;
    // 33 x 21 bytes in 2 slices from (3, 2, 1) to (5, 1, 0): pitches of 101 and 203, slices of 5000 and 7001.
    for (std::size_t z = 0; z < 2; ++z)
      for (std::size_t y = 0; y < 21; ++y)
        std::memcpy(&expected[1 + z * 7001 + (y + 1) * 203 + 5], &f.src[7 + (z + 1) * 5000 + (y + 2) * 101 + 3], 33);
    f.queue.submit(
        {0x00002401, lo(&f.src[7]), hi(&f.src[7]), 3, 2,  1,  100, 4999, 0, lo(&f.dst[1]), hi(&f.dst[1]), 5, 1,
         0,          202,           7000,          0, 32, 20, 1});
    EXPECT_EQ(f.queue.stopped_by(), fault::none) << text_of(f.queue.stopped_by()) << f.queue.stopped_at();
    EXPECT_TRUE(f.dst == expected) << g;
  }
}

}  // namespace
}  // namespace xio::model::sdma
