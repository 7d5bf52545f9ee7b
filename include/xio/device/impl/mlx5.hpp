// SPDX-License-Identifier: MIT
// ConnectX send queues on the ring: slots are 64-byte basic blocks, completions come in order through one collapsed CQE
// that every completion overwrites (CQ created with cc = 1, oi = 1), or in an ordinary completion queue.
#pragma once
#include "xio/device/impl/rdma_view.hpp"
#include "xio/device/impl/ring.hpp"
#include "xio/device/impl/view.hpp"
#include "xio/device/impl/work.hpp"
#include "xio/device/platform/platform.hpp"
#include "xio/wire/mlx5.hpp"

namespace xio::dev {

// A CQE that was consumed before says nothing new, and the slot that it names may belong to another WQE by now.
// Counters repeat after 65536 slots. A CQE names the first slot of a WQE of at most 16 slots, so the one that was
// consumed last lies at most 16 behind what is complete, and a new one at most 32768, the largest ring, ahead.
struct mlx5_codec {
  static constexpr bool k_in_order = true;
  static constexpr u32 k_slot_bytes = wire::mlx5::k_block_bytes;
  // Codes of ours in ring_state::vendor: the NIC wrote what no NIC writes.
  static constexpr u32 k_strange_opcode = 0x10000;
  static constexpr u32 k_strange_counter = 0x20000;
  static constexpr u32 k_behind = 0x10000 - wire::mlx5::k_most_blocks;

  XIO_DEVICE static void take_view(const ring_view& from, ring_view* to) {
    rdma::take_view(from, to);
    to->rdma.mlx5.doorbell_record = view_field(from.rdma.mlx5.doorbell_record);
  }

  // A queue pair may have been made without a doorbell record (QPC send_dbr_mode = NO_DBR_EXT): one release less.
  XIO_DEVICE static void announce(const ring_view& r, u64, u64 to) {
    if (r.rdma.mlx5.doorbell_record != nullptr)
      store<scope::system, order::release>(r.rdma.mlx5.doorbell_record, wire::mlx5::record_value(to));
    ring_doorbell(r.rdma.doorbell, wire::mlx5::doorbell_value(to, r.id));
  }

  XIO_DEVICE static u64 drain(const ring_view& r, u64 completed) {
    return r.rdma.cq_depth != 0 ? drain_queue(r) : drain_collapsed(r, completed);
  }

  XIO_DEVICE static u64 drain_collapsed(const ring_view& r, u64 completed) {
    const u32* cqe = reinterpret_cast<const u32*>(r.rdma.completions);
    ring_state* s = r.state;
    // One aligned load: opcode and counter belong together. It takes longest, so the others are under way with it.
    const u32 word = load<scope::system, k_acquire_by_fence>(cqe + wire::mlx5::k_cqe_state_at);
    // Most often it is the oldest entry that is complete. A length says whose it is, so it may be loaded before.
    const u64 oldest = load<scope::agent, order::relaxed>(ring_mark_at(r, completed));
    const u64 issued = load<scope::agent, order::relaxed>(&s->issued);
    const u32 opcode = wire::mlx5::cqe_state_opcode(word);
    if (opcode == wire::mlx5::cqe_invalid) return completed;
    const u32 counter = wire::mlx5::cqe_state_counter(word);
    const u32 ahead = (counter - static_cast<u32>(completed)) & 0xffff;
    if (opcode == wire::mlx5::cqe_request && ahead >= k_behind) return completed;
    fence_after_loads<scope::system>();
    // The counter names the WQE's first slot: it is the first ticket from `completed` on with those 16 bits.
    const u64 first = completed + ahead;
    const u32 kept = first == completed ? ring_length_in(oldest, first) : 0;
    if (opcode == wire::mlx5::cqe_request) {
      const u64 upto = first + (kept != 0 ? kept : slots_of(r, first));
      if (upto - completed > issued - completed && !is_flying(r, completed, upto)) {
        ring_fail(r, XIO_ERR_TRANSPORT, k_strange_counter | counter, completed);
        return completed;
      }
      ring_complete(r, completed, upto);
      return upto;
    }
    if (opcode == wire::mlx5::cqe_request_error || opcode == wire::mlx5::cqe_response_error) {
      fail(r, cqe, word, completed, is_flying(r, completed, first + 1) ? first : completed);
    } else {
      ring_fail(r, XIO_ERR_TRANSPORT, k_strange_opcode | opcode, completed);
    }
    return ring_completed<order::relaxed>(r);
  }

