// SPDX-License-Identifier: MIT
// Packets of AMD's SDMA engines, generations gfx9 to gfx12: pure functions from fields to dwords and back. A packet is
// a run of little-endian dwords; dw0 holds the op in [7:0] and the sub-op in [15:8]. Layouts: linux
// drivers/gpu/drm/amd/amdgpu/{vega10,navi10}_sdma_pkt_open.h and sdma_v6_0_0_pkt_open.h for gfx9, gfx10 and gfx11; the
// kernel's gfx12 (sdma_v7_0.c) reads the last one too. Where gfx12 differs from it: ROCR core/inc/sdma_registers.h.
#pragma once
#include <cstdint>

#include "xio/wire/endian.hpp"

namespace xio::wire::sdma {

// The generations differ in the width of counts, cache bits, the tile's fields.
enum generation : std::uint32_t {
  gen_none = 0,
  gen_9_0 = 1,   // SDMA 4.0 to 4.2: gfx900 to gfx909
  gen_9_0a = 2,  // SDMA 4.4: gfx90a
  gen_9_4 = 3,   // SDMA 4.4.2 and 4.4.5: gfx940 to gfx942, gfx950
  gen_10_1 = 4,  // SDMA 5.0: gfx1010 to gfx1013
  gen_10_3 = 5,  // SDMA 5.2: gfx1030 to gfx1036
  gen_11 = 6,    // SDMA 6: gfx11
  gen_12 = 7     // SDMA 7.0: gfx1200 and gfx1201; gfx1250 has other packets
};

enum op : std::uint32_t {
  op_nop = 0,
  op_copy = 1,
  op_write = 2,
  op_indirect = 4,
  op_fence = 5,
  op_trap = 6,
  op_semaphore = 7,
  op_poll_regmem = 8,
  op_cond_exe = 9,
  op_atomic = 10,
  op_const_fill = 11,
  op_timestamp = 13,
  op_gcr = 17,  // gfx10 and newer
};

// Sub-ops.
constexpr std::uint32_t k_copy_linear = 0;
constexpr std::uint32_t k_copy_sub_window = 4;
constexpr std::uint32_t k_copy_sub_window_large = 36;
constexpr std::uint32_t k_timestamp_set = 0;
constexpr std::uint32_t k_timestamp_local = 1;
constexpr std::uint32_t k_timestamp_global = 2;
constexpr std::uint32_t k_gcr_user = 1;  // 0 is the kernel's, which names a VMID

// Packet sizes in dwords.
constexpr std::uint32_t k_copy_linear_dwords = 7;
constexpr std::uint32_t k_copy_sub_window_dwords = 13;
constexpr std::uint32_t k_copy_sub_window_large_dwords = 20;
constexpr std::uint32_t k_write_head_dwords = 4;  // the data follows
constexpr std::uint32_t k_fence_dwords = 4;
constexpr std::uint32_t k_trap_dwords = 2;
constexpr std::uint32_t k_poll_dwords = 6;
constexpr std::uint32_t k_atomic_dwords = 8;
constexpr std::uint32_t k_const_fill_dwords = 5;
constexpr std::uint32_t k_timestamp_dwords = 3;
constexpr std::uint32_t k_gcr_dwords = 5;

// Most bytes of one copy. The count field holds bytes - 1; its width differs by engine (copy_max_bytes in linux
// sdma_v4_0.c to sdma_v7_0.c).
constexpr std::uint64_t k_copy_bytes_22 = std::uint64_t{1} << 22;
constexpr std::uint64_t k_copy_bytes_30 = std::uint64_t{1} << 30;
XIO_WIRE std::uint64_t copy_bytes_max(std::uint32_t generation) {
  return generation == gen_none || generation == gen_9_0 || generation == gen_10_1 ? k_copy_bytes_22 : k_copy_bytes_30;
}
// Most bytes of one fill (fill_max_bytes there; SDMA 5.2 as navi10_sdma_pkt_open.h and Mesa ac_cmdbuf_sdma.c say).
constexpr std::uint32_t k_fill_bytes_max = 1u << 22;  // what every generation takes
XIO_WIRE std::uint32_t fill_bytes_max(std::uint32_t generation) {
  return copy_bytes_max(generation) == k_copy_bytes_22 || generation == gen_10_3 ? k_fill_bytes_max : 1u << 30;
}
constexpr std::uint32_t k_nop_extra_max = (1u << 14) - 1;  // dwords that one NOP skips
constexpr std::uint32_t k_write_dwords_max = 1u << 20;
constexpr std::uint32_t k_poll_for_ever = 0xfff;  // retry count

// Codes of the memory controller's atomics: enum TC_OP in linux drivers/gpu/drm/amd/include/vega10_enum.h, the same
// numbers up to soc24_enum.h. These hand the old value back, to nobody here; k_atomic_no_return more is the same
// without that. The codes between are floats, cache controls or nothing.
enum atomic_code : std::uint32_t {
  swap_32 = 0x07,
  compare_swap_32 = 0x08,
  add_32 = 0x0f,
  sub_32 = 0x10,
  smin_32 = 0x11,
  umin_32 = 0x12,
  smax_32 = 0x13,
  umax_32 = 0x14,
  and_32 = 0x15,
  or_32 = 0x16,
  xor_32 = 0x17,
  inc_32 = 0x18,  // old >= operand ? 0 : old + 1
  dec_32 = 0x19,  // old == 0 || old > operand ? operand : old - 1
  swap_64 = 0x27,
  compare_swap_64 = 0x28,
  add_64 = 0x2f,
  sub_64 = 0x30,
  smin_64 = 0x31,
  umin_64 = 0x32,
  smax_64 = 0x33,
  umax_64 = 0x34,
  and_64 = 0x35,
  or_64 = 0x36,
  xor_64 = 0x37,
  inc_64 = 0x38,
  dec_64 = 0x39,
};
constexpr std::uint32_t k_atomic_64 = 0x20;
constexpr std::uint32_t k_atomic_no_return = 0x40;

enum poll_function : std::uint32_t {
  poll_always = 0,
  poll_less = 1,
  poll_less_equal = 2,
  poll_equal = 3,
  poll_not_equal = 4,
  poll_greater_equal = 5,
  poll_greater = 6,
};

// A GCR acts on the GPU's caches: SDMA_GCR_* in navi10_sdma_pkt_open.h. It writes back what they hold, and forgets it.
constexpr std::uint32_t k_gcr_write_back = (1u << 15) | (1u << 6);                          // GL2, GLK
constexpr std::uint32_t k_gcr_invalidate = (1u << 14) | (1u << 9) | (1u << 8) | (1u << 7);  // GL2, GL1, GLV, GLK
constexpr std::uint32_t k_gcr_physical = 1u << 18;  // the range is of physical addresses

XIO_WIRE std::uint32_t low(std::uint64_t v) { return static_cast<std::uint32_t>(v); }
XIO_WIRE std::uint32_t high(std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); }
XIO_WIRE std::uint64_t join(std::uint32_t lo, std::uint32_t hi) { return (static_cast<std::uint64_t>(hi) << 32) | lo; }
XIO_WIRE std::uint32_t header(std::uint32_t op, std::uint32_t sub_op) { return op | (sub_op << 8); }

