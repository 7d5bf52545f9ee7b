// SPDX-License-Identifier: MIT
// The SDMA lane: a kernel writes packets into a copy engine's queue by itself. Thread scope; any lanes of a wave may
// call in any divergence.
//
// One ring slot is 64 bytes = 16 dwords: whole packets, and one NOP packet for the rest. The ring size is a multiple
// of 64, so no packet straddles its end, and lanes fill their slots in parallel.
//   copy slot              COPY_LINEAR (7) NOP [FENCE (4)]
//   signal, counter slot   ATOMIC (8)      NOP [FENCE (4)]
//   tile slot              sub-window (13) NOP, and behind it always a slot of its own: NOP [FENCE (4)]
// FENCE comes last: with it the slot is free, and an engine must not have anything of it left to read.
// Serial copies may overlap inside an engine; FENCE and ATOMIC wait for what is before them. So the last slot of a
// batch carries a FENCE that writes the low word of its ticket + 1, and completion is that word: never the engine's
// read pointer, which says only what was fetched.
#pragma once
#include "xio/device/impl/ctx.hpp"
#include "xio/device/impl/direct.hpp"
#include "xio/device/impl/engine_ops.hpp"
#include "xio/device/impl/request.hpp"
#include "xio/device/impl/ring.hpp"
#include "xio/device/impl/scope.hpp"
#include "xio/device/impl/view.hpp"
#include "xio/device/platform/lanes.hpp"
#include "xio/device/platform/platform.hpp"
#include "xio/wire/sdma.hpp"
#include "xio/xio.h"

namespace xio::dev {

constexpr u32 k_sdma_slot_bytes = 64;
constexpr u32 k_sdma_slot_dwords = k_sdma_slot_bytes / 4;

// sdma_ring::completion points to this. An engine writes `fence` only. A model that refuses a packet also writes
// `fault`, a code other than 0, and where: the low word of a count of dwords since the queue's first.
struct alignas(16) sdma_completion {
  u32 fence;
  u32 fault;
  u32 fault_dword;
  u32 reserved;
};
static_assert(sizeof(sdma_completion) == 16);

struct sdma_codec {
  static constexpr bool k_in_order = true;

  XIO_DEVICE static void take_view(const ring_view& from, ring_view* to) {
    const sdma_ring& at = from.sdma;
    sdma_ring& r = to->sdma;
    r.doorbell = view_field(at.doorbell);
    r.write_pointer = view_field(at.write_pointer);
    r.completion = view_field(at.completion);
    r.generation = view_field(at.generation);
    r.granule = view_field(at.granule);
    r.least_slots = view_field(at.least_slots);
  }

  // Write pointer and doorbell count bytes since the queue was made and never wrap. The pointer's memory comes first:
  // the firmware reads it, and not the doorbell, when it gives an engine back to a queue that was switched out.
  XIO_DEVICE static void announce(const ring_view& r, u64, u64 to) {
    const u64 written = to * k_sdma_slot_bytes;
    store<scope::system, order::release>(r.sdma.write_pointer, written);
    ring_doorbell(r.sdma.doorbell, written);
  }

