// SPDX-License-Identifier: MIT
// The RDMA lane: a kernel writes work queue entries of the NIC by itself. Thread scope; any lanes of a wave may call in
// any divergence: ops of lanes that call together on one queue are posted together, with one completion and one
// doorbell.
//
// A queue pair works in order (RC): a signal that follows its data on the queue is visible after it, and the request of
// an op's last entry stands for the whole op. With several queue pairs to a PE the workgroup chooses one, always the
// same. `offset` is a place in the peer's heap that the caller has checked. A request of 0 means that there was nothing
// to do.
#pragma once
#include "xio/device/impl/amo.hpp"
#include "xio/device/impl/deadline.hpp"
#include "xio/device/impl/families.hpp"
#include "xio/device/impl/reap.hpp"
#include "xio/device/impl/request.hpp"
#include "xio/device/impl/ring.hpp"
#include "xio/device/impl/view.hpp"
#include "xio/device/impl/work.hpp"
#include "xio/device/platform/lanes.hpp"
#include "xio/device/platform/platform.hpp"
#include "xio/wire/endian.hpp"
#include "xio/xio.h"

namespace xio::dev::rdma {

// Where results go that nobody asked for. Never handed out.
constexpr u32 k_dummy_word = 0;

// --- Posting -----------------------------------------------------------------------------------------

// The caller's queue pair to a peer that has any.
XIO_DEVICE const ring_view& queue_to(const peer_view& p) {
  return p.rdma[p.rdma_count == 1 ? 0 : workgroup_index() & (p.rdma_count - 1)];
}

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

// How an op is held while slots are taken: on NVIDIA in registers, for the same reason as held_ring.
#if defined(XIO_ON_CUDA)
using held_work = const work;
XIO_DEVICE work op_of(const work& first, const work* second, bool of_second) {
  if (!of_second) return first;
  return *second;
}
#else
using held_work = const work&;
XIO_DEVICE const work& op_of(const work& first, const work* second, bool of_second) {
  return of_second ? *second : first;
}
#endif

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

// Out of line: one copy of every family's code in a kernel, however many ops it calls. Ops come field by field, in
// registers: a structure would come through a thread's own memory.
#if defined(XIO_ON_CUDA)
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
XIO_LEAF posted_ops post_fields(const world_view& w, const ring_view& r, const work* second, verb what, payload from,
                                u32 bytes, u64 remote, u32 rkey, u32 lkey, u64 local, u64 operand, u64 compare,
                                u64 swap_mask, u64 compare_mask, u32 immediate) {
  const work first{what, from, bytes, remote, rkey, lkey, local, operand, compare, swap_mask, compare_mask, immediate};
  return post_held(w, r, first, second);
}
XIO_DEVICE posted_ops post_all(const world_view& w, const ring_view& r, const work& first, const work& second,
                               bool two) {
  return post_fields(w, r, two ? &second : nullptr, first.what, first.from, first.bytes, first.remote, first.rkey,
                     first.lkey, first.local, first.first, first.second, first.swap_mask, first.compare_mask,
                     first.immediate);
}
#else
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
  w.rkey = r.remote_key;
  w.lkey = r.scratch_lkey;
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

// The leaf of a family: posts for the lanes of one ring and one kind of op, as many as the ring takes at once.
// XIO_PENDING: nothing was posted for this lane. The second op's address, value and place of the result travel where a
// copy has no use for them: in compare, operand, and swap_mask.
template <class Family>
XIO_LEAF posted_ops post_leaf(const world_view& world, const ring_view& ring, u32 how_in, u32 bytes, u64 remote,
                              u32 lkey, u64 local, u64 operand, u64 compare, u64 swap_mask, u32 immediate) {
  using codec = leaf_codec<Family>;
  posted_ops out{k_not_yet, XIO_PENDING, false};
  if (!is_first_lanes(ring)) return out;
  const ring_view r = ring_in_registers(ring);
  // Words are loaded here: bytes of any length and place are many more instructions, in every entry.
  auto from = static_cast<payload>(how_in >> k_how_payload_at & 0xff);
  u64 value = operand;
  if (from == payload::inlined && (bytes == 4 || bytes == 8) && (local & 3) == 0) {
    typedef u32 any __attribute__((may_alias));
    const auto* words = reinterpret_cast<const any*>(local);
    const u32 second = words[bytes / 4 - 1];
    value = words[0] | u64{bytes == 8 ? second : 0} << 32;
    from = payload::value;
  }
  work w{static_cast<verb>(how_in & k_how_verb),
         from,
         bytes,
         remote,
         r.remote_key,
         lkey,
         local,
         value,
         compare,
         swap_mask,
         (how_in & k_how_compares) != 0 ? ~u64{0} : 0,
         immediate};
  const u32 slots = Family::slots(w);
  const u32 kind =
      (how_in & ~(0xffu << k_how_payload_at)) | static_cast<u32>(from) << k_how_payload_at | slots << k_how_slots_at;
  const lanes group = group_to_go(reinterpret_cast<u64>(&ring), kind);
  if (!group.has_caller()) return out;
  const u32 how = uniform_value(kind);
  w.what = static_cast<verb>(how & k_how_verb);
  w.from = static_cast<payload>(how >> k_how_payload_at & 0xff);
  const bool two = (how & (k_how_sets | k_how_adds)) != 0;
  ring_claim claim{how >> k_how_slots_at, Family::packets(r, w), bytes};
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
      Family::encode(r, at, serial, last, signal_behind(r, true, compare, operand, swap_mask));
    else
      Family::encode(r, at, serial, last, signal_behind(r, false, compare, operand, 0));
  };
  out.status = ring_post_batch<codec>(turn, r, world, claim, share, &out.ticket, &out.serves, fill);
  return out;
}

