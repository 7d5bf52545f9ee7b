// SPDX-License-Identifier: MIT
// What a NIC does, without any family's byte format: decoders make these, executors carry them out.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

namespace xio::proxy {

enum class verb : std::uint8_t { nop, write, read, atomic };

// How an op ended, in the words of the InfiniBand specification (11.6.2 "Completion Return Status").
enum class outcome : std::uint8_t {
  ok,
  local_length,
  local_qp_operation,
  local_protection,
  flushed,
  remote_invalid_request,
  remote_access,
  remote_operation,
  retry_exceeded,
  rnr_retry_exceeded,
  bad_response,
};

// Which rule was broken: the vendor's part of an error. Numbers are this model's own, and stable.
enum class rule : std::uint8_t {
  none = 0,
  doorbell_queue = 1,     // the doorbell names another queue
  doorbell_reserved = 2,  // bits that must be 0
  doorbell_range = 3,     // more entries than the ring has, or fewer than before
  doorbell_record = 4,    // the record lags behind the doorbell
  entry_opcode = 5,
  entry_modifier = 6,
  entry_segments = 7,  // a count that does not fit the opcode
  entry_index = 8,     // not the index of its slot
  entry_queue = 9,     // another queue's number
  entry_reserved = 10,
  entry_flags = 11,
  entry_cut = 12,    // the doorbell was rung in its middle
  data_length = 13,  // 0, above the message limit, or not what an atomic returns
  local_key = 14,
  local_range = 15,
  local_rights = 16,
  remote_key = 17,
  remote_range = 18,
  remote_rights = 19,
  atomic_alignment = 20,
  not_connected = 21,
  injected = 22,
  doorbell_phase = 23,  // epoch or colour of another lap
  entry_phase = 24,
  entry_sequence = 25,  // PSN or message number that does not follow the one before
  link_lost = 26,
  peer_refused = 27,   // the peer's NIC returned an error that names no rule
  device_failed = 28,  // it does nothing any more
};

struct op_error {
  outcome what = outcome::ok;
  rule why = rule::none;
  explicit operator bool() const { return what != outcome::ok; }
};

// Local memory by key.
struct span_ref {
  std::uint64_t address;
  std::uint32_t bytes;
  std::uint32_t key;
};

constexpr std::size_t k_max_spans = 30;
constexpr std::size_t k_max_inline = 972;

// add: every bit of `boundary` ends a field that no carry leaves. Otherwise, if (old ^ compare) & compare_mask is 0,
// the bits in swap_mask become those of `operand`.
struct atomic_change {
  bool is_add;
  std::uint8_t width;  // 4 or 8
  std::uint64_t operand;
  std::uint64_t boundary;
  std::uint64_t compare, swap_mask, compare_mask;
  bool big_endian_result;  // how the old value is put into local memory
};

// The part of an op that is kept while it is under way: all that its completion needs.
struct receipt {
  verb what = verb::nop;
  bool signalled = false;
  std::uint8_t wire_opcode = 0;  // the dialect's, for its completion
  std::uint32_t slots = 0;       // of the ring, from `first` on
  std::uint64_t first = 0;       // ticket
  std::uint64_t bytes = 0;
  std::uint64_t began = 0;  // see trace::begin
};

struct op : receipt {
  std::uint64_t remote = 0;
  std::uint32_t remote_key = 0;
  bool has_immediate = false;  // of a write: the peer's receive queue gets a completion with `immediate`
  std::uint32_t immediate = 0;
  // Either `inlined` bytes of the entry itself, or spans.
  bool is_inline = false;
  std::array<unsigned char, k_max_inline> inlined;
  std::uint32_t span_count = 0;
  std::array<span_ref, k_max_spans> spans;
  atomic_change change{};
};

// All of an op but the room for payload and spans that it does not use: that would be most of the work of a small one.
inline void copy_used(op& to, const op& from) {
  static_cast<receipt&>(to) = from;
  to.remote = from.remote;
  to.remote_key = from.remote_key;
  to.has_immediate = from.has_immediate;
  to.immediate = from.immediate;
  to.is_inline = from.is_inline;
  if (from.is_inline) std::copy_n(from.inlined.data(), from.bytes, to.inlined.data());
  to.span_count = from.span_count;
  std::copy_n(from.spans.data(), from.span_count, to.spans.data());
  to.change = from.change;
}

}  // namespace xio::proxy
