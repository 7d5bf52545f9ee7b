// SPDX-License-Identifier: MIT
// Broadcom bnxt_re send queues on the ring: a slot is one static-mode WQE (128 bytes), so tickets count what doorbells,
// MSN entries and completions count. The completion queue is an ordinary one of cq_depth >= 2 * depth entries: it
// cannot overflow, for every CQE stands for at least one slot that is not free yet, and one more may say that the queue
// pair is in error.
//
// Every WQE says which packet sequence numbers it uses (Thor2: an entry in the MSN table, ring_view::side), so posting
// depends on all that was posted before: ring_take_tickets takes the numbers together with the tickets.
#pragma once
#include "xio/device/platform.hpp"
#include "xio/device/ring.hpp"
#include "xio/device/view.hpp"
#include "xio/device/work.hpp"
#include "xio/wire/bnxt.hpp"

namespace xio::dev {

struct bnxt_codec {
  static constexpr bool k_in_order = true;
  static constexpr bool k_serial = true;
  static constexpr u32 k_slot_bytes = wire::bnxt::k_wqe_bytes;
  // Codes of ours in ring_state::vendor, beside the status of a request that failed.
  static constexpr u32 k_strange_type = 0x10000;  // the NIC wrote what no NIC writes
  static constexpr u32 k_strange_index = 0x20000;
  static constexpr u32 k_terminal = 0x40000;  // the queue pair is in error, for no entry's sake

  XIO_DEVICE static bool may_issue(const ring_view&) { return true; }

  XIO_DEVICE static void announce(const ring_view& r, u64, u64 to) {
    store<scope::system, order::release>(r.doorbell,
                                         wire::bnxt::doorbell_at(wire::bnxt::bell_sq, r.id, to, r.depth_log2));
  }

  // Takes all CQEs that are there, then rings the CQ's doorbell once: for the CQ's room, and only then for the ring's.
  XIO_DEVICE static void drain(const ring_view& r) {
    ring_state* s = r.state;
    const u64 first = load<scope::agent, order::relaxed>(&s->cq_head);
    const u64 completed = load<scope::agent, order::relaxed>(&s->completed);
    progress p{completed, 0, false};
    u64 head = first;
    while (!p.failed && head - first < r.cq_depth) {
      const u32* cqe =
          reinterpret_cast<const u32*>(r.completion) + (head & (r.cq_depth - 1)) * wire::bnxt::k_cqe_dwords;
      const u32 word = load<scope::system, order::acquire>(cqe + wire::bnxt::k_cqe_state_at);
      if (wire::bnxt::cqe_state_phase(word) != wire::bnxt::cqe_phase_of(head, r.cq_depth_log2)) break;
      take(r, word, load<scope::system, order::relaxed>(cqe + wire::bnxt::k_cqe_consumer_at), p);
      ++head;
    }
    if (head == first) return;
    store<scope::agent, order::relaxed>(&s->cq_head, head);
    store<scope::system, order::release>(reinterpret_cast<u64*>(r.cq_doorbell),
                                         wire::bnxt::doorbell_at(wire::bnxt::bell_cq, r.cq_id, head, r.cq_depth_log2));
    if (p.upto != completed) ring_complete(r, p.upto);
    if (p.failed) ring_fail(r, XIO_ERR_TRANSPORT, p.vendor, p.upto);
  }

  // --- Entries (work.hpp) ---

  XIO_DEVICE static u32 slots(const rdma::work&) { return 1; }

  // A path MTU is a power of two.
  XIO_DEVICE static u32 packets(const ring_view& r, const rdma::work& w) {
    if (rdma::is_atomic(w.what) || w.bytes == 0) return 1;
    return (w.bytes + r.path_mtu - 1) >> lowest_bit(r.path_mtu);
  }

  // serial: the number of the first packet.
  XIO_DEVICE static void encode(const ring_view& r, u64 ticket, u64 serial, bool ask, const rdma::work& w) {
    const u32 index = static_cast<u32>(ticket) & (r.depth - 1);
    const u32 psn = static_cast<u32>(serial);
    reinterpret_cast<u64*>(r.side)[index] = wire::bnxt::msn_entry(psn, psn + packets(r, w), index);
    entry64 e;
    for (u32& dw : e.dw) dw = 0;
    put_heads(e, ask, w);
    if (w.from == rdma::payload::memory || rdma::is_atomic(w.what)) {
      wire::bnxt::put_sge(e.dw + 8, w.local, w.lkey, w.bytes);
    } else if (w.from == rdma::payload::gathered) {
      // Other lanes are writing the payload.
      u32* slot = reinterpret_cast<u32*>(ring_slot(r, ticket, k_slot_bytes));
      for (u32 i = 0; i < 8; ++i) slot[i] = e.dw[i];
      return;
    } else {
      put_inline(r, ticket, e, w);
    }
    store_entry(ring_slot(r, ticket, k_slot_bytes), e);
  }