// --- Encode: writes the packet's dwords at dw -------------------------------------------------------------------

// Skips `dwords` in all, 1 .. k_nop_extra_max + 1; those after the first are not touched here and not looked at by
// the engine.
XIO_WIRE void encode_nop(std::uint32_t* dw, std::uint32_t dwords) { dw[0] = header(op_nop, 0) | ((dwords - 1) << 16); }

// bytes: 1 .. the engine's limit; any alignment.
XIO_WIRE void encode_copy_linear(std::uint32_t* dw, std::uint64_t dst, std::uint64_t src, std::uint32_t bytes) {
  dw[0] = header(op_copy, k_copy_linear);
  dw[1] = bytes - 1;
  dw[2] = 0;  // no byte swaps
  dw[3] = low(src);
  dw[4] = high(src);
  dw[5] = low(dst);
  dw[6] = high(dst);
}

// Writes value when everything before it in the queue is done. address: a multiple of 4. From gfx10 on the store says
// how caches take it: mtype 3, uncached, in [18:16].
XIO_WIRE void encode_fence(std::uint32_t* dw, std::uint32_t generation, std::uint64_t address, std::uint32_t value) {
  dw[0] = header(op_fence, 0) | (generation >= gen_10_1 ? 3u << 16 : 0);
  dw[1] = low(address);
  dw[2] = high(address);
  dw[3] = value;
}

// One atomic, after everything before it in the queue. address: aligned to the width.
XIO_WIRE void encode_atomic(std::uint32_t* dw, std::uint32_t code, std::uint64_t address, std::uint64_t operand,
                            std::uint64_t compare) {
  dw[0] = header(op_atomic, 0) | (code << 25);
  dw[1] = low(address);
  dw[2] = high(address);
  dw[3] = low(operand);
  dw[4] = high(operand);
  dw[5] = low(compare);
  dw[6] = high(compare);
  dw[7] = 0;  // loop interval
}

