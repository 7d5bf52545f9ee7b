// SPDX-License-Identifier: MIT
// The SDMA lane: a kernel writes packets into a copy engine's queue by itself. Thread scope; any lanes of a wave may
// call in any divergence.
//
// One ring slot is 64 bytes = 16 dwords: whole packets, and one NOP packet for the rest. The ring size is a multiple
// of 64, so no packet straddles its end, and lanes fill their slots in parallel.
//   copy slot    COPY_LINEAR (7) NOP [FENCE (4)]
//   signal slot  ATOMIC (8)      NOP [FENCE (4)]
// FENCE comes last: with it the slot is free, and an engine must not have anything of it left to read.
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

// Fills the slot after `used` dwords: with a NOP, then the FENCE if the slot ends a batch.
template <u32 used>
XIO_DEVICE void finish_slot(const ring_view& r, u64 ticket, bool fenced, entry64& e) {
  if (fenced) {
    constexpr u32 fence_at = k_sdma_slot_dwords - wire::sdma::k_fence_dwords;
    wire::sdma::encode_nop(e.dw + used, fence_at - used);
    wire::sdma::encode_fence(e.dw + fence_at, r.personality, reinterpret_cast<u64>(r.completion),
                             static_cast<u32>(ticket + 1));
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

// An engine that overlaps its reads and writes has no answer for these.
XIO_DEVICE bool overlap(u64 a, u64 b, u64 bytes) { return a != b && a < b + bytes && b < a + bytes; }

XIO_DEVICE bool signal_fits(u64 offset, int op) {
  return (offset & 7) == 0 && (op == XIO_SIGNAL_SET || op == XIO_SIGNAL_ADD);
}

// --- Posting -----------------------------------------------------------------------------------------

// What one op posts: copies of at most a chunk, then perhaps a signal.
struct chain {
  u64 dst, src, bytes;
  u64 word, value;
  int op;
};

// Copies are one slot each; the last one and the signal take theirs together. Lanes that are here and go to the same
// ring post as one, each its own chain. The request is that of the last packet: when it is complete, all are.
template <bool k_signals>
XIO_DEVICE xio_status_t post(const ctx_view& c, const ring_view& r, const chain& op, xio_req_t* request) {
  if (overlap(op.dst, op.src, op.bytes)) return XIO_ERR_ARG;
  u64 ticket = 0;
  u64 done = 0;
  do {
    const u64 left = op.bytes - done;
    const u32 now = left < r.chunk ? static_cast<u32>(left) : r.chunk;
    const u32 copies = now != 0 ? 1 : 0;
    const u32 signals = k_signals && now == left ? 1 : 0;
    xio_status_t status = XIO_OK;
    for_each_key(reinterpret_cast<u64>(&r), [&](const lanes& group) {
      status = ring_post<sdma_codec>(group, r, *c.world, ring_claim{copies + signals, 0, now}, &ticket,
                                     [&](u64 at, bool last) {
                                       if (copies != 0)
                                         fill_copy(r, at, last && signals == 0, op.dst + done, op.src + done, now);
                                       if (signals != 0) fill_signal(r, at + copies, last, op.word, op.value, op.op);
                                     });
    });
    if (status != XIO_OK) return status;
    done += now;
  } while (done < op.bytes);
  if (request != nullptr) *request = make_request(r, ticket);
  return XIO_OK;
}

// --- The lane ----------------------------------------------------------------------------------------

// Copies between any two addresses that the engine reaches, of any length and alignment. 0 bytes: nothing.
XIO_DEVICE xio_status_t copy(const ctx_view& c, const ring_view& r, void* dst, const void* src, u64 bytes,
                             xio_req_t* request) {
  if (request != nullptr) *request = 0;
  if (bytes == 0) return XIO_OK;
  return post<false>(c, r, chain{reinterpret_cast<u64>(dst), reinterpret_cast<u64>(src), bytes, 0, 0, 0}, request);
}

// Local src to `offset` of the peer's heap, whose bounds the caller has checked.
XIO_DEVICE xio_status_t put(const ctx_view& c, u32 pe, u64 offset, const void* src, u64 bytes, xio_req_t* request) {
  const peer_view& p = c.peers[pe];
  if (p.sdma == nullptr || p.direct == nullptr) return XIO_ERR_NO_ROUTE;
  if (bytes != 0 && !reachable(*c.world, src, bytes)) return XIO_ERR_NOT_REGISTERED;
  return copy(c, *p.sdma, p.direct + offset, src, bytes, request);
}

XIO_DEVICE xio_status_t get(const ctx_view& c, u32 pe, void* dst, u64 offset, u64 bytes, xio_req_t* request) {
  const peer_view& p = c.peers[pe];
  if (p.sdma == nullptr || p.direct == nullptr) return XIO_ERR_NO_ROUTE;
  if (bytes != 0 && !reachable(*c.world, dst, bytes)) return XIO_ERR_NOT_REGISTERED;
  return copy(c, *p.sdma, dst, p.direct + offset, bytes, request);
}

// put, then a set or add of a 64-bit word of the same heap. The signal becomes visible after the data: both are in one
// queue, and ATOMIC waits for the copies before it.
XIO_DEVICE xio_status_t put_signal(const ctx_view& c, u32 pe, u64 offset, const void* src, u64 bytes, u64 signal_offset,
                                   u64 value, int op, xio_req_t* request) {
  const peer_view& p = c.peers[pe];
  if (p.sdma == nullptr || p.direct == nullptr) return XIO_ERR_NO_ROUTE;
  if (!signal_fits(signal_offset, op)) return XIO_ERR_ARG;
  if (bytes != 0 && !reachable(*c.world, src, bytes)) return XIO_ERR_NOT_REGISTERED;
  const chain all{reinterpret_cast<u64>(p.direct + offset),
                  reinterpret_cast<u64>(src),
                  bytes,
                  reinterpret_cast<u64>(p.direct + signal_offset),
                  value,
                  op};
  return post<true>(c, *p.sdma, all, request);
}

// The signal alone, after everything that was posted to the ring before.
XIO_DEVICE xio_status_t signal(const ctx_view& c, u32 pe, u64 offset, u64 value, int op, xio_req_t* request) {
  return put_signal(c, pe, 0, nullptr, 0, offset, value, op, request);
}

}  // namespace sdma
}  // namespace xio::dev
