// SPDX-License-Identifier: MIT
// ConnectX send queues on the ring: slots are 64-byte basic blocks, completions come in order through one collapsed CQE
// that every completion overwrites (CQ created with cc = 1, oi = 1).
#pragma once
#include "xio/device/platform.hpp"
#include "xio/device/ring.hpp"
#include "xio/device/view.hpp"
#include "xio/wire/mlx5.hpp"

namespace xio::dev {

// state->cq_head holds the counter of the CQE that was consumed last, plus 1: an old CQE says nothing new, and the
// slot that it names may belong to another WQE by now. Counters repeat after 65536 slots and at most 32768 are in
// flight, so a new CQE never looks like the last one.
struct mlx5_codec {
  static constexpr bool k_in_order = true;
  // Codes of ours in ring_state::vendor: the NIC wrote what no NIC writes.
  static constexpr u32 k_strange_opcode = 0x10000;
  static constexpr u32 k_strange_counter = 0x20000;

  XIO_DEVICE static bool may_issue(const ring_view&) { return true; }

  XIO_DEVICE static void announce(const ring_view& r, u64, u64 to) {
    store<scope::system, order::release>(r.record, wire::mlx5::record_value(to));
    store<scope::system, order::release>(r.doorbell, wire::mlx5::doorbell_value(to, r.id));
  }

  XIO_DEVICE static void drain(const ring_view& r) {
    const u32* cqe = reinterpret_cast<const u32*>(r.completion);
    ring_state* s = r.state;
    // One aligned load: opcode and counter belong together.
    const u32 word = load<scope::system, order::acquire>(cqe + wire::mlx5::k_cqe_state_at);
    const u32 opcode = wire::mlx5::cqe_state_opcode(word);
    if (opcode == wire::mlx5::cqe_invalid) return;
    const u32 counter = wire::mlx5::cqe_state_counter(word);
    if (opcode == wire::mlx5::cqe_request && load<scope::agent, order::relaxed>(&s->cq_head) == counter + u64{1})
      return;
    const u64 completed = load<scope::agent, order::relaxed>(&s->completed);
    const u64 flying = load<scope::agent, order::relaxed>(&s->issued) - completed;
    // The counter names the WQE's first slot: it is the first ticket from `completed` on with those 16 bits.
    const u64 first = completed + ((counter - static_cast<u32>(completed)) & 0xffff);
    if (opcode == wire::mlx5::cqe_request) {
      const u64 upto = first + slots_of(r, first);
      if (upto - completed > flying) return ring_fail(r, XIO_ERR_TRANSPORT, k_strange_counter | counter, completed);
      store<scope::agent, order::relaxed>(&s->cq_head, counter + u64{1});
      ring_complete(r, upto);
    } else if (opcode == wire::mlx5::cqe_request_error || opcode == wire::mlx5::cqe_response_error) {
      fail(r, cqe, word, completed, first - completed < flying ? first : completed);
    } else {
      ring_fail(r, XIO_ERR_TRANSPORT, k_strange_opcode | opcode, completed);
    }
  }

 private:
  // A WQE has up to 4 segments per slot; its control segment says how many. The slot is not reused before its
  // completion was consumed.
  XIO_DEVICE static u32 slots_of(const ring_view& r, u64 ticket) {
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
    if (failed != completed) ring_complete(r, failed);
    ring_fail(r, XIO_ERR_TRANSPORT, code | (wire::mlx5::cqe_vendor_syndrome(why) << 8), failed);
  }
};

}  // namespace xio::dev
