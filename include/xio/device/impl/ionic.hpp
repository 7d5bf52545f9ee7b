// SPDX-License-Identifier: MIT
// AMD Pensando send queues on the ring: entries of 64 bytes with the colour of their lap. The NIC tells how many
// messages have ended, either in one collapsed CQE that every completion overwrites (CCQE), or in a completion queue of
// coloured entries. A ring of n entries holds n-1: a doorbell says nothing but an index.
//
// Every op that XIO posts is a message to the peer, so the count of messages is the count of entries.
#pragma once
#include "xio/device/impl/rdma_view.hpp"
#include "xio/device/impl/ring.hpp"
#include "xio/device/impl/view.hpp"
#include "xio/device/impl/work.hpp"
#include "xio/device/platform/platform.hpp"
#include "xio/wire/ionic.hpp"

namespace xio::dev {

struct ionic_codec {
  static constexpr bool k_in_order = true;
  static constexpr u32 k_slot_bytes = wire::ionic::k_wqe_bytes;
  // Codes of ours in ring_state::vendor: the NIC wrote what no NIC writes.
  static constexpr u32 k_strange_type = 0x10000;
  static constexpr u32 k_strange_count = 0x20000;

  XIO_DEVICE static void take_view(const ring_view& from, ring_view* to) {
    rdma::take_view(from, to);
    to->rdma.ionic.cq_doorbell = view_field(from.rdma.ionic.cq_doorbell);
    to->rdma.ionic.cq_id = view_field(from.rdma.ionic.cq_id);
    to->rdma.ionic.version = view_field(from.rdma.ionic.version);
  }

  XIO_DEVICE static void announce(const ring_view& r, u64, u64 to) {
    ring_doorbell(r.rdma.doorbell, wire::ionic::doorbell_value(r.id, static_cast<u32>(to) & (r.depth - 1)));
  }

  // Of the one entry that every completion overwrites the count is read first: if the state that is read after it tells
  // of no error, then nothing that it counts has failed, and an error stays as it is. An entry of a queue is whole once
  // its colour is there. A queue's room is given back for at most as many as the ring holds, so that those, as many
  // under way and word of a flush fit into it.
  XIO_DEVICE static u64 drain(const ring_view& r, u64) {
    const bool queue = r.rdma.cq_depth != 0;
    const u64 first = queue ? load<scope::agent, order::relaxed>(&r.state->cq_head) : 0;
    u64 head = first;
    for (bool more = true; more && head - first < r.depth - 1;) {
      const u64 at = queue ? head & (r.rdma.cq_depth - 1) : 0;
      const u32* cqe = reinterpret_cast<const u32*>(r.rdma.completions) + at * wire::ionic::k_cqe_dwords;
      u32 msn = queue ? 0 : load<scope::system, order::acquire>(cqe + wire::ionic::k_cqe_msn_at);
      const u32 state = load<scope::system, order::acquire>(cqe + wire::ionic::k_cqe_state_at);
      // No type: nothing yet, or it is being overwritten.
      const bool there = queue
                             ? wire::ionic::cqe_state_color(state) == wire::ionic::color_of(head, r.rdma.cq_depth_log2)
                             : wire::ionic::cqe_state_type(state) != 0;
      if (!there) break;
      if (queue) msn = load<scope::system, order::relaxed>(cqe + wire::ionic::k_cqe_msn_at);
      more = consume(r, cqe, state, wire::be32(msn)) && queue;
      ++head;
    }
    if (queue && head != first) {
      store<scope::agent, order::relaxed>(&r.state->cq_head, head);
      ring_doorbell(r.rdma.ionic.cq_doorbell,
                    wire::ionic::doorbell_value(r.rdma.ionic.cq_id, static_cast<u32>(head) & (r.rdma.cq_depth - 1)));
      ring_keep_stored();
    }
    return ring_completed<order::relaxed>(r);
  }

  // --- Entries (work.hpp) ---

  XIO_DEVICE static u32 slots(const rdma::work&) { return 1; }
  XIO_DEVICE static u32 packets(const ring_view&, const rdma::work&) { return 0; }

  XIO_DEVICE static void encode(const ring_view& r, u64 ticket, u64, bool ask, const rdma::work& w) {
    const bool atomic = rdma::is_atomic(w.what);
    const bool inlined = !atomic && (w.from != rdma::payload::memory || w.bytes == 0);
    u32 flags = wire::ionic::color_of(ticket, r.rdma.depth_log2) ? u32{wire::ionic::flag_color} : 0;
    if (ask) flags |= wire::ionic::flag_signaled;
    if (inlined) flags |= wire::ionic::flag_inline;
    u32 part[4];
    unsigned char* slot = ring_slot(r, ticket, k_slot_bytes);
    wire::ionic::put_base(part, static_cast<u32>(ticket) & (r.depth - 1), opcode_of(r, w), inlined ? 0 : 1, flags,
                          w.what == rdma::verb::write_imm ? w.immediate : 0);
    store_part(slot, part);
    wire::ionic::put_remote(part, w.remote, w.rkey, atomic ? wire::ionic::high(w.first) : w.bytes);
    store_part(slot + 16, part);
    if (atomic) {
      put_operands(r, slot, w);
    } else if (!inlined) {
      wire::ionic::put_sge(part, w.local, w.bytes, w.lkey);
      store_part(slot + 32, part);
    } else if (w.from != rdma::payload::gathered) {
      rdma::put_inline(slot + wire::ionic::k_payload_at, w);
    }
  }

