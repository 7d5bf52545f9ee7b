// SPDX-License-Identifier: MIT
// Broadcom bnxt_re send queues on the ring: a slot is one static-mode WQE (128 bytes), so tickets count what doorbells,
// MSN entries and completions count. The completion queue is an ordinary one of cq_depth >= 2 * depth entries: it
// cannot overflow, for every CQE stands for at least one slot that is not free yet, and one more may say that the queue
// pair is in error.
//
// Every WQE says which packet sequence numbers it uses (Thor2: an entry in the MSN table, bnxt_ring::msn_table), so
// posting depends on all that was posted before: ring_take_tickets takes the numbers together with the tickets.
//
// Queues of real NICs are made in variable mode (bnxt_ring::unit): doorbells and MSN entries count 16-byte slots, and
// an entry takes as many as its header says. Every entry says 8 there, so it stays where it is in static mode; what it
// does not use are SGEs of no bytes.
#pragma once
#include "xio/device/impl/rdma_view.hpp"
#include "xio/device/impl/ring.hpp"
#include "xio/device/impl/view.hpp"
#include "xio/device/impl/work.hpp"
#include "xio/device/platform/platform.hpp"
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

  XIO_DEVICE static void take_view(const ring_view& from, ring_view* to) {
    rdma::take_view(from, to);
    to->rdma.bnxt.msn_table = view_field(from.rdma.bnxt.msn_table);
    to->rdma.bnxt.cq_doorbell = view_field(from.rdma.bnxt.cq_doorbell);
    to->rdma.bnxt.cq_id = view_field(from.rdma.bnxt.cq_id);
    to->rdma.bnxt.path_mtu = view_field(from.rdma.bnxt.path_mtu);
    to->rdma.bnxt.unit = view_field(from.rdma.bnxt.unit);
    to->rdma.bnxt.table_log2 = view_field(from.rdma.bnxt.table_log2);
  }

  XIO_DEVICE static void announce(const ring_view& r, u64, u64 to) {
    ring_doorbell(r.rdma.doorbell,
                  wire::bnxt::doorbell_at(wire::bnxt::bell_sq, r.id, to, r.rdma.depth_log2, unit_of(r)));
  }

  // Takes all CQEs that are there, then rings the CQ's doorbell once: for the CQ's room, and only then for the ring's.
  XIO_DEVICE static u64 drain(const ring_view& r, u64 completed) {
    ring_state* s = r.state;
    const u64 first = load<scope::agent, order::relaxed>(&s->cq_head);
    progress p{completed, 0};
    u32 taken = 0;
    while (p.vendor == 0 && taken < r.rdma.cq_depth) {
      const u32 head = static_cast<u32>(first) + taken;
      const u32* cqe =
          reinterpret_cast<const u32*>(r.rdma.completions) + (head & (r.rdma.cq_depth - 1)) * wire::bnxt::k_cqe_dwords;
      const u32 word = load<scope::system, order::acquire>(cqe + wire::bnxt::k_cqe_state_at);
      if (wire::bnxt::cqe_state_phase(word) != wire::bnxt::cqe_phase_of(head, r.rdma.cq_depth_log2)) break;
      consume(r, word, load<scope::system, order::relaxed>(cqe + wire::bnxt::k_cqe_consumer_at), p);
      ++taken;
    }
    if (taken == 0) return completed;
    const u64 head = first + taken;
    store<scope::agent, order::relaxed>(&s->cq_head, head);
    ring_doorbell(r.rdma.bnxt.cq_doorbell,
                  wire::bnxt::doorbell_at(wire::bnxt::bell_cq, r.rdma.bnxt.cq_id, head, r.rdma.cq_depth_log2));
    if (p.upto != completed) ring_complete<order::release>(r, completed, p.upto);
    if (p.vendor != 0) ring_fail(r, XIO_ERR_TRANSPORT, p.vendor, p.upto);
    ring_keep_stored();
    return p.upto;
  }

  // --- Entries (work.hpp) ---

  XIO_DEVICE static u32 slots(const rdma::work&) { return 1; }

  // A path MTU is a power of two.
  XIO_DEVICE static u32 packets(const ring_view& r, const rdma::work& w) {
    if (rdma::is_atomic(w.what) || w.bytes == 0) return 1;
    return (w.bytes + r.rdma.bnxt.path_mtu - 1) >> lowest_bit(r.rdma.bnxt.path_mtu);
  }

  // serial: the number of the first packet.
  XIO_DEVICE static void encode(const ring_view& r, u64 ticket, u64 serial, bool ask, const rdma::work& w) {
    const u32 index = static_cast<u32>(ticket) & (r.depth - 1);
    const u32 psn = static_cast<u32>(serial);
    const u32 message = static_cast<u32>(ticket) & ((r.depth << r.rdma.bnxt.table_log2) - 1);
    r.rdma.bnxt.msn_table[message] = wire::bnxt::msn_entry(psn, psn + packets(r, w), index * unit_of(r));
    unsigned char* slot = ring_slot(r, ticket, k_slot_bytes);
    put_heads(slot, ask, by_slots(r), w);
    if (w.from == rdma::payload::memory || rdma::is_atomic(w.what)) {
      u32 sge[4];
      wire::bnxt::put_sge(sge, w.local, w.lkey, w.bytes);
      store_part(slot + wire::bnxt::k_inline_at, sge);
      if (by_slots(r)) clear_sges(slot);
    } else if (w.from != rdma::payload::gathered) {
      rdma::put_inline(slot + wire::bnxt::k_inline_at, w);
    }
  }

  XIO_DEVICE static unsigned char* inline_at(const ring_view& r, u64 ticket, u32 i) {
    return ring_slot(r, ticket, k_slot_bytes) + wire::bnxt::k_inline_at + i;
  }

 private:
  XIO_DEVICE static bool by_slots(const ring_view& r) { return r.rdma.bnxt.unit != 1; }
  // Doorbells and MSN entries count these for an entry.
  XIO_DEVICE static u32 unit_of(const ring_view& r) { return r.rdma.bnxt.unit; }

  // An inline put may have been where they are.
  XIO_DEVICE static void clear_sges(unsigned char* slot) {
    for (u32 i = wire::bnxt::k_header_slots + 1; i < wire::bnxt::k_wqe_slots; ++i)
      store_part(slot + i * wire::bnxt::k_slot_bytes, vec16{0, 0, 0, 0});
  }

  struct progress {
    u64 upto;    // every ticket below is complete
    u32 vendor;  // why the one at `upto` is not; no reason is 0

    XIO_DEVICE void fail(u32 why) { vendor = why; }
  };

  XIO_DEVICE static void consume(const ring_view& r, u32 word, u32 consumer, progress& p) {
    const u32 type = wire::bnxt::cqe_state_type(word);
    const u32 why = wire::bnxt::cqe_state_status(word);
    const u32 mask = r.depth - 1;
    u32 at = wire::bnxt::cqe_consumer(consumer);
    // In variable mode a failed one is named by its first slot (qplib_fp.c, bnxt_qplib_get_cqe_sq_cons).
    if (by_slots(r) && type == wire::bnxt::cqe_request && why != wire::bnxt::ok) {
      if (at % wire::bnxt::k_wqe_slots != 0) return p.fail(k_strange_index | at);
      at = at / wire::bnxt::k_wqe_slots + 1;
    }
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
      // Entries before one that failed are complete; entries before one that was flushed need not be.
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

  XIO_DEVICE static void put_heads(unsigned char* slot, bool ask, bool whole, const rdma::work& w) {
    u32 head[4], second[4];
    u32 flags = ask ? wire::bnxt::k_signaled : 0;
    u32 used = whole ? wire::bnxt::k_wqe_slots : wire::bnxt::k_header_slots + 1;
    if (rdma::is_atomic(w.what)) {
      wire::bnxt::put_header(head, opcode_of(w), flags, used, w.rkey, w.remote);
      wire::bnxt::put_atomic(second, w.first, w.what == rdma::verb::fetch_add ? 0 : w.second);
    } else {
      if (w.from != rdma::payload::memory) {
        flags |= wire::bnxt::k_inline;
        if (!whole) used = wire::bnxt::inline_slots(w.bytes);
      }
      wire::bnxt::put_header(head, opcode_of(w), flags, used, w.what == rdma::verb::write_imm ? w.immediate : 0,
                             w.bytes);
      wire::bnxt::put_remote(second, w.remote, w.rkey);
    }
    store_part(slot, head);
    store_part(slot + 16, second);
  }

  XIO_DEVICE static void store_part(void* to, const u32* dw) { store_part(to, vec16{dw[0], dw[1], dw[2], dw[3]}); }
  XIO_DEVICE static void store_part(void* to, vec16 dw) { *static_cast<vec16*>(to) = dw; }
};

}  // namespace xio::dev
