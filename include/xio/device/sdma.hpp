// SPDX-License-Identifier: MIT
// The SDMA lane: a kernel writes packets into a copy engine's queue by itself. Thread scope; any lanes of a wave may
// call in any divergence.
//
// One ring slot is 64 bytes = 16 dwords: whole packets, then one NOP packet over the rest. The ring size is a multiple
// of 64, so no packet straddles its end, and lanes fill their slots in parallel.
//   copy slot    COPY_LINEAR (7) [FENCE (4)] NOP
//   signal slot  ATOMIC (8)      [FENCE (4)] NOP
// Serial copies may overlap inside an engine; FENCE and ATOMIC wait for what is before them. So the last slot of a
// batch carries a FENCE that writes the low word of its ticket + 1, and completion is that word: never the engine's
// read pointer, which says only what was fetched.
#pragma once
#include "xio/device/platform.hpp"
#include "xio/device/request.hpp"
#include "xio/device/ring.hpp"
#include "xio/device/view.hpp"
#include "xio/wire/sdma.hpp"
#include "xio/xio.h"

namespace xio::dev {

constexpr u32 k_sdma_slot_bytes = 64;
constexpr u32 k_sdma_slot_dwords = k_sdma_slot_bytes / 4;

// What ring_view::completion points to. An engine writes `fence` only. A model that refuses a packet also writes
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

  // Write pointer and doorbell count bytes since the queue was made and never wrap. The pointer's memory comes first:
  // the firmware reads it, and not the doorbell, when it gives an engine back to a queue that was switched out.
  XIO_DEVICE static void announce(const ring_view& r, u64, u64 to) {
    const u64 written = to * k_sdma_slot_bytes;
    store<scope::system, order::release>(reinterpret_cast<u64*>(r.record), written);
    store<scope::system, order::release>(r.doorbell, written);
  }

  XIO_DEVICE static void drain(const ring_view& r) {
    // Fence and fault in one load, so that no fence that was written before the fault is missed.
    const u64 both = load<scope::system, order::acquire>(reinterpret_cast<const u64*>(r.completion));
    const u64 completed = load<scope::agent, order::relaxed>(&r.state->completed);
    const u32 ahead = static_cast<u32>(both) - static_cast<u32>(completed);
    const u32 fault = static_cast<u32>(both >> 32);
    if (ahead > r.depth) {
      // Not a value that this ring ever asked for: the word was overwritten.
      ring_fail(r, XIO_ERR_INTERNAL, static_cast<u32>(both), completed);
      return;
    }
    if (ahead != 0) ring_complete(r, completed + ahead);
    if (fault != 0) {
      const auto* block = reinterpret_cast<const sdma_completion*>(r.completion);
      const u32 slot = load<scope::system, order::relaxed>(&block->fault_dword) / k_sdma_slot_dwords;
      const u32 behind = (slot - static_cast<u32>(completed)) & (0xffffffffu / k_sdma_slot_dwords);
      ring_fail(r, XIO_ERR_TRANSPORT, fault, completed + behind);
    }
  }

  XIO_DEVICE static bool may_issue(const ring_view&) { return true; }
};

