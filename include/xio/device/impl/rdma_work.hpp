// SPDX-License-Identifier: MIT
// The works of the RDMA lane: what an op on a queue pair is, before a family's codec makes an entry of it.
#pragma once
#include "xio/device/impl/ctx.hpp"
#include "xio/device/impl/engine_ops.hpp"
#include "xio/device/impl/families.hpp"
#include "xio/device/impl/ring.hpp"
#include "xio/device/impl/view.hpp"
#include "xio/device/impl/work.hpp"
#include "xio/device/platform/platform.hpp"
#include "xio/xio.h"

namespace xio::dev::rdma {

// Where results go that nobody asked for. Never handed out.
constexpr u32 k_dummy_word = 0;

// The caller's queue pair to a peer that has any; to be posted to: used_queue.
XIO_DEVICE const ring_view& queue_to(const peer_view& p) {
  // By a word, as in choose.
  static_assert(offsetof(peer_view, rdma_count) % 4 == 0 && offsetof(peer_view, rdma) % 4 == 0);
  typedef u32 any __attribute__((may_alias));
  const u32 count = view_field(*reinterpret_cast<const any*>(&p.rdma_count)) & 0xffff;
  return view_field(p.rdma)[count == 1 ? 0 : workgroup_index() & (count - 1)];
}

XIO_DEVICE const ring_view& used_queue(const ctx_view& c, const peer_view& p) {
  const ring_view& r = queue_to(p);
  mark_used(c, r);
  return r;
}

XIO_DEVICE work make_work(const ring_view& r, verb what, u64 offset, u32 bytes) {
  work w{};
  w.what = what;
  w.from = payload::memory;
  w.bytes = bytes;
  w.remote = r.rdma.remote_heap + offset;
  w.rkey = r.rdma.remote_key;
  return w;
}

// The same for post. Where that is a leaf, which has the ring in registers, it adds the peer's part: `remote` is the
// offset.
XIO_DEVICE work asked_work(const ring_view& r, verb what, u64 offset, u32 bytes) {
  if constexpr (!k_posts_by_leaf) return make_work(r, what, offset, bytes);
  work w{};
  w.what = what;
  w.from = payload::memory;
  w.bytes = bytes;
  w.remote = offset;
  return w;
}

// WRITE from, or READ to, local memory.
XIO_DEVICE work transfer(const ring_view& r, verb what, u64 offset, const void* local, u32 bytes, u32 lkey) {
  work w = asked_work(r, what, offset, bytes);
  w.local = reinterpret_cast<u64>(local);
  w.lkey = lkey;
  if (!k_posts_by_leaf && what != verb::read && bytes <= r.rdma.inline_bytes) w.from = payload::inlined;
  return w;
}

XIO_DEVICE u64 low_bytes(u64 value, u32 width) { return width >= 8 ? value : value & ((u64{1} << (8 * width)) - 1); }

XIO_DEVICE work write_value(const ring_view& r, u64 offset, u64 value, u32 width) {
  work w = asked_work(r, verb::write, offset, width);
  w.from = payload::value;
  w.first = low_bytes(value, width);
  return w;
}

// The operands of an atomic, as the verb has them.
struct operands {
  u64 first, second;
};
XIO_DEVICE work atomic_work(const ring_view& r, verb what, u64 offset, u32 width, const operands& by, u64* result) {
  work w = asked_work(r, what, offset, width);
  w.local = reinterpret_cast<u64>(result);
  if constexpr (!k_posts_by_leaf) w.lkey = r.rdma.scratch_lkey;
  w.first = by.first;
  w.second = by.second;
  return w;
}

XIO_DEVICE work signal_work(const ctx_view& c, const ring_view& r, const engine_signal_word& s) {
  if (s.op == XIO_SIGNAL_ADD)
    return atomic_work(r, verb::fetch_add, s.offset, 8, {s.value, 0}, c.scratch + k_dummy_word);
  return write_value(r, s.offset, s.value, 8);
}

// --- Works on a ring ---------------------------------------------------------------------------------

// The slots that an op takes: some families need the ring for that.
template <class Family>
XIO_DEVICE u32 slots_of(const ring_view& r, const work& w) {
  if constexpr (requires { Family::slots(r, w); }) {
    return Family::slots(r, w);
  } else {
    return Family::slots(w);
  }
}

// The claim on a ring of one op, or of two that stay together (data and its signal). second: null if there is none.
template <class Family>
XIO_DEVICE ring_claim claim_of(const ring_view& r, const work& first, const work* second) {
  ring_claim claim{slots_of<Family>(r, first), Family::packets(r, first), first.bytes};
  if (second != nullptr) {
    claim.slots += slots_of<Family>(r, *second);
    claim.packets += Family::packets(r, *second);
    claim.bytes += second->bytes;
  }
  return claim;
}

// How an op is held while slots are taken.
using held_work = held<work>;
XIO_DEVICE held_work op_of(const work& first, const work* second, bool of_second) {
  if (!of_second) return first;
  return *second;
}

template <class Family>
XIO_DEVICE void encode_ops(const ring_view& r, u64 ticket, u64 serial, bool last, const work& first,
                           const work* second) {
  const u32 count = second == nullptr ? 1 : 2;
  for (u32 i = 0; i < count; ++i) {
    held_work w = op_of(first, second, i != 0);
    Family::encode(r, ticket, serial, last && i + 1 == count, w);
    ticket += slots_of<Family>(r, w);
    serial = (serial + Family::packets(r, w)) & 0xffffff;
  }
}

}  // namespace xio::dev::rdma
