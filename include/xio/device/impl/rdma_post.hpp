// SPDX-License-Identifier: MIT
// How the RDMA lane posts works: the kernel calls a leaf, a function out of line that does not wait, and waits for room
// by itself. One copy of it is in a kernel, however many ops that calls; within it only entries and doorbells are the
// families' own.
#pragma once
#include "xio/device/impl/families.hpp"
#include "xio/device/impl/rdma_keys.hpp"
#include "xio/device/impl/rdma_work.hpp"
#include "xio/device/impl/reap.hpp"
#include "xio/device/impl/ring.hpp"
#include "xio/device/impl/view.hpp"
#include "xio/device/impl/work.hpp"
#include "xio/device/platform/lanes.hpp"
#include "xio/device/platform/platform.hpp"
#include "xio/xio.h"

namespace xio::dev::rdma {

// A lane writes the low `width` bytes of `value` to `offset` of the peer's heap.
struct lane_value {
  u64 offset, value;
  u32 width;
};

// Whether all lanes of the group write values of one width, one beside the other in the order of the lanes.
XIO_DEVICE bool is_one_row(const lanes& group, const ring_view& r, const lane_value& v) {
  // Both before they are used: every lane must take part in every shuffle.
  const u64 first = group.first(v.offset);
  const u64 common = group.first(v.width);
  const bool all = group.ballot(v.offset == first + group.rank() * v.width && v.width == common) == group.mask;
  return all && r.rdma.gather_bytes >= 2 * v.width && r.rdma.gather_bytes / 64 < r.depth / 4;
}

// --- Leaves ------------------------------------------------------------------------------------------

// A word names the work of a leaf: the verb, where the payload is, and these.
constexpr u32 k_how_verb = 0xff, k_how_payload_at = 8;
constexpr u32 k_how_sets = 1u << 16, k_how_adds = 1u << 17;  // a signal follows: a word of 8 bytes, set or added to
constexpr u32 k_how_compares = 1u << 18;                     // all bits are compared by a masked swap; else none
constexpr u32 k_how_keyed = 1u << 19;                        // the key of local memory is given
// Within the leaf: more of this op is to come; there is no key; the slots that one lane needs.
constexpr u32 k_how_cut = 1u << 20, k_how_keyless = 1u << 21, k_how_slots_at = 24;

// The argument of a leaf: an op, or a copy and the signal behind it. A copy may be longer than an entry carries. 15
// registers: a function on AMD takes a structure in registers as long as its arguments have 16 at most, so it comes
// first. The peer's address and key are the ring's.
struct leaf_op {
  u32 how;  // see above
  u32 key;  // of local memory, where `how` says that it is given
  u64 bytes, offset, local;
  u64 operand;    // work::first; the signal's value
  u64 compare;    // work::second; the signal's offset at the peer
  u64 swap_mask;  // where the old value of the signal goes
  u32 immediate;
};
XIO_DEVICE leaf_op leaf_op_of(const work& w) {
  u32 how = static_cast<u32>(w.what) | static_cast<u32>(w.from) << k_how_payload_at | k_how_keyed;
  if (w.compare_mask != 0) how |= k_how_compares;
  return leaf_op{how, w.lkey, w.bytes, w.remote, w.local, w.first, w.second, w.swap_mask, w.immediate};
}

// The signal behind a copy.
XIO_DEVICE work signal_behind(const ring_view& r, bool adds, u64 offset, u64 value, u64 result) {
  work w{};
  w.what = adds ? verb::fetch_add : verb::write;
  w.from = adds ? payload::memory : payload::value;
  w.bytes = 8;
  w.remote = r.rdma.remote_heap + offset;
  w.rkey = r.rdma.remote_key;
  w.lkey = r.rdma.scratch_lkey;
  w.local = result;
  w.first = value;
  return w;
}

// How many of a group's lanes post at once, as ring_lanes_per_round, where each needs `slots`. No division: where the
// ring is too small for all, the next power of two is precise enough.
XIO_DEVICE u32 equal_lanes_per_round(const lanes& group, const ring_view& r, u32 slots) {
  const u32 count = group.count();
  u32 most = r.depth / 2;
  if (count * slots <= most) return count;
  for (u32 power = 1; power < slots; power *= 2) most /= 2;
  return most == 0 ? 1 : most;
}

// The key of local memory that lies in the heap, as it nearly always does: the heap is row 0.
XIO_DEVICE bool find_heap_key(const world_view& w, u32 nic, u64 local, u64 bytes, u32* key) {
  const region_view& heap = uniform(w).regions[0];
  const u64 size = view_field(heap.bytes);
  const u64 at = local - view_field(heap.base);
  *key = view_field(heap.lkey[nic]);
  return at <= size && bytes <= size - at;
}

// The part of an op that a leaf posts for a lane now, and the word that all must have in common that post together.
struct leaf_piece {
  work op;
  u32 kind;
};
template <class Codec>
XIO_DEVICE leaf_piece piece_of(const world_view& world, const ring_view& r, const leaf_op& op) {
  const u32 how = uniform_value(op.how);  // lanes of another one have another kind, too
  const auto what = static_cast<verb>(how & k_how_verb);
  const bool last = op.bytes <= r.chunk;
  leaf_piece p{};
  work& w = p.op;
  w = work{what,
           static_cast<payload>(how >> k_how_payload_at & 0xff),
           last ? static_cast<u32>(op.bytes) : r.chunk,
           r.rdma.remote_heap + op.offset,
           r.rdma.remote_key,
           op.key,
           op.local,
           op.operand,
           op.compare,
           op.swap_mask,
           (how & k_how_compares) != 0 ? ~u64{0} : 0,
           op.immediate};
  p.kind = op.how & ~(0xffu << k_how_payload_at);
  if (!last) {
    p.kind = (p.kind & ~(k_how_sets | k_how_adds)) | k_how_cut;
    w.immediate = 0;
    if (what == verb::write_imm) p.kind -= static_cast<u32>(verb::write_imm) - static_cast<u32>(verb::write);
  }
  // The slots in each case by itself, where most of the question is known.
  u32 slots;
  if (is_atomic(what)) {
    w.lkey = r.rdma.scratch_lkey;
    slots = Codec::slots(r, w);
  } else if (w.from == payload::value) {
    slots = Codec::slots(r, w);
  } else if (what != verb::read && w.bytes <= r.rdma.inline_bytes) {
    w.from = payload::inlined;
    slots = Codec::slots(r, w);
    // 4 or 8 aligned bytes, and a lane of this kind of op, of which the place of a source is one. Words are loaded
    // here: bytes of any length and place are many more instructions, in every entry.
    if ((((w.bytes - 4) & ~4u) | (op.local & 3) | (op.how ^ how)) == 0) {
      typedef u32 any __attribute__((may_alias));
      const u32 behind = w.bytes >> 1 & 4;
      const u32 low = *reinterpret_cast<const any*>(op.local), high = *reinterpret_cast<const any*>(op.local + behind);
      w.first = low | u64{behind != 0 ? high : 0} << 32;
      w.from = payload::value;
      slots = Codec::slots(r, w);
    }
  } else {
    w.from = payload::memory;
    slots = Codec::slots(r, w);
    if ((how & k_how_keyed) == 0 && !find_heap_key(world, r.rdma.nic, op.local, op.bytes, &w.lkey))
      p.kind |= k_how_keyless;
  }
  p.kind |= static_cast<u32>(w.from) << k_how_payload_at | slots << k_how_slots_at;
  return p;
}

// Posts for the lanes of `turn`, which need one number of slots and have one kind of op: `how`.
template <class Codec>
XIO_DEVICE posted_ops post_pieces(const world_view& world, const lanes& turn, const ring_view& r, u32 how,
                                  const work& w, const leaf_op& op) {
  const bool two = (how & (k_how_sets | k_how_adds)) != 0;
  const u32 packets = Codec::packets(r, w);
  ring_claim claim{how >> k_how_slots_at, packets, w.bytes};
  if (two) {
    claim.slots += 1;
    if (packets != 0) claim.packets += 1;
    claim.bytes += 8;
  }
  const ring_share share = Codec::is_serial(r) ? ring_sum(turn, claim) : ring_sum_equal(turn, claim);
  auto fill = [&](u64 at, bool last, u64 serial = 0) {
    Codec::encode(r, at, serial, last && !two, w);
    if (!two) return;
    at += claim.slots - 1;
    serial = (serial + packets) & 0xffffff;
    Codec::encode(r, at, serial, last, signal_behind(r, (how & k_how_adds) != 0, op.compare, op.operand, op.swap_mask));
  };
  posted_ops out{0, XIO_PENDING};
  ring_result result{};
  out.status = ring_post_batch<Codec>(turn, r, world, {claim, share}, &result, fill);
  out.ticket = result.ticket;
  if (result.serves) out.mend = mend_serves;
  if (out.status == XIO_PENDING) out.mend |= share.slots;
  if (out.status == XIO_OK && (how & k_how_cut) != 0) out.mend |= mend_rest;
  return out;
}

// The leaf: posts for the lanes of one ring and one kind of op, as many as the ring takes at once. XIO_PENDING: nothing
// was posted for this lane.
template <class Codec>
XIO_LEAF posted_ops post_leaf(XIO_GIVEN(leaf_op) op, const world_view& world, const ring_view& ring) {
  const return_kept<> back;
  posted_ops out{0, XIO_PENDING, mend_not_yet};
  // Of the first lane: lanes of other rings have no turn.
  const ring_view r = ring_in_registers<Codec>(ring);
  leaf_piece p = piece_of<Codec>(world, r, op);
  lanes group;
  const bool joins = joins_group(reinterpret_cast<u64>(&ring), p.kind, &group);
  const u32 how = uniform_value(p.kind);
  const u32 slots = (how >> k_how_slots_at) + ((how & (k_how_sets | k_how_adds)) != 0 ? 1 : 0);
  const u32 most = equal_lanes_per_round(group, r, slots);
  const bool now = (static_cast<int>(joins) & static_cast<int>(group.rank() < most)) != 0;
  const lanes turn{group.ballot(now)};
  const int keyless = static_cast<int>((how & k_how_keyless) != 0);
  if ((static_cast<int>(now) & keyless) != 0) out.mend = mend_key;
  if ((static_cast<int>(now) & (keyless ^ 1)) == 0) return out;
  p.op.what = static_cast<verb>(how & k_how_verb);
  p.op.from = static_cast<payload>(how >> k_how_payload_at & 0xff);
  if (p.op.from == payload::gathered) __builtin_unreachable();  // by post_row_leaf alone
  return post_pieces<Codec>(world, turn, r, how, p.op, op);
}

// Rings for others, by the lane that is the ringer.
XIO_LEAF void serve_leaf(const ring_view& ring) {
  const return_kept<> back;
  ring_serve_others<nic_codec>(ring_in_registers<nic_codec>(ring));
}
XIO_LEAF key_found find_key_leaf(const world_view& w, u32 nic, const void* p, u64 bytes) {
  const return_kept<> back;
  return find_key(w, nic, p, bytes);
}

// The lanes of `turn` write into one entry.
XIO_DEVICE xio_status_t post_one_row(const lanes& turn, const ring_view& r, const world_view& w, const lane_value& v,
                                     ring_result* result) {
  work all = make_work(r, verb::write, turn.first(v.offset), v.width * turn.count());
  all.from = payload::gathered;
  const ring_claim claim{nic_codec::slots(r, all), nic_codec::packets(r, all), all.bytes};
  const u32 at = turn.rank() * v.width;
  return ring_post_together<nic_codec>(turn, r, w, claim, result, [&](u64 first, u64 serial) {
    if (turn.rank() == 0) nic_codec::encode(r, first, serial, true, all);
    if (v.width < 4) {
      unsigned char* to = inline_at(r, first, at & ~3u) + (at & 3);
      for (u32 i = 0; i < v.width; ++i) to[i] = static_cast<unsigned char>(v.value >> (8 * i));
    } else {
      for (u32 i = 0; i < v.width; i += 4)
        *reinterpret_cast<u32*>(inline_at(r, first, at + i)) = static_cast<u32>(v.value >> (8 * i));
    }
  });
}

// A leaf as post_leaf, for values of lanes that lie side by side at the peer: they travel in as few entries as the
// family allows, and each lane writes its own bytes. mend_no_row: they do not. Rows are seldom, so it is one
// leaf for all families.
XIO_LEAF posted_ops post_row_leaf(const world_view& world, const ring_view& ring, u64 offset, u64 value, u32 width) {
  const return_kept<> back;
  const lane_value v{offset, value, width};
  posted_ops out{0, XIO_PENDING, mend_not_yet};
  lanes group;
  if (!joins_group(reinterpret_cast<u64>(&ring), v.width, &group)) return out;
  const ring_view r = ring_in_registers<nic_codec>(ring);
  if (group.alone() || !is_one_row(group, r, v)) return posted_ops{0, XIO_PENDING, mend_no_row};
  const bool now = group.rank() < r.rdma.gather_bytes / v.width;
  const lanes turn{group.ballot(now)};
  if (!now) return out;
  ring_result result{};
  out.status = post_one_row(turn, r, world, v, &result);
  out.ticket = result.ticket;
  out.mend = (out.status == XIO_PENDING ? r.rdma.gather_bytes / 64 + 1 : 0) | (result.serves ? mend_serves : 0);
  return out;
}

// By the kernel: until all of an op is posted, or not for a reason. Copies may be cut, and may need a key that is not
// the heap's. It rings for others before the lane looks at its status, as in ring_post_by. Values that lie side by side
// are tried as one entry first (post_row_leaf).
template <bool IsCopy, bool IsValue = false>
XIO_DEVICE xio_status_t post_by_leaf(const world_view& w, const ring_view& first, leaf_op op, u64* ticket) {
  const ring_view* ring = &first;
  u64 since = 0;
  bool row = IsValue && !converged_lanes().alone();
  for (;;) {
    if (k_connects_late && view_field(uniform(*ring).depth) == 0) [[unlikely]] {
      const waited done = connect_leaf(*ring, w, since);
      if (done.status != XIO_OK) return done.status;
      since = done.since;
      ring = awake(*ring);
    }
    posted_ops done;
    if (IsValue && row) {
      done = post_row_leaf(w, *ring, op.offset, op.operand, static_cast<u32>(op.bytes));
    } else {
      // By the first lane's ring: lanes of other rings have no turn in that leaf.
      done = with_leaf_codec(chosen_families{}, view_field(uniform(*ring).kind),
                             [&](auto codec) XIO_INLINE_LAMBDA { return post_leaf<decltype(codec)>(op, w, *ring); });
    }
    *ticket = done.ticket;
    if (done.mend == 0) [[likely]]
      return done.status;
    if ((done.mend & mend_serves) != 0) serve_leaf(*ring);
    if (IsCopy && (done.mend & mend_rest) != 0) {
      op.offset += ring->chunk;
      op.local += ring->chunk;
      op.bytes -= ring->chunk;
      since = 0;
    } else if (done.status != XIO_PENDING) {
      return done.status;
    } else if (IsCopy && (done.mend & mend_key) != 0) {
      const key_found key = find_key_leaf(w, ring->rdma.nic, reinterpret_cast<const void*>(op.local), op.bytes);
      if (key.status != XIO_OK) return key.status;
      op.key = key.lkey;
      op.how |= k_how_keyed;
    } else if ((done.mend & mend_slots) != 0) {
      const xio_status_t status = find_room(*ring, done.mend & mend_slots, w, &since);
      if (status != XIO_OK) return status;
    } else if (IsValue && (done.mend & mend_no_row) != 0) {
      row = false;
    }
  }
}

// --- By kernels --------------------------------------------------------------------------------------

XIO_DEVICE xio_status_t post(const world_view& world, const ring_view& r, const work& w, u64* ticket) {
  return post_by_leaf<false>(world, r, leaf_op_of(w), ticket);
}
XIO_DEVICE xio_status_t post(const ctx_view& c, const ring_view& r, const work& w, u64* ticket) {
  return post(*view_field(c.world), r, w, ticket);
}

// Lanes whose values lie side by side at the peer write them into one entry together, else each posts for itself.
XIO_DEVICE xio_status_t post_value(const ctx_view& c, const ring_view& r, const lane_value& v, u64* ticket) {
  const work one = write_value(v.offset, v.value, v.width);
  return post_by_leaf<false, true>(*view_field(c.world), r, leaf_op_of(one), ticket);
}

}  // namespace xio::dev::rdma
