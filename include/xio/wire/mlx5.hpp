// SPDX-License-Identifier: MIT
// Work queue entries, completions and doorbells of ConnectX NICs (mlx5): pure functions from fields to dwords and back.
// All fields are big endian. A WQE is a chain of 16-byte segments ("ds") that starts on a 64-byte basic block (WQEBB);
// queue indices count basic blocks and are 16 bit in the WQE for rings of any size.
// Layouts: rdma-core providers/mlx5/mlx5dv.h (segments, opcodes, struct mlx5_cqe64), providers/mlx5/wqe.h (masked
// atomics), NVSHMEM src/modules/transport/common/mlx5_prm.h (error CQE).
#pragma once
#include <cstdint>

#include "xio/wire/endian.hpp"

namespace xio::wire::mlx5 {

constexpr std::uint32_t k_block_bytes = 64;
constexpr std::uint32_t k_segment_dwords = 4;
constexpr std::uint32_t k_segments_per_block = 4;
constexpr std::uint32_t k_max_segments = 63;  // six bits

enum opcode : std::uint32_t {
  op_nop = 0x00,
  op_rdma_write = 0x08,
  op_rdma_write_imm = 0x09,
  op_send = 0x0a,
  op_send_imm = 0x0b,
  op_rdma_read = 0x10,
  op_atomic_cs = 0x11,
  op_atomic_fa = 0x12,
  op_masked_cs = 0x14,
  op_masked_fa = 0x15,
};

// Of masked atomics: log2 of the operand's bytes above a fixed bit.
constexpr std::uint32_t k_opmod_masked_4 = 0x08;
constexpr std::uint32_t k_opmod_masked_8 = 0x09;

// fm_ce_se, byte 11 of the control segment.
constexpr std::uint32_t k_ask_completion = 0x08;
constexpr std::uint32_t k_solicited = 0x02;
constexpr std::uint32_t k_small_fence = 0x20;
constexpr std::uint32_t k_plain_fence = 0x40;
constexpr std::uint32_t k_strong_order = 0x60;
constexpr std::uint32_t k_fence = 0x80;  // both; what rdma-core sets for IBV_SEND_FENCE

constexpr std::uint32_t k_inline_flag = 0x80000000u;
constexpr std::uint32_t k_max_data_bytes = 0x7fffffffu;
// The payload that a WRITE of one basic block can carry: 64 - control 16 - remote address 16 - inline header 4.
constexpr std::uint32_t k_inline_in_block = 28;
// The most payload that a wave's merged put carries in one entry: 64 lanes of 8 bytes, nine basic blocks. Devices take
// up to 16 (mlx5dv, max_wqe of 1024 bytes).
constexpr std::uint32_t k_gather_bytes = 512;

XIO_WIRE std::uint32_t high(std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); }
XIO_WIRE std::uint32_t low(std::uint64_t v) { return static_cast<std::uint32_t>(v); }
XIO_WIRE std::uint64_t join(std::uint32_t hi, std::uint32_t lo) { return (static_cast<std::uint64_t>(hi) << 32) | lo; }

// Of a WQE: the control segment counts segments by 6 bits.
constexpr std::uint32_t k_most_blocks = 16;
XIO_WIRE std::uint32_t blocks(std::uint32_t segments) {
  return (segments + k_segments_per_block - 1) / k_segments_per_block;
}
// Segments of a WRITE with n inline bytes.
XIO_WIRE std::uint32_t inline_segments(std::uint32_t bytes) { return 2 + (4 + bytes + 15) / 16; }

// --- Encode: writes a segment's four dwords at dw ----------------------------------------------------

XIO_WIRE void put_control(std::uint32_t* dw, std::uint32_t op, std::uint32_t opmod, std::uint32_t index,
                          std::uint32_t qpn, std::uint32_t segments, std::uint32_t flags, std::uint32_t immediate = 0) {
  dw[0] = be32((opmod << 24) | ((index & 0xffffu) << 8) | op);
  dw[1] = be32((qpn << 8) | segments);
  dw[2] = be32(flags & 0xffu);  // signature 0, stream 0
  dw[3] = be32(immediate);
}
// The part of dword 0 that depends on the slot alone; may be or-ed in later.
XIO_WIRE std::uint32_t control_index(std::uint64_t ticket) {
  return be32((static_cast<std::uint32_t>(ticket) & 0xffffu) << 8);
}
XIO_WIRE std::uint32_t control_flags(std::uint32_t flags) { return be32(flags & 0xffu); }

