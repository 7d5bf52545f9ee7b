// SPDX-License-Identifier: MIT
// The proxy's ring: entries that a host thread reads and posts. Every lane publishes its own entry by its generation,
// so there is nothing to ring.
#pragma once
#include "xio/device/platform.hpp"
#include "xio/device/ring.hpp"
#include "xio/device/view.hpp"
#include "xio/device/work.hpp"
#include "xio/wire/proxy.hpp"

namespace xio::dev {

struct proxy_codec {
  static constexpr bool k_in_order = true;
  static constexpr u32 k_slot_bytes = wire::proxy::k_entry_bytes;
  // A code of ours in ring_state::vendor: a count that cannot be.
  static constexpr u32 k_strange_count = 0x20000;

  XIO_DEVICE static bool may_issue(const ring_view&) { return true; }
  XIO_DEVICE static void announce(const ring_view&, u64, u64) {}

  XIO_DEVICE static u64 drain(const ring_view& r) {
    const u64* words = reinterpret_cast<const u64*>(r.completion);
    // The status comes after its count: who sees it sees the last count there will be.
    const u64 failure = load<scope::system, order::acquire>(words + 1);
    const u64 count = load<scope::system, order::acquire>(words);
    const u64 completed = load<scope::agent, order::relaxed>(&r.state->completed);
    if (count - completed > load<scope::agent, order::relaxed>(&r.state->issued) - completed) {
      ring_fail(r, XIO_ERR_TRANSPORT, k_strange_count, completed);
      return completed;
    }
    if (count != completed) ring_complete(r, completed, count);
    if (failure != 0)
      ring_fail(r, XIO_ERR_TRANSPORT, static_cast<u32>(failure) | (static_cast<u32>(failure >> 32) << 8), count);
    return count;
  }

  // --- Entries (work.hpp) ---

  XIO_DEVICE static u32 slots(const rdma::work&) { return 1; }
  XIO_DEVICE static u32 packets(const ring_view&, const rdma::work&) { return 0; }

  XIO_DEVICE static void encode(const ring_view& r, u64 ticket, u64, bool ask, const rdma::work& w) {
    u32* slot = reinterpret_cast<u32*>(ring_slot(r, ticket, k_slot_bytes));
    const bool inlined = !rdma::is_atomic(w.what) && (w.from != rdma::payload::memory || w.bytes == 0);
    u32 flags = ask ? wire::proxy::k_signaled : 0;
    if (inlined) flags |= wire::proxy::k_inline;
    if (rdma::is_atomic(w.what) && w.bytes == 4) flags |= wire::proxy::k_narrow;
    const u32 head = wire::proxy::head(opcode_of(w), flags);
    if (rdma::is_atomic(w.what)) {
      const bool masked = w.what == rdma::verb::masked_swap;
      const u64 swap = masked ? w.swap_mask : 0, compare = masked ? w.compare_mask : 0;
      put(slot, head, low(w.local), low(w.remote), high(w.remote));
      put(slot + 4, w.rkey, w.lkey, low(w.first), high(w.first));
      put(slot + 8, low(w.second), high(w.second), low(swap), high(swap));
      put_tail(slot, low(compare), high(compare), high(w.local));
    } else {
      put(slot, head, w.bytes, low(w.remote), high(w.remote));
      if (inlined) {
        put(slot + 4, w.rkey, w.immediate, word(w, 0), word(w, 4));
        put(slot + 8, word(w, 8), word(w, 12), word(w, 16), word(w, 20));
        put_tail(slot, word(w, 24), word(w, 28), word(w, 32));
      } else {
        put(slot + 4, w.rkey, w.lkey, low(w.local), high(w.local));
        put(slot + 8, w.immediate, 0, 0, 0);
        put_tail(slot, 0, 0, 0);
      }
    }
    store<scope::system, order::release>(slot + wire::proxy::k_generation_at,
                                         wire::proxy::generation(ticket, r.depth_log2));
  }

  XIO_DEVICE static unsigned char* inline_at(const ring_view& r, u64 ticket, u32 i) {
    return ring_slot(r, ticket, k_slot_bytes) + 4 * wire::proxy::k_inline_at + i;
  }

 private:
  XIO_DEVICE static u32 low(u64 v) { return wire::proxy::low(v); }
  XIO_DEVICE static u32 high(u64 v) { return wire::proxy::high(v); }
  XIO_DEVICE static u32 word(const rdma::work& w, u32 i) { return rdma::inline_word(w, i); }

  XIO_DEVICE static void put(u32* to, u32 a, u32 b, u32 c, u32 d) { *reinterpret_cast<vec16*>(to) = vec16{a, b, c, d}; }
  // All but the generation.
  XIO_DEVICE static void put_tail(u32* slot, u32 a, u32 b, u32 c) {
    slot[12] = a;
    slot[13] = b;
    slot[14] = c;
  }

  XIO_DEVICE static u32 opcode_of(const rdma::work& w) {
    switch (w.what) {
      case rdma::verb::write: return wire::proxy::op_write;
      case rdma::verb::write_imm: return wire::proxy::op_write_imm;
      case rdma::verb::read: return wire::proxy::op_read;
      case rdma::verb::fetch_add: return wire::proxy::op_fetch_add;
      case rdma::verb::compare_swap: return wire::proxy::op_compare_swap;
      case rdma::verb::masked_add: return wire::proxy::op_masked_add;
      case rdma::verb::masked_swap: break;
    }
    return wire::proxy::op_masked_swap;
  }
};

}  // namespace xio::dev
