// SPDX-License-Identifier: MIT
#include "model/nic/ionic_queue.hpp"

#include <chrono>

namespace xio::model::rdma {

namespace w = wire::ionic;

namespace {

// A refusal by the peer or on the way to it is reported by message number; one by the NIC itself by entry.
bool is_remote(outcome what) {
  switch (what) {
    case outcome::remote_invalid_request:
    case outcome::remote_access:
    case outcome::remote_operation:
    case outcome::retry_exceeded:
    case outcome::rnr_retry_exceeded:
    case outcome::bad_response: return true;
    default: return false;
  }
}

constexpr std::uint32_t k_flags = w::flag_fence | w::flag_solicited | w::flag_inline | w::flag_signaled | w::flag_color;

}  // namespace

ionic_queue::ionic_queue(const ionic_memory& memory, std::uint32_t number, std::uint64_t max_message)
    : dialect_queue(memory, number, max_message),
      word_(__atomic_load_n(memory.doorbell, __ATOMIC_RELAXED)),
      cq_word_(memory.collapsed ? 0 : __atomic_load_n(memory.cq_doorbell, __ATOMIC_RELAXED)) {}

// --- Doorbells ---------------------------------------------------------------------------------------

op_error ionic_queue::poll_doorbells() {
  if (const op_error f = poll_sq_doorbell()) return f;
  return memory_.collapsed ? op_error{} : poll_cq_doorbell();
}

op_error ionic_queue::poll_sq_doorbell() {
  if (!rung_since(memory_.doorbell, word_)) return {};
  const w::doorbell bell = w::get_doorbell(word_);
  const std::uint64_t mask = (std::uint64_t{1} << memory_.depth_log2) - 1;
  if (bell.reserved != 0) return broken(rule::doorbell_reserved);
  if (bell.qid != number_) return broken(rule::doorbell_queue);
  if (bell.index > mask) return broken(rule::doorbell_range);
  const std::uint64_t more = (bell.index - producer_index_) & mask;
  // One entry stays free, or a full ring would look empty.
  if (producer_index_ + more - done_ > mask) return broken(rule::doorbell_range);
  producer_index_ += more;
  return {};
}

op_error ionic_queue::poll_cq_doorbell() {
  if (!rung_since(memory_.cq_doorbell, cq_word_)) return {};
  const w::doorbell bell = w::get_doorbell(cq_word_);
  const std::uint64_t mask = (std::uint64_t{1} << memory_.cq_depth_log2) - 1;
  if (bell.reserved != 0) return broken(rule::doorbell_reserved);
  if (bell.qid != memory_.cq_number) return broken(rule::doorbell_queue);
  if (bell.index > mask) return broken(rule::doorbell_range);
  return take_back((bell.index - cq_consumer_index_) & mask);
}

// --- Entries -----------------------------------------------------------------------------------------

op_error ionic_queue::fetch(op& out) {
  begin_decoding(out, next_);
  const std::uint64_t index = next_ & ((std::uint64_t{1} << memory_.depth_log2) - 1);
  memory_.entries.read(entry_, memory_.slots + index * w::k_wqe_dwords, w::k_wqe_bytes);
  ++next_;
  const base b = w::get_base(entry_);
  out.wire_opcode = static_cast<std::uint8_t>(b.op);
  out.signalled = (b.flags & w::flag_signaled) != 0;
  w::verb what{};
  if (const op_error f = check_base(b, out.first, &what)) return f;
  out.remote = w::get_64(entry_ + 4);
  out.remote_key = wire::be32(entry_[6]);
  switch (what) {
    case w::verb::read: out.what = verb::read; return decode_copy(b, out);
    case w::verb::write_imm: out.has_immediate = true; [[fallthrough]];
    case w::verb::write: out.what = verb::write; return decode_copy(b, out);
    case w::verb::compare_swap:
    case w::verb::fetch_add: break;
  }
  out.what = verb::atomic;
  return decode_atomic(b, out);
}

op_error ionic_queue::check_base(const base& b, std::uint64_t position, w::verb* what) const {
  // An entry of the lap before has the other colour; nothing else of it is looked at.
  if (((b.flags & w::flag_color) != 0) != w::color_of(position, memory_.depth_log2)) return broken(rule::entry_phase);
  if (b.index != (position & ((std::uint64_t{1} << memory_.depth_log2) - 1))) return broken(rule::entry_index);
  if ((b.flags & ~k_flags) != 0) return broken(rule::entry_flags);
  for (const w::verb v : {w::verb::read, w::verb::write, w::verb::write_imm, w::verb::compare_swap, w::verb::fetch_add})
    if (b.op == w::opcode(memory_.face, v)) {
      *what = v;
      const bool carries = v == w::verb::write || v == w::verb::write_imm;
      if (!carries && (b.flags & (w::flag_inline | w::flag_solicited)) != 0) return broken(rule::entry_flags);
      if (v == w::verb::write && (b.flags & w::flag_solicited) != 0) return broken(rule::entry_flags);
      if (v != w::verb::write_imm && b.immediate != 0) return broken(rule::entry_reserved);
      return {};
    }
  return broken(rule::entry_opcode);
}

op_error ionic_queue::decode_copy(const base& b, op& out) const {
  out.bytes = wire::be32(entry_[7]);
  out.immediate = b.immediate;
  if ((b.flags & w::flag_inline) != 0) {
    if (b.sges != 0) return broken(rule::entry_segments);
    if (out.bytes > w::k_inline_bytes) return wrong_length();
    out.is_inline = true;
    std::memcpy(out.inlined.data(), entry_ + w::k_payload_at / 4, out.bytes);
    return {};
  }
  if (b.sges < 1 || b.sges > 2) return broken(rule::entry_segments);
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < b.sges; ++i) {
    const std::uint32_t* sge = entry_ + 8 + 4 * i;
    const std::uint32_t bytes = wire::be32(sge[2]);
    if (bytes == 0) return wrong_length();
    out.spans[i] = span_ref{w::get_64(sge), bytes, wire::be32(sge[3])};
    sum += bytes;
  }
  out.span_count = b.sges;
  return sum == out.bytes && sum <= max_message_ ? op_error{} : wrong_length();
}

