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

// For post: `remote` is the offset. The leaf, which has the ring in registers, adds the peer's address and key.
XIO_DEVICE work asked_work(verb what, u64 offset, u32 bytes) {
  work w{};
  w.what = what;
  w.from = payload::memory;
  w.bytes = bytes;
  w.remote = offset;
  return w;
}

// WRITE from, or READ to, local memory.
XIO_DEVICE work transfer(verb what, u64 offset, const void* local, u32 bytes, u32 lkey) {
  work w = asked_work(what, offset, bytes);
  w.local = reinterpret_cast<u64>(local);
  w.lkey = lkey;
  return w;
}

XIO_DEVICE u64 low_bytes(u64 value, u32 width) { return width >= 8 ? value : value & ((u64{1} << (8 * width)) - 1); }

XIO_DEVICE work write_value(u64 offset, u64 value, u32 width) {
  work w = asked_work(verb::write, offset, width);
  w.from = payload::value;
  w.first = low_bytes(value, width);
  return w;
}

// The operands of an atomic, as the verb has them.
struct operands {
  u64 first, second;
};
XIO_DEVICE work atomic_work(verb what, u64 offset, u32 width, const operands& by, u64* result) {
  work w = asked_work(what, offset, width);
  w.local = reinterpret_cast<u64>(result);
  w.first = by.first;
  w.second = by.second;
  return w;
}

XIO_DEVICE work signal_work(const ctx_view& c, const engine_signal_word& s) {
  if (s.op == XIO_SIGNAL_ADD) return atomic_work(verb::fetch_add, s.offset, 8, {s.value, 0}, c.scratch + k_dummy_word);
  return write_value(s.offset, s.value, 8);
}

}  // namespace xio::dev::rdma
