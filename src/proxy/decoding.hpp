// SPDX-License-Identifier: MIT
// What the decoders of all families have in common: how an entry is begun, what breaking a rule means, how an outcome
// is said in a family's own numbers.
#pragma once
#include "proxy/op.hpp"

namespace xio::proxy {

constexpr op_error broken(rule why) { return {outcome::local_qp_operation, why}; }
constexpr op_error wrong_length() { return {outcome::local_length, rule::data_length}; }

// The op of the entry at `first` before anything of it is known.
inline void begin_decoding(op& out, std::uint64_t first) {
  static_cast<receipt&>(out) = receipt{};
  out.first = first;
  out.slots = 1;
  out.has_immediate = false;
  out.is_inline = false;
  out.span_count = 0;
}

// Whether a doorbell word was rung since `last`, which becomes what it holds.
inline bool rung_since(const std::uint64_t* doorbell, std::uint64_t& last) {
  const std::uint64_t word = __atomic_load_n(doorbell, __ATOMIC_ACQUIRE);
  if (word == last) return false;
  last = word;
  return true;
}

// A doorbell that goes `more` entries beyond `rung`, in a queue of `depth` whose entries below `done` have ended. Its
// index counts to twice the depth, so one of another lap comes out as more than the depth.
inline op_error announce(std::uint64_t more, std::uint64_t depth, std::uint64_t done, std::uint64_t& rung) {
  if (more > depth) return broken(rule::doorbell_phase);
  if (rung + more - done > depth) return broken(rule::doorbell_range);
  rung += more;
  return {};
}

constexpr atomic_change fetch_add(std::uint64_t operand, std::uint8_t width = 8) {
  return {true, width, operand, 0, 0, 0, 0, false};
}
constexpr atomic_change compare_swap(std::uint64_t compare, std::uint64_t swap, std::uint8_t width = 8) {
  return {false, width, swap, 0, compare, ~std::uint64_t{0}, ~std::uint64_t{0}, false};
}

// Status: the enumeration of a family's completions, whose names are those of the InfiniBand specification. Not of ok,
// which some families do not number.
template <class Status>
constexpr std::uint32_t status_of(outcome what) {
  switch (what) {
    case outcome::local_length: return Status::local_length;
    case outcome::local_protection: return Status::local_protection;
    case outcome::flushed: return Status::flushed;
    case outcome::remote_invalid_request: return Status::remote_invalid_request;
    case outcome::remote_access: return Status::remote_access;
    case outcome::remote_operation: return Status::remote_operation;
    case outcome::retry_exceeded: return Status::retry_exceeded;
    case outcome::rnr_retry_exceeded: return Status::rnr_retry_exceeded;
    case outcome::bad_response: return Status::bad_response;
    case outcome::ok:
    case outcome::local_qp_operation: break;
  }
  return Status::local_qp_operation;
}

}  // namespace xio::proxy
