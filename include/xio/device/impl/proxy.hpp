// SPDX-License-Identifier: MIT
// The proxy's ring: entries that a host thread reads and posts. Every word of an entry says by itself that it is there,
// so there is nothing to ring, and nothing to wait for between an entry and what tells of it.
#pragma once
#include "xio/device/impl/rdma_view.hpp"
#include "xio/device/impl/ring.hpp"
#include "xio/device/impl/view.hpp"
#include "xio/device/impl/work.hpp"
#include "xio/device/platform/platform.hpp"
#include "xio/wire/proxy.hpp"

namespace xio::dev {

struct proxy_codec {
  static constexpr bool k_in_order = true;
  static constexpr u32 k_slot_bytes = wire::proxy::k_entry_bytes;
  // A code of ours in ring_state::vendor: a count that cannot be.
  static constexpr u32 k_strange_count = 0x20000;

  XIO_DEVICE static void take_view(const ring_view& from, ring_view* to) { rdma::take_view(from, to); }

  XIO_DEVICE static void announce(const ring_view&, u64, u64) { wake_devices(); }

  XIO_DEVICE static u64 drain(const ring_view& r, u64 completed) {
    const u64* words = reinterpret_cast<const u64*>(r.rdma.completions);
    const u64 now = load<scope::system, order::acquire>(words);
    const u64 count = now & ~wire::proxy::k_has_failed;
    if (count != completed) {
      if (count - completed > load<scope::agent, order::relaxed>(&r.state->issued) - completed) {
        ring_fail(r, XIO_ERR_TRANSPORT, k_strange_count, completed);
        return completed;
      }
      ring_complete(r, completed, count);
    }
    if (now != count) {
      const u64 why = load<scope::system, order::relaxed>(words + 1);
      ring_fail(r, XIO_ERR_TRANSPORT, static_cast<u32>(why) | (static_cast<u32>(why >> 32) << 8), count);
    }
    return count;
  }

  // --- Entries (work.hpp) ---

  XIO_DEVICE static u32 slots(const rdma::work&) { return 1; }
  XIO_DEVICE static u32 packets(const ring_view&, const rdma::work&) { return 0; }

  XIO_DEVICE static void encode(const ring_view& r, u64 ticket, u64, bool ask, const rdma::work& w) {
    const bool atomic = rdma::is_atomic(w.what);
    const bool inlined = !atomic && (w.from != rdma::payload::memory || w.bytes == 0);
    u32 flags = ask ? wire::proxy::k_signaled : 0;
    if (inlined) flags |= wire::proxy::k_inline;
    if (atomic && w.bytes == 4) flags |= wire::proxy::k_narrow;
    // Lanes' stores to memory that the NIC reads or writes must come before the entry. An entry that carries its bytes
    // needs no release, which on GPUs would be most of its cost; nor does an atomic: lanes only load the word of its
    // result, and a lane that has loaded it has given the word back.
    if (!inlined && !atomic) fence_before_stores<scope::system>();
    u64* slot = reinterpret_cast<u64*>(ring_slot(r, ticket, k_slot_bytes));
    const u32 generation = wire::proxy::generation(ticket, r.rdma.depth_log2);
    const auto put = [&](u32 at, u32 a, u32 b, u32 c, u32 d) XIO_INLINE_LAMBDA {
      using wire::proxy::word;
      store_pair(slot + at, word(generation, a), word(generation, b));
      store_pair(slot + at + 2, word(generation, c), word(generation, d));
    };
    // Part by part: a whole entry in registers would be most that a leaf has.
    put(0, wire::proxy::head(opcode_of(w), flags), atomic ? low(w.local) : w.bytes, low(w.remote), high(w.remote));
    if (atomic) {
      const bool masked = w.what == rdma::verb::masked_swap;
      const u64 swap = masked ? w.swap_mask : 0, compare = masked ? w.compare_mask : 0;
      put(4, w.rkey, w.lkey, low(w.first), high(w.first));
      put(8, low(w.second), high(w.second), low(swap), high(swap));
      put(12, low(compare), high(compare), high(w.local), 0);
      return;
    }
    if (inlined && w.from == rdma::payload::inlined) {
      store_pair(slot + 4, wire::proxy::word(generation, w.rkey), wire::proxy::word(generation, w.immediate));
      XIO_ROLLED for (u32 i = 0; i < wire::proxy::k_inline_bytes; i += 4) {
        store<scope::system, k_release_by_fence>(slot + wire::proxy::k_inline_at + i / 4,
                                                 wire::proxy::word(generation, rdma::source_word(w, i)));
      }
      return;
    }
    if (inlined) {
      put(4, w.rkey, w.immediate, rdma::value_word(w, 0), rdma::value_word(w, 4));
    } else {
      put(4, w.rkey, w.lkey, low(w.local), high(w.local));
    }
    put(8, inlined ? 0 : w.immediate, 0, 0, 0);
    put(12, 0, 0, 0, 0);
  }

 private:
  XIO_DEVICE static u32 low(u64 v) { return wire::proxy::low(v); }
  XIO_DEVICE static u32 high(u64 v) { return wire::proxy::high(v); }

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