// Rings for others, by the lane that is the ringer.
XIO_LEAF void serve_leaf(const ring_view& ring) { ring_serve_others<nic_codec>(ring_in_registers(ring)); }

XIO_DEVICE posted_ops post_all(const world_view& w, const ring_view& r, const work& first, const work& second,
                               bool two) {
  u32 how = static_cast<u32>(first.what) | static_cast<u32>(first.from) << k_how_payload_at;
  if (first.compare_mask != 0) how |= k_how_compares;
  u64 operand = first.first, compare = first.second, swap_mask = first.swap_mask;
  if (two) {
    how |= second.what == verb::fetch_add ? k_how_adds : k_how_sets;
    operand = second.first;
    compare = second.remote;
    swap_mask = second.local;
  }
  return ring_post_by(
      r, false, [&] { return slots_of<nic_codec>(r, first) + (two ? 1 : 0); },
      [&](u32 slots, u64* since) { return find_room(r, slots, w, since); }, [&] { serve_leaf(r); },
      [&] {
        // By the family of the first lane's ring: lanes of other rings have no turn in that leaf.
        return with_kind(view_field(uniform(r).kind), [&](auto family) XIO_INLINE_LAMBDA {
          return post_leaf<decltype(family)>(w, r, how, first.bytes, first.remote, first.lkey, first.local, operand,
                                             compare, swap_mask, first.immediate);
        });
      });
}
#endif

// two: the second op, a signal, stays with the first; else it is not looked at.
XIO_DEVICE xio_status_t post_ops(const world_view& w, const ring_view& r, const work& first, const work& second,
                                 bool two, u64* ticket) {
  const posted_ops done = post_all(w, r, first, second, two);
  *ticket = done.ticket;
  return done.status;
}

XIO_DEVICE xio_status_t post(const ctx_view& c, const ring_view& r, const work& w, u64* ticket) {
  return post_ops(*c.world, r, w, w, false, ticket);
}

XIO_DEVICE xio_status_t wait_below(const ring_view& ring, u64 upto, const world_view& w) {
  if constexpr (k_posts_by_leaf) return wait_ring(ring, upto, w);
  held_ring r = ring;
  return with_family(r, [&](auto family) { return ring_wait_below<decltype(family)>(r, upto, w); });
}

// --- Local memory ------------------------------------------------------------------------------------

XIO_DEVICE bool region_holds(const region_view& row, u64 at, u64 bytes) {
  return load<scope::system, order::acquire>(&row.live) != 0 && at >= row.base && at - row.base <= row.bytes &&
         bytes <= row.bytes - (at - row.base);
}