  XIO_DEVICE static unsigned char* inline_at(const ring_view& r, u64 ticket, u32 i) {
    return ring_slot(r, ticket, k_slot_bytes) + wire::bnxt::k_inline_at + i;
  }

 private:
  struct progress {
    u64 upto;    // every ticket below is complete
    u32 vendor;  // why the one at `upto` is not
    bool failed;

    XIO_DEVICE void fail(u32 why) {
      vendor = why;
      failed = true;
    }
  };

  XIO_DEVICE static void take(const ring_view& r, u32 word, u32 consumer, progress& p) {
    const u32 type = wire::bnxt::cqe_state_type(word);
    const u32 why = wire::bnxt::cqe_state_status(word);
    const u32 mask = r.depth - 1;
    const u32 at = wire::bnxt::cqe_consumer(consumer);
    if (type == wire::bnxt::cqe_no_op) return;
    if (type != wire::bnxt::cqe_request && type != wire::bnxt::cqe_terminal) return p.fail(k_strange_type | type);
    u64 ahead = (at - static_cast<u32>(p.upto)) & mask;
    if (type == wire::bnxt::cqe_request && ahead == 0) ahead = r.depth;  // at least one: then it is all
    if (type == wire::bnxt::cqe_terminal && at == wire::bnxt::k_no_consumer) ahead = 0;
    if (ahead > load<scope::agent, order::relaxed>(&r.state->issued) - p.upto) return p.fail(k_strange_index | at);
    if (type == wire::bnxt::cqe_terminal) {
      p.upto += ahead;
      p.fail(k_terminal | why);
    } else if (why == wire::bnxt::ok) {
      p.upto += ahead;
    } else {
      // What was before the one that failed is complete; not so before one that was flushed.
      if (why != wire::bnxt::flushed) p.upto += ahead - 1;
      p.fail(why);
    }
  }

  XIO_DEVICE static u32 opcode_of(const rdma::work& w) {
    switch (w.what) {
      case rdma::verb::write: return wire::bnxt::op_rdma_write;
      case rdma::verb::write_imm: return wire::bnxt::op_rdma_write_imm;
      case rdma::verb::read: return wire::bnxt::op_rdma_read;
      case rdma::verb::fetch_add: return wire::bnxt::op_atomic_fa;
      default: break;  // masked forms are not asked of this family: family::atomics is 0
    }
    return wire::bnxt::op_atomic_cs;
  }

  XIO_DEVICE static void put_heads(entry64& e, bool ask, const rdma::work& w) {
    u32 flags = ask ? wire::bnxt::k_signaled : 0;
    if (rdma::is_atomic(w.what)) {
      wire::bnxt::put_header(e.dw, opcode_of(w), flags, wire::bnxt::k_header_slots + 1, w.rkey, w.remote);
      wire::bnxt::put_atomic(e.dw + 4, w.first, w.what == rdma::verb::fetch_add ? 0 : w.second);
      return;
    }
    u32 used = wire::bnxt::k_header_slots + 1;
    if (w.from != rdma::payload::memory) {
      flags |= wire::bnxt::k_inline;
      used = wire::bnxt::inline_slots(w.bytes);
    }
    wire::bnxt::put_header(e.dw, opcode_of(w), flags, used, w.what == rdma::verb::write_imm ? w.immediate : 0, w.bytes);
    wire::bnxt::put_remote(e.dw + 4, w.remote, w.rkey);
  }

  // The first 32 bytes go into e, the others into the second half of the slot.
  XIO_DEVICE static void put_inline(const ring_view& r, u64 ticket, entry64& e, const rdma::work& w) {
    for (u32 i = 0; i < 8; ++i) e.dw[8 + i] = rdma::inline_word(w, 4 * i);
    if (w.bytes <= 32) return;
    entry64 more;
    for (u32 i = 0; i < 16; ++i) more.dw[i] = rdma::inline_word(w, 32 + 4 * i);
    store_entry(ring_slot(r, ticket, k_slot_bytes) + sizeof e, more);
  }
};

}  // namespace xio::dev
