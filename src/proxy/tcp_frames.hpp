// SPDX-License-Identifier: MIT
// What the TCP carrier sends: records, each sealed with a tag, and in them frames, which are to the queue pairs what
// packets are to a NIC. Records never get lost, TCP sees to that; frames may be, on purpose (faults.hpp).
//
//   record   record_head | frames, one behind the other, each from a multiple of 8 on
//   frame    frame_head | payload
//
// Little-endian (xio/wire/endian.hpp says so of every platform). Everything in a frame is hostile until checked, though
// the record was authentic: the peer may be broken.
#pragma once
#include "proxy/op.hpp"
#include "xio/wire/endian.hpp"

namespace xio::proxy::tcp {

constexpr std::uint32_t k_tag_bytes = 16;
struct record_head {
  std::uint32_t bytes;  // behind the head
  std::uint32_t zero;
  unsigned char tag[k_tag_bytes];
};
static_assert(sizeof(record_head) == 24);

// Payload of one frame. Longer messages are cut into several, each with a number of its own.
constexpr std::uint32_t k_segment = 64 << 10;
// A record takes frames until it is this long, so it is at most this and one frame long.
constexpr std::uint32_t k_record_full = 128 << 10;

enum class frame_kind : std::uint8_t {
  write = 1,   // payload for [address, +bytes)
  read,        // bytes: what is wanted of [address, ...)
  atomic,      // payload: an atomic_body
  ack,         // everything below `psn` is done
  again,       // the responder waits for `psn`: send from there on
  not_ready,   // no receive is posted for the immediate of `psn`
  refused,     // `psn` and what follows: outcome and rule
  read_data,   // payload: what read `psn` found
  atomic_data  // payload: the 8 bytes that atomic `psn` found
};

enum frame_flag : std::uint8_t { last_of_op = 1, with_immediate = 2 };

struct frame_head {
  frame_kind kind;
  std::uint8_t flags;
  outcome what;  // of a refusal
  rule why;
  std::uint32_t bytes;     // payload, but for reads
  std::uint32_t to, from;  // queue pairs
  std::uint64_t psn;       // requests are counted from 0 on, one by one; 64 bits never wrap
  std::uint64_t address;   // of requests
  std::uint32_t key;       // of requests
  std::uint32_t immediate;
  std::uint64_t op_bytes;  // of the whole op, for the immediate's receiver
};
static_assert(sizeof(frame_head) == 48);

struct atomic_body {
  std::uint32_t is_add, width;
  std::uint64_t operand, boundary, compare, swap_mask, compare_mask;
};
static_assert(sizeof(atomic_body) == 48);

constexpr std::uint32_t k_frame_max = sizeof(frame_head) + k_segment;
constexpr std::uint32_t k_record_max = sizeof(record_head) + k_record_full + k_frame_max;

// Bytes that follow the head.
constexpr std::uint32_t payload_of(const frame_head& h) { return h.kind == frame_kind::read ? 0 : h.bytes; }
constexpr std::uint32_t padded(std::uint32_t bytes) { return (bytes + 7u) & ~7u; }

constexpr bool is_request(frame_kind k) { return k <= frame_kind::atomic; }

}  // namespace xio::proxy::tcp