struct key_found {
  u32 lkey;
  xio_status_t status;
};

// Finds the key of NIC `nic` for [p, p + bytes). The heap is row 0, and nearly always the region that contains it.
XIO_DEVICE key_found find_key_here(const world_view& w, u32 nic, const void* p, u64 bytes) {
  const u64 at = reinterpret_cast<u64>(p);
  XIO_ROLLED for (u32 i = 0; i < k_max_regions; ++i) {
    if (region_holds(w.regions[i], at, bytes)) return key_found{w.regions[i].lkey[nic], XIO_OK};
  }
  return key_found{0, XIO_ERR_NOT_REGISTERED};
}
// Where posting is a leaf this is one, too.
XIO_LEAF key_found find_key_leaf(const world_view& w, u32 nic, const void* p, u64 bytes) {
  return find_key_here(w, nic, p, bytes);
}
XIO_DEVICE key_found find_key(const world_view& w, u32 nic, const void* p, u64 bytes) {
  if constexpr (k_posts_by_leaf) return find_key_leaf(w, nic, p, bytes);
  return find_key_here(w, nic, p, bytes);
}

// --- Ops ---------------------------------------------------------------------------------------------

XIO_DEVICE work make_work(const ring_view& r, verb what, u64 offset, u32 bytes) {
  work w{};
  w.what = what;
  w.from = payload::memory;
  w.bytes = bytes;
  w.remote = r.remote_heap + offset;
  w.rkey = r.remote_key;
  return w;
}

// WRITE from, or READ to, local memory.
XIO_DEVICE work transfer(const ring_view& r, verb what, u64 offset, const void* local, u32 bytes, u32 lkey) {
  work w = make_work(r, what, offset, bytes);
  w.local = reinterpret_cast<u64>(local);
  w.lkey = lkey;
  if (what != verb::read && bytes <= r.inline_bytes) w.from = payload::inlined;
  return w;
}

XIO_DEVICE u64 low_bytes(u64 value, u32 width) { return width >= 8 ? value : value & ((u64{1} << (8 * width)) - 1); }

XIO_DEVICE work write_value(const ring_view& r, u64 offset, u64 value, u32 width) {
  work w = make_work(r, verb::write, offset, width);
  w.from = payload::value;
  w.first = low_bytes(value, width);
  return w;
}

XIO_DEVICE work atomic_work(const ring_view& r, verb what, u64 offset, u32 width, u64 first, u64 second, u64* result) {
  work w = make_work(r, what, offset, width);
  w.local = reinterpret_cast<u64>(result);
  w.lkey = r.scratch_lkey;
  w.first = first;
  w.second = second;
  return w;
}

XIO_DEVICE work signal_work(const ctx_view& c, const ring_view& r, u64 offset, u64 value, int op) {
  if (op == XIO_SIGNAL_ADD) return atomic_work(r, verb::fetch_add, offset, 8, value, 0, c.scratch + k_dummy_word);
  return write_value(r, offset, value, 8);
}

// --- put, get ----------------------------------------------------------------------------------------

// A copy between local memory and a peer's heap, as it is cut into messages.
struct copy_job {
  verb what;
  u64 offset;
  const unsigned char* local;
  u64 bytes;
  u32 lkey;
};

// Needs a key unless all of it travels in an entry.
XIO_DEVICE xio_status_t find_copy_key(const ctx_view& c, const ring_view& r, copy_job* j) {
  if (j->what != verb::read && j->bytes <= r.inline_bytes && j->bytes <= r.chunk) return XIO_OK;
  const key_found key = find_key(*c.world, r.nic, j->local, j->bytes);
  j->lkey = key.lkey;
  return key.status;
}

// A signal behind a copy, or none.
struct signal_job {
  bool wanted;
  u64 offset;
  u64 value;
  int op;
};