  XIO_DEVICE static u64 drain(const ring_view& r, u64 completed) {
    // Fence and fault in one load, so that no fence that was written before the fault is missed.
    const u64 both = load<scope::system, order::acquire>(reinterpret_cast<const u64*>(r.sdma.completion));
    const u32 ahead = static_cast<u32>(both) - static_cast<u32>(completed);
    const u32 fault = static_cast<u32>(both >> 32);
    if (ahead > r.depth) {
      // Not a value that this ring ever asked for: the word was overwritten.
      ring_fail(r, XIO_ERR_INTERNAL, static_cast<u32>(both), completed);
      return completed;
    }
    if (ahead != 0) ring_complete(r, completed, completed + ahead);
    if (fault != 0) {
      const auto* block = r.sdma.completion;
      const u32 slot = load<scope::system, order::relaxed>(&block->fault_dword) / k_sdma_slot_dwords;
      const u32 behind = (slot - static_cast<u32>(completed)) & (0xffffffffu / k_sdma_slot_dwords);
      ring_fail(r, XIO_ERR_TRANSPORT, fault, completed + behind);
    }
    return completed + ahead;
  }
};
static_assert(held_codec<sdma_codec>, "sdma_codec lacks what ring.hpp asks of a codec");

namespace sdma {

// --- Slots -------------------------------------------------------------------------------------------

// Fills the slot after `used` dwords: with a NOP, then the FENCE if the slot ends a batch.
template <u32 used>
XIO_DEVICE void finish_slot(const ring_view& r, u64 ticket, bool fenced, entry64& e) {
  if (fenced) {
    constexpr u32 fence_at = k_sdma_slot_dwords - wire::sdma::k_fence_dwords;
    wire::sdma::encode_nop(e.dw + used, fence_at - used);
    wire::sdma::encode_fence(e.dw + fence_at, r.sdma.generation, reinterpret_cast<u64>(r.sdma.completion),
                             static_cast<u32>(ticket + 1));
  } else {
    wire::sdma::encode_nop(e.dw + used, k_sdma_slot_dwords - used);
  }
  store_entry(ring_slot(r, ticket, k_sdma_slot_bytes), e);
}

// Nothing, or what ends a batch.
XIO_DEVICE void fill_end(const ring_view& r, u64 ticket, bool fenced) {
  entry64 e{};
  finish_slot<0>(r, ticket, fenced, e);
}

XIO_DEVICE void fill_copy(const ring_view& r, u64 ticket, bool fenced, u64 dst, u64 src, u32 bytes) {
  entry64 e{};
  wire::sdma::encode_copy_linear(e.dw, dst, src, bytes);
  finish_slot<wire::sdma::k_copy_linear_dwords>(r, ticket, fenced, e);
}

XIO_DEVICE void fill_atomic(const ring_view& r, u64 ticket, bool fenced, u32 code, u64 address, u64 value) {
  entry64 e{};
  wire::sdma::encode_atomic(e.dw, code, address, value, 0);
  finish_slot<wire::sdma::k_atomic_dwords>(r, ticket, fenced, e);
}

XIO_DEVICE void fill_tile(const ring_view& r, u64 ticket, const wire::sdma::tile& t) {
  entry64 e{};
  wire::sdma::encode_tile(e.dw, r.sdma.generation, t);
  finish_slot<wire::sdma::k_copy_sub_window_dwords>(r, ticket, false, e);
}

// --- Checks ------------------------------------------------------------------------------------------

// Whether engines may name this local memory: one region holds all of it.
XIO_DEVICE bool reachable(const world_view& w, const void* p, u64 bytes) {
  for (u32 i = 0; i < k_max_regions; ++i) {
    const region_view& region = w.regions[i];
    const u64 at = reinterpret_cast<u64>(p) - region.base;
    if (region.live != 0 && at <= region.bytes && bytes <= region.bytes - at) return true;
  }
  return false;
}

// The result of a copy between overlapping ranges is not defined on an engine that overlaps its reads and writes.
XIO_DEVICE bool overlap(u64 a, u64 b, u64 bytes) { return a != b && a < b + bytes && b < a + bytes; }

XIO_DEVICE bool signal_fits(u64 offset, int op) {
  return (offset & 7) == 0 && (op == XIO_SIGNAL_SET || op == XIO_SIGNAL_ADD);
}

// --- Posting -----------------------------------------------------------------------------------------

// fill(ticket, last) writes `slots` slots. Lanes that are here and go to the same ring post as one.
template <class Fill>
XIO_DEVICE xio_status_t post_slots(const world_view& w, const ring_view& r, u32 slots, u32 bytes, u64* ticket,
                                   Fill&& fill) {
  const u32 pad = slots < r.sdma.least_slots ? r.sdma.least_slots - slots : 0;
  const ring_claim claim{slots + pad, 0, bytes};
  const auto all = [&](u64 at, bool last) {
    for (u32 i = 0; i < pad; ++i) fill_end(r, at + i, false);
    fill(at + pad, last);
  };
  if (r.alone != 0) return ring_post_alone<sdma_codec>(r, w, claim, ticket, all);
  xio_status_t status = XIO_OK;
  for_each_key(reinterpret_cast<u64>(&r),
               [&](const lanes& group) { status = ring_post<sdma_codec>(group, r, w, claim, ticket, all); });
  return status;
}

// One op posts these: a copy, in pieces of at most a chunk, then perhaps a signal, then perhaps a count. 0: none.
struct chain {
  u64 dst, src, bytes;
  u64 signal, value;
  u64 counter;
  int op;
};

// The head and the tail that the engine does not take, or all of a copy whose ends never fit together, go by loads and
// stores: here and now, so before a signal, whose doorbell releases them. Of a get the source is a peer's.
template <direct::source From = direct::source::peer>
XIO_DEVICE void trim(const ring_view& r, chain& op) {
  if (r.sdma.granule == 1 || ((op.dst | op.src | op.bytes) & 3) == 0) return;
  const auto move = [&](u64 at, u64 bytes) {
    direct::move_beside<From>(in_device_memory(reinterpret_cast<void*>(op.dst + at)),
                              in_device_memory(reinterpret_cast<const void*>(op.src + at)), bytes);
  };
  u64 head = (4 - (op.dst & 3)) & 3;
  if (((op.dst ^ op.src) & 3) != 0 || op.bytes < head + 4) head = op.bytes;
  const u64 whole = (op.bytes - head) & ~u64{3};
  move(0, head);
  move(head + whole, op.bytes - head - whole);
  op.dst += head;
  op.src += head;
  op.bytes = whole;
}

// The part of a chain that one reservation carries.
struct piece {
  u32 copies, signals, counts, bytes;
  XIO_DEVICE u32 slots() const { return copies + signals + counts; }
};

// The codec of a leaf, which does not wait.
struct leaf_codec : sdma_codec {
  static constexpr bool k_tries = true;
};
constexpr u32 k_leaf_signals = 2, k_leaf_counts = 4, k_leaf_adds = 8, k_leaf_copies = 1;

// The argument of a leaf: a piece of a chain. 12 registers, so it comes first; see rdma::leaf_work.
struct leaf_piece {
  u32 how;    // bits of k_leaf_*
  u32 bytes;  // of the copy
  u64 dst, src;
  u64 signal, value;
  u64 counter;
};
static_assert(sizeof(leaf_piece) == 12 * 4);

// The leaf: one piece for each lane of one ring and one kind; see rdma.hpp.
XIO_LEAF posted_ops post_leaf(XIO_GIVEN(leaf_piece) in, const world_view& world, const ring_view& ring) {
  const return_kept<> back;
  posted_ops out{0, XIO_PENDING, mend_not_yet};
  lanes group;
  if (!joins_group(reinterpret_cast<u64>(&ring), in.how, &group)) return out;
  const ring_view r = ring_in_registers<sdma_codec>(ring);
  const u32 how = uniform_value(in.how);
  const piece p{how & k_leaf_copies, (how & k_leaf_signals) != 0 ? 1u : 0u, (how & k_leaf_counts) != 0 ? 1u : 0u,
                in.bytes};
  const u32 pad = p.slots() < r.sdma.least_slots ? r.sdma.least_slots - p.slots() : 0;
  const ring_claim claim{p.slots() + pad, 0, in.bytes};
  auto fill = [&](u64 at, bool last, u64 = 0) {
    XIO_ROLLED for (u32 i = 0; i < pad; ++i) fill_end(r, at + i, false);
    // Slot by slot, by one piece of code.
    XIO_ROLLED for (u32 i = 0; i < p.slots(); ++i) {
      const bool ends = last && i + 1 == p.slots();
      if (i < p.copies) {
        fill_copy(r, at + pad + i, ends, in.dst, in.src, in.bytes);
        continue;
      }
      const bool is_signal = i < p.copies + p.signals;
      const u32 code = !is_signal || (how & k_leaf_adds) != 0 ? wire::sdma::add_64 : wire::sdma::swap_64;
      fill_atomic(r, at + pad + i, ends, code, is_signal ? in.signal : in.counter, is_signal ? in.value : 1);
    }
  };
  if (r.alone != 0) {
    out.status = ring_post_alone<leaf_codec>(r, world, claim, &out.ticket, fill);
    out.mend = out.status == XIO_PENDING ? claim.slots : 0;
    return out;
  }
  const bool now = group.rank() < ring_lanes_per_round(group, r, claim.slots);
  const lanes turn{group.ballot(now)};
  if (!now) return out;
  const ring_share share = ring_sum_equal(turn, claim);
  ring_result result{};
  out.status = ring_post_batch<leaf_codec>(turn, r, world, {claim, share}, &result, fill);
  out.ticket = result.ticket;
  out.mend = (out.status == XIO_PENDING ? share.slots : 0) | (result.serves ? mend_serves : 0);
  return out;
}
XIO_LEAF void serve_leaf(const ring_view& ring) {
  const return_kept<> back;
  ring_serve_others<sdma_codec>(ring_in_registers<sdma_codec>(ring));
}

// The one copy of this code in a kernel that has these queues and no world.
XIO_LEAF u64 drain_leaf(const ring_view& ring, u64 completed) {
  const return_kept<> back;
  return sdma_codec::drain(ring, completed);
}

// A wait for room that is the queue's own. A ctx's ops have another one (sdma_lane.hpp).
struct waits_alone {
  XIO_DEVICE static xio_status_t find_room(const ring_view& r, u32 slots, const world_view& w, u64* since) {
    return ring_wait_for<true>(r, &w, 0, slots, since, [&](u64 completed) { return drain_leaf(r, completed); });
  }
};

template <class Waiter>
XIO_DEVICE xio_status_t post_piece(const world_view& w, const ring_view& r, const chain& op, const piece& p,
                                   u64* ticket) {
  u32 how = p.copies;
  if (p.signals != 0) how |= k_leaf_signals | (op.op == XIO_SIGNAL_ADD ? k_leaf_adds : 0);
  if (p.counts != 0) how |= k_leaf_counts;
  const posted_ops done =
      ring_post_by([&](u32 slots, u64* since) { return Waiter::find_room(r, slots, w, since); }, [&] { serve_leaf(r); },
                   [&] {
                     return post_leaf(leaf_piece{how, p.bytes, op.dst, op.src, op.signal, op.value, op.counter}, w, r);
                   });
  *ticket = done.ticket;
  return done.status;
}

// The request is that of the last slot: when it is complete, all are. 0 if loads and stores have done it all.
template <direct::source From = direct::source::peer, class Waiter = waits_alone>
XIO_DEVICE xio_status_t post(const world_view& w, const ring_view& r, chain op, xio_req_t* request) {
  if (overlap(op.dst, op.src, op.bytes)) return XIO_ERR_ARG;
  trim<From>(r, op);
  u64 ticket = 0;
  // A ring of four has no room for three slots beside others'; then the count goes by itself.
  const bool count_along = r.depth >= 8;
  bool count_left = op.counter != 0;
  if (op.bytes == 0 && op.signal == 0 && !count_left) return XIO_OK;
  do {
    const u32 now = op.bytes < r.chunk ? static_cast<u32>(op.bytes) : r.chunk;
    const u32 copies = now != 0 ? 1 : 0;
    const bool ends = now == op.bytes;
    const u32 signals = ends && op.signal != 0 ? 1 : 0;
    const u32 counts = ends && count_left && (count_along || copies + signals == 0) ? 1 : 0;
    const xio_status_t status = post_piece<Waiter>(w, r, op, piece{copies, signals, counts, now}, &ticket);
    if (status != XIO_OK) return status;
    op.dst += now;
    op.src += now;
    op.bytes -= now;
    if (signals != 0) op.signal = 0;
    if (counts != 0) count_left = false;
  } while (op.bytes != 0 || op.signal != 0 || count_left);
  if (request != nullptr) *request = make_request(r, ticket);
  return XIO_OK;
}

// --- Tiles -------------------------------------------------------------------------------------------

// `height` rows of `width` bytes, `pitch` bytes apart.
struct area {
  u64 dst, dst_pitch, src, src_pitch, width, height;
};

// Rows of one lie in rows of the other. Where pitches differ nobody can say it in a line: then the whole spans count.
XIO_DEVICE bool overlap(const area& a) {
  const u64 dst_end = a.dst + (a.height - 1) * a.dst_pitch + a.width;
  const u64 src_end = a.src + (a.height - 1) * a.src_pitch + a.width;
  if (a.dst >= src_end || a.src >= dst_end) return false;
  if (a.dst_pitch != a.src_pitch || a.dst_pitch == 0) return true;
  const u64 shift = (a.dst > a.src ? a.dst - a.src : a.src - a.dst) % a.dst_pitch;
  return shift < a.width || a.dst_pitch - shift < a.width;
}

// The widest element that everything is a multiple of, as a power of two: 0 .. 4.
XIO_DEVICE u32 element_of(const area& a) {
  const u64 all = a.dst | a.src | a.dst_pitch | a.src_pitch | a.width | 16;
  return lowest_bit(all);
}

XIO_DEVICE xio_status_t post_tile(const world_view& w, const ring_view& r, const wire::sdma::tile& t, u64* ticket) {
  const u64 bytes = (static_cast<u64>(t.width) << t.element_log2) * t.height;
  return post_slots(w, r, 2, bytes < ~u32{0} ? static_cast<u32>(bytes) : ~u32{0}, ticket, [&](u64 at, bool last) {
    fill_tile(r, at, t);
    fill_end(r, at + 1, last);
  });
}

// The block of an area that begins at column x and row y, of at most as many of either as one packet takes.
XIO_DEVICE wire::sdma::tile block_of(const area& a, u32 log2, u64 x, u64 y, u64 most) {
  const u64 wide = (a.width >> log2) - x < most ? (a.width >> log2) - x : most;
  const u64 high = a.height - y < most ? a.height - y : most;
  return wire::sdma::tile{a.dst + y * a.dst_pitch + (x << log2),
                          a.src + y * a.src_pitch + (x << log2),
                          static_cast<u32>(a.dst_pitch >> log2),
                          static_cast<u32>(a.src_pitch >> log2),
                          static_cast<u32>(wide),
                          static_cast<u32>(high),
                          log2};
}

// Whether engines take the area as tiles: pitches of more than 32 bits of elements are nobody's, and if the first block
// fits, then so do all.
XIO_DEVICE bool fits_tiles(const ring_view& r, const area& a, u32 log2) {
  if (((a.dst_pitch | a.src_pitch) >> log2) > ~u32{0} || (u32{1} << log2) < r.sdma.granule) return false;
  return wire::sdma::tile_fits(r.sdma.generation,
                               block_of(a, log2, 0, 0, wire::sdma::tile_extent_max(r.sdma.generation)));
}

XIO_DEVICE xio_status_t post_rows(const world_view& w, const ring_view& r, area a, xio_req_t* request) {
  for (; a.height != 0; --a.height) {
    const xio_status_t status = post(w, r, chain{a.dst, a.src, a.width, 0, 0, 0, 0}, request);
    if (status != XIO_OK) return status;
    a.dst += a.dst_pitch;
    a.src += a.src_pitch;
  }
  return XIO_OK;
}

// Posts an area as tiles that fit one packet each, or as linear copies of its rows. Returns the last packet's request.
XIO_OUT_OF_LINE xio_status_t post_area(const world_view& w, const ring_view& r, const area& a, xio_req_t* request) {
  if (a.dst_pitch == a.width && a.src_pitch == a.width)
    return post(w, r, chain{a.dst, a.src, a.width * a.height, 0, 0, 0, 0}, request);
  if (overlap(a)) return XIO_ERR_ARG;
  const u32 log2 = element_of(a);
  if (a.height == 1 || !fits_tiles(r, a, log2)) return post_rows(w, r, a, request);
  const u64 most = wire::sdma::tile_extent_max(r.sdma.generation);
  u64 ticket = 0;
  for (u64 y = 0; y < a.height; y += most) {
    for (u64 x = 0; x < a.width >> log2; x += most) {
      const xio_status_t status = post_tile(w, r, block_of(a, log2, x, y, most), &ticket);
      if (status != XIO_OK) return status;
    }
  }
  if (request != nullptr) *request = make_request(r, ticket);
  return XIO_OK;
}

}  // namespace sdma
}  // namespace xio::dev