  // The completion queue has more entries than the ring, so that ignoring its overrun (oi = 1) never loses one. That is
  // why the NIC needs no consumer index, and none is written.
  XIO_DEVICE static u64 drain_queue(const ring_view& r) {
    ring_state* s = r.state;
    const u64 before = load<scope::agent, order::relaxed>(&s->cq_head);
    u64 head = before;
    for (bool more = true; more && head - before < r.rdma.cq_depth;) {
      const u32* cqe =
          reinterpret_cast<const u32*>(r.rdma.completions) + (head & (r.rdma.cq_depth - 1)) * wire::mlx5::k_cqe_dwords;
      const u32 word = load<scope::system, order::acquire>(cqe + wire::mlx5::k_cqe_state_at);
      const u32 opcode = wire::mlx5::cqe_state_opcode(word);
      const u32 lap = wire::mlx5::cqe_owner_of(head, r.rdma.cq_depth_log2);
      if (opcode == wire::mlx5::cqe_invalid || wire::mlx5::cqe_state_owner(word) != lap) break;
      more = consume(r, cqe, word, opcode);
      ++head;
    }
    if (head != before) {
      store<scope::agent, order::relaxed>(&s->cq_head, head);
      ring_keep_stored();
    }
    return ring_completed<order::relaxed>(r);
  }

  // --- Entries (work.hpp) ---

  XIO_DEVICE static u32 slots(const rdma::work& w) {
    if (w.from == rdma::payload::value) return k_value_slots;
    if (w.from != rdma::payload::memory && !rdma::is_atomic(w.what))
      return wire::mlx5::blocks(wire::mlx5::inline_segments(w.bytes));
    return is_masked_swap_8(w) ? 2 : 1;
  }
  XIO_DEVICE static u32 packets(const ring_view&, const rdma::work&) { return 0; }

  XIO_DEVICE static void encode(const ring_view& r, u64 ticket, u64, bool ask, const rdma::work& w) {
    if (w.from == rdma::payload::value) [[likely]]
      return put_value(r, ticket, ask, w);
    if (ask) ring_keep_length(r, ticket, slots(w));
    entry64 e;
    for (u32& dw : e.dw) dw = 0;
    wire::mlx5::put_control(e.dw, opcode_of(w), opmod_of(w), static_cast<u32>(ticket), r.id, segments_of(w),
                            ask ? wire::mlx5::k_ask_completion : 0, w.what == rdma::verb::write_imm ? w.immediate : 0);
    wire::mlx5::put_remote(e.dw + 4, w.remote, w.rkey);
    if (rdma::is_atomic(w.what)) {
      put_atomic(r, ticket, e, w);
    } else if (w.from == rdma::payload::memory) {
      wire::mlx5::put_data(e.dw + 8, w.bytes, w.lkey, w.local);
    } else {
      e.dw[8] = wire::mlx5::inline_header(w.bytes);
      if (w.from == rdma::payload::gathered) return put_head(r, ticket, e);
      return put_inline(r, ticket, e, w);
    }
    store_entry(ring_slot(r, ticket, k_slot_bytes), e);
  }

  // Payload begins at dword 9 of the first block and goes on with the next block's first.
  XIO_DEVICE static unsigned char* inline_at(const ring_view& r, u64 ticket, u32 i) {
    const u32 at = 36 + i;
    return ring_slot(r, ticket + at / k_slot_bytes, k_slot_bytes) + at % k_slot_bytes;
  }

 private:
  // Whether the tickets below `upto` had all been taken: what is complete must be.
  XIO_DEVICE static bool is_flying(const ring_view& r, u64 completed, u64 upto) {
    return upto - completed <= load<scope::agent, order::relaxed>(&r.state->issued) - completed;
  }

