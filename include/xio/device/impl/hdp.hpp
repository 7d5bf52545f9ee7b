// SPDX-License-Identifier: MIT
// HDP flush: makes what other devices wrote into this GPU's memory visible to its kernels. Thread scope; lanes of a
// wave that are here together flush once.
//
// Between a discrete AMD GPU's PCIe BAR and its memory sits the host data path (HDP), which may hold writes of CPUs,
// NICs, drives and other GPUs back. The host decides once how a world flushes it and whether it must
// (src/memory/hdp.hpp, docs/hdp.md); with hdp_way::none everything here is one branch that is never taken.
//   device             a store of 1 to the flush register, then a load from it
//   host, readback     a progress thread does it; kernels ask by one word in host memory and wait for another
//   sdma, rdma_read    a packet on a copy queue, or a READ over a queue pair to oneself, that the ctx has for it alone
//
// A reader calls hdp_flush after it has seen the flag and before it loads the data. The HDP may hold flags back as
// well: a thread that polls one calls hdp_nudge now and then.
#pragma once
#include "xio/device/impl/ctx.hpp"
#include "xio/device/impl/deadline.hpp"
#include "xio/device/impl/rdma.hpp"
#include "xio/device/impl/reap.hpp"
#include "xio/device/impl/request.hpp"
#include "xio/device/impl/ring.hpp"
#include "xio/device/impl/sdma.hpp"
#include "xio/device/impl/selection.hpp"
#include "xio/device/impl/view.hpp"
#include "xio/device/platform/lanes.hpp"
#include "xio/device/platform/platform.hpp"