  XIO_DEVICE static unsigned char* inline_at(const ring_view& r, u64 ticket, u32 i) {
    return ring_slot(r, ticket, k_slot_bytes) + wire::ionic::k_payload_at + i;
  }

 private:
  // Of the messages that have ended 16 bits are enough: fewer than that are under way.
  XIO_DEVICE static u64 ahead_of(const ring_view& r, u32 msn) {
    const u64 completed = ring_completed<order::relaxed>(r);
    return (msn - static_cast<u32>(completed)) & 0xffff;
  }

  // `upto` messages more have ended, if that many were posted.
  XIO_DEVICE static bool advance(const ring_view& r, u64 ahead) {
    const u64 completed = ring_completed<order::relaxed>(r);
    if (ahead > load<scope::agent, order::relaxed>(&r.state->issued) - completed) {
      ring_fail(r, XIO_ERR_TRANSPORT, k_strange_count, completed);
      return false;
    }
    if (ahead != 0) ring_complete(r, completed, completed + ahead);
    return true;
  }

  // An error CQE: of a message by its number, of an entry by its index; or word of a flush or of a wrong doorbell,
  // which name none of ours. An entry can fail before messages in front of it have ended (ionic_comp_npg leaves those
  // to the count), so only what is counted has ended well.
  XIO_DEVICE static void fail(const ring_view& r, const u32* cqe, u32 state) {
    const u32 why = wire::be32(load<scope::system, order::relaxed>(cqe + wire::ionic::k_cqe_status_at));
    const u32 index = load<scope::system, order::relaxed>(cqe + wire::ionic::k_cqe_index_at) & 0xffff;
    const u64 counted = ahead_of(r, wire::be32(load<scope::system, order::relaxed>(cqe + wire::ionic::k_cqe_msn_at)));
    const u64 completed = ring_completed<order::relaxed>(r);
    u64 ahead = 0, good = 0;
    if (why == wire::ionic::flushed) {
      // Completions that were not reported before this error are lost.
    } else if (wire::ionic::cqe_state_type(state) == wire::ionic::type_send_msn) {
      ahead = good = (counted - 1) & 0xffff;
    } else {
      ahead = (index - static_cast<u32>(completed)) & (r.depth - 1);
      good = counted <= ahead ? counted : 0;
    }
    if (ahead >= load<scope::agent, order::relaxed>(&r.state->issued) - completed) ahead = good = 0;
    if (good != 0) ring_complete(r, completed, completed + good);
    ring_fail(r, XIO_ERR_TRANSPORT, why, completed + ahead);
  }

  // False after a failure.
  XIO_DEVICE static bool consume(const ring_view& r, const u32* cqe, u32 state, u32 msn) {
    const u32 type = wire::ionic::cqe_state_type(state);
    if (type != wire::ionic::type_send_msn && type != wire::ionic::type_send_npg) {
      ring_fail(r, XIO_ERR_TRANSPORT, k_strange_type | type, ring_completed<order::relaxed>(r));
      return false;
    }
    if (!wire::ionic::cqe_state_error(state)) return advance(r, ahead_of(r, msn));
    fail(r, cqe, state);
    return false;
  }

  XIO_DEVICE static u32 opcode_of(const ring_view& r, const rdma::work& w) {
    const auto face = r.rdma.ionic.version == 1 ? wire::ionic::interface::v1 : wire::ionic::interface::v2;
    switch (w.what) {
      case rdma::verb::write: return wire::ionic::opcode(face, wire::ionic::verb::write);
      case rdma::verb::write_imm: return wire::ionic::opcode(face, wire::ionic::verb::write_imm);
      case rdma::verb::read: return wire::ionic::opcode(face, wire::ionic::verb::read);
      case rdma::verb::fetch_add: return wire::ionic::opcode(face, wire::ionic::verb::fetch_add);
      default: break;  // masked forms are not asked of this family: family::atomics is 0
    }
    return wire::ionic::opcode(face, wire::ionic::verb::compare_swap);
  }

  // From byte 32 on: low half of swap or add, compare, then where the old value goes.
  XIO_DEVICE static void put_operands(const ring_view& r, unsigned char* slot, const rdma::work& w) {
    using wire::be32;
    const bool v1 = r.rdma.ionic.version == 1;
    const u64 compare = w.what == rdma::verb::fetch_add ? 0 : w.second;
    u32 part[4] = {be32(wire::ionic::low(w.first)), be32(wire::ionic::high(compare)), be32(wire::ionic::low(compare)),
                   v1 ? 0 : be32(w.lkey)};
    store_part(slot + 32, part);
    wire::ionic::put_sge(part, w.local, v1 ? 8 : 0, v1 ? w.lkey : 0);
    store_part(slot + 48, part);
  }

  XIO_DEVICE static void store_part(void* to, const u32* dw) {
    *static_cast<vec16*>(to) = vec16{dw[0], dw[1], dw[2], dw[3]};
  }
};

}  // namespace xio::dev
