// SPDX-License-Identifier: MIT
// Send queues of AMD's emulated NIC, legacy personality: an entry is one slot, the tail lies in memory and the doorbell
// only says that it has moved. A completion names its entry by the wr_id that we gave, which is the ticket.
//
// The format has no inline form. A payload that shall travel in the entry is stored in its unused end, and its SGE
// points there: the ring is registered memory (ernic_ring::slots_lkey), and a slot is not reused before its entry has
// ended.
#pragma once
#include "xio/device/impl/rdma_view.hpp"
#include "xio/device/impl/ring.hpp"
#include "xio/device/impl/view.hpp"
#include "xio/device/impl/work.hpp"
#include "xio/device/platform/platform.hpp"
#include "xio/wire/ernic.hpp"

namespace xio::dev {

struct ernic_codec {
  static constexpr bool k_in_order = true;
  static constexpr u32 k_slot_bytes = wire::ernic::k_wqe_bytes;
  // Codes of ours in ring_state::vendor: the NIC wrote what no NIC writes.
  static constexpr u32 k_strange_index = 0x10000;
  static constexpr u32 k_strange_request = 0x20000;

  XIO_DEVICE static void take_view(const ring_view& from, ring_view* to) {
    rdma::take_view(from, to);
    to->rdma.ernic.indices = view_field(from.rdma.ernic.indices);
    to->rdma.ernic.slots_lkey = view_field(from.rdma.ernic.slots_lkey);
  }

  // The NIC may read the tail at any time, for the sake of an earlier doorbell.
  XIO_DEVICE static void announce(const ring_view& r, u64, u64 to) {
    store<scope::system, order::release>(r.rdma.ernic.indices + wire::ernic::k_tx_tail,
                                         wire::ernic::index_of(to, r.rdma.depth_log2));
    ring_doorbell(reinterpret_cast<u32*>(r.rdma.doorbell), wire::ernic::doorbell(r.id));
  }

  // Takes all CQEs that are there, then gives their room back, and only then the ring's.
  XIO_DEVICE static u64 drain(const ring_view& r, u64 completed) {
    u32* page = reinterpret_cast<u32*>(r.rdma.completions);
    ring_state* s = r.state;
    const u64 head = load<scope::agent, order::relaxed>(&s->cq_head);
    const u32 tail = load<scope::system, order::acquire>(page + wire::ernic::k_rx_tail);
    const u32 more = wire::ernic::between(head, tail, r.rdma.cq_depth_log2);
    if (more == 0 && wire::ernic::is_index(tail, r.rdma.cq_depth_log2)) return completed;
    if (!wire::ernic::is_index(tail, r.rdma.cq_depth_log2) || more > r.rdma.cq_depth) {
      ring_fail(r, XIO_ERR_TRANSPORT, k_strange_index, completed);
      return completed;
    }
    progress p{completed, 0, false};
    for (u32 i = 0; i < more && !p.failed; ++i) consume(r, head + i, p);
    store<scope::agent, order::relaxed>(&s->cq_head, head + more);
    store<scope::system, order::release>(page + wire::ernic::k_rx_head,
                                         wire::ernic::index_of(head + more, r.rdma.cq_depth_log2));
    if (p.upto != completed) ring_complete<order::release>(r, completed, p.upto);
    if (p.failed) ring_fail(r, XIO_ERR_TRANSPORT, p.vendor, p.upto);
    ring_keep_stored();
    return p.upto;
  }

  // --- Entries (work.hpp) ---

  XIO_DEVICE static u32 slots(const rdma::work&) { return 1; }
  XIO_DEVICE static u32 packets(const ring_view&, const rdma::work&) { return 0; }

  XIO_DEVICE static void encode(const ring_view& r, u64 ticket, u64, bool ask, const rdma::work& w) {
    unsigned char* slot = ring_slot(r, ticket, k_slot_bytes);
    const bool atomic = rdma::is_atomic(w.what);
    const bool spare = !atomic && w.from != rdma::payload::memory;
    u32 part[8];
    wire::ernic::put_request(part, ticket, w.bytes == 0 ? 0 : 1, w.bytes);
    wire::ernic::put_operation(part + 4, opcode_of(w), ask ? wire::ernic::k_signaled : 0,
                               w.what == rdma::verb::write_imm ? w.immediate : 0);
    store_part(slot, part);
    store_part(slot + 16, part + 4);
    if (atomic) {
      const bool add = w.what == rdma::verb::fetch_add;
      wire::ernic::put_atomic(part, w.remote, add ? w.first : w.second, add ? 0 : w.first, w.rkey);
      store_part(slot + 48, part + 4);
    } else {
      wire::ernic::put_remote(part, w.remote, w.rkey);
    }
    store_part(slot + 32, part);
    wire::ernic::put_sge(part, spare ? reinterpret_cast<u64>(slot + wire::ernic::k_spare_at) : w.local, w.bytes,
                         spare ? r.rdma.ernic.slots_lkey : w.lkey);
    store_part(slot + wire::ernic::k_sge_at, part);
    if (spare && w.from != rdma::payload::gathered) rdma::put_inline(slot + wire::ernic::k_spare_at, w);
  }

  XIO_DEVICE static unsigned char* inline_at(const ring_view& r, u64 ticket, u32 i) {
    return ring_slot(r, ticket, k_slot_bytes) + wire::ernic::k_spare_at + i;
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

  XIO_DEVICE static void consume(const ring_view& r, u64 at, progress& p) {
    const u32* cqe = reinterpret_cast<const u32*>(r.rdma.completions + wire::ernic::k_page_bytes) +
                     (at & (r.rdma.cq_depth - 1)) * wire::ernic::k_cqe_dwords;
    const u32 why = load<scope::system, order::relaxed>(cqe + wire::ernic::k_cqe_status_at);
    const u32 vendor = why | (load<scope::system, order::relaxed>(cqe + wire::ernic::k_cqe_vendor_at) << 8);
    // These name no entry that would be the cause.
    if (why == wire::ernic::flushed || why == wire::ernic::fatal) return p.fail(vendor);
    const u64 ticket = load<scope::system, order::relaxed>(reinterpret_cast<const u64*>(cqe));
    if (ticket - p.upto >= load<scope::agent, order::relaxed>(&r.state->issued) - p.upto)
      return p.fail(k_strange_request);
    p.upto = ticket;
    if (why != wire::ernic::ok) return p.fail(vendor);
    ++p.upto;
  }

  XIO_DEVICE static u32 opcode_of(const rdma::work& w) {
    switch (w.what) {
      case rdma::verb::write: return wire::ernic::op_rdma_write;
      case rdma::verb::write_imm: return wire::ernic::op_rdma_write_imm;
      case rdma::verb::read: return wire::ernic::op_rdma_read;
      case rdma::verb::fetch_add: return wire::ernic::op_atomic_fa;
      default: break;  // masked forms are not asked of this family: family::atomics is 0
    }
    return wire::ernic::op_atomic_cs;
  }

  XIO_DEVICE static void store_part(void* to, const u32* dw) {
    *static_cast<vec16*>(to) = vec16{dw[0], dw[1], dw[2], dw[3]};
  }
};

}  // namespace xio::dev
