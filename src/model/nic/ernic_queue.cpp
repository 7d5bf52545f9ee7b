// SPDX-License-Identifier: MIT
#include "model/nic/ernic_queue.hpp"

namespace xio::model::rdma {

namespace w = wire::ernic;

namespace {

std::uint32_t completed_op_of(std::uint32_t op) {
  switch (op) {
    case w::op_rdma_read: return w::done_read;
    case w::op_atomic_cs: return w::done_cs;
    case w::op_atomic_fa: return w::done_fa;
    default: return w::done_write;
  }
}

}  // namespace

ernic_queue::ernic_queue(const ernic_memory& memory, std::uint32_t number, std::uint64_t max_message)
    : dialect_queue(memory, number, max_message), requests_(std::size_t{1} << memory.depth_log2) {}

// --- Doorbell and indices ----------------------------------------------------------------------------

op_error ernic_queue::poll_doorbells() {
  if (const op_error f = poll_sq_doorbell()) return f;
  return poll_cq_doorbell();
}

// All rings of the bell look alike, so it is put back before the tail is read: one that comes now is seen next time.
op_error ernic_queue::poll_sq_doorbell() {
  if (__atomic_load_n(memory_.doorbell, __ATOMIC_RELAXED) == 0) return {};
  const std::uint32_t word = __atomic_exchange_n(memory_.doorbell, 0, __ATOMIC_ACQ_REL);
  if ((word & ~w::k_handle_mask) != w::k_send) return broken(rule::doorbell_reserved);
  if ((word & w::k_handle_mask) != number_) return broken(rule::doorbell_queue);
  const std::uint32_t tail = memory_.entries.load(memory_.indices + w::k_tx_tail);
  if (!w::is_index(tail, memory_.depth_log2)) return broken(rule::doorbell_range);
  const std::uint64_t more = w::between(producer_index_, tail, memory_.depth_log2);
  return announce(more, std::uint64_t{1} << memory_.depth_log2, done_, producer_index_);
}

op_error ernic_queue::poll_cq_doorbell() {
  const std::uint32_t head = memory_.completions.load(memory_.cq + w::k_rx_head);
  if (head == cq_head_) return {};
  cq_head_ = head;
  if (!w::is_index(head, memory_.cq_depth_log2)) return broken(rule::doorbell_range);
  return take_back(w::between(cq_consumer_index_, head, memory_.cq_depth_log2));
}

// --- Entries -----------------------------------------------------------------------------------------

op_error ernic_queue::fetch(op& out) {
  begin_decoding(out, next_);
  const std::uint64_t index = next_ & (requests_.size() - 1);
  memory_.entries.read(entry_, memory_.slots + index * w::k_wqe_dwords, w::k_wqe_bytes);
  request(next_) = w::join(entry_[0], entry_[1]);
  ++next_;
  memory_.entries.publish(memory_.indices + w::k_tx_head, w::index_of(next_, memory_.depth_log2));
  const std::uint32_t op = entry_[4], flags = entry_[5];
  out.wire_opcode = static_cast<std::uint8_t>(op);
  out.signalled = (flags & w::k_signaled) != 0;
  switch (op) {
    case w::op_rdma_write:
    case w::op_rdma_write_imm:
    case w::op_rdma_read:
    case w::op_atomic_cs:
    case w::op_atomic_fa: break;
    default: return broken(rule::entry_opcode);
  }
  if ((flags & ~(w::k_fence | w::k_signaled | w::k_solicited)) != 0) return broken(rule::entry_flags);
  if (entry_[7] != 0 || (entry_[6] != 0 && op != w::op_rdma_write_imm)) return broken(rule::entry_reserved);
  if (entry_[2] > w::k_most_sges) return broken(rule::entry_segments);
  return op == w::op_atomic_cs || op == w::op_atomic_fa ? decode_atomic(out) : decode_copy(out);
}

op_error ernic_queue::decode_copy(op& out) const {
  out.what = entry_[4] == w::op_rdma_read ? verb::read : verb::write;
  out.has_immediate = entry_[4] == w::op_rdma_write_imm;
  out.immediate = wire::be32(entry_[6]);
  out.remote = w::join(entry_[8], entry_[9]);
  out.remote_key = entry_[10];
  out.bytes = entry_[3];
  if (entry_[11] != 0) return broken(rule::entry_reserved);
  if (out.bytes > max_message_) return wrong_length();
  return decode_spans(out);
}

op_error ernic_queue::decode_atomic(op& out) const {
  const std::uint64_t compare_or_add = w::join(entry_[10], entry_[11]), swap = w::join(entry_[12], entry_[13]);
  const bool add = entry_[4] == w::op_atomic_fa;
  out.what = verb::atomic;
  out.remote = w::join(entry_[8], entry_[9]);
  out.remote_key = entry_[14];
  out.bytes = entry_[3];
  if (entry_[15] != 0 || (add && swap != 0)) return broken(rule::entry_reserved);
  if (entry_[2] != 1) return broken(rule::entry_segments);
  if (out.bytes != 8) return wrong_length();
  out.change = add ? fetch_add(compare_or_add) : compare_swap(compare_or_add, swap);
  return decode_spans(out);
}

// Together they are as long as the entry says. Empty ones name no memory.
op_error ernic_queue::decode_spans(op& out) const {
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < entry_[2]; ++i) {
    const std::uint32_t* sge = entry_ + (w::k_sge_at + i * w::k_sge_bytes) / 4;
    bytes += sge[2];
    if (sge[2] != 0) out.spans[out.span_count++] = span_ref{w::join(sge[0], sge[1]), sge[2], sge[3]};
  }
  return bytes == out.bytes ? op_error{} : wrong_length();
}

