// SPDX-License-Identifier: MIT
// SDMA packets, dword by dword. Expected values are written by hand from the layouts: linux
// drivers/gpu/drm/amd/amdgpu/{vega10,navi10}_sdma_pkt_open.h and sdma_v6_0_0_pkt_open.h, ROCR
// core/inc/sdma_registers.h.
#include "../gtest.hpp"
#include "model/sdma/decode.hpp"

namespace {

namespace model = xio::model::sdma;
namespace wire = xio::wire::sdma;
using u32 = std::uint32_t;

constexpr std::uint64_t k_dst = 0x00007f1122334455;
constexpr std::uint64_t k_src = 0x00007eaabbccddee;

template <std::size_t n>
std::array<u32, n> poisoned() {
  std::array<u32, n> dw;
  dw.fill(0xdeadbeef);
  return dw;
}

TEST(sdma_wire, copy_linear_counts_from_zero_and_names_the_source_first) {
  auto dw = poisoned<8>();
  wire::encode_copy_linear(dw.data(), k_dst, k_src, 4097);
  EXPECT_EQ(dw, (std::array<u32, 8>{0x00000001, 4096, 0, 0xbbccddee, 0x00007eaa, 0x22334455, 0x00007f11, 0xdeadbeef}));
}

TEST(sdma_wire, copy_linear_takes_its_whole_count_field) {
  auto dw = poisoned<7>();
  wire::encode_copy_linear(dw.data(), k_dst, k_src, 1u << 30);
  EXPECT_EQ(dw[1], 0x3fffffffu);
  wire::encode_copy_linear(dw.data(), k_dst, k_src, 1);
  EXPECT_EQ(dw[1], 0u);
}

// From gfx10 on mtype, [18:16], is 3: uncached (sdma_v5_0_ring_emit_fence and its successors).
TEST(sdma_wire, fence) {
  for (const u32 g :
       {wire::gen_9_0, wire::gen_9_0a, wire::gen_9_4, wire::gen_10_1, wire::gen_10_3, wire::gen_11, wire::gen_12}) {
    auto dw = poisoned<5>();
    wire::encode_fence(dw.data(), g, 0x0000123456789abc, 0x87654321);
    const u32 header = g < wire::gen_10_1 ? 0x00000005 : 0x00030005;
    EXPECT_EQ(dw, (std::array<u32, 5>{header, 0x56789abc, 0x00001234, 0x87654321, 0xdeadbeef})) << g;
  }
}

// operation is bits 31:25 of the header: ADD64 = 47 = 0x2f -> 0x5e000000, SWAP64 = 0x27 -> 0x4e000000.
TEST(sdma_wire, atomic) {
  auto dw = poisoned<9>();
  wire::encode_atomic(dw.data(), wire::add_64, 0x0000123456789ab8, 0x1111111122222222, 0x3333333344444444);
  EXPECT_EQ(dw, (std::array<u32, 9>{0x5e00000a, 0x56789ab8, 0x00001234, 0x22222222, 0x11111111, 0x44444444, 0x33333333,
                                    0, 0xdeadbeef}));
  wire::encode_atomic(dw.data(), wire::swap_64, 0, 0, 0);
  EXPECT_EQ(dw[0], 0x4e00000au);
  wire::encode_atomic(dw.data(), wire::compare_swap_32, 0, 0, 0);
  EXPECT_EQ(dw[0], 0x1000000au);
}

// The count of skipped dwords is bits 29:16.
TEST(sdma_wire, nop_skips_what_is_left_of_a_slot) {
  auto dw = poisoned<2>();
  wire::encode_nop(dw.data(), 9);
  EXPECT_EQ(dw, (std::array<u32, 2>{0x00080000, 0xdeadbeef}));
  wire::encode_nop(dw.data(), 1);
  EXPECT_EQ(dw[0], 0u);
}

TEST(sdma_wire, poll_memory) {
  auto dw = poisoned<7>();
  wire::encode_poll_memory(dw.data(), wire::poll_greater_equal, 0x0000123456789abc, 5, 0xffff, 10,
                           wire::k_poll_for_ever);
  EXPECT_EQ(dw, (std::array<u32, 7>{0xd0000008, 0x56789abc, 0x00001234, 5, 0xffff, 0x0fff000a, 0xdeadbeef}));
}

// Filled bytes less 4: kfdtest writes that on gfx12 (SDMAPacket.cpp), ROCR everywhere (BuildFillCommand).
TEST(sdma_wire, const_fill_of_dwords) {
  auto dw = poisoned<6>();
  wire::encode_const_fill(dw.data(), 0x0000123456789abc, 0xa5a5a5a5, 4096);
  EXPECT_PAIRS((dw, (std::array<u32, 6>{0x8000000b, 0x56789abc, 0x00001234, 0xa5a5a5a5, 4092, 0xdeadbeef})),
               (wire::fill_bytes(4092, 2), 4096u), (wire::fill_bytes(4095, 2), 4096u));
}

TEST(sdma_wire, const_fill_of_bytes) {
  auto dw = poisoned<6>();
  wire::encode_byte_fill(dw.data(), 0x0000123456789abd, 0xa5, 4095);
  EXPECT_EQ(dw, (std::array<u32, 6>{0x0000000b, 0x56789abd, 0x00001234, 0xa5, 4094, 0xdeadbeef}));
  EXPECT_EQ(wire::fill_bytes(4094, 0), 4095u);
}

TEST(sdma_wire, write_timestamp_and_trap) {
  auto dw = poisoned<5>();
  wire::encode_write_head(dw.data(), 0x0000123456789abc, 3);
  EXPECT_EQ(dw, (std::array<u32, 5>{0x00000002, 0x56789abc, 0x00001234, 2, 0xdeadbeef}));
  wire::encode_timestamp(dw.data(), 0x0000123456789aa0);
  EXPECT_PAIRS((dw[0], 0x0000020du), (dw[1], 0x56789aa0u), (dw[2], 0x00001234u));
  wire::encode_trap(dw.data(), 7);
  EXPECT_PAIRS((dw[0], 6u), (dw[1], 7u));
}

// The packet that ROCR's sdma_registers.h spells out as hdp_flush_cmd.
TEST(sdma_wire, hdp_flush) {
  auto dw = poisoned<7>();
  wire::encode_hdp_flush(dw.data());
  EXPECT_EQ(dw, (std::array<u32, 7>{0x8, 0, 0x80000000, 0, 0, 0, 0xdeadbeef}));
  EXPECT_TRUE(wire::has_hdp_flush(wire::gen_9_0));
  EXPECT_FALSE(wire::has_hdp_flush(wire::gen_10_1));
  EXPECT_TRUE(wire::has_hdp_flush(wire::gen_10_3));
}

// SDMA_PKT_GCR in ROCR's sdma_registers.h: in dword 2 GLK_WB 22, GLK_INV 23, GLV_INV 24, GL1_INV 25, GL2_INV 30,
// GL2_WB 31; sub-op 1.
TEST(sdma_wire, gcr) {
  auto dw = poisoned<6>();
  wire::encode_gcr(dw.data(), wire::k_gcr_write_back);
  EXPECT_EQ(dw, (std::array<u32, 6>{0x00000111, 0, 0x80400000, 0, 0, 0xdeadbeef}));
  wire::encode_gcr(dw.data(), wire::k_gcr_write_back | wire::k_gcr_invalidate);
  EXPECT_EQ(dw[2], 0xc3c00000u);
  // SDMA_GCR_SEQ(2) and SDMA_GCR_RANGE_IS_PA: [18:16] of the control stand in dword 3.
  wire::encode_gcr(dw.data(), 0x00060001);
  EXPECT_PAIRS((dw[2], 0x00010000u), (dw[3], 0x00000006u), (wire::gcr_control(dw.data()), 0x00060001u));
}

// --- Limits: copy_max_bytes and fill_max_bytes of linux sdma_v4_0.c, v4_4_2, v5_0, v5_2, v6_0 and v7_0 -----------

TEST(sdma_wire, counts_by_generation) {
  for (const u32 g : {wire::gen_9_0, wire::gen_10_1}) {
    EXPECT_EQ(wire::copy_bytes_max(g), 0x400000u) << g;
    EXPECT_EQ(wire::fill_bytes_max(g), 0x400000u) << g;
  }
  for (const u32 g : {wire::gen_9_0a, wire::gen_9_4, wire::gen_11, wire::gen_12}) {
    EXPECT_EQ(wire::copy_bytes_max(g), 0x40000000u) << g;
    EXPECT_EQ(wire::fill_bytes_max(g), 0x40000000u) << g;
  }
  EXPECT_PAIRS((wire::copy_bytes_max(wire::gen_10_3), 0x40000000u), (wire::fill_bytes_max(wire::gen_10_3), 0x400000u));
}

// --- Tiles ------------------------------------------------------------------------------------------------------

// 4-byte elements, 100 x 50, pitches 1000 and 2000. SDMA_PKT_COPY_LINEAR_RECT: element [31:29] of the header, pitch - 1
// from bit 13 of dwords 4 and 9, the rectangle's x - 1 and y - 1 in dword 11.
TEST(sdma_wire, tile_before_gfx12) {
  const wire::tile t{0x00007f1122334450, 0x00007eaabbccdde0, 2000, 1000, 100, 50, 2};
  for (const u32 g : {wire::gen_9_0, wire::gen_9_0a, wire::gen_9_4, wire::gen_10_1, wire::gen_10_3, wire::gen_11}) {
    auto dw = poisoned<14>();
    wire::encode_tile(dw.data(), g, t);
    EXPECT_EQ(dw, (std::array<u32, 14>{0x40000401, 0xbbccdde0, 0x00007eaa, 0, 999u << 13, 0, 0x22334450, 0x00007f11, 0,
                                       1999u << 13, 0, 99 | 49u << 16, 0, 0xdeadbeef}))
        << g;
  }
}

// SDMA_PKT_COPY_LINEAR_RECT_TAG_GFX12: the pitch from bit 16 on.
TEST(sdma_wire, tile_of_gfx12) {
  const wire::tile t{0x00007f1122334450, 0x00007eaabbccdde0, 0x10000, 1000, 0x10000, 50, 4};
  auto dw = poisoned<14>();
  wire::encode_tile(dw.data(), wire::gen_12, t);
  EXPECT_EQ(dw, (std::array<u32, 14>{0x80000401, 0xbbccdde0, 0x00007eaa, 0, 999u << 16, 0, 0x22334450, 0x00007f11, 0,
                                     0xffff0000, 0, 0x0000ffff | 49u << 16, 0, 0xdeadbeef}));
}

// The base is a multiple of 4 and x, in elements, says the rest (BuildCopyRectCommand).
TEST(sdma_wire, tile_between_dwords) {
  auto dw = poisoned<13>();
  wire::encode_tile(dw.data(), wire::gen_9_0a, wire::tile{0x1003, 0x2001, 16, 16, 5, 5, 0});
  EXPECT_PAIRS((dw[1], 0x2000u), (dw[3], 1u), (dw[6], 0x1000u), (dw[8], 3u));
  wire::encode_tile(dw.data(), wire::gen_9_0a, wire::tile{0x1002, 0x2000, 16, 16, 5, 5, 1});
  EXPECT_PAIRS((dw[3], 0u), (dw[8], 1u));
}

TEST(sdma_wire, tiles_that_fit_one_packet) {
  const wire::tile good{0x1000, 0x2000, 64, 64, 61, 10, 0};
  const auto fits = [&](u32 g, auto change) {
    wire::tile t = good;
    change(t);
    return wire::tile_fits(g, t);
  };
  for (const u32 g : {wire::gen_9_0, wire::gen_11, wire::gen_12}) {
    const u32 extent = g == wire::gen_12 ? 65536 : 16384;
    const u32 pitch = g == wire::gen_12 ? 65536 : 524288;
    EXPECT_PAIRS((wire::tile_extent_max(g), extent), (wire::tile_pitch_max(g), pitch));
    EXPECT_TRUE(fits(g, [](wire::tile&) {}));
    EXPECT_FALSE(fits(g, [](wire::tile& t) { t.width = 0; }));
    EXPECT_FALSE(fits(g, [](wire::tile& t) { t.height = 0; }));
    EXPECT_TRUE(fits(g, [&](wire::tile& t) { t.height = extent; }));
    EXPECT_FALSE(fits(g, [&](wire::tile& t) { t.height = extent + 1; }));
    EXPECT_TRUE(fits(g, [&](wire::tile& t) { t.src_pitch = pitch; }));
    EXPECT_FALSE(fits(g, [&](wire::tile& t) { t.src_pitch = pitch + 4; }));
    EXPECT_FALSE(fits(g, [&](wire::tile& t) { t.dst_pitch = pitch + 4; }));
    // Pitches in dwords: 63 bytes are none, 63 halves neither, 63 dwords are.
    EXPECT_FALSE(fits(g, [](wire::tile& t) { t.dst_pitch = 63; }));
    EXPECT_FALSE(fits(g, [](wire::tile& t) { t.src_pitch = 63, t.element_log2 = 1; }));
    EXPECT_TRUE(fits(g, [](wire::tile& t) { t.src_pitch = 63, t.element_log2 = 2; }));
    // 3 bytes before the row and 61 of it are 64; one more runs into the next row.
    EXPECT_TRUE(fits(g, [](wire::tile& t) { t.src += 3; }));
    EXPECT_FALSE(fits(g, [](wire::tile& t) { t.src += 3, t.width = 62; }));
    EXPECT_FALSE(fits(g, [](wire::tile& t) { t.dst += 3, t.width = 62; }));
    EXPECT_FALSE(fits(g, [](wire::tile& t) { t.width = 65; }));
  }
}

// SDMA_PKT_COPY_LINEAR_SUBWIN_LARGE in sdma_v6_0_0_pkt_open.h; bytes, as rocm-xio's CreateLargeSubWindowCopyPacket.
TEST(sdma_wire, large_tile) {
  auto dw = poisoned<21>();
  wire::encode_tile_large(dw.data(), wire::tile{0x00007f1122334455, 0x00007eaabbccddee, 2000, 1000, 100, 50, 0});
  EXPECT_EQ(dw, (std::array<u32, 21>{0x00002401, 0xbbccddee, 0x00007eaa, 0,    0, 0, 999, 0,  0, 0x22334455, 0x00007f11,
                                     0,          0,          0,          1999, 0, 0, 99,  49, 0, 0xdeadbeef}));
  wire::encode_tile_large(dw.data(), wire::tile{0, 0, 2000, 1000, 100, 50, 2});
  EXPECT_PAIRS((dw[6], 3999u), (dw[14], 7999u), (dw[17], 399u));
}

// --- Reading ----------------------------------------------------------------------------------------------------

// Source and destination by base, x, y, z, pitch and slice; then width, height, depth and element.
std::vector<std::uint64_t> fields_of(const model::window& w) {
  return {w.src.base, w.src.x, w.src.y,     w.src.z,     w.src.pitch, w.src.slice, w.dst.base, w.dst.x,
          w.dst.y,    w.dst.z, w.dst.pitch, w.dst.slice, w.width,     w.height,    w.depth,    w.element_log2};
}
using fields = std::vector<std::uint64_t>;

TEST(sdma_decode, windows_field_by_field) {
  const u32 dw[13] = {0x60000401, 0x22334450, 0x7f11,       0x3ffe3fff, 0xffffe7ff, 0x0fffffff, 0x55667788,
                      0x7eaa,     0x00050004, 3u << 13 | 7, 11,         0x00210012, 0x000007ff};
  EXPECT_EQ(fields_of(model::decode_window(wire::gen_9_0, dw)),
            (fields{0x7f1122334450, 0x3fff, 0x3ffe, 0x7ff, 0x80000, 0x10000000,  //
                    0x7eaa55667788, 4, 5, 7, 4, 12,                              //
                    0x13, 0x22, 0x800, 3}));
}

TEST(sdma_decode, windows_of_gfx12_are_wider) {
  const u32 dw[13] = {0x60000401, 0x22334450, 0x7f11,       0xfffefffd, 0xffff3fff, 0xffffffff, 0x55667788,
                      0x7eaa,     0x00050004, 3u << 16 | 7, 11,         0xffff8000, 0x00003fff};
  EXPECT_EQ(fields_of(model::decode_window(wire::gen_12, dw)),
            (fields{0x7f1122334450, 0xfffd, 0xfffe, 0x3fff, 0x10000, 0x100000000,  //
                    0x7eaa55667788, 4, 5, 7, 4, 12,                                //
                    0x8001, 0x10000, 0x4000, 3}));
}

TEST(sdma_decode, large_windows) {
  u32 dw[20];
  for (u32 i = 0; i < 20; ++i) dw[i] = 100 + i;
  EXPECT_EQ(fields_of(model::decode_window_large(dw)), (fields{0x6600000065, 103, 104, 105, 107, 0x6c0000006c,  //
                                                               0x6e0000006d, 111, 112, 113, 115, 0x7400000074,  //
                                                               118, 119, 120, 0}));
}

// Fields in the headers named at the top of sdma.hpp, packet by packet: gfx9, gfx10.1, gfx11, gfx12.
TEST(sdma_decode, defined_bits_of_headers) {
  struct row {
    u32 dw0, gfx9, gfx10, gfx11, gfx12;
  };
  const row rows[] = {
      {0x00000000, 0x3fffffff, 0x3fffffff, 0x3fffffff, 0x3fffffff},  // NOP
      {0x00000001, 0x0805ffff, 0x0a05ffff, 0x0a0dffff, 0x0a0dffff},  // COPY_LINEAR
      {0x00000401, 0xe004ffff, 0xe004ffff, 0xe00cffff, 0xe00cffff},  // COPY_LINEAR_SUBWIN
      {0x00000002, 0x0005ffff, 0x0005ffff, 0x1005ffff, 0x0005ffff},  // WRITE_UNTILED
      {0x00000005, 0x0000ffff, 0x03dfffff, 0x17dfffff, 0x03dfffff},  // FENCE
      {0x00000006, 0x0000ffff, 0x0000ffff, 0x0000ffff, 0x0000ffff},  // TRAP
      {0x00000008, 0xf400ffff, 0xf400ffff, 0xf570ffff, 0xf400ffff},  // POLL_REGMEM
      {0x0000000a, 0xfe05ffff, 0xfe05ffff, 0xff75ffff, 0xfe05ffff},  // ATOMIC
      {0x0000000b, 0xc003ffff, 0xc003ffff, 0xd703ffff, 0xc003ffff},  // CONSTANT_FILL
      {0x0000000d, 0x0000ffff, 0x0000ffff, 0x0000ffff, 0x0000ffff},  // TIMESTAMP_SET
      {0x0000020d, 0x0000ffff, 0x0000ffff, 0x1700ffff, 0x0000ffff},  // TIMESTAMP_GET_GLOBAL
      {0x00000111, 0x0000ffff, 0x0000ffff, 0x0000ffff, 0x0000ffff},  // GCR
  };
  for (const row& r : rows) {
    SCOPED_TRACE(r.dw0);
    const auto defined = [&](u32 generation) { return model::defined_header(generation, r.dw0); };
    EXPECT_PAIRS((defined(wire::gen_9_0a), r.gfx9), (defined(wire::gen_10_1), r.gfx10),
                 (defined(wire::gen_11), r.gfx11), (defined(wire::gen_12), r.gfx12));
  }
}

TEST(sdma_decode, defined_bits_behind_headers) {
  struct row {
    u32 dw0, dword, gfx9, gfx10, gfx11, gfx12;
  };
  const row rows[] = {
      {0x00000001, 2, 0x03030000, 0x03030000, 0x1f1f0000, 0x03030000},
      {0x00000401, 3, 0x3fff3fff, 0x3fff3fff, 0x3fff3fff, 0xffffffff},
      {0x00000401, 4, 0xffffe7ff, 0xffffffff, 0xffffffff, 0xffff3fff},
      {0x00000401, 5, 0x0fffffff, 0x0fffffff, 0x0fffffff, 0xffffffff},
      {0x00000401, 8, 0x3fff3fff, 0x3fff3fff, 0x3fff3fff, 0xffffffff},
      {0x00000401, 9, 0xffffe7ff, 0xffffffff, 0xffffffff, 0xffff3fff},
      {0x00000401, 10, 0x0fffffff, 0x0fffffff, 0x0fffffff, 0xffffffff},
      {0x00000401, 11, 0x3fff3fff, 0x3fff3fff, 0x3fff3fff, 0xffffffff},
      {0x00000401, 12, 0x030307ff, 0x03031fff, 0x1f1f1fff, 0x70703fff},
      {0x00002401, 8, 0x0000ffff, 0x0000ffff, 0x0000ffff, 0x0000ffff},
      {0x00002401, 16, 0x0303ffff, 0x0303ffff, 0x1f1fffff, 0x0303ffff},
      {0x00000002, 3, 0x030fffff, 0x030fffff, 0x1f0fffff, 0x030fffff},
      {0x00000006, 1, 0x0fffffff, 0x0fffffff, 0x0fffffff, 0x0fffffff},
      {0x00000008, 5, 0x0fffffff, 0x0fffffff, 0x0fffffff, 0x0fffffff},
      {0x0000000a, 7, 0x00001fff, 0x00001fff, 0x00001fff, 0x00001fff},
      {0x00000111, 1, 0xffffff80, 0xffffff80, 0xffffff80, 0xffffff80},
      {0x00000111, 3, 0xffffff87, 0xffffff87, 0xffffff87, 0xffffff87},
      {0x00000111, 4, 0x0f00ffff, 0x0f00ffff, 0x0f00ffff, 0x0f00ffff},
      {0x00000005, 1, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
  };
  for (const row& r : rows) {
    EXPECT_EQ(model::defined_bits(wire::gen_9_0a, r.dw0, r.dword), r.gfx9) << r.dw0 << " " << r.dword;
    EXPECT_EQ(model::defined_bits(wire::gen_10_1, r.dw0, r.dword), r.gfx10) << r.dw0 << " " << r.dword;
    EXPECT_EQ(model::defined_bits(wire::gen_11, r.dw0, r.dword), r.gfx11) << r.dw0 << " " << r.dword;
    EXPECT_EQ(model::defined_bits(wire::gen_12, r.dw0, r.dword), r.gfx12) << r.dw0 << " " << r.dword;
  }
}

// Every dword that has undefined bits in some generation is among those whose bits the model checks.
TEST(sdma_decode, fielded_dwords_are_all_that_have_reserved_bits) {
  for (const u32 dw0 : {0x00000000u, 0x00000001u, 0x00000401u, 0x00002401u, 0x00000002u, 0x00000005u, 0x00000006u,
                        0x00000008u, 0x0000000au, 0x0000000bu, 0x0000000du, 0x0000020du, 0x00000111u})
    for (u32 i = 1; i < 20; ++i)
      for (const u32 g : {wire::gen_9_0, wire::gen_10_1, wire::gen_11, wire::gen_12})
        EXPECT_TRUE(model::defined_bits(g, dw0, i) == ~0u || (model::fielded_dwords(dw0) >> i & 1) != 0) << dw0 << i;
}

TEST(sdma_decode, packets_of_a_generation) {
  struct row {
    u32 dw0, dwords;
  };
  for (const row& r :
       {row{0x00000000, 1}, {0x00080000, 9}, {0x00000001, 7}, {0x00000401, 13}, {0x00000002, 4}, {0x00000005, 4},
        {0x00000006, 2},    {0x00000008, 6}, {0x0000000a, 8}, {0x0000000b, 5},  {0x0000000d, 3}, {0x0000010d, 3},
        {0x0000020d, 3},    {0x0000030d, 0}, {0x00000101, 0}, {0x00000102, 0},  {0x00000105, 0}, {0x00000108, 0},
        {0x00000004, 0},    {0x00000007, 0}, {0x00000009, 0}, {0x0000000c, 0},  {0x000000ff, 0}, {0x00000011, 0}})
    for (const u32 g : {wire::gen_9_0, wire::gen_10_3, wire::gen_12})
      EXPECT_EQ(model::packet_dwords(g, r.dw0), r.dwords) << g << " " << r.dw0;
  const auto gcr = [](u32 g) { return model::packet_dwords(g, 0x00000111); };
  const auto large_tile = [](u32 g) { return model::packet_dwords(g, 0x00002401); };
  EXPECT_PAIRS((gcr(wire::gen_9_4), 0u), (gcr(wire::gen_10_1), 5u), (large_tile(wire::gen_9_0a), 0u),
               (large_tile(wire::gen_9_4), 20u), (large_tile(wire::gen_11), 20u), (large_tile(wire::gen_12), 0u));
}

TEST(sdma_wire, packets_are_constant_expressions) {
  constexpr auto dw = [] {
    std::array<u32, 4> out{};
    wire::encode_fence(out.data(), wire::gen_9_0a, 0x100000004, 9);
    return out;
  }();
  static_assert(dw[0] == 5 && dw[1] == 4 && dw[2] == 1 && dw[3] == 9);
}

}  // namespace