XIO_WIRE void put_remote(std::uint32_t* dw, std::uint64_t address, std::uint32_t rkey) {
  dw[0] = be32(high(address));
  dw[1] = be32(low(address));
  dw[2] = be32(rkey);
  dw[3] = 0;
}

XIO_WIRE void put_data(std::uint32_t* dw, std::uint32_t bytes, std::uint32_t lkey, std::uint64_t address) {
  dw[0] = be32(bytes);
  dw[1] = be32(lkey);
  dw[2] = be32(high(address));
  dw[3] = be32(low(address));
}

// The bytes follow in the next dword.
XIO_WIRE std::uint32_t inline_header(std::uint32_t bytes) { return be32(k_inline_flag | bytes); }

XIO_WIRE void put_pair_64(std::uint32_t* dw, std::uint64_t first, std::uint64_t second) {
  dw[0] = be32(high(first));
  dw[1] = be32(low(first));
  dw[2] = be32(high(second));
  dw[3] = be32(low(second));
}
XIO_WIRE void put_atomic_fa(std::uint32_t* dw, std::uint64_t add) { put_pair_64(dw, add, 0); }
XIO_WIRE void put_atomic_cs(std::uint32_t* dw, std::uint64_t swap, std::uint64_t compare) {
  put_pair_64(dw, swap, compare);
}
// A bit set in `boundary` ends a field: no carry leaves it.
XIO_WIRE void put_masked_fa_8(std::uint32_t* dw, std::uint64_t add, std::uint64_t boundary) {
  put_pair_64(dw, add, boundary);
}
XIO_WIRE void put_masked_fa_4(std::uint32_t* dw, std::uint32_t add, std::uint32_t boundary) {
  dw[0] = be32(add);
  dw[1] = be32(boundary);
  dw[2] = 0;
  dw[3] = 0;
}
// new = (old & ~swap_mask) | (swap & swap_mask) if (old & compare_mask) == (compare & compare_mask).
XIO_WIRE void put_masked_cs_4(std::uint32_t* dw, std::uint32_t swap, std::uint32_t compare, std::uint32_t swap_mask,
                              std::uint32_t compare_mask) {
  dw[0] = be32(swap);
  dw[1] = be32(compare);
  dw[2] = be32(swap_mask);
  dw[3] = be32(compare_mask);
}
// Two segments: eight dwords.
XIO_WIRE void put_masked_cs_8(std::uint32_t* dw, std::uint64_t swap, std::uint64_t compare, std::uint64_t swap_mask,
                              std::uint64_t compare_mask) {
  put_pair_64(dw, swap, compare);
  put_pair_64(dw + 4, swap_mask, compare_mask);
}

// --- Decode ------------------------------------------------------------------------------------------

struct control {
  std::uint32_t op, opmod, index, qpn, segments, flags, immediate;
  std::uint32_t reserved;  // every bit that must be 0
};
XIO_WIRE control get_control(const std::uint32_t* dw) {
  const std::uint32_t a = be32(dw[0]), b = be32(dw[1]), c = be32(dw[2]);
  return control{a & 0xff, a >> 24,  (a >> 8) & 0xffff, b >> 8,
                 b & 0x3f, c & 0xff, be32(dw[3]),       (b & 0xc0) | (c & 0xffffff00u)};
}

struct remote {
  std::uint64_t address;
  std::uint32_t rkey, reserved;
};
XIO_WIRE remote get_remote(const std::uint32_t* dw) {
  return remote{join(be32(dw[0]), be32(dw[1])), be32(dw[2]), be32(dw[3])};
}

struct data {
  std::uint32_t bytes;  // with k_inline_flag: an inline segment, and the rest means nothing
  std::uint32_t lkey;
  std::uint64_t address;
};
XIO_WIRE data get_data(const std::uint32_t* dw) {
  return data{be32(dw[0]), be32(dw[1]), join(be32(dw[2]), be32(dw[3]))};
}

struct pair_64 {
  std::uint64_t first, second;
};
XIO_WIRE pair_64 get_pair_64(const std::uint32_t* dw) {
  return pair_64{join(be32(dw[0]), be32(dw[1])), join(be32(dw[2]), be32(dw[3]))};
}

