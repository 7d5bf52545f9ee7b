// SPDX-License-Identifier: MIT
// How the RDMA lane posts works. Where posting is a leaf (k_posts_by_leaf) the kernel chooses the leaf of the ring's
// family, and waits for room by itself; elsewhere one function posts and waits. Either is out of line: one copy of
// every family's code in a kernel, however many ops it calls. Works come field by field, in registers: a structure
// would come through a thread's own memory.
#pragma once
#include "xio/device/impl/families.hpp"
#include "xio/device/impl/rdma_work.hpp"
#include "xio/device/impl/reap.hpp"
#include "xio/device/impl/ring.hpp"
#include "xio/device/impl/view.hpp"
#include "xio/device/impl/work.hpp"
#include "xio/device/platform/lanes.hpp"
#include "xio/device/platform/platform.hpp"
#include "xio/xio.h"

namespace xio::dev::rdma {

// Whether all lanes of the group write values of one width, one beside the other in the order of the lanes.
XIO_DEVICE bool is_one_row(const lanes& group, const ring_view& r, u64 offset, u32 width) {
  // Both before they are used: every lane must take part in every shuffle.
  const u64 first = group.first(offset);
  const u64 common = group.first(width);
  const bool all = group.ballot(offset == first + group.rank() * width && width == common) == group.mask;
  return all && r.rdma.gather_bytes >= 2 * width && r.rdma.gather_bytes / 64 < r.depth / 4;
}

// --- By one function -----------------------------------------------------------------------------------

XIO_DEVICE posted_ops post_held(const world_view& w, const ring_view& ring, const work& first, const work* second) {
  held_ring r = ring;
  return with_family(r, [&](auto family) {
    using family_codec = decltype(family);
    posted_ops out{0, XIO_OK, false};
    const ring_claim claim = claim_of<family_codec>(r, first, second);
    for_each_key(reinterpret_cast<u64>(&ring), [&](const lanes& group) {
      out.status = ring_post<family_codec>(group, r, w, claim, &out.ticket, [&](u64 at, bool last, u64 serial = 0) {
        encode_ops<family_codec>(r, at, serial, last, first, second);
      });
    });
    return out;
  });
}

// After every acquire a thread's own memory is as far away as all other. That made half a microsecond of an op
// (docs/performance.md, "Rings on an H200").
XIO_LEAF posted_ops post_work(work first, const world_view& w, const ring_view& r, const work* second) {
  return post_held(w, r, first, second);
}
XIO_DEVICE posted_ops post_in_one(const world_view& w, const ring_view& r, const work& first, const work& second,
                                  bool two) {
  return post_work(first, w, r, two ? &second : nullptr);
}

// Values of lanes that lie side by side at the peer travel in as few entries as the family allows: each lane writes its
// own bytes into the entry. `per` lanes to an entry.
template <class Family>
XIO_DEVICE xio_status_t post_gathered(const world_view& w, const lanes& group, const ring_view& r, u64 offset,
                                      u64 value, u32 width, u32 per, u64* ticket) {
  xio_status_t status = XIO_OK;
  const u32 count = group.count();
  const u32 rank = group.rank();
  for (u32 base = 0; base < count; base += per) {
    const bool now = rank >= base && rank < base + per;
    const lanes turn{group.ballot(now)};
    if (!now) continue;
    work all = make_work(r, verb::write, turn.first(offset), width * turn.count());
    all.from = payload::gathered;
    const ring_claim claim{Family::slots(all), Family::packets(r, all), all.bytes};
    const u32 at = (rank - base) * width;
    bool serves = false;  // this codec serves by itself
    status = ring_post_together<Family>(turn, r, w, claim, ticket, &serves, [&](u64 first, u64 serial) {
      if (turn.rank() == 0) Family::encode(r, first, serial, true, all);
      if (width < 4) {
        unsigned char* to = Family::inline_at(r, first, at & ~3u) + (at & 3);
        for (u32 i = 0; i < width; ++i) to[i] = static_cast<unsigned char>(value >> (8 * i));
      } else {
        for (u32 i = 0; i < width; i += 4)
          *reinterpret_cast<u32*>(Family::inline_at(r, first, at + i)) = static_cast<u32>(value >> (8 * i));
      }
    });
  }
  return status;
}

// The low `width` bytes of a value, by lanes that write a row of them together or else each for itself.
XIO_DEVICE xio_status_t post_value_in_one(const world_view& w, const ring_view& r, u64 offset, u64 value, u32 width,
                                          u64* ticket) {
  xio_status_t status = XIO_OK;
  bool merged = false;
  for_each_key(reinterpret_cast<u64>(&r), [&](const lanes& group) {
    if (group.count() == 1) return;
    merged = is_one_row(group, r, offset, width);
    if (!merged) return;
    status = with_family(r, [&](auto family) {
      if constexpr (!k_gathers<decltype(family)>) {
        return XIO_ERR_UNSUPPORTED;  // its gather_bytes are 0, so nothing is one row
      } else {
        const u32 per = r.rdma.gather_bytes / width;
        return post_gathered<decltype(family)>(w, group, r, offset, value, width, per, ticket);
      }
    });
  });
  if (merged) return status;
  const work one = write_value(r, offset, value, width);
  const posted_ops done = post_in_one(w, r, one, one, false);
  *ticket = done.ticket;
  return done.status;
}

// --- By leaves ---------------------------------------------------------------------------------------

// A word names the work of a leaf: the verb, where the payload is, and these.
constexpr u32 k_how_verb = 0xff, k_how_payload_at = 8;
constexpr u32 k_how_sets = 1u << 16, k_how_adds = 1u << 17;  // a signal follows: a word of 8 bytes, set or added to
constexpr u32 k_how_compares = 1u << 18;                     // all bits are compared by a masked swap; else none
constexpr u32 k_how_slots_at = 24;                           // within the leaf: the slots that one lane needs

// The signal behind a copy.
XIO_DEVICE work signal_behind(const ring_view& r, bool adds, u64 remote, u64 value, u64 result) {
  work w{};
  w.what = adds ? verb::fetch_add : verb::write;
  w.from = adds ? payload::memory : payload::value;
  w.bytes = 8;
  w.remote = remote;
  w.rkey = r.rdma.remote_key;
  w.lkey = r.rdma.scratch_lkey;
  w.local = result;
  w.first = value;
  return w;
}

// A family's codec in a leaf, which does not wait.
template <class Family>
struct leaf_codec : Family {
  static constexpr bool k_tries = true;
};

// How many of a group's lanes post at once, as ring_lanes_per_round, where each needs `slots`. No division: where the
// ring is too small for all, the next power of two is precise enough.
XIO_DEVICE u32 equal_lanes_per_round(const lanes& group, const ring_view& r, u32 slots) {
  const u32 count = group.count();
  u32 most = r.depth / 2;
  if (count * slots <= most) return count;
  for (u32 power = 1; power < slots; power *= 2) most /= 2;
  return most == 0 ? 1 : most;
}

// The argument of a leaf: a work, or a copy and the signal behind it. 14 registers: a function on AMD takes a structure
// in registers as long as its arguments have 16 at most, so it comes first. The rkey is the ring's.
struct leaf_work {
  u32 how;  // see above
  u32 bytes;
  u64 remote, local;
  u64 operand;    // work::first; the signal's value
  u64 compare;    // work::second; the signal's address at the peer
  u64 swap_mask;  // where the old value of the signal goes
  u32 lkey;
  u32 immediate;
};
static_assert(sizeof(leaf_work) == 14 * 4);
XIO_DEVICE leaf_work leaf_work_of(const work& first, const work& second, bool two) {
  u32 how = static_cast<u32>(first.what) | static_cast<u32>(first.from) << k_how_payload_at;
  if (first.compare_mask != 0) how |= k_how_compares;
  leaf_work w{how,          first.bytes,     first.remote, first.local,    first.first,
              first.second, first.swap_mask, first.lkey,   first.immediate};
  if (two) {
    w.how |= second.what == verb::fetch_add ? k_how_adds : k_how_sets;
    w.operand = second.first;
    w.compare = second.remote;
    w.swap_mask = second.local;
  }
  return w;
}

// A payload of 4 or 8 aligned bytes becomes a value: bytes of any length and place are many more instructions, in every
// entry. The value stays beside the signal's, which has `operand`.
XIO_DEVICE u64 load_value(const leaf_work& in, payload* from) {
  if (*from != payload::inlined || (in.bytes != 4 && in.bytes != 8) || (in.local & 3) != 0) return in.operand;
  typedef u32 any __attribute__((may_alias));
  const auto* words = reinterpret_cast<const any*>(in.local);
  const u32 second = words[in.bytes / 4 - 1];
  *from = payload::value;
  return words[0] | u64{in.bytes == 8 ? second : 0} << 32;
}

// The leaf of a family: posts for the lanes of one ring and one kind of op, as many as the ring takes at once.
// XIO_PENDING: nothing was posted for this lane.
template <class Family>
XIO_LEAF posted_ops post_leaf(leaf_work in, const world_view& world, const ring_view& ring) {
  using codec = leaf_codec<Family>;
  posted_ops out{k_not_yet, XIO_PENDING, false};
  if (!is_first_lanes(ring)) return out;
  const ring_view r = ring_in_registers<Family>(ring);
  auto from = static_cast<payload>(in.how >> k_how_payload_at & 0xff);
  const u64 value = load_value(in, &from);
  work w{static_cast<verb>(in.how & k_how_verb),
         from,
         in.bytes,
         in.remote,
         r.rdma.remote_key,
         in.lkey,
         in.local,
         value,
         in.compare,
         in.swap_mask,
         (in.how & k_how_compares) != 0 ? ~u64{0} : 0,
         in.immediate};
  const u32 slots = Family::slots(w);
  const u32 kind =
      (in.how & ~(0xffu << k_how_payload_at)) | static_cast<u32>(from) << k_how_payload_at | slots << k_how_slots_at;
  const lanes group = group_to_go(reinterpret_cast<u64>(&ring), kind);
  if (!group.has_caller()) return out;
  const u32 how = uniform_value(kind);
  w.what = static_cast<verb>(how & k_how_verb);
  w.from = static_cast<payload>(how >> k_how_payload_at & 0xff);
  const bool two = (how & (k_how_sets | k_how_adds)) != 0;
  ring_claim claim{how >> k_how_slots_at, Family::packets(r, w), in.bytes};
  if (two) {
    claim.slots += 1;
    if constexpr (k_ring_is_serial<Family>) claim.packets += 1;
    claim.bytes += 8;
    w.second = w.swap_mask = 0;
  }
  const bool now = group.rank() < equal_lanes_per_round(group, r, claim.slots);
  const lanes turn{group.ballot(now)};
  if (!now) return out;
  out.ticket = 0;
  ring_share share;
  if constexpr (k_ring_is_serial<Family>)
    share = ring_sum(turn, claim);
  else
    share = ring_sum_equal(turn, claim);
  auto fill = [&](u64 at, bool last, u64 serial = 0) {
    Family::encode(r, at, serial, last && !two, w);
    if (!two) return;
    at += claim.slots - 1;
    serial = (serial + Family::packets(r, w)) & 0xffffff;
    if ((how & k_how_adds) != 0)
      Family::encode(r, at, serial, last, signal_behind(r, true, in.compare, in.operand, in.swap_mask));
    else
      Family::encode(r, at, serial, last, signal_behind(r, false, in.compare, in.operand, 0));
  };
  out.status = ring_post_batch<codec>(turn, r, world, claim, share, &out.ticket, &out.serves, fill);
  return out;
}

// Rings for others, by the lane that is the ringer.
XIO_LEAF void serve_leaf(const ring_view& ring) { ring_serve_others<nic_codec>(ring_in_registers<nic_codec>(ring)); }

XIO_DEVICE posted_ops post_by_leaf(const world_view& w, const ring_view& r, const work& first, const work& second,
                                   bool two) {
  const leaf_work op = leaf_work_of(first, second, two);
  return ring_post_by(
      r, false, [&] { return slots_of<nic_codec>(r, first) + (two ? 1 : 0); },
      [&](u32 slots, u64* since) { return find_room(r, slots, w, since); }, [&] { serve_leaf(r); },
      [&] {
        // By the family of the first lane's ring: lanes of other rings have no turn in that leaf.
        return with_kind(view_field(uniform(r).kind),
                         [&](auto family) XIO_INLINE_LAMBDA { return post_leaf<decltype(family)>(op, w, r); });
      });
}

// The lanes of `turn` write into one entry.
XIO_DEVICE xio_status_t post_one_row(const lanes& turn, const ring_view& r, const world_view& w, u64 offset, u64 value,
                                     u32 width, u64* ticket, bool* serves) {
  work all = make_work(r, verb::write, turn.first(offset), width * turn.count());
  all.from = payload::gathered;
  const ring_claim claim{nic_codec::slots(r, all), nic_codec::packets(r, all), all.bytes};
  const u32 at = turn.rank() * width;
  return ring_post_together<nic_codec>(turn, r, w, claim, ticket, serves, [&](u64 first, u64 serial) {
    if (turn.rank() == 0) nic_codec::encode(r, first, serial, true, all);
    if (width < 4) {
      unsigned char* to = inline_at(r, first, at & ~3u) + (at & 3);
      for (u32 i = 0; i < width; ++i) to[i] = static_cast<unsigned char>(value >> (8 * i));
    } else {
      for (u32 i = 0; i < width; i += 4)
        *reinterpret_cast<u32*>(inline_at(r, first, at + i)) = static_cast<u32>(value >> (8 * i));
    }
  });
}

// A leaf as post_leaf, for values of lanes that lie side by side at the peer: they travel in as few entries as the
// family allows, and each lane writes its own bytes. XIO_ERR_UNSUPPORTED: they do not. Rows are seldom, so it is one
// leaf for all families.
XIO_LEAF posted_ops post_row_leaf(const world_view& world, const ring_view& ring, u64 offset, u64 value, u32 width) {
  posted_ops out{k_not_yet, XIO_PENDING, false};
  const lanes group = group_to_go(reinterpret_cast<u64>(&ring), width);
  if (!group.has_caller()) return out;
  const ring_view r = ring_in_registers<nic_codec>(ring);
  if (group.alone() || !is_one_row(group, r, offset, width)) return posted_ops{0, XIO_ERR_UNSUPPORTED, false};
  const bool now = group.rank() < r.rdma.gather_bytes / width;
  const lanes turn{group.ballot(now)};
  if (!now) return out;
  out.ticket = 0;
  out.status = post_one_row(turn, r, world, offset, value, width, &out.ticket, &out.serves);
  return out;
}

// As post_value_in_one.
XIO_DEVICE xio_status_t post_value_by_leaf(const world_view& w, const ring_view& r, u64 offset, u64 value, u32 width,
                                           u64* ticket) {
  posted_ops done{0, XIO_ERR_UNSUPPORTED, false};
  if (!converged_lanes().alone()) {
    done = ring_post_by(
        r, false, [&] { return r.rdma.gather_bytes / 64 + 1; },
        [&](u32 slots, u64* since) { return find_room(r, slots, w, since); }, [&] { serve_leaf(r); },
        [&] { return post_row_leaf(w, r, offset, value, width); });
  }
  if (done.status == XIO_ERR_UNSUPPORTED) {
    const work one = write_value(r, offset, value, width);
    done = post_by_leaf(w, r, one, one, false);
  }
  *ticket = done.ticket;
  return done.status;
}

// --- By what suits the machine -----------------------------------------------------------------------

// two: the second op, a signal, stays with the first; else it is not looked at.
XIO_DEVICE posted_ops post_all(const world_view& w, const ring_view& r, const work& first, const work& second,
                               bool two) {
  if constexpr (k_posts_by_leaf) {
    return post_by_leaf(w, r, first, second, two);
  } else {
    return post_in_one(w, r, first, second, two);
  }
}

XIO_DEVICE xio_status_t post_ops(const world_view& w, const ring_view& r, const work& first, const work& second,
                                 bool two, u64* ticket) {
  const posted_ops done = post_all(w, r, first, second, two);
  *ticket = done.ticket;
  return done.status;
}

XIO_DEVICE xio_status_t post(const ctx_view& c, const ring_view& r, const work& w, u64* ticket) {
  return post_ops(*c.world, r, w, w, false, ticket);
}

// The low `width` bytes of a value; see post_value_in_one.
XIO_DEVICE xio_status_t post_value(const ctx_view& c, const ring_view& r, u64 offset, u64 value, u32 width,
                                   u64* ticket) {
  if constexpr (k_posts_by_leaf) {
    return post_value_by_leaf(*c.world, r, offset, value, width, ticket);
  } else {
    return post_value_in_one(*c.world, r, offset, value, width, ticket);
  }
}

XIO_DEVICE xio_status_t wait_below(const ring_view& ring, u64 upto, const world_view& w) {
  if constexpr (k_posts_by_leaf) return wait_ring(ring, upto, w);
  held_ring r = ring;
  return with_family(r, [&](auto family) { return ring_wait_below<decltype(family)>(r, upto, w); });
}

}  // namespace xio::dev::rdma