// The whole copy, then the signal in one reservation with its last message.
XIO_DEVICE xio_status_t post_copy(const ctx_view& c, const ring_view& r, copy_job copy, const signal_job& after,
                                  u32 immediate, xio_req_t* request) {
  const verb what = copy.what == verb::write_imm ? verb::write : copy.what;
  u64 ticket = 0;
  work signal{};
  if (after.wanted) signal = signal_work(c, r, after.offset, after.value, after.op);
  xio_status_t status = find_copy_key(c, r, &copy);
  for (bool last = false; status == XIO_OK && !last;) {
    last = copy.bytes <= r.chunk;
    const u32 bytes = last ? static_cast<u32>(copy.bytes) : r.chunk;
    work piece = transfer(r, last ? copy.what : what, copy.offset, copy.local, bytes, copy.lkey);
    if (last) piece.immediate = immediate;
    status = post_ops(*c.world, r, piece, signal, last && after.wanted, &ticket);
    copy.offset += bytes;
    copy.local += bytes;
    copy.bytes -= bytes;
  }
  if (status == XIO_OK) *request = make_request(r, ticket);
  return status;
}

// The source may be reused when the request is complete.
XIO_DEVICE xio_status_t put(const ctx_view& c, u32 pe, u64 offset, const void* src, u64 bytes, xio_req_t* request) {
  *request = 0;
  const peer_view& p = c.peers[pe];
  if (p.rdma == nullptr) return XIO_ERR_NO_ROUTE;
  if (bytes == 0) return XIO_OK;
  const copy_job j{verb::write, offset, static_cast<const unsigned char*>(src), bytes, 0};
  return post_copy(c, queue_to(p), j, signal_job{}, 0, request);
}

// The destination holds the data when the request is complete.
XIO_DEVICE xio_status_t get(const ctx_view& c, u32 pe, void* dst, u64 offset, u64 bytes, xio_req_t* request) {
  *request = 0;
  const peer_view& p = c.peers[pe];
  if (p.rdma == nullptr) return XIO_ERR_NO_ROUTE;
  if (bytes == 0) return XIO_OK;
  const copy_job j{verb::read, offset, static_cast<const unsigned char*>(dst), bytes, 0};
  return post_copy(c, queue_to(p), j, signal_job{}, 0, request);
}

// A put whose arrival the peer's receive queue tells, with 32 bits of the sender's. No bytes are allowed: the
// immediate travels alone.
XIO_DEVICE xio_status_t put_immediate(const ctx_view& c, u32 pe, u64 offset, const void* src, u64 bytes, u32 immediate,
                                      xio_req_t* request) {
  *request = 0;
  const peer_view& p = c.peers[pe];
  if (p.rdma == nullptr) return XIO_ERR_NO_ROUTE;
  const copy_job j{verb::write_imm, offset, static_cast<const unsigned char*>(src), bytes, 0};
  return post_copy(c, queue_to(p), j, signal_job{}, immediate, request);
}

// --- One value ---------------------------------------------------------------------------------------

// Whether all lanes of the group write values of one width, one beside the other in the order of the lanes.
XIO_DEVICE bool is_one_row(const lanes& group, const ring_view& r, u64 offset, u32 width) {
  // Both before they are used: every lane must take part in every shuffle.
  const u64 first = group.first(offset);
  const u64 common = group.first(width);
  const bool all = group.ballot(offset == first + group.rank() * width && width == common) == group.mask;
  return all && r.gather_bytes >= 2 * width && r.gather_bytes / 64 < r.depth / 4;
}

#if defined(XIO_ON_CUDA)
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

// Writes the low `width` (1, 2, 4, 8) bytes of value.
XIO_DEVICE xio_status_t put_value(const ctx_view& c, u32 pe, u64 offset, u64 value, u32 width, xio_req_t* request) {
  *request = 0;
  const peer_view& p = c.peers[pe];
  if (p.rdma == nullptr) return XIO_ERR_NO_ROUTE;
  const ring_view& r = queue_to(p);
  xio_status_t status = XIO_OK;
  u64 ticket = 0;
  bool merged = false;
  for_each_key(reinterpret_cast<u64>(&r), [&](const lanes& group) {
    if (group.count() == 1) return;
    merged = is_one_row(group, r, offset, width);
    if (!merged) return;
    status = with_family(r, [&](auto family) {
      if constexpr (!k_gathers<decltype(family)>) {
        return XIO_ERR_UNSUPPORTED;  // its gather_bytes are 0, so nothing is one row
      } else {
        const u32 per = r.gather_bytes / width;
        return post_gathered<decltype(family)>(*c.world, group, r, offset, value, width, per, &ticket);
      }
    });
  });
  if (!merged) status = post(c, r, write_value(r, offset, value, width), &ticket);
  *request = status == XIO_OK ? make_request(r, ticket) : 0;
  return status;
}
#else
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
  const ring_view r = ring_in_registers(ring);
  if (group.alone() || !is_one_row(group, r, offset, width)) return posted_ops{0, XIO_ERR_UNSUPPORTED, false};
  const bool now = group.rank() < r.gather_bytes / width;
  const lanes turn{group.ballot(now)};
  if (!now) return out;
  out.ticket = 0;
  out.status = post_one_row(turn, r, world, offset, value, width, &out.ticket, &out.serves);
  return out;
}