  // One entry of a completion queue; false after a failure.
  XIO_DEVICE static bool consume(const ring_view& r, const u32* cqe, u32 word, u32 opcode) {
    const u64 completed = ring_completed<order::relaxed>(r);
    const u32 counter = wire::mlx5::cqe_state_counter(word);
    const u64 first = completed + ((counter - static_cast<u32>(completed)) & 0xffff);
    if (opcode == wire::mlx5::cqe_request) {
      const u64 upto = first + slots_of(r, first);
      if (is_flying(r, completed, upto)) {
        ring_complete(r, completed, upto);
        return true;
      }
      ring_fail(r, XIO_ERR_TRANSPORT, k_strange_counter | counter, completed);
    } else if (opcode == wire::mlx5::cqe_request_error || opcode == wire::mlx5::cqe_response_error) {
      fail(r, cqe, word, completed, is_flying(r, completed, first + 1) ? first : completed);
    } else {
      ring_fail(r, XIO_ERR_TRANSPORT, k_strange_opcode | opcode, completed);
    }
    return false;
  }

  XIO_DEVICE static bool is_masked_swap_8(const rdma::work& w) {
    return w.what == rdma::verb::masked_swap && w.bytes == 8;
  }

  XIO_HOST_DEVICE static constexpr u64 coded(rdma::verb what, u32 opcode) {
    return u64{opcode} << (8 * static_cast<u32>(what));
  }
  XIO_DEVICE static u32 opcode_of(const rdma::work& w) {
    // By arithmetic: a GPU waits for a jump by a table.
    constexpr u64 opcodes = coded(rdma::verb::write, wire::mlx5::op_rdma_write) |
                            coded(rdma::verb::write_imm, wire::mlx5::op_rdma_write_imm) |
                            coded(rdma::verb::read, wire::mlx5::op_rdma_read) |
                            coded(rdma::verb::fetch_add, wire::mlx5::op_atomic_fa) |
                            coded(rdma::verb::compare_swap, wire::mlx5::op_atomic_cs) |
                            coded(rdma::verb::masked_add, wire::mlx5::op_masked_fa) |
                            coded(rdma::verb::masked_swap, wire::mlx5::op_masked_cs);
    return static_cast<u32>(opcodes >> (8 * static_cast<u32>(w.what))) & 0xff;
  }

  XIO_DEVICE static u32 opmod_of(const rdma::work& w) {
    if (w.what < rdma::verb::masked_add) return 0;
    return w.bytes == 4 ? wire::mlx5::k_opmod_masked_4 : wire::mlx5::k_opmod_masked_8;
  }

  XIO_DEVICE static u32 segments_of(const rdma::work& w) {
    if (rdma::is_atomic(w.what)) return is_masked_swap_8(w) ? 5 : 4;
    return w.from == rdma::payload::memory ? 3 : wire::mlx5::inline_segments(w.bytes);
  }

  // Most messages of a few bytes come so. Everything but ticket, place and value is a constant.
  static constexpr u32 k_value_segments = wire::mlx5::inline_segments(8);
  static constexpr u32 k_value_slots = wire::mlx5::blocks(k_value_segments);
  XIO_DEVICE static void put_value(const ring_view& r, u64 ticket, bool ask, const rdma::work& w) {
    if (ask) ring_keep_length(r, ticket, k_value_slots);
    const bool tells = w.what == rdma::verb::write_imm;
    entry64 e;
    for (u32& dw : e.dw) dw = 0;
    wire::mlx5::put_control(e.dw, tells ? wire::mlx5::op_rdma_write_imm : wire::mlx5::op_rdma_write, 0,
                            static_cast<u32>(ticket), r.id, k_value_segments, ask ? wire::mlx5::k_ask_completion : 0,
                            tells ? w.immediate : 0);
    wire::mlx5::put_remote(e.dw + 4, w.remote, w.rkey);
    e.dw[8] = wire::mlx5::inline_header(w.bytes);
    for (u32 i = 0; i < 2; ++i) e.dw[9 + i] = rdma::value_word(w, 4 * i);
    store_entry(ring_slot(r, ticket, k_slot_bytes), e);
  }

