// SPDX-License-Identifier: MIT
// Entries of XIO's own neutral format, for a host thread that posts them through any verbs device. There is no
// doorbell, no head and no order among the words of an entry: each says by itself that it is there. An entry is 16
// words of 8 bytes, little endian: 4 bytes of data in the low half, in the high half the generation, which is the lap
// number of the slot plus 1, so that what an earlier lap left is not taken for news. All words are written in every
// lap. Data:
//
//   word   write, read                          atomic
//   0      head: verb 7:0, flags 15:8, 0        the same
//   1      bytes                                local address, low
//   2-3    remote address                       the same
//   4      rkey                                 the same
//   5      lkey, or immediate                   lkey
//   6-7    local address                        first: what to add, or to swap in
//   8      immediate                            second: boundary, or what to compare with (8-9)
//   9      0
//   10-11  0                                    swap mask
//   12-13  0                                    compare mask
//   14     0                                    local address, high
//   15     0                                    0
//
// With flag k_inline the payload lies in words 6 to 15 and word 5 is the immediate; without it word 8 is. An op that
// moves no bytes is inline. A poster of an op on memory makes that memory visible before it writes the first word.
//
// Completion: two words of 64 bits. The first is a count, which never falls: the entries below it have ended, and well.
// Its top bit says that nothing behind will, and then the second word holds the status and the carrier's own code of
// the entry at the count, or of what was found instead of one. It is written before.
#pragma once
#include <cstdint>

#include "xio/wire/endian.hpp"

namespace xio::wire::proxy {

constexpr std::uint32_t k_entry_words = 16;
constexpr std::uint32_t k_entry_bytes = k_entry_words * 8;
constexpr std::uint32_t k_inline_at = 6;
constexpr std::uint32_t k_inline_bytes = (k_entry_words - k_inline_at) * 4;
constexpr std::uint32_t k_completion_bytes = 16;
constexpr std::uint64_t k_has_failed = std::uint64_t{1} << 63;

enum opcode : std::uint32_t {
  op_write = 1,
  op_write_imm = 2,
  op_read = 3,
  op_fetch_add = 4,
  op_compare_swap = 5,
  op_masked_add = 6,
  op_masked_swap = 7,
};

constexpr std::uint32_t k_signaled = 1;
constexpr std::uint32_t k_inline = 2;
constexpr std::uint32_t k_narrow = 4;  // an atomic of 4 bytes

// The words of the InfiniBand specification (11.6.2).
enum status : std::uint32_t {
  ok = 0,
  local_length = 1,
  local_qp_operation = 2,
  local_protection = 3,
  flushed = 4,
  remote_invalid_request = 5,
  remote_access = 6,
  remote_operation = 7,
  retry_exceeded = 8,
  rnr_retry_exceeded = 9,
  bad_response = 10,
};

XIO_WIRE std::uint32_t low(std::uint64_t v) { return static_cast<std::uint32_t>(v); }
XIO_WIRE std::uint32_t high(std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); }
XIO_WIRE std::uint64_t join(std::uint32_t lo, std::uint32_t hi) { return (static_cast<std::uint64_t>(hi) << 32) | lo; }

XIO_WIRE std::uint32_t generation(std::uint64_t ticket, std::uint32_t depth_log2) {
  return static_cast<std::uint32_t>(ticket >> depth_log2) + 1;
}
XIO_WIRE std::uint64_t word(std::uint32_t generation, std::uint32_t data) { return join(data, generation); }
XIO_WIRE std::uint32_t head(std::uint32_t op, std::uint32_t flags) { return op | (flags << 8); }
XIO_WIRE std::uint32_t head_op(std::uint32_t dw) { return dw & 0xff; }
XIO_WIRE std::uint32_t head_flags(std::uint32_t dw) { return (dw >> 8) & 0xff; }
XIO_WIRE std::uint32_t head_reserved(std::uint32_t dw) { return dw >> 16; }

XIO_WIRE std::uint64_t error_word(std::uint32_t why, std::uint32_t vendor) { return join(why, vendor); }

}  // namespace xio::wire::proxy
