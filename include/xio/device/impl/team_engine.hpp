// SPDX-License-Identifier: MIT
// What a team's calls give to engines: by one thread, and out of line. Inlined wherever a collective sends or waits,
// this was most of a kernel: for an AMD GPU a reduce had 113,000 instructions and kept registers in memory.
#pragma once
#include "xio/device/impl/signal.hpp"
#include "xio/device/impl/sync.hpp"

namespace xio::dev::teams {

// Whether loads and stores are not the way to a PE's memory, so that all that a team sends there is posted. The same
// after the PE was excluded, for that may be while a group is in a call, whose threads go one way.
XIO_DEVICE bool is_behind_engine(const peer_view& p) {
  return !k_has_direct || p.by_engine != 0 || p.direct == nullptr;
}

// The queues that carry what a team sends there: the workgroup's own, see queue_to.
template <class Use>
XIO_DEVICE void for_queues_to(const peer_view& p, Use&& use) {
  if (k_has_rdma && p.rdma != nullptr) use(*awake(rdma::queue_to(p)));
  if (k_has_sdma && p.sdma != nullptr) use(sdma::queue_to(p));
}

XIO_DEVICE u64 heap_offset_of(const ctx_view& c, const void* symmetric) {
  return reinterpret_cast<u64>(symmetric) - reinterpret_cast<u64>(c.world->heap);
}

// A block that one member sends to another; 0 bytes are a word alone.
struct outgoing_block {
  void* place;  // as an address of this PE
  const void* from;
  u64 bytes;
};

// Records an op that an engine has not taken. The caller has the status, so quiet says nothing of it.
XIO_DEVICE xio_status_t record_unposted(const ctx_view& c, xio_status_t status, const call& what) {
  return status != XIO_OK ? record_call(what, c, status) : status;
}

// Sends a block and a word behind it, as one chain on one queue: `place` is checked and symmetric, and its PE is behind
// an engine. The block comes first: so it travels in registers. Nothing waits for it: a word that takes the place of
// this one is sent when its reader has read this one (team_layout.hpp).
XIO_OUT_OF_LINE xio_status_t put_word_by_one(outgoing_block b, const ctx_view& c, u32 pe, u64* word, u64 value) {
  const peer_view& peer = c.peers[pe];
  const route way = b.bytes == 0 ? peer.atomic : choose(c, pe, b.bytes, true);
  const u64 offset = heap_offset_of(c, b.place), word_offset = heap_offset_of(c, word);
  if (is_posted(way)) {
    const engine_signal_word s{word_offset, value, XIO_SIGNAL_SET};
    const posted p =
        b.bytes == 0 ? engine_signal(c, way, pe, s) : engine_put_signal(c, way, pe, {offset, b.from, b.bytes}, s);
    void* first = b.bytes == 0 ? word : b.place;
    const call what = call_of(call_kind::put_signal, first, b.from, b.bytes, static_cast<int>(pe));
    return record_unposted(c, p.status, what);
  }
  if (b.bytes != 0) direct::move_beside<direct::source::own>(peer.direct + offset, b.from, b.bytes);
  direct::signal<order::release>(reinterpret_cast<u64*>(peer.direct + word_offset), value, XIO_SIGNAL_SET);
  return XIO_OK;
}

// Whether the engine that carries a block reaches it here. The way changes when the PE is excluded.
XIO_OUT_OF_LINE bool engine_reaches(const ctx_view& c, u32 pe, outgoing_block b) {
  if (b.bytes == 0) return true;
  const route way = choose(c, pe, b.bytes, true);
  if constexpr (k_has_rdma)
    if (way == route::rdma) {
      const ring_view& r = rdma::queue_to(c.peers[pe]);
      return rdma::find_key(*c.world, r.rdma.nic, b.from, b.bytes).status == XIO_OK;
    }
  if constexpr (k_has_sdma)
    if (way == route::sdma) return sdma::reachable(*c.world, b.from, b.bytes);
  return true;
}

XIO_OUT_OF_LINE waited quiet_by_one(const ctx_view& c) { return quiet_slow(c); }

}  // namespace xio::dev::teams