namespace sdma {

// --- Slots -------------------------------------------------------------------------------------------

// Fills the slot after `used` dwords: with the FENCE if the slot ends a batch, then a NOP.
template <u32 used>
XIO_DEVICE void finish_slot(const ring_view& r, u64 ticket, bool fenced, entry64& e) {
  if (fenced) {
    wire::sdma::encode_fence(e.dw + used, reinterpret_cast<u64>(r.completion), static_cast<u32>(ticket + 1));
    wire::sdma::encode_nop(e.dw + used + wire::sdma::k_fence_dwords,
                           k_sdma_slot_dwords - used - wire::sdma::k_fence_dwords);
  } else {
    wire::sdma::encode_nop(e.dw + used, k_sdma_slot_dwords - used);
  }
  store_entry(ring_slot(r, ticket, k_sdma_slot_bytes), e);
}

XIO_DEVICE void fill_copy(const ring_view& r, u64 ticket, bool fenced, u64 dst, u64 src, u32 bytes) {
  entry64 e{};
  wire::sdma::encode_copy_linear(e.dw, dst, src, bytes);
  finish_slot<wire::sdma::k_copy_linear_dwords>(r, ticket, fenced, e);
}

XIO_DEVICE void fill_signal(const ring_view& r, u64 ticket, bool fenced, u64 address, u64 value, int op) {
  entry64 e{};
  const u32 code = op == XIO_SIGNAL_ADD ? wire::sdma::add_64 : wire::sdma::swap_64;
  wire::sdma::encode_atomic(e.dw, code, address, value, 0);
  finish_slot<wire::sdma::k_atomic_dwords>(r, ticket, fenced, e);
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

XIO_DEVICE bool signal_fits(u64 offset, int op) {
  return (offset & 7) == 0 && (op == XIO_SIGNAL_SET || op == XIO_SIGNAL_ADD);
}

// --- Posting -----------------------------------------------------------------------------------------

// Posts for the lanes that are here and go to the same ring.
template <class Fill>
XIO_DEVICE xio_status_t post(const ctx_view& c, const ring_view& r, u32 slots, u32 bytes, u64* ticket, Fill&& fill) {
  xio_status_t status = XIO_OK;
  for_each_key(reinterpret_cast<u64>(&r), [&](const lanes& group) {
    status = ring_post<sdma_codec>(group, r, *c.world, slots, bytes, ticket, fill);
  });
  return status;
}

XIO_DEVICE void give_request(const ring_view& r, u64 ticket, xio_req_t* request) {
  if (request != nullptr) *request = make_request(r, ticket);
}

// The whole chunks of a copy but the last, which is 1 .. r.chunk bytes. Gives how many bytes it posted.
XIO_DEVICE xio_status_t post_all_but_last(const ctx_view& c, const ring_view& r, u64 dst, u64 src, u64 bytes,
                                          u64* posted) {
  u64 done = 0;
  xio_status_t status = XIO_OK;
  while (status == XIO_OK && bytes - done > r.chunk) {
    u64 ticket;
    status = post(c, r, 1, r.chunk, &ticket,
                  [&](u64 at, bool last) { fill_copy(r, at, last, dst + done, src + done, r.chunk); });
    if (status == XIO_OK) done += r.chunk;
  }
  *posted = done;
  return status;
}

// --- The lane ----------------------------------------------------------------------------------------

// Copies between any two addresses that the engine reaches. 0 bytes: nothing. The request is that of the last packet;
// earlier ones are complete when it is.
XIO_DEVICE xio_status_t copy(const ctx_view& c, const ring_view& r, void* dst, const void* src, u64 bytes,
                             xio_req_t* request) {
  if (request != nullptr) *request = 0;
  if (bytes == 0) return XIO_OK;
  const u64 to = reinterpret_cast<u64>(dst);
  const u64 from = reinterpret_cast<u64>(src);
  u64 done;
  if (const xio_status_t status = post_all_but_last(c, r, to, from, bytes, &done); status != XIO_OK) return status;
  const u32 rest = static_cast<u32>(bytes - done);
  u64 ticket;
  const xio_status_t status =
      post(c, r, 1, rest, &ticket, [&](u64 at, bool last) { fill_copy(r, at, last, to + done, from + done, rest); });
  if (status == XIO_OK) give_request(r, ticket, request);
  return status;
}

// Local src to `offset` of the peer's heap, whose bounds the caller has checked.
XIO_DEVICE xio_status_t put(const ctx_view& c, u32 pe, u64 offset, const void* src, u64 bytes, xio_req_t* request) {
  const peer_view& p = c.peers[pe];
  if (p.sdma == nullptr || p.direct == nullptr) return XIO_ERR_NO_ROUTE;
  if (!reachable(*c.world, src, bytes)) return XIO_ERR_NOT_REGISTERED;
  return copy(c, *p.sdma, p.direct + offset, src, bytes, request);
}

XIO_DEVICE xio_status_t get(const ctx_view& c, u32 pe, void* dst, u64 offset, u64 bytes, xio_req_t* request) {
  const peer_view& p = c.peers[pe];
  if (p.sdma == nullptr || p.direct == nullptr) return XIO_ERR_NO_ROUTE;
  if (!reachable(*c.world, dst, bytes)) return XIO_ERR_NOT_REGISTERED;
  return copy(c, *p.sdma, dst, p.direct + offset, bytes, request);
}

// Sets or adds to a 64-bit word of the peer's heap, after everything that was posted to the ring before.
XIO_DEVICE xio_status_t signal(const ctx_view& c, u32 pe, u64 offset, u64 value, int op, xio_req_t* request) {
  const peer_view& p = c.peers[pe];
  if (p.sdma == nullptr || p.direct == nullptr) return XIO_ERR_NO_ROUTE;
  if (!signal_fits(offset, op)) return XIO_ERR_ARG;
  const ring_view& r = *p.sdma;
  const u64 word = reinterpret_cast<u64>(p.direct + offset);
  u64 ticket;
  const xio_status_t status =
      post(c, r, 1, 8, &ticket, [&](u64 at, bool last) { fill_signal(r, at, last, word, value, op); });
  if (status == XIO_OK) give_request(r, ticket, request);
  return status;
}

// The signal becomes visible after the data: both are in one queue, and ATOMIC waits for the copies before it.
XIO_DEVICE xio_status_t put_signal(const ctx_view& c, u32 pe, u64 offset, const void* src, u64 bytes, u64 signal_offset,
                                   u64 value, int op, xio_req_t* request) {
  if (bytes == 0) return signal(c, pe, signal_offset, value, op, request);
  const peer_view& p = c.peers[pe];
  if (p.sdma == nullptr || p.direct == nullptr) return XIO_ERR_NO_ROUTE;
  if (!signal_fits(signal_offset, op)) return XIO_ERR_ARG;
  if (!reachable(*c.world, src, bytes)) return XIO_ERR_NOT_REGISTERED;
  const ring_view& r = *p.sdma;
  const u64 to = reinterpret_cast<u64>(p.direct + offset);
  const u64 from = reinterpret_cast<u64>(src);
  const u64 word = reinterpret_cast<u64>(p.direct + signal_offset);
  u64 done;
  if (const xio_status_t status = post_all_but_last(c, r, to, from, bytes, &done); status != XIO_OK) return status;
  const u32 rest = static_cast<u32>(bytes - done);
  u64 ticket;
  const xio_status_t status = post(c, r, 2, rest, &ticket, [&](u64 at, bool last) {
    fill_copy(r, at, false, to + done, from + done, rest);
    fill_signal(r, at + 1, last, word, value, op);
  });
  if (status == XIO_OK) give_request(r, ticket, request);
  return status;
}

}  // namespace sdma
}  // namespace xio::dev