  XIO_DEVICE static void put_atomic(const ring_view& r, u64 ticket, entry64& e, const rdma::work& w) {
    u32* operands = e.dw + 8;
    if (is_masked_swap_8(w)) {
      wire::mlx5::put_masked_cs_8(operands, w.first, w.second, w.swap_mask, w.compare_mask);
      entry64 more;
      for (u32& dw : more.dw) dw = 0;
      wire::mlx5::put_data(more.dw, 8, w.lkey, w.local);
      store_entry(ring_slot(r, ticket + 1, k_slot_bytes), more);
      return;
    }
    using wire::mlx5::low;
    if (w.bytes == 8) {
      wire::mlx5::put_pair_64(operands, w.first, w.second);
    } else if (w.what == rdma::verb::masked_add) {
      wire::mlx5::put_masked_fa_4(operands, low(w.first), low(w.second));
    } else {
      wire::mlx5::put_masked_cs_4(operands, low(w.first), low(w.second), low(w.swap_mask), low(w.compare_mask));
    }
    wire::mlx5::put_data(e.dw + 12, w.bytes, w.lkey, w.local);
  }

  XIO_DEVICE static void put_inline(const ring_view& r, u64 ticket, const entry64& e, const rdma::work& w) {
    unsigned char* slot = ring_slot(r, ticket, k_slot_bytes);
    store_part(slot, e.dw);
    store_part(slot + 16, e.dw + 4);
    reinterpret_cast<u32*>(slot)[8] = e.dw[8];
    const u32 filled = ((w.bytes + 19) & ~15u) - 4;  // the rest of its last 16 bytes, too
    rdma::put_inline_words(w, filled, [&](u32 i) { return inline_at(r, ticket, i); });
  }

  XIO_DEVICE static void store_part(void* to, const u32* dw) {
    *static_cast<vec16*>(to) = vec16{dw[0], dw[1], dw[2], dw[3]};
  }

  // Everything but the payload, which other lanes are writing.
  XIO_DEVICE static void put_head(const ring_view& r, u64 ticket, const entry64& e) {
    u32* slot = reinterpret_cast<u32*>(ring_slot(r, ticket, k_slot_bytes));
    for (u32 i = 0; i < 9; ++i) slot[i] = e.dw[i];
  }

  // As it was kept; a CQE that nobody asked for names another WQE, whose control segment says how many segments it has:
  // up to 4 per slot. The slot is not reused before its completion was consumed.
  XIO_DEVICE static u32 slots_of(const ring_view& r, u64 ticket) {
    if (const u32 kept = ring_kept_length(r, ticket); kept != 0) return kept;
    const u32* dw = reinterpret_cast<const u32*>(ring_slot(r, ticket, wire::mlx5::k_block_bytes));
    return wire::mlx5::blocks(wire::be32(load<scope::system, order::relaxed>(dw + 1)) & 0x3f);
  }

  // Everything before the WQE that failed is complete. Not so before one that was flushed: the one that failed lies
  // somewhere before it, and its CQE was overwritten.
  XIO_DEVICE static void fail(const ring_view& r, const u32* cqe, u32 word, u64 completed, u64 failed) {
    if (load<scope::agent, order::relaxed>(&r.state->failed) != 0) return;
    const u32 why = load<scope::system, order::acquire>(cqe + wire::mlx5::k_cqe_syndrome_at);
    // Overwritten meanwhile: the next turn looks again.
    if (load<scope::system, order::relaxed>(cqe + wire::mlx5::k_cqe_state_at) != word) return;
    const u32 code = wire::mlx5::cqe_syndrome(why);
    if (code == wire::mlx5::flushed) failed = completed;
    if (failed != completed) ring_complete(r, completed, failed);
    ring_fail(r, XIO_ERR_TRANSPORT, code | (wire::mlx5::cqe_vendor_syndrome(why) << 8), failed);
  }
};

}  // namespace xio::dev
