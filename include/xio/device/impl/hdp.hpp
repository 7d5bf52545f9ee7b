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
XIO_DEVICE void hdp_store(const hdp_view& h, bool reads) {
  store<scope::system, order::relaxed>(h.flush, 1u);
  if (reads) load<scope::system, order::relaxed>(h.flush);
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

// The ring for which a thread that flushes has to wait, by wait_leaf; the leaf that posts calls no other. No ring: the
// flush is done, or has failed.
struct hdp_step {
  const ring_view* ring;
  u64 upto;   // tickets below this are to complete; or
  u32 slots;  // as many are to be free, and then the same step is to be tried again
  xio_status_t status;
};

// One entry by one lane, spelled out: if this used the code that posts copies, every kernel that waits would need the
// registers of all that an engine can do.
struct hdp_slot {
  u64 ticket, serial;
};

// A free slot; on a serial ring (bnxt) one packet's number too, see ring_take_tickets. XIO_PENDING: there is none.
XIO_DEVICE xio_status_t hdp_take_slot(const ring_view& r, u32 slots, hdp_slot* slot) {
  if (const xio_status_t failure = ring_failure(r); failure != XIO_OK) return failure;
  if (fetch_add<scope::agent, order::acquire>(&r.state->credits, -static_cast<i64>(slots)) < slots) {
    add<scope::agent, order::relaxed>(&r.state->credits, static_cast<i64>(slots));
    return XIO_PENDING;
  }
  if (r.kind == ring_kind::bnxt) {
    slot->ticket = ring_take_tickets<bnxt_codec>(r, slots, 1, &slot->serial);
  } else {
    slot->ticket = ring_take_tickets<sdma_codec>(r, slots, 0, &slot->serial);
  }
  return XIO_OK;  // and no op of the user's: none is counted
}
// The ring's code is there once for both engines.
struct flush_codec {
  static constexpr bool k_in_order = true;
  XIO_DEVICE static void announce(const ring_view& r, u64 from, u64 to) {
    if constexpr (k_has_sdma)
      if (!k_has_rdma || r.kind == ring_kind::sdma) return sdma_codec::announce(r, from, to);
    if constexpr (k_has_rdma) rdma::nic_codec::announce(r, from, to);
  }
};

// The FENCE behind the packet says that it is done.
XIO_DEVICE void hdp_fill_packet(const ring_view& r, u64 first, u64 last) {
  for (u64 pad = first; pad < last; ++pad) sdma::fill_end(r, pad, false);
  entry64 e{};
  wire::sdma::encode_hdp_flush(e.dw);
  sdma::finish_slot<wire::sdma::k_poll_dwords>(r, last, true, e);
}

// READ of the heap's line; where it goes nobody looks.
XIO_DEVICE void hdp_fill_read(const ctx_view& c, const ring_view& r, const hdp_slot& slot) {
  rdma::work read = rdma::make_work(r, rdma::verb::read, offsetof(heap_head, hdp_line), 8);
  read.local = reinterpret_cast<u64>(c.scratch + rdma::k_dummy_word);
  read.lkey = r.rdma.scratch_lkey;
  rdma::nic_codec::encode(r, slot.ticket, slot.serial, true, read);  // an entry of one slot in every family
}

XIO_DEVICE hdp_step hdp_post(const ctx_view& c, const ring_view& r, bool copies) {
  const u32 slots = copies && r.sdma.least_slots > 1 ? r.sdma.least_slots : 1;
  hdp_slot slot{};
  const xio_status_t status = hdp_take_slot(r, slots, &slot);
  if (status == XIO_PENDING) return hdp_step{&r, 0, slots, XIO_OK};
  if (status != XIO_OK) return hdp_step{nullptr, 0, 0, status};
  const u64 end = slot.ticket + slots;
  if (k_has_sdma && copies) {
    hdp_fill_packet(r, slot.ticket, end - 1);
  } else {
    hdp_fill_read(c, r, slot);
  }
  ring_publish<flush_codec>(r, slot.ticket, slots, ring_turn{});
  return hdp_step{&r, end, 0, XIO_OK};
}

// A READ pushes what the device wrote before (PCIe base spec, 2.4.1 transaction ordering). Only its own: so one by each
// NIC, which queue pairs take in turn. Copy engines need one packet.
XIO_DEVICE hdp_step hdp_post_step(const ctx_view& c, hdp_way way, u32 step) {
  const bool copies = k_has_sdma && way == hdp_way::sdma;
  if (c.flush_ring_count == 0 || (!copies && !k_has_rdma)) return hdp_step{nullptr, 0, 0, XIO_ERR_NO_ROUTE};
  if (step == c.flush_ring_count || (step != 0 && copies)) return hdp_step{nullptr, 0, 0, XIO_OK};
  const ring_view& r = c.flush_rings[step];
  if (!copies && step != 0 && r.rdma.nic == c.flush_rings[0].rdma.nic) return hdp_step{nullptr, 0, 0, XIO_OK};
  return hdp_post(c, r, copies);
}

// --- Flush -------------------------------------------------------------------------------------------

// Out of line: what waits without an HDP has none of it in its way.
XIO_LEAF hdp_step hdp_leaf(const ctx_view& c, hdp_way way, bool waits, u32 step) {
  const return_kept<> back;
  xio_status_t status = XIO_OK;
  if (way == hdp_way::device) {
    hdp_store(c.world->hdp, waits);
  } else if (way == hdp_way::host || way == hdp_way::readback) {
    if (waits) status = hdp_flush_by_host(*c.world);
    if (!waits) hdp_ask(*c.world);
  } else {
    return hdp_post_step(c, way, step);
  }
  return hdp_step{nullptr, 0, 0, status};
}

XIO_DEVICE xio_status_t hdp_flush_by_one(const ctx_view& c, hdp_way way, bool waits) {
  u64 since = 0;
  for (u32 step = 0;;) {
    const hdp_step now = hdp_leaf(c, way, waits, step);
    if (now.ring == nullptr) return now.status;
    const waited done = wait_leaf(*now.ring, c.world, now.upto, now.slots, since);
    if (done.status != XIO_OK) return done.status;
    since = now.slots != 0 ? done.since : 0;
    if (now.slots == 0) ++step;
  }
}

// One lane of those that are here flushes for all of them.
XIO_IN_LINE_BY_NEW xio_status_t hdp_flush_by_way(const ctx_view& c, hdp_way way, bool waits) {
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
  if (!hdp_is_on(c)) [[likely]]
    return XIO_OK;
  return hdp_flush_by_way(c, c.world->hdp.way, true);
}

// After a drive's write: a read by a NIC does not push that, so drives may have another way.
XIO_DEVICE xio_status_t hdp_flush_storage(const ctx_view& c) {
  if (!hdp_is_on(c)) [[likely]]
    return XIO_OK;
  return hdp_flush_by_way(c, c.world->hdp.storage, true);
}

// After what a request stands for. Copy engines write from inside: only NICs and drives come through the HDP.
XIO_DEVICE xio_status_t hdp_flush_for(const ctx_view& c, xio_req_t request) {
  if (!hdp_is_on(c) || request == 0) return XIO_OK;
  const ring_view* r = request_ring(c, request);
  if (r == nullptr || r->kind == ring_kind::sdma) return XIO_OK;
  return is_storage_request(request) ? hdp_flush_storage(c) : hdp_flush(c);
}

// After everything that a ctx has posted; `drives`: to storages too. Where all is loads and stores nobody else writes.
// Where the HDP is on.
XIO_DEVICE xio_status_t hdp_flush_all(const ctx_view& c, bool drives) {
  const hdp_view& h = c.world->hdp;
  const bool rings = c.ring_count != 0;
  const bool apart = drives && (h.storage != h.way || !rings);
  xio_status_t status = XIO_OK;
  // By one piece of code.
  XIO_ROLLED for (u32 i = rings ? 0 : 1; i < (apart ? 2 : 1) && status == XIO_OK; ++i) status =
      hdp_flush_by_way(c, i == 0 ? h.way : h.storage, true);
  return status;
}

// From a polling loop: sets a flush off, and does not wait for it where somebody else does it.
XIO_DEVICE xio_status_t hdp_nudge(const ctx_view& c) {
  if (!hdp_is_on(c)) [[likely]]
    return XIO_OK;
  return hdp_flush_by_way(c, c.world->hdp.way, false);
}

// The same for callers that hold the ctx itself: nothing is loaded to learn that nothing is to do.
XIO_DEVICE xio_status_t hdp_flush(const xio_ctx_t& ctx) {
  if (!hdp_is_on(ctx)) [[likely]]
    return XIO_OK;
  return hdp_flush(ctx_of(ctx));
}
XIO_DEVICE xio_status_t hdp_nudge(const xio_ctx_t& ctx) {
  if (!hdp_is_on(ctx)) [[likely]]
    return XIO_OK;
  return hdp_nudge(ctx_of(ctx));
}

}  // namespace xio::dev