// A rectangle of elements of 2^element_log2 bytes, 0 .. 4. Pitches, width and height in elements; both addresses are
// multiples of the element.
struct tile {
  std::uint64_t dst, src;
  std::uint32_t dst_pitch, src_pitch;
  std::uint32_t width, height;
  std::uint32_t element_log2;
};
// Most of width and height, and of a pitch.
XIO_WIRE std::uint32_t tile_extent_max(std::uint32_t generation) { return generation == gen_12 ? 1u << 16 : 1u << 14; }
XIO_WIRE std::uint32_t tile_pitch_max(std::uint32_t generation) { return generation == gen_12 ? 1u << 16 : 1u << 19; }

// An engine wants a tile's base and pitch to be multiples of 4 bytes; x, in elements, leads from the base to a corner
// between them, and no row may go on behind its pitch (ROCR core/runtime/amd_blit_sdma.cpp, SubmitCopyRectCommand).
XIO_WIRE std::uint32_t tile_x(std::uint64_t address, std::uint32_t element_log2) {
  return (low(address) & 3u) >> element_log2;
}
XIO_WIRE bool tile_side_fits(std::uint32_t generation, std::uint64_t address, std::uint32_t pitch, const tile& t) {
  return pitch <= tile_pitch_max(generation) && ((pitch << t.element_log2) & 3u) == 0 &&
         tile_x(address, t.element_log2) + t.width <= pitch;
}
// Whether one packet can describe the tile. Other tiles are copied row by row.
XIO_WIRE bool tile_fits(std::uint32_t generation, const tile& t) {
  return t.width != 0 && t.height != 0 && t.width <= tile_extent_max(generation) &&
         t.height <= tile_extent_max(generation) && tile_side_fits(generation, t.dst, t.dst_pitch, t) &&
         tile_side_fits(generation, t.src, t.src_pitch, t);
}

// A tile that fits.
XIO_WIRE void encode_tile(std::uint32_t* dw, std::uint32_t generation, const tile& t) {
  const std::uint32_t pitch_at = generation == gen_12 ? 16 : 13;
  dw[0] = header(op_copy, k_copy_sub_window) | (t.element_log2 << 29);
  dw[1] = low(t.src) & ~3u;
  dw[2] = high(t.src);
  dw[3] = tile_x(t.src, t.element_log2);
  dw[4] = (t.src_pitch - 1) << pitch_at;
  dw[5] = 0;  // one slice
  dw[6] = low(t.dst) & ~3u;
  dw[7] = high(t.dst);
  dw[8] = tile_x(t.dst, t.element_log2);
  dw[9] = (t.dst_pitch - 1) << pitch_at;
  dw[10] = 0;
  dw[11] = (t.width - 1) | ((t.height - 1) << 16);
  dw[12] = 0;
}

// The 20-dword form: bytes and not elements, no limits but 32 bits. sdma_v6_0_0_pkt_open.h has it; on gfx942 it is
// known from use only (ROCm/rocm-xio, src/endpoints/sdma-ep/sdma-ep.h).
XIO_WIRE bool has_large_tiles(std::uint32_t generation) { return generation == gen_9_4 || generation == gen_11; }
XIO_WIRE void encode_tile_large(std::uint32_t* dw, const tile& t) {
  for (std::uint32_t i = 0; i < k_copy_sub_window_large_dwords; ++i) dw[i] = 0;
  dw[0] = header(op_copy, k_copy_sub_window_large);
  dw[1] = low(t.src);
  dw[2] = high(t.src);
  dw[6] = (t.src_pitch << t.element_log2) - 1;
  dw[9] = low(t.dst);
  dw[10] = high(t.dst);
  dw[14] = (t.dst_pitch << t.element_log2) - 1;
  dw[17] = (t.width << t.element_log2) - 1;
  dw[18] = t.height - 1;
}

// Waits until (*address & mask) `function` reference holds. interval: clocks between looks; retries: looks, or
// k_poll_for_ever.
XIO_WIRE void encode_poll_memory(std::uint32_t* dw, std::uint32_t function, std::uint64_t address,
                                 std::uint32_t reference, std::uint32_t mask, std::uint32_t interval,
                                 std::uint32_t retries) {
  dw[0] = header(op_poll_regmem, 0) | (function << 28) | (1u << 31);
  dw[1] = low(address);
  dw[2] = high(address);
  dw[3] = reference;
  dw[4] = mask;
  dw[5] = (interval & 0xffffu) | (retries << 16);
}