// Writes the low `width` (1, 2, 4, 8) bytes of value.
XIO_DEVICE xio_status_t put_value(const ctx_view& c, u32 pe, u64 offset, u64 value, u32 width, xio_req_t* request) {
  *request = 0;
  const peer_view& p = c.peers[pe];
  if (p.rdma == nullptr) return XIO_ERR_NO_ROUTE;
  const ring_view& r = queue_to(p);
  posted_ops done{0, XIO_ERR_UNSUPPORTED, false};
  if (!converged_lanes().alone()) {
    done = ring_post_by(
        r, false, [&] { return r.gather_bytes / 64 + 1; },
        [&](u32 slots, u64* since) { return find_room(r, slots, *c.world, since); }, [&] { serve_leaf(r); },
        [&] { return post_row_leaf(*c.world, r, offset, value, width); });
  }
  if (done.status == XIO_ERR_UNSUPPORTED) done.status = post(c, r, write_value(r, offset, value, width), &done.ticket);
  *request = done.status == XIO_OK ? make_request(r, done.ticket) : 0;
  return done.status;
}
#endif

// --- Signals -----------------------------------------------------------------------------------------

XIO_DEVICE xio_status_t signal(const ctx_view& c, u32 pe, u64 offset, u64 value, int op, xio_req_t* request) {
  *request = 0;
  const peer_view& p = c.peers[pe];
  if (p.rdma == nullptr) return XIO_ERR_NO_ROUTE;
  const ring_view& r = queue_to(p);
  u64 ticket = 0;
  const xio_status_t status = post(c, r, signal_work(c, r, offset, value, op), &ticket);
  if (status == XIO_OK) *request = make_request(r, ticket);
  return status;
}

// Data and signal are one reservation on one queue, which works in order: nothing waits in between.
XIO_DEVICE xio_status_t put_signal(const ctx_view& c, u32 pe, u64 offset, const void* src, u64 bytes, u64 signal_offset,
                                   u64 value, int op, xio_req_t* request) {
  if (bytes == 0) return signal(c, pe, signal_offset, value, op, request);
  *request = 0;
  const peer_view& p = c.peers[pe];
  if (p.rdma == nullptr) return XIO_ERR_NO_ROUTE;
  const ring_view& r = queue_to(p);
  const copy_job j{verb::write, offset, static_cast<const unsigned char*>(src), bytes, 0};
  return post_copy(c, r, j, signal_job{true, signal_offset, value, op}, 0, request);
}

// --- Results -----------------------------------------------------------------------------------------

// A word of the ctx's scratch memory, or none right now. Lanes of a wave start at different places.
XIO_DEVICE bool take_word(const ctx_view& c, u32* word) {
  const u32 groups = (c.scratch_count + 63) / 64;
  const u32 turn = (lane_id() + 1) & 63;
  for (u32 g = 0; g < groups; ++g) {
    const u64 there = c.scratch_count - 64 * g >= 64 ? ~u64{0} : (u64{1} << (c.scratch_count - 64 * g)) - 1;
    u64 free = there & ~load<scope::agent, order::relaxed>(&c.scratch_used[g]);
    if (g == 0) free &= ~(u64{1} << k_dummy_word);
    if (free == 0) continue;
    const u64 turned = (free >> turn) | (free << ((64 - turn) & 63));
    const u64 bit = u64{1} << ((lowest_bit(turned) + turn) & 63);
    if ((fetch_or<scope::agent, order::acquire>(&c.scratch_used[g], bit) & bit) == 0) {
      *word = 64 * g + lowest_bit(bit);
      return true;
    }
  }
  return false;
}

