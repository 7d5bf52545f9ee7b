// SPDX-License-Identifier: MIT
#include "model/nic/mlx5_queue.hpp"

#include <chrono>

namespace xio::model::rdma {

namespace w = wire::mlx5;

namespace {

constexpr std::uint32_t k_flags = w::k_ask_completion | w::k_solicited | 0xe0;

}  // namespace

mlx5_queue::mlx5_queue(const mlx5_memory& memory, std::uint32_t number, std::uint64_t max_message)
    : dialect_queue(memory, number, max_message), word_(__atomic_load_n(memory.doorbell, __ATOMIC_RELAXED)) {}

op_error mlx5_queue::poll_doorbells() {
  if (!rung_since(memory_.doorbell, word_)) return {};
  const w::doorbell bell = w::get_doorbell(word_);
  if (bell.reserved != 0) return broken(rule::doorbell_reserved);
  if (bell.qpn != number_) return broken(rule::doorbell_queue);
  const std::uint32_t fresh = (bell.producer - static_cast<std::uint32_t>(producer_index_)) & 0xffff;
  const std::uint64_t producer = producer_index_ + fresh;
  if (producer - next_ > memory_.depth) return broken(rule::doorbell_range);
  if (memory_.doorbell_record != nullptr && !record_covers(bell.producer)) return broken(rule::doorbell_record);
  producer_index_ = producer;
  return {};
}

// The record is written first, so it is never behind; a later post may have moved it on.
bool mlx5_queue::record_covers(std::uint32_t producer) const {
  const std::uint32_t record = w::record_producer(__atomic_load_n(memory_.doorbell_record, __ATOMIC_ACQUIRE));
  return record <= 0xffff && ((record - producer) & 0xffff) <= memory_.depth;
}

const std::uint32_t* mlx5_queue::slot(std::uint64_t ticket) const {
  return memory_.slots + (ticket & (memory_.depth - 1)) * (w::k_block_bytes / 4);
}

op_error mlx5_queue::fetch(op& out) {
  begin_decoding(out, next_);
  memory_.entries.read(entry_, slot(next_), w::k_block_bytes);
  const control c = w::get_control(entry_);
  out.wire_opcode = static_cast<std::uint8_t>(c.op);
  const std::uint32_t blocks = w::blocks(c.segments);
  if (c.segments == 0) return broken(rule::entry_segments);
  if (blocks > producer_index_ - next_) return broken(rule::entry_cut);
  for (std::uint32_t i = 1; i < blocks; ++i)
    memory_.entries.read(entry_ + i * (w::k_block_bytes / 4), slot(next_ + i), w::k_block_bytes);
  next_ += blocks;
  out.slots = blocks;
  out.signalled = (c.flags & w::k_ask_completion) != 0;
  if (const op_error f = check_control(c, out.first)) return f;
  switch (c.op) {
    case w::op_nop: return c.segments == 1 ? op_error{} : broken(rule::entry_segments);
    case w::op_rdma_write_imm: out.has_immediate = true; [[fallthrough]];
    case w::op_rdma_write:
    case w::op_rdma_read: return decode_copy(c, out);
    case w::op_atomic_cs:
    case w::op_atomic_fa:
    case w::op_masked_cs:
    case w::op_masked_fa: return decode_atomic(c, out);
    default: return broken(rule::entry_opcode);
  }
}

op_error mlx5_queue::check_control(const control& c, std::uint64_t first) const {
  const bool masked = c.op == w::op_masked_cs || c.op == w::op_masked_fa;
  if (c.index != (first & 0xffff)) return broken(rule::entry_index);
  if (c.qpn != number_) return broken(rule::entry_queue);
  if (c.reserved != 0 || (c.immediate != 0 && c.op != w::op_rdma_write_imm)) return broken(rule::entry_reserved);
  if ((c.flags & ~k_flags) != 0) return broken(rule::entry_flags);
  if (masked ? c.opmod != w::k_opmod_masked_4 && c.opmod != w::k_opmod_masked_8 : c.opmod != 0)
    return broken(rule::entry_modifier);
  return {};
}

op_error mlx5_queue::decode_remote(op& out) const {
  const w::remote r = w::get_remote(entry_ + 4);
  out.remote = r.address;
  out.remote_key = r.rkey;
  return r.reserved == 0 ? op_error{} : broken(rule::entry_reserved);
}

op_error mlx5_queue::decode_spans(const std::uint32_t* dw, std::uint32_t count, op& out) const {
  if (count > k_max_spans) return broken(rule::entry_segments);
  for (std::uint32_t i = 0; i < count; ++i) {
    const w::data d = w::get_data(dw + i * w::k_segment_dwords);
    // 0 would mean 2 GiB, and the top bit an inline segment behind a plain one.
    if (d.bytes == 0 || (d.bytes & w::k_inline_flag) != 0) return wrong_length();
    out.spans[i] = span_ref{d.address, d.bytes, d.lkey};
    out.bytes += d.bytes;
  }
  out.span_count = count;
  return out.bytes <= max_message_ ? op_error{} : wrong_length();
}

op_error mlx5_queue::decode_copy(const control& c, op& out) const {
  if (c.segments < 2) return broken(rule::entry_segments);
  if (const op_error f = decode_remote(out)) return f;
  out.what = c.op == w::op_rdma_read ? verb::read : verb::write;
  out.immediate = c.immediate;
  const std::uint32_t head = w::get_data(entry_ + 8).bytes;
  if (c.segments == 2 || (head & w::k_inline_flag) == 0) return decode_spans(entry_ + 8, c.segments - 2, out);
  const std::uint32_t bytes = head & ~w::k_inline_flag;
  if (out.what != verb::write || bytes > k_max_inline || c.segments != w::inline_segments(bytes))
    return broken(rule::entry_segments);
  out.is_inline = true;
  out.bytes = bytes;
  std::memcpy(out.inlined.data(), entry_ + 9, bytes);
  return {};
}

op_error mlx5_queue::decode_atomic(const control& c, op& out) const {
  const bool wide = c.op == w::op_masked_cs && c.opmod == w::k_opmod_masked_8;
  const std::uint32_t segments = wide ? 5 : 4;
  if (c.segments != segments) return broken(rule::entry_segments);
  if (const op_error f = decode_remote(out)) return f;
  out.what = verb::atomic;
  const std::uint32_t* operands = entry_ + 8;
  if (c.op == w::op_masked_cs || c.op == w::op_masked_fa) {
    if (const op_error f = decode_masked(c, operands, out)) return f;
  } else {
    const w::pair_64 p = w::get_pair_64(operands);
    out.change = c.op == w::op_atomic_fa ? fetch_add(p.first) : compare_swap(p.second, p.first);
  }
  if (const op_error f = decode_spans(entry_ + (segments - 1) * w::k_segment_dwords, 1, out)) return f;
  return out.bytes == out.change.width ? op_error{} : wrong_length();
}

// Results of the 4-byte forms are put into memory big endian; see device/impl/rdma.hpp.
op_error mlx5_queue::decode_masked(const control& c, const std::uint32_t* dw, op& out) const {
  const bool narrow = c.opmod == w::k_opmod_masked_4;
  const bool add = c.op == w::op_masked_fa;
  const auto at = [&](int i) { return wire::be32(dw[i]); };
  if (narrow && add) {
    if (dw[2] != 0 || dw[3] != 0) return broken(rule::entry_reserved);
    out.change = atomic_change{true, 4, at(0), at(1), 0, 0, 0, true};
  } else if (narrow) {
    out.change = atomic_change{false, 4, at(0), 0, at(1), at(2), at(3), true};
  } else if (add) {
    const w::pair_64 p = w::get_pair_64(dw);
    out.change = atomic_change{true, 8, p.first, p.second, 0, 0, 0, false};
  } else {
    const w::pair_64 values = w::get_pair_64(dw), masks = w::get_pair_64(dw + 4);
    out.change = atomic_change{false, 8, values.first, 0, values.second, masks.first, masks.second, false};
  }
  return {};
}

// --- Completions -------------------------------------------------------------------------------------

// The last dword goes last, with release: a reader that sees its opcode and counter sees the rest, and the op's data.
void mlx5_queue::post_cqe(const receipt& r, std::uint32_t cqe_opcode, std::uint32_t syndromes) {
  const bool returns_data = r.what == verb::read || r.what == verb::atomic;
  std::uint32_t dw[w::k_cqe_dwords] = {};
  dw[w::k_cqe_bytes_at] = wire::be32(returns_data ? static_cast<std::uint32_t>(r.bytes) : 0);
  if (cqe_opcode == w::cqe_request) {
    const auto now = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    dw[12] = wire::be32(w::high(now));
    dw[13] = wire::be32(w::low(now));
  } else {
    dw[w::k_cqe_syndrome_at] = syndromes;
  }
  dw[w::k_cqe_qpn_at] = w::cqe_send_opcode_qpn(r.wire_opcode, number_);
  const std::uint32_t log2 = memory_.queued_cq ? memory_.cq_depth_log2 : 0;
  std::uint32_t* cqe = memory_.cqe + (cq_producer_index_ & ((std::uint64_t{1} << log2) - 1)) * w::k_cqe_dwords;
  const std::uint32_t owner = memory_.queued_cq ? w::cqe_owner_of(cq_producer_index_, log2) : 0;
  ++cq_producer_index_;
  memory_.completions.write(cqe, dw, w::k_cqe_state_at);
  memory_.completions.publish(&cqe[w::k_cqe_state_at],
                              w::cqe_state(static_cast<std::uint32_t>(r.first) & 0xffff, cqe_opcode, owner));
}

void mlx5_queue::complete(const receipt& r) {
  if (r.signalled) post_cqe(r, w::cqe_request, 0);
}

void mlx5_queue::complete_in_error(const receipt& r, op_error f) {
  post_cqe(r, w::cqe_request_error,
           w::cqe_syndromes(status_of<w::syndrome>(f.what), static_cast<std::uint32_t>(f.why)));
}

void mlx5_queue::drop(const receipt& r) {
  if (memory_.flushes_cover_error || memory_.queued_cq)
    post_cqe(r, w::cqe_request_error, w::cqe_syndromes(w::flushed, static_cast<std::uint32_t>(rule::none)));
}

void mlx5_queue::flush() {
  while (next_ != producer_index_) {
    memory_.entries.read(entry_, slot(next_), w::k_block_bytes);
    const std::uint32_t blocks = w::blocks(w::get_control(entry_).segments);
    receipt dropped;
    dropped.first = next_;
    // The entries after an error are not to be trusted, not even their lengths.
    next_ += blocks == 0 || blocks > producer_index_ - next_ ? 1 : blocks;
    drop(dropped);
  }
}

}  // namespace xio::model::rdma