// Fills with a dword. address and bytes: multiples of 4. The count is bytes - 4: gfx12 wants that (ROCm/rocm-systems,
// libhsakmt/tests/kfdtest/src/SDMAPacket.cpp), and engines before it look at no bit below a dword (ROCR writes it too).
XIO_WIRE void encode_const_fill(std::uint32_t* dw, std::uint64_t address, std::uint32_t value, std::uint32_t bytes) {
  dw[0] = header(op_const_fill, 0) | (2u << 30);
  dw[1] = low(address);
  dw[2] = high(address);
  dw[3] = value;
  dw[4] = bytes - 4;
}

// Fills with a byte; any address and count.
XIO_WIRE void encode_byte_fill(std::uint32_t* dw, std::uint64_t address, std::uint8_t value, std::uint32_t bytes) {
  dw[0] = header(op_const_fill, 0);
  dw[1] = low(address);
  dw[2] = high(address);
  dw[3] = value;
  dw[4] = bytes - 1;
}

// The head of a write; the data dwords follow it.
XIO_WIRE void encode_write_head(std::uint32_t* dw, std::uint64_t address, std::uint32_t dwords) {
  dw[0] = header(op_write, 0);
  dw[1] = low(address);
  dw[2] = high(address);
  dw[3] = dwords - 1;
}

// The 64-bit count of the clock that all engines share. address: a multiple of 32, as kfdtest wants it.
XIO_WIRE void encode_timestamp(std::uint32_t* dw, std::uint64_t address) {
  dw[0] = header(op_timestamp, k_timestamp_global);
  dw[1] = low(address);
  dw[2] = high(address);
}

XIO_WIRE void encode_trap(std::uint32_t* dw, std::uint32_t context) {
  dw[0] = header(op_trap, 0);
  dw[1] = context & 0x0fffffffu;
}

// Whole caches, no range. gfx10 and newer.
XIO_WIRE void encode_gcr(std::uint32_t* dw, std::uint32_t control) {
  dw[0] = header(op_gcr, k_gcr_user);
  dw[1] = 0;
  dw[2] = control << 16;
  dw[3] = (control >> 16) & 7u;
  dw[4] = 0;
}

// Writes out what the host data path holds back: a poll of no register (SDMA_PKT_HDP_FLUSH in ROCR; gfx9 microcode
// 0x1a5 and newer). ROCR sends it to no gfx10.1.
XIO_WIRE bool has_hdp_flush(std::uint32_t generation) { return generation != gen_none && generation != gen_10_1; }
XIO_WIRE void encode_hdp_flush(std::uint32_t* dw) {
  dw[0] = header(op_poll_regmem, 0);
  dw[1] = 0;
  dw[2] = 0x80000000u;
  dw[3] = 0;
  dw[4] = 0;
  dw[5] = 0;
}

// --- Decode -----------------------------------------------------------------------------------------------------

XIO_WIRE std::uint32_t op_of(std::uint32_t dw0) { return dw0 & 0xffu; }
XIO_WIRE std::uint32_t sub_op_of(std::uint32_t dw0) { return (dw0 >> 8) & 0xffu; }
XIO_WIRE std::uint32_t nop_extra(std::uint32_t dw0) { return (dw0 >> 16) & 0x3fffu; }
XIO_WIRE std::uint32_t atomic_code_of(std::uint32_t dw0) { return dw0 >> 25; }
XIO_WIRE std::uint32_t poll_function_of(std::uint32_t dw0) { return (dw0 >> 28) & 7u; }
XIO_WIRE bool polls_memory(std::uint32_t dw0) { return (dw0 >> 31) != 0; }
XIO_WIRE std::uint32_t poll_interval(std::uint32_t dw5) { return dw5 & 0xffffu; }
XIO_WIRE std::uint32_t poll_retries(std::uint32_t dw5) { return (dw5 >> 16) & 0xfffu; }
XIO_WIRE std::uint32_t gcr_control(const std::uint32_t* dw) { return (dw[2] >> 16) | ((dw[3] & 7u) << 16); }

// 0 byte, 1 halfword, 2 dword; 3 is nothing.
XIO_WIRE std::uint32_t fill_size(std::uint32_t dw0) { return dw0 >> 30; }
// Bytes that a fill with this unit means: what lies below a unit does not count.
XIO_WIRE std::uint64_t fill_bytes(std::uint32_t dw4, std::uint32_t size_log2) {
  const std::uint32_t unit = 1u << size_log2;
  return std::uint64_t{dw4 & ~(unit - 1)} + unit;
}

}  // namespace xio::wire::sdma