XIO_DEVICE void give_word(const ctx_view& c, u32 word) {
  fetch_and<scope::agent, order::release>(&c.scratch_used[word / 64], ~(u64{1} << (word & 63)));
}

// Takes a word, lets post_with(word's address, &ticket) post an op that writes to it, waits, reads. A lane that has a
// word runs to the end inside the branch: no lane holds one while it waits for lanes that want one.
template <class PostWith>
XIO_DEVICE xio_status_t with_result(const ctx_view& c, const ring_view& r, u64* value, PostWith&& post_with) {
  if (c.scratch_count <= k_dummy_word + 1) return XIO_ERR_UNSUPPORTED;
  const deadline end = deadline::in(*c.world);
  xio_status_t status = XIO_OK;
  for (bool done = false; !done;) {
    u32 word = 0;
    if (take_word(c, &word)) {
      u64 ticket = 0;
      status = post_with(c.scratch + word, &ticket);
      const bool is_posted = status == XIO_OK;
      if (is_posted) status = wait_below(r, ticket + 1, *c.world);
      if (status == XIO_OK) *value = load<scope::system, order::relaxed>(c.scratch + word);
      // After a timeout the NIC may still write there: the word stays taken. Not so of what a ring that has timed out
      // before does not take.
      if (!is_posted || status != XIO_ERR_TIMEOUT) give_word(c, word);
      done = true;
    } else {
      done = !end.wait_more();
      if (done) status = XIO_ERR_TIMEOUT;
    }
  }
  return status;
}

// Reads `width` (1, 2, 4, 8) bytes into the low end of *value.
XIO_DEVICE xio_status_t get_value(const ctx_view& c, u32 pe, u64 offset, u32 width, u64* value) {
  const peer_view& p = c.peers[pe];
  if (p.rdma == nullptr) return XIO_ERR_NO_ROUTE;
  const ring_view& r = queue_to(p);
  const xio_status_t status = with_result(c, r, value, [&](u64* word, u64* ticket) {
    return post(c, r, transfer(r, verb::read, offset, word, width, r.scratch_lkey), ticket);
  });
  if (status == XIO_OK) *value = low_bytes(*value, width);
  return status;
}

// --- Atomics -----------------------------------------------------------------------------------------

// The operands of the masked forms that each op becomes; see wire/mlx5.hpp.
//   add      fetch-add, no field boundaries           xor      fetch-add, every bit a field: no carry at all
//   set      swap all bits, compare none              or, and  swap the bits that v sets or clears, compare none
struct masked_form {
  bool is_add;
  u64 first;         // add, or swap
  u64 second;        // boundary, or compare
  u64 swap_mask;     // compare-swap only
  u64 compare_mask;  // compare-swap only
};

XIO_DEVICE masked_form form_of(amo op, u64 operand, u64 compare) {
  const u64 all = ~u64{0};
  switch (op) {
    case amo::fetch: return masked_form{true, 0, 0, 0, 0};
    case amo::add: return masked_form{true, operand, 0, 0, 0};
    case amo::bit_xor: return masked_form{true, operand, all, 0, 0};
    case amo::set: return masked_form{false, operand, 0, all, 0};
    case amo::bit_or: return masked_form{false, operand, 0, operand, 0};
    case amo::bit_and: return masked_form{false, 0, 0, ~operand, 0};
    case amo::compare_swap: break;
  }
  return masked_form{false, operand, compare, all, all};
}

// Every op is one entry: nothing is retried from here.
XIO_DEVICE xio_status_t post_atomic(const ctx_view& c, const ring_view& r, u64 offset, u32 width, amo op, u64 operand,
                                    u64 compare, u64* result, u64* ticket) {
  const masked_form f = form_of(op, operand, compare);
  const bool masked = width == 4 || op == amo::bit_xor || (!f.is_add && op != amo::compare_swap);
  const verb what =
      f.is_add ? (masked ? verb::masked_add : verb::fetch_add) : (masked ? verb::masked_swap : verb::compare_swap);
  work w = atomic_work(r, what, offset, width, f.first, f.second, result);
  w.swap_mask = f.swap_mask;
  w.compare_mask = f.compare_mask;
  return post(c, r, w, ticket);
}