// --- Doorbells ---------------------------------------------------------------------------------------

// The send word of the doorbell record: how many basic blocks were ever posted.
XIO_WIRE std::uint32_t record_value(std::uint64_t producer) {
  return be32(static_cast<std::uint32_t>(producer) & 0xffffu);
}
XIO_WIRE std::uint32_t record_producer(std::uint32_t value) { return be32(value); }

// The 8 bytes stored to the UAR at k_uar_doorbell. The device takes the number of the queue and looks at the record;
// the producer index stands where the last WQE's own index would (NVSHMEM, ibgda_device.cuh).
constexpr std::uint32_t k_uar_doorbell = 0x800;
XIO_WIRE std::uint64_t doorbell_value(std::uint64_t producer, std::uint32_t qpn) {
  const std::uint32_t first = be32((static_cast<std::uint32_t>(producer) & 0xffffu) << 8);
  return join(be32(qpn << 8), first);
}
struct doorbell {
  std::uint32_t producer, qpn;
  std::uint32_t reserved;
};
XIO_WIRE doorbell get_doorbell(std::uint64_t value) {
  const std::uint32_t a = be32(low(value)), b = be32(high(value));
  return doorbell{(a >> 8) & 0xffff, b >> 8, (a & 0xff0000ffu) | (b & 0xff)};
}

// --- Completions: struct mlx5_cqe64 ------------------------------------------------------------------

constexpr std::uint32_t k_cqe_dwords = 16;
constexpr std::uint32_t k_cqe_bytes_at = 11;     // dword of byte_cnt, offset 44
constexpr std::uint32_t k_cqe_syndrome_at = 13;  // dword of the syndromes, offset 52
constexpr std::uint32_t k_cqe_qpn_at = 14;       // dword of send opcode and qpn, offset 56
constexpr std::uint32_t k_cqe_state_at = 15;     // dword of counter, signature, op_own: offset 60

enum cqe_opcode : std::uint32_t {
  cqe_request = 0,
  cqe_request_error = 13,
  cqe_response_error = 14,
  cqe_invalid = 15,
};

enum syndrome : std::uint32_t {
  local_length = 0x01,
  local_qp_operation = 0x02,
  local_protection = 0x04,
  flushed = 0x05,
  bad_response = 0x10,
  local_access = 0x11,
  remote_invalid_request = 0x12,
  remote_access = 0x13,
  remote_operation = 0x14,
  retry_exceeded = 0x15,
  rnr_retry_exceeded = 0x16,
};

// The last dword, as memory holds it: bytes 60..63 = be16 counter, signature, op_own.
XIO_WIRE std::uint32_t cqe_state(std::uint32_t counter, std::uint32_t op, std::uint32_t owner = 0) {
  return be16(static_cast<std::uint16_t>(counter)) | (((op << 4) | (owner & 1)) << 24);
}
XIO_WIRE std::uint32_t cqe_state_opcode(std::uint32_t dw) { return dw >> 28; }
XIO_WIRE std::uint32_t cqe_state_owner(std::uint32_t dw) { return (dw >> 24) & 1; }
// Of the entry at `position` of a completion queue: whether it is of this lap (rdma-core, providers/mlx5/cq.c).
XIO_WIRE std::uint32_t cqe_owner_of(std::uint64_t position, std::uint32_t depth_log2) {
  return static_cast<std::uint32_t>(position >> depth_log2) & 1;
}
XIO_WIRE std::uint32_t cqe_state_counter(std::uint32_t dw) { return be16(static_cast<std::uint16_t>(dw)); }

// Offset 52: hardware's own two bytes (0), vendor syndrome, syndrome.
XIO_WIRE std::uint32_t cqe_syndromes(std::uint32_t code, std::uint32_t vendor) {
  return ((vendor & 0xff) << 16) | ((code & 0xff) << 24);
}
XIO_WIRE std::uint32_t cqe_syndrome(std::uint32_t dw) { return dw >> 24; }
XIO_WIRE std::uint32_t cqe_vendor_syndrome(std::uint32_t dw) { return (dw >> 16) & 0xff; }

// Offset 56.
XIO_WIRE std::uint32_t cqe_send_opcode_qpn(std::uint32_t op, std::uint32_t qpn) {
  return be32((op << 24) | (qpn & 0xffffffu));
}

}  // namespace xio::wire::mlx5
