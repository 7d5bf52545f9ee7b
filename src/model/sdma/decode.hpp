// SPDX-License-Identifier: MIT
// Reading SDMA packets: what a generation has, which bits it defines, and what a sub-window says. Layouts and their
// sources: xio/wire/sdma.hpp.
#pragma once
#include "xio/wire/sdma.hpp"

namespace xio::model::sdma {

namespace wire = xio::wire::sdma;

// A sub-window packet. Everything in elements of 2^element_log2 bytes, but the base; pitch and slice as they are.
struct window_side {
  std::uint64_t base, x, y, z, pitch, slice;
};
struct window {
  window_side src, dst;
  std::uint64_t width, height, depth;
  std::uint32_t element_log2;
};

constexpr window_side decode_side(std::uint32_t generation, const std::uint32_t* dw) {
  const bool wide = generation == wire::gen_12;
  const std::uint32_t xy = wide ? 0xffffu : 0x3fffu;
  const std::uint32_t z = wide ? 0x3fffu : generation >= wire::gen_10_1 ? 0x1fffu : 0x7ffu;
  const std::uint64_t slice = wide ? dw[4] : dw[4] & 0x0fffffffu;
  return {wire::join(dw[0], dw[1]),
          dw[2] & xy,
          (dw[2] >> 16) & xy,
          dw[3] & z,
          (wide ? std::uint64_t{dw[3] >> 16} : std::uint64_t{dw[3] >> 13}) + 1,
          slice + 1};
}
constexpr window decode_window(std::uint32_t generation, const std::uint32_t* dw) {
  const std::uint32_t xy = generation == wire::gen_12 ? 0xffffu : 0x3fffu;
  const std::uint32_t z = generation == wire::gen_12 ? 0x3fffu : generation >= wire::gen_10_1 ? 0x1fffu : 0x7ffu;
  return {decode_side(generation, dw + 1),        decode_side(generation, dw + 6), std::uint64_t{dw[11] & xy} + 1,
          std::uint64_t{(dw[11] >> 16) & xy} + 1, std::uint64_t{dw[12] & z} + 1,   dw[0] >> 29};
}
constexpr window_side decode_large_side(const std::uint32_t* dw) {
  return {
      wire::join(dw[0], dw[1]), dw[2], dw[3], dw[4], std::uint64_t{dw[5]} + 1, wire::join(dw[6], dw[7] & 0xffffu) + 1};
}
constexpr window decode_window_large(const std::uint32_t* dw) {
  return {decode_large_side(dw + 1), decode_large_side(dw + 9), std::uint64_t{dw[17]} + 1,
          std::uint64_t{dw[18]} + 1, std::uint64_t{dw[19]} + 1, 0};
}

// Dwords of a packet, of WRITE its head alone; 0 if the generation has no such packet or none that XIO knows.
constexpr std::uint32_t packet_dwords(std::uint32_t generation, std::uint32_t dw0) {
  const std::uint32_t sub_op = wire::sub_op_of(dw0);
  switch (wire::op_of(dw0)) {
    case wire::op_nop: return sub_op == 0 ? 1 + wire::nop_extra(dw0) : 0;
    case wire::op_copy:
      if (sub_op == wire::k_copy_linear) return wire::k_copy_linear_dwords;
      if (sub_op == wire::k_copy_sub_window) return wire::k_copy_sub_window_dwords;
      return sub_op == wire::k_copy_sub_window_large && wire::has_large_tiles(generation)
                 ? wire::k_copy_sub_window_large_dwords
                 : 0;
    case wire::op_write: return sub_op == 0 ? wire::k_write_head_dwords : 0;
    case wire::op_fence: return sub_op == 0 ? wire::k_fence_dwords : 0;
    case wire::op_trap: return sub_op == 0 ? wire::k_trap_dwords : 0;
    case wire::op_poll_regmem: return sub_op == 0 ? wire::k_poll_dwords : 0;
    case wire::op_atomic: return sub_op == 0 ? wire::k_atomic_dwords : 0;
    case wire::op_const_fill: return sub_op == 0 ? wire::k_const_fill_dwords : 0;
    case wire::op_timestamp: return sub_op <= wire::k_timestamp_global ? wire::k_timestamp_dwords : 0;
    case wire::op_gcr: return sub_op == wire::k_gcr_user && generation >= wire::gen_10_1 ? wire::k_gcr_dwords : 0;
    default: return 0;
  }
}

// SDMA 5.2 and 6 let a packet choose how caches take it, where a bit CPV says that it does (sdma_v6_0_0_pkt_open.h;
// that 5.2 has it too: Mesa src/amd/common/ac_cmdbuf_sdma.c). The meaning of these bits on SDMA 7 is not public.
constexpr bool has_policies(std::uint32_t generation) {
  return generation == wire::gen_10_3 || generation == wire::gen_11;
}

// The bits that the generation defines in dw0. Any other must be 0.
constexpr std::uint32_t defined_header(std::uint32_t generation, std::uint32_t dw0) {
  const bool policies = has_policies(generation);
  constexpr std::uint32_t ops = 0xffffu;
  switch (wire::op_of(dw0)) {
    case wire::op_nop: return ops | 0x3fff0000u;  // count [29:16]
    case wire::op_copy: {
      // TMZ 18; encrypt 16, backwards 25, broadcast 27; element [31:29]; CPV 19
      const std::uint32_t cpv = policies || generation == wire::gen_12 ? 1u << 19 : 0;
      if (wire::sub_op_of(dw0) == wire::k_copy_sub_window) return ops | 0xe0040000u | cpv;
      if (wire::sub_op_of(dw0) == wire::k_copy_sub_window_large) return ops | 0x00040000u | cpv;
      return ops | 0x08050000u | cpv | (generation >= wire::gen_10_1 ? 1u << 25 : 0);
    }
    case wire::op_write: return ops | 0x00050000u | (policies ? 1u << 28 : 0);  // encrypt 16, TMZ 18; CPV 28
    case wire::op_fence:
      // mtype [18:16], GCC 19, SYS 20, SNP 22, GPA 23, L2 [25:24]; LLC 26, CPV 28
      return ops | (generation >= wire::gen_10_1 ? 0x03df0000u : 0) | (policies ? 0x14000000u : 0);
    case wire::op_poll_regmem: return ops | 0xf4000000u | (policies ? 0x01700000u : 0);  // HDP 26, function, memory
    case wire::op_atomic: return ops | 0xfe050000u | (policies ? 0x01700000u : 0);       // loop 16, TMZ 18, operation
    case wire::op_const_fill: return ops | 0xc0030000u | (policies ? 0x17000000u : 0);   // swap [17:16], size [31:30]
    case wire::op_timestamp: return ops | (policies && wire::sub_op_of(dw0) != wire::k_timestamp_set ? 0x17000000u : 0);
    default: return ops;
  }
}

// The dwords behind it that are no plain numbers, a bit for each.
constexpr std::uint32_t fielded_dwords(std::uint32_t dw0) {
  const std::uint32_t sub_op = wire::sub_op_of(dw0);
  switch (wire::op_of(dw0)) {
    case wire::op_copy:
      return sub_op == wire::k_copy_linear ? 0x4 : sub_op == wire::k_copy_sub_window ? 0x1f38 : 0x10100;
    case wire::op_write: return 1u << 3;
    case wire::op_trap: return 1u << 1;
    case wire::op_poll_regmem: return 1u << 5;
    case wire::op_atomic: return 1u << 7;
    case wire::op_gcr: return 0x1a;
    default: return 0;
  }
}
// The bits that the generation defines in them.
constexpr std::uint32_t defined_in_tile(std::uint32_t generation, std::uint32_t dword, std::uint32_t swaps) {
  const bool wide = generation == wire::gen_12;
  switch (dword) {
    case 3:
    case 8:
    case 11: return wide ? ~0u : 0x3fff3fffu;  // x and y; width and height
    case 4:
    case 9: return wide ? 0xffff3fffu : generation >= wire::gen_10_1 ? ~0u : 0xffffe7ffu;  // z and pitch
    case 5:
    case 10: return wide ? ~0u : 0x0fffffffu;  // slice
    case 12: return wide ? 0x70703fffu : swaps | (generation >= wire::gen_10_1 ? 0x1fffu : 0x7ffu);
    default: return ~0u;
  }
}
constexpr std::uint32_t defined_bits(std::uint32_t generation, std::uint32_t dw0, std::uint32_t dword) {
  // Byte swaps in [17:16] and [25:24]; behind them cache policies.
  const std::uint32_t swaps = has_policies(generation) ? 0x1f1f0000u : 0x03030000u;
  const std::uint32_t sub_op = wire::sub_op_of(dw0);
  switch (wire::op_of(dw0)) {
    case wire::op_copy:
      if (sub_op == wire::k_copy_sub_window) return defined_in_tile(generation, dword, swaps);
      if (sub_op == wire::k_copy_linear) return dword == 2 ? swaps : ~0u;
      return dword == 8 ? 0xffffu : dword == 16 ? 0xffffu | swaps : ~0u;
    case wire::op_write: return dword != 3 ? ~0u : 0x030fffffu | (has_policies(generation) ? 0x1c000000u : 0);
    case wire::op_trap: return dword == 1 ? 0x0fffffffu : ~0u;
    case wire::op_poll_regmem: return dword == 5 ? 0x0fffffffu : ~0u;
    case wire::op_atomic: return dword == 7 ? 0x1fffu : ~0u;
    case wire::op_gcr: return dword == 1 ? 0xffffff80u : dword == 3 ? 0xffffff87u : dword == 4 ? 0x0f00ffffu : ~0u;
    default: return ~0u;
  }
}

}  // namespace xio::model::sdma