// Returns the new value of a word.
XIO_DEVICE u64 changed(amo op, u64 old, u64 operand, u64 compare) {
  switch (op) {
    case amo::fetch: return old;
    case amo::set: return operand;
    case amo::compare_swap: return old == compare ? operand : old;
    case amo::add: return old + operand;
    case amo::bit_and: return old & operand;
    case amo::bit_or: return old | operand;
    case amo::bit_xor: break;
  }
  return old ^ operand;
}

// The atomics that a NIC lacks, by its 8-byte compare-and-swap until nobody came in between. Words of 4 bytes are half
// of 8 aligned ones, where the NIC keeps the other half safe.
XIO_DEVICE xio_status_t atomic_by_swaps(const ctx_view& c, const ring_view& r, u64 offset, u32 width, amo op,
                                        u64 operand, u64 compare, u64* old) {
  if (width == 4 && (r.atomics & nic_four_in_eight) == 0) return XIO_ERR_UNSUPPORTED;
  const u32 shift = width == 4 ? 8 * (static_cast<u32>(offset) & 4) : 0;
  const u64 mask = (width == 4 ? u64{0xffffffff} : ~u64{0}) << shift;
  const u64 at = offset & ~u64{7};
  const deadline end = deadline::in(*c.world);
  u64 guess = 0;
  xio_status_t status = with_result(c, r, &guess, [&](u64* word, u64* ticket) {
    return post(c, r, atomic_work(r, verb::fetch_add, at, 8, 0, 0, word), ticket);
  });
  while (status == XIO_OK) {
    *old = (guess & mask) >> shift;
    const u64 want = (guess & ~mask) | ((changed(op, *old, operand, compare) << shift) & mask);
    if (want == guess) break;
    u64 found = 0;
    status = with_result(c, r, &found, [&](u64* word, u64* ticket) {
      return post(c, r, atomic_work(r, verb::compare_swap, at, 8, want, guess, word), ticket);
    });
    if (status != XIO_OK || found == guess) break;
    guess = found;
    if (end.passed()) status = XIO_ERR_TIMEOUT;
  }
  return status;
}

XIO_DEVICE bool nic_has(const ring_view& r, amo op, u32 width) {
  if (width == 4) return (r.atomics & nic_native_4) != 0;
  const bool plain = op == amo::fetch || op == amo::add || op == amo::compare_swap;
  return plain || (r.atomics & nic_masked) != 0;
}

// width is 4 or 8. With `fetch` waits and gives the old value; else *old is not to be used, and what the NIC has in one
// entry is not waited for.
XIO_DEVICE xio_status_t atomic(const ctx_view& c, u32 pe, u64 offset, u32 width, amo op, u64 operand, u64 compare,
                               bool fetch, u64* old) {
  const peer_view& p = c.peers[pe];
  if (p.rdma == nullptr) return XIO_ERR_NO_ROUTE;
  const ring_view& r = queue_to(p);
  if (!nic_has(r, op, width)) {
    u64 found = 0;
    const xio_status_t status = atomic_by_swaps(c, r, offset, width, op, operand, compare, &found);
    if (fetch) *old = found;
    return status;
  }
  if (!fetch) {
    u64 ticket = 0;
    return post_atomic(c, r, offset, width, op, operand, compare, c.scratch + k_dummy_word, &ticket);
  }
  const xio_status_t status = with_result(c, r, old, [&](u64* word, u64* ticket) {
    return post_atomic(c, r, offset, width, op, operand, compare, word, ticket);
  });
  // ConnectX puts results of 4 bytes big endian, those of 8 in the host's order (NVSHMEM, ibgda_device.cuh).
  if (status == XIO_OK && width == 4 && r.kind == ring_kind::mlx5) *old = wire::be32(static_cast<u32>(*old));
  return status;
}

}  // namespace xio::dev::rdma
