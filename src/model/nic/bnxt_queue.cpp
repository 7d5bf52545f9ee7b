// SPDX-License-Identifier: MIT
#include "model/nic/bnxt_queue.hpp"

namespace xio::model::rdma {

namespace w = wire::bnxt;

namespace {

constexpr std::uint32_t k_flags = w::k_signaled | w::k_read_fence | w::k_fence | w::k_solicited | w::k_inline;

// How far a doorbell of a queue of 2^log2 entries goes beyond `last`. Index and epoch together count to twice the
// depth, so that a full queue is not an empty one; one of another lap comes out as more than the depth.
std::uint64_t fresh(const w::doorbell& bell, std::uint64_t last, std::uint32_t log2) {
  const std::uint64_t place = (std::uint64_t{bell.epoch} << log2) | bell.index;
  return (place - last) & ((std::uint64_t{2} << log2) - 1);
}

// unit: what its index counts for an entry.
op_error check_doorbell(w::doorbell& bell, std::uint32_t type, std::uint32_t number, std::uint32_t log2,
                        std::uint32_t unit) {
  if (bell.reserved != 0 || bell.valid != 1 || bell.toggle != 0) return broken(rule::doorbell_reserved);
  if (bell.type != type || bell.queue != number) return broken(rule::doorbell_queue);
  if (bell.index % unit != 0) return broken(rule::doorbell_range);
  bell.index /= unit;
  return bell.index >> log2 == 0 ? op_error{} : broken(rule::doorbell_range);
}

}  // namespace

bnxt_queue::bnxt_queue(const bnxt_memory& memory, std::uint32_t number, std::uint64_t max_message)
    : dialect_queue(memory, number, max_message),
      word_(__atomic_load_n(memory.doorbell, __ATOMIC_RELAXED)),
      cq_word_(__atomic_load_n(memory.cq_doorbell, __ATOMIC_RELAXED)),
      psn_(memory.first_psn & w::k_psn_mask) {}

// --- Doorbells ---------------------------------------------------------------------------------------

op_error bnxt_queue::poll_doorbells() {
  if (const op_error f = poll_sq_doorbell()) return f;
  return poll_cq_doorbell();
}

op_error bnxt_queue::poll_sq_doorbell() {
  if (!rung_since(memory_.doorbell, word_)) return {};
  w::doorbell bell = w::get_doorbell(word_);
  if (const op_error f = check_doorbell(bell, w::bell_sq, number_, memory_.depth_log2, unit())) return f;
  const std::uint64_t more = fresh(bell, producer_index_, memory_.depth_log2);
  return announce(more, std::uint64_t{1} << memory_.depth_log2, done_, producer_index_);
}

op_error bnxt_queue::poll_cq_doorbell() {
  if (!rung_since(memory_.cq_doorbell, cq_word_)) return {};
  w::doorbell bell = w::get_doorbell(cq_word_);
  if (const op_error f = check_doorbell(bell, w::bell_cq, memory_.cq_number, memory_.cq_depth_log2, 1)) return f;
  const std::uint64_t more = fresh(bell, cq_consumer_index_, memory_.cq_depth_log2);
  if (more > std::uint64_t{1} << memory_.cq_depth_log2) return broken(rule::doorbell_phase);
  return take_back(more);
}

// --- Entries -----------------------------------------------------------------------------------------

op_error bnxt_queue::fetch(op& out) {
  begin_decoding(out, next_);
  const std::uint64_t index = next_ & ((std::uint64_t{1} << memory_.depth_log2) - 1);
  memory_.entries.read(entry_, memory_.slots + index * (w::k_wqe_bytes / 4), w::k_wqe_bytes);
  const header h = w::get_header(entry_);
  out.wire_opcode = static_cast<std::uint8_t>(h.op);
  out.signalled = (h.flags & w::k_signaled) != 0;
  ++next_;
  if (const op_error f = check_header(h)) return f;
  const bool atomic = h.op == w::op_atomic_cs || h.op == w::op_atomic_fa;
  if (const op_error f = atomic ? decode_atomic(h, out) : decode_copy(h, out)) return f;
  return check_sequence(out.first, out.bytes);
}

op_error bnxt_queue::check_header(const header& h) const {
  switch (h.op) {
    case w::op_rdma_write:
    case w::op_rdma_write_imm:
    case w::op_rdma_read:
    case w::op_atomic_cs:
    case w::op_atomic_fa: break;
    default: return broken(rule::entry_opcode);
  }
  if (h.reserved != 0) return broken(rule::entry_reserved);
  if ((h.flags & ~k_flags) != 0) return broken(rule::entry_flags);
  if (h.slots < w::k_header_slots || h.slots > w::k_wqe_slots) return broken(rule::entry_segments);
  // The next entry would begin elsewhere.
  if (memory_.by_slots && h.slots != w::k_wqe_slots) return broken(rule::entry_segments);
  return {};
}

op_error bnxt_queue::decode_copy(const header& h, op& out) const {
  const w::remote r = w::get_remote(entry_ + w::k_slot_dwords);
  if (r.reserved != 0) return broken(rule::entry_reserved);
  out.what = h.op == w::op_rdma_read ? verb::read : verb::write;
  out.remote = r.address;
  out.remote_key = r.rkey;
  out.has_immediate = h.op == w::op_rdma_write_imm;
  out.immediate = h.key_or_immediate;
  if (!out.has_immediate && h.key_or_immediate != 0) return broken(rule::entry_reserved);
  if (h.lower > max_message_) return wrong_length();
  out.bytes = h.lower;
  if ((h.flags & w::k_inline) == 0) return decode_spans(h, out);
  if (out.what != verb::write) return broken(rule::entry_flags);
  if (h.lower > w::k_inline_bytes) return wrong_length();
  if (!memory_.by_slots && h.slots != w::inline_slots(static_cast<std::uint32_t>(h.lower)))
    return broken(rule::entry_segments);
  out.is_inline = true;
  std::memcpy(out.inlined.data(), reinterpret_cast<const unsigned char*>(entry_) + w::k_inline_at, out.bytes);
  return {};
}

// As many as the header's size leaves room for; together they are as long as it says. Empty ones name no memory.
op_error bnxt_queue::decode_spans(const header& h, op& out) const {
  std::uint64_t bytes = 0;
  for (std::uint32_t slot = w::k_header_slots; slot < h.slots; ++slot) {
    const w::sge s = w::get_sge(entry_ + slot * w::k_slot_dwords);
    bytes += s.bytes;
    if (s.bytes != 0) out.spans[out.span_count++] = span_ref{s.address, s.bytes, s.lkey};
  }
  return bytes == out.bytes ? op_error{} : wrong_length();
}

op_error bnxt_queue::decode_atomic(const header& h, op& out) const {
  if ((h.flags & w::k_inline) != 0) return broken(rule::entry_flags);
  if (!memory_.by_slots && h.slots != w::k_header_slots + 1) return broken(rule::entry_segments);
  const w::atomic a = w::get_atomic(entry_ + w::k_slot_dwords);
  if (h.op == w::op_atomic_fa && a.compare != 0) return broken(rule::entry_reserved);
  out.what = verb::atomic;
  out.remote = h.lower;
  out.remote_key = h.key_or_immediate;
  out.bytes = 8;
  out.change = h.op == w::op_atomic_fa ? fetch_add(a.swap_or_add) : compare_swap(a.compare, a.swap_or_add);
  return decode_spans(h, out);
}

// The MSN entry is what hardware finds the WQE by when a packet must be sent again.
op_error bnxt_queue::check_sequence(std::uint64_t first, std::uint64_t bytes) {
  const std::uint64_t index = first & ((std::uint64_t{1} << memory_.depth_log2) - 1);
  const std::uint64_t message = first & ((std::uint64_t{1} << (memory_.depth_log2 + memory_.table_log2)) - 1);
  const w::msn entry = w::get_msn(memory_.entries.load(&memory_.msns[message]));
  const std::uint32_t after = (psn_ + w::packets_of(bytes, memory_.path_mtu)) & w::k_psn_mask;
  if (entry.start_index != index * unit()) return broken(rule::entry_index);
  if (entry.start_psn != psn_ || entry.next_psn != after) return broken(rule::entry_sequence);
  psn_ = after;
  return {};
}

// --- Completions -------------------------------------------------------------------------------------

// The dword with the phase goes last, with release: a reader that sees it sees the rest, and the op's data. A full CQ
// loses entries, as hardware's does.
void bnxt_queue::post_cqe(std::uint32_t type, std::uint32_t status, std::uint64_t upto) {
  const std::uint64_t depth = std::uint64_t{1} << memory_.cq_depth_log2;
  if (cq_producer_index_ - cq_consumer_index_ >= depth) return;
  std::uint32_t* cqe = memory_.cqes + (cq_producer_index_ & (depth - 1)) * w::k_cqe_dwords;
  std::uint32_t dw[w::k_cqe_dwords] = {};
  dw[w::k_cqe_handle_at] = number_;
  const bool named_by_slot = memory_.by_slots && type == w::cqe_request && status != w::ok;
  const std::uint64_t consumer = named_by_slot ? upto - 1 : upto;
  dw[w::k_cqe_consumer_at] =
      (static_cast<std::uint32_t>(consumer) & ((1u << memory_.depth_log2) - 1)) * (named_by_slot ? unit() : 1);
  constexpr std::uint32_t k_behind = w::k_cqe_state_at + 1;
  memory_.completions.write(cqe, dw, w::k_cqe_state_at);
  memory_.completions.write(cqe + k_behind, dw + k_behind, w::k_cqe_dwords - k_behind);
  memory_.completions.publish(&cqe[w::k_cqe_state_at],
                              w::cqe_state(w::cqe_phase_of(cq_producer_index_, memory_.cq_depth_log2), type, status));
  ++cq_producer_index_;
}

void bnxt_queue::complete(const receipt& r) {
  done_ = r.first + 1;
  if (r.signalled) post_cqe(w::cqe_request, w::ok, done_);
}

// A failure that names no entry (a wrong doorbell) is reported for one that has ended or never was: the queue pair is
// in error all the same.
void bnxt_queue::complete_in_error(const receipt& r, op_error f) {
  if (r.slots == 0 || r.first < done_) return post_cqe(w::cqe_terminal, w::ok, done_);
  done_ = r.first + 1;
  post_cqe(w::cqe_request, status_of<w::status>(f.what), done_);
}

void bnxt_queue::drop(const receipt& r) {
  done_ = r.first + 1;
  post_cqe(w::cqe_request, w::flushed, done_);
}

void bnxt_queue::flush() {
  for (; next_ != producer_index_; ++next_) {
    receipt dropped;
    dropped.first = next_;
    drop(dropped);
  }
}

}  // namespace xio::model::rdma