op_error ionic_queue::decode_atomic(const base& b, op& out) const {
  if (b.sges != 1) return broken(rule::entry_segments);
  const std::uint64_t first = w::get_64(entry_ + 7), compare = w::get_64(entry_ + 9);
  const bool add = b.op == w::opcode(memory_.face, w::verb::fetch_add);
  if (add && compare != 0) return broken(rule::entry_reserved);
  out.change = add ? fetch_add(first) : compare_swap(compare, first);
  out.bytes = 8;
  if (memory_.face == w::interface::v1) {
    if (entry_[11] != 0) return broken(rule::entry_reserved);
    if (wire::be32(entry_[14]) != 8) return wrong_length();
    out.spans[0] = span_ref{w::get_64(entry_ + 12), 8, wire::be32(entry_[15])};
  } else {
    if (entry_[14] != 0 || entry_[15] != 0) return broken(rule::entry_reserved);
    out.spans[0] = span_ref{w::get_64(entry_ + 12), 8, wire::be32(entry_[11])};
  }
  out.span_count = 1;
  return {};
}

// --- Completions -------------------------------------------------------------------------------------

// The last dword goes last, with release: a reader that sees it sees the rest, and the op's data. Hardware writes an
// entry at once; here a collapsed one has no type while its parts change, or a failed message's count could be taken
// with the state before it. A completion queue holds one less than its entries (ionic_queue.h, mask); a full one loses
// what comes.
void ionic_queue::post_cqe(std::uint32_t type, bool error, std::uint32_t status_or_length, std::uint64_t count,
                           std::uint64_t index) {
  const std::uint32_t cq_log2 = memory_.collapsed ? 0 : memory_.cq_depth_log2;
  const std::uint64_t cq_mask = (std::uint64_t{1} << cq_log2) - 1;
  if (!memory_.collapsed && cq_producer_index_ - cq_consumer_index_ >= cq_mask) return;
  std::uint32_t* dw = memory_.cqes + (cq_producer_index_ & cq_mask) * w::k_cqe_dwords;
  const ring_memory& cq = memory_.completions;
  if (memory_.collapsed) cq.publish(dw + w::k_cqe_state_at, std::uint32_t{0});
  const auto now = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  const std::uint64_t stamp = (now << 16) | (index & 0xffff);
  const std::uint32_t said[] = {w::low(stamp), w::high(stamp), wire::be32(status_or_length)};
  static_assert(w::k_cqe_status_at == w::k_cqe_index_at + 2);
  cq.write(dw + w::k_cqe_index_at, said, 3);
  cq.publish(dw + w::k_cqe_msn_at, wire::be32(static_cast<std::uint32_t>(count) & w::k_msn_mask));
  cq.publish(dw + w::k_cqe_state_at, w::cqe_state(w::color_of(cq_producer_index_, cq_log2), error, type, number_));
  ++cq_producer_index_;
}

void ionic_queue::complete(const receipt& r) {
  done_ = r.first + r.slots;
  if (r.signalled) post_cqe(w::type_send_msn, false, static_cast<std::uint32_t>(r.bytes), done_, r.first);
}

// A failed message is counted by its CQE, and before it everything has ended well. In a completion queue one word of a
// flush follows; a collapsed CQE stays as it is, for nothing would tell the reader of what it covers.
void ionic_queue::complete_in_error(const receipt& r, op_error f) {
  const bool remote = is_remote(f.what);
  post_cqe(remote ? w::type_send_msn : w::type_send_npg, true, status_of<w::status>(f.what),
           remote ? r.first + r.slots : done_, r.first & ((std::uint64_t{1} << memory_.depth_log2) - 1));
  if (!memory_.collapsed) post_cqe(w::type_send_npg, true, w::flushed, done_, 0);
}

}  // namespace xio::model::rdma
