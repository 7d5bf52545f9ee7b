// SPDX-License-Identifier: MIT
// SDMA packets, dword by dword. Expected values are written by hand from the gfx9 layouts: linux
// drivers/gpu/drm/amd/amdgpu/vega10_sdma_pkt_open.h, and ROCR core/inc/sdma_registers.h which agrees.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "xio/wire/sdma.hpp"

namespace {

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

TEST(sdma_wire, fence) {
  auto dw = poisoned<5>();
  wire::encode_fence(dw.data(), wire::gen_9_0a, 0x0000123456789abc, 0x87654321);
  EXPECT_EQ(dw, (std::array<u32, 5>{0x00000005, 0x56789abc, 0x00001234, 0x87654321, 0xdeadbeef}));
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

TEST(sdma_wire, const_fill_of_dwords) {
  auto dw = poisoned<6>();
  wire::encode_const_fill(dw.data(), 0x0000123456789abc, 0xa5a5a5a5, 4096);
  EXPECT_EQ(dw, (std::array<u32, 6>{0x8000000b, 0x56789abc, 0x00001234, 0xa5a5a5a5, 4095, 0xdeadbeef}));
}

TEST(sdma_wire, write_timestamp_and_trap) {
  auto dw = poisoned<5>();
  wire::encode_write_head(dw.data(), 0x0000123456789abc, 3);
  EXPECT_EQ(dw, (std::array<u32, 5>{0x00000002, 0x56789abc, 0x00001234, 2, 0xdeadbeef}));
  wire::encode_timestamp(dw.data(), 0x0000123456789aa0);
  EXPECT_EQ(dw[0], 0x0000020du);
  EXPECT_EQ(dw[1], 0x56789aa0u);
  EXPECT_EQ(dw[2], 0x00001234u);
  wire::encode_trap(dw.data(), 7);
  EXPECT_EQ(dw[0], 6u);
  EXPECT_EQ(dw[1], 7u);
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