// --- Completions -------------------------------------------------------------------------------------

// The tail goes last, with release: a reader that sees it sees the entry, and the op's data. A full CQ loses entries.
void ernic_queue::post_cqe(std::uint64_t wr_id, std::uint32_t opcode, std::uint64_t bytes, std::uint32_t status,
                           rule why) {
  const std::uint64_t depth = std::uint64_t{1} << memory_.cq_depth_log2;
  if (cq_producer_index_ - cq_consumer_index_ >= depth) return;
  std::uint32_t dw[w::k_cqe_dwords] = {};
  dw[0] = w::low(wr_id);
  dw[1] = w::high(wr_id);
  dw[w::k_cqe_qp_at] = number_;
  dw[w::k_cqe_opcode_at] = opcode;
  dw[w::k_cqe_status_at] = status;
  dw[w::k_cqe_bytes_at] = static_cast<std::uint32_t>(bytes);
  dw[w::k_cqe_vendor_at] = static_cast<std::uint32_t>(why);
  std::uint32_t* cqe = memory_.cq + w::k_page_bytes / 4 + (cq_producer_index_ & (depth - 1)) * w::k_cqe_dwords;
  memory_.completions.write(cqe, dw, w::k_cqe_dwords);
  ++cq_producer_index_;
  memory_.completions.publish(memory_.cq + w::k_rx_tail, w::index_of(cq_producer_index_, memory_.cq_depth_log2));
}

void ernic_queue::post_cqe(const receipt& r, std::uint32_t status, rule why) {
  done_ = r.first + 1;
  post_cqe(request(r.first), completed_op_of(r.wire_opcode), r.bytes, status, why);
}

void ernic_queue::complete(const receipt& r) {
  done_ = r.first + 1;
  if (r.signalled) post_cqe(r, w::ok, rule::none);
}

// A failure that names no entry (a wrong doorbell) is reported for one that has ended or never was: the queue pair is
// in error all the same.
void ernic_queue::complete_in_error(const receipt& r, op_error f) {
  if (r.slots == 0 || r.first < done_) return post_cqe(0, 0, 0, w::fatal, f.why);
  post_cqe(r, status_of<w::status>(f.what), f.why);
}

void ernic_queue::drop(const receipt& r) { post_cqe(r, w::flushed, rule::none); }

void ernic_queue::flush() {
  for (; next_ != producer_index_; ++next_) {
    memory_.entries.read(entry_, memory_.slots + (next_ & (requests_.size() - 1)) * w::k_wqe_dwords, 8);
    request(next_) = w::join(entry_[0], entry_[1]);
    receipt dropped;
    dropped.first = next_;
    drop(dropped);
  }
}

}  // namespace xio::model::rdma