namespace xio::dev {

XIO_DEVICE bool hdp_is_on(const ctx_view& c) {
  return k_flushes_hdp && view_field(view_field(c.world)->hdp.way) != hdp_way::none;
}
XIO_DEVICE bool hdp_is_on(const xio_ctx_t& ctx) { return k_flushes_hdp && (ctx.flags & ctx_flushes_hdp) != 0; }

// --- The register ------------------------------------------------------------------------------------

// Any store flushes (linux amdgpu hdp_v4_0.c, hdp_v5_0.c write 0; ROCR documents 1, hsa_ext_amd.h). The load comes back
// behind it; the caller fences, which waits for the load.
XIO_DEVICE void hdp_store(const hdp_view& h) { store<scope::system, order::relaxed>(h.flush, 1u); }
XIO_DEVICE void hdp_store_and_read(const hdp_view& h) {
  hdp_store(h);
  load<scope::system, order::relaxed>(h.flush);
}

// --- The progress thread -----------------------------------------------------------------------------

// Numbers are handed out in GPU memory, and only stored to the host's: that needs no atomics across PCIe. A later store
// of a smaller number may hide a larger one, so each waiting thread stores its number again.
XIO_DEVICE void hdp_publish(const hdp_view& h, u64 number) {
  if (load<scope::system, order::relaxed>(h.asked) < number) store<scope::system, order::release>(h.asked, number);
}

XIO_DEVICE u64 hdp_ask(world_view& w) {
  // Acquire and release: the thread that gets the next number passes on all that the threads before it have seen.
  const u64 number = fetch_add<scope::agent, order::acq_rel>(&w.hdp_numbers, u64{1}) + 1;
  hdp_publish(w.hdp, number);
  return number;
}

XIO_DEVICE xio_status_t hdp_flush_by_host(world_view& w) {
  const u64 number = hdp_ask(w);
  const deadline end = deadline::in(w);
  for (u32 turn = 1; load<scope::system, order::acquire>(w.hdp.done) < number; ++turn) {
    if (turn % 16 != 0) {
      pause();
      continue;
    }
    hdp_publish(w.hdp, number);
    if (!end.wait_more()) return XIO_ERR_TIMEOUT;
  }
  return XIO_OK;
}

// --- Engines -----------------------------------------------------------------------------------------

// One entry by one lane, spelled out: if this used the code that posts copies, every kernel that waits would need the
// registers and the scratch memory of all that an engine can do. These functions differ by engine:
//   write(ticket, serial)   writes the entry, which asks for a completion
//   announce(from, to)      rings
struct hdp_slot {
  u64 ticket, serial;
};

// A free slot; on a serial ring (bnxt) one packet's number too, see ring_take_tickets.
XIO_DEVICE xio_status_t hdp_take_slot(const ring_view& r, u32 slots, const world_view& w, hdp_slot* slot) {
  if (const xio_status_t failure = ring_failure(r); failure != XIO_OK) return failure;
  u64 since = 0;
  while (fetch_add<scope::agent, order::acquire>(&r.state->credits, -static_cast<i64>(slots)) < slots) {
    add<scope::agent, order::relaxed>(&r.state->credits, static_cast<i64>(slots));
    if (const xio_status_t status = find_room(r, slots, w, &since); status != XIO_OK) return status;
  }
  if (r.kind == ring_kind::bnxt) {
    slot->ticket = ring_take_tickets<bnxt_codec>(r, slots, 1, &slot->serial);
  } else {
    slot->ticket = ring_take_tickets<sdma_codec>(r, slots, 0, &slot->serial);
  }
  return XIO_OK;  // and no op of the user's: none is counted
}

template <class Codec>
XIO_DEVICE void hdp_announce(const ring_view& r, u64 ticket, u32 slots) {
  ring_publish<Codec>(r, ticket, slots, ring_turn{});
}

// The FENCE behind the packet says that it is done.
XIO_OUT_OF_LINE xio_status_t hdp_flush_by_copy_engine(const world_view& w, const ring_view& r) {
  const u32 slots = r.sdma.least_slots > 1 ? r.sdma.least_slots : 1;
  hdp_slot slot{};
  const xio_status_t status = hdp_take_slot(r, slots, w, &slot);
  if (status != XIO_OK) return status;
  const u64 last = slot.ticket + slots - 1;
  for (u64 pad = slot.ticket; pad < last; ++pad) sdma::fill_end(r, pad, false);
  entry64 e{};
  wire::sdma::encode_hdp_flush(e.dw);
  sdma::finish_slot<wire::sdma::k_poll_dwords>(r, last, true, e);
  hdp_announce<sdma_codec>(r, slot.ticket, slots);
  return wait_ring(r, last + 1, w);
}

// READ of the heap's line; where it goes nobody looks.
XIO_DEVICE rdma::work hdp_line_read(const ring_view& r, const ctx_view& c) {
  rdma::work read = rdma::make_work(r, rdma::verb::read, offsetof(heap_head, hdp_line), 8);
  read.local = reinterpret_cast<u64>(c.scratch + rdma::k_dummy_word);
  read.lkey = r.rdma.scratch_lkey;
  return read;
}

XIO_OUT_OF_LINE void hdp_post_read(const ctx_view& c, const ring_view& r, u64 ticket, u64 serial, u32 slots) {
  rdma::with_family(r, [&](auto family) {
    decltype(family)::encode(r, ticket, serial, true, hdp_line_read(r, c));
    ring_publish<decltype(family)>(r, ticket, slots, ring_turn{});
  });
}

XIO_OUT_OF_LINE xio_status_t hdp_read_by_nic(const ctx_view& c, const ring_view& r) {
  const u32 slots = rdma::with_family(r, [&](auto family) { return decltype(family)::slots(hdp_line_read(r, c)); });
  hdp_slot slot{};
  const xio_status_t status = hdp_take_slot(r, slots, *c.world, &slot);
  if (status != XIO_OK) return status;
  hdp_post_read(c, r, slot.ticket, slot.serial, slots);
  return wait_ring(r, slot.ticket + slots, *c.world);
}

// A READ pushes what the device wrote before (PCIe base spec, 2.4.1 transaction ordering). Only its own: so one by each
// NIC, which queue pairs take in turn.
XIO_DEVICE xio_status_t hdp_flush_by_engine(const ctx_view& c, hdp_way way) {
  if (c.flush_ring_count == 0) return XIO_ERR_NO_ROUTE;
  if constexpr (k_has_sdma)
    if (way == hdp_way::sdma) return hdp_flush_by_copy_engine(*c.world, c.flush_rings[0]);
  if constexpr (!k_has_rdma) return XIO_ERR_NO_ROUTE;
  for (u32 i = 0; i < c.flush_ring_count; ++i) {
    if (i != 0 && c.flush_rings[i].rdma.nic == c.flush_rings[0].rdma.nic) break;
    if (const xio_status_t status = hdp_read_by_nic(c, c.flush_rings[i]); status != XIO_OK) return status;
  }
  return XIO_OK;
}

// --- Flush -------------------------------------------------------------------------------------------

XIO_DEVICE xio_status_t hdp_flush_by_one(const ctx_view& c, hdp_way way, bool waits) {
  if (way == hdp_way::device) {
    if (waits) hdp_store_and_read(c.world->hdp);
    if (!waits) hdp_store(c.world->hdp);
    return XIO_OK;
  }
  if (way == hdp_way::host || way == hdp_way::readback) {
    if (waits) return hdp_flush_by_host(*c.world);
    hdp_ask(*c.world);
    return XIO_OK;
  }
  return hdp_flush_by_engine(c, way);
}

// One lane of those that are here flushes for all of them. Out of line: what waits without an HDP has none of it in its
// way.
XIO_OUT_OF_LINE xio_status_t hdp_flush_by_way(const ctx_view& c, hdp_way way, bool waits) {
  const lanes here = converged_lanes();
  xio_status_t status = XIO_OK;
  if (here.leader()) status = hdp_flush_by_one(c, way, waits);
  here.sync();
  if (!here.alone()) {
    const u64 all = here.first(static_cast<u64>(static_cast<u32>(static_cast<int>(status))));
    status = static_cast<xio_status_t>(static_cast<int>(static_cast<u32>(all)));
  }
  // Lines that were read into caches before the flush are stale.
  fence<scope::system, order::acquire>();
  return status;
}

// After XIO_OK the caller sees what other devices wrote before he came here. Bounded by the world's timeout.
XIO_DEVICE xio_status_t hdp_flush(const ctx_view& c) {
  return hdp_is_on(c) ? hdp_flush_by_way(c, c.world->hdp.way, true) : XIO_OK;
}

// After a drive's write: a read by a NIC does not push that, so drives may have another way.
XIO_DEVICE xio_status_t hdp_flush_storage(const ctx_view& c) {
  return hdp_is_on(c) ? hdp_flush_by_way(c, c.world->hdp.storage, true) : XIO_OK;
}

// After what a request stands for. Copy engines write from inside: only NICs and drives come through the HDP.
XIO_DEVICE xio_status_t hdp_flush_for(const ctx_view& c, xio_req_t request) {
  if (!hdp_is_on(c) || request == 0) return XIO_OK;
  const ring_view* r = request_ring(c, request);
  if (r == nullptr || r->kind == ring_kind::sdma) return XIO_OK;
  return is_storage_request(request) ? hdp_flush_storage(c) : hdp_flush(c);
}

// After everything that a ctx has posted; `drives`: to storages too. Where all is loads and stores nobody else writes.
XIO_DEVICE xio_status_t hdp_flush_all(const ctx_view& c, bool drives) {
  const hdp_view& h = c.world->hdp;
  xio_status_t status = XIO_OK;
  if (c.ring_count != 0) status = hdp_flush(c);
  if (status == XIO_OK && drives && (h.storage != h.way || c.ring_count == 0)) status = hdp_flush_storage(c);
  return status;
}

// From a polling loop: sets a flush off, and does not wait for it where somebody else does it.
XIO_DEVICE xio_status_t hdp_nudge(const ctx_view& c) {
  return hdp_is_on(c) ? hdp_flush_by_way(c, c.world->hdp.way, false) : XIO_OK;
}

// The same for callers that hold the ctx itself: nothing is loaded to learn that nothing is to do.
XIO_DEVICE xio_status_t hdp_flush(const xio_ctx_t& ctx) { return hdp_is_on(ctx) ? hdp_flush(ctx_of(ctx)) : XIO_OK; }
XIO_DEVICE xio_status_t hdp_nudge(const xio_ctx_t& ctx) { return hdp_is_on(ctx) ? hdp_nudge(ctx_of(ctx)) : XIO_OK; }

}  // namespace xio::dev
