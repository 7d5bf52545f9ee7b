// SPDX-License-Identifier: MIT
// Storage: blocks between a drive or file and memory that is symmetric or registered.
//
// offset and bytes are multiples of the storage's block, within its size; the buffer may start at any multiple of
// 4 bytes. Longer transfers than one command can carry are split. Ops complete in any order; a read is visible to
// the caller when it is complete, a write is durable only after xio_storage_flush. Wrong arguments, a closed handle
// and writes to a read-only storage are refused: the call says why and the ctx keeps the first such error for quiet.
// Errors of the drive (XIO_ERR_STORAGE) come back from the op itself, from its wait, and once from a quiet.
#pragma once
#include "xio/device/ctx.hpp"
#include "xio/device/hdp.hpp"
#include "xio/device/nvme.hpp"
#include "xio/device/platform.hpp"
#include "xio/device/request.hpp"
#include "xio/device/scope.hpp"
#include "xio/device/view.hpp"
#include "xio/xio.h"

namespace xio::dev {

// One checked transfer, ready to become commands.
struct transfer {
  const storage_view* storage;
  wire::nvme::opcode op;
  u64 bus;  // of the buffer, as the drive sees it
  u64 lba;
  u64 bytes;

  XIO_DEVICE u64 commands() const { return (bytes + storage->transfer_bytes - 1) / storage->transfer_bytes; }
};

// Bus address of [p, p + bytes), or 0 if no single registered region holds it.
XIO_DEVICE u64 bus_address(const world_view& w, const void* p, u64 bytes) {
  for (u32 i = 0; i < k_max_regions; ++i) {
    const region_view& g = w.regions[i];
    const u64 at = reinterpret_cast<u64>(p) - g.base;
    if (g.live != 0 && at < g.bytes && bytes <= g.bytes - at) return g.bus == 0 ? 0 : g.bus + at;
  }
  return 0;
}

// The storage of a handle, or null if it is closed or was never open.
XIO_DEVICE const storage_view* storage_of(xio_storage_t handle) {
  const auto* s = static_cast<const storage_view*>(handle.view);
  return s == nullptr || load<scope::system, order::relaxed>(&s->live) == 0 ? nullptr : s;
}

XIO_DEVICE const ring_view& storage_queue(const storage_view& s) {
  return s.queues[s.queue_count == 1 ? 0 : workgroup_index() % s.queue_count];
}

XIO_DEVICE void mark_storage_used(const ctx_view& c, const storage_view& s) {
  u32* used = const_cast<u32*>(&c.storages_used);
  const u32 bit = 1u << s.slot;
  if ((load<scope::agent, order::relaxed>(used) & bit) == 0) fetch_or<scope::agent, order::relaxed>(used, bit);
}

XIO_DEVICE xio_status_t check_transfer(const ctx_view& c, wire::nvme::opcode op, const void* buffer,
                                       xio_storage_t handle, u64 offset, u64 bytes, transfer* out) {
  const storage_view* s = storage_of(handle);
  if (s == nullptr) return XIO_ERR_STATE;
  if (op == wire::nvme::opcode::write && s->read_only != 0) return XIO_ERR_ARG;
  if (((offset | bytes) & (s->block_bytes - 1)) != 0 || offset > s->bytes || bytes > s->bytes - offset)
    return XIO_ERR_ARG;
  *out = transfer{s, op, 0, offset >> s->block_log2, bytes};
  if (bytes == 0) return XIO_OK;
  if (buffer == nullptr) return XIO_ERR_ARG;
  out->bus = bus_address(*c.world, buffer, bytes);
  if (out->bus == 0) return XIO_ERR_NOT_REGISTERED;
  return out->bus % wire::nvme::k_prp_align == 0 ? XIO_OK : XIO_ERR_ARG;
}

// Writes the SQE of command `i` of a transfer, and its PRP list if it needs one. Registered memory is contiguous on
// the bus, so pages are computed and not looked up.
XIO_DEVICE void write_command(const ring_view& r, u64 ticket, const transfer& t, u64 i) {
  const storage_view& s = *t.storage;
  const u64 done = i * s.transfer_bytes;
  const u64 bytes = t.bytes - done < s.transfer_bytes ? t.bytes - done : s.transfer_bytes;
  const u64 bus = t.bus + done;
  const u32 cid = nvme_codec::cid(r, ticket);
  const u64 pages = wire::nvme::prp_pages(bus, bytes, s.page_bytes);
  u64 prp2 = 0;
  if (pages == 2) {
    prp2 = wire::nvme::prp_entry(bus, 1, s.page_bytes);
  } else if (pages > 2) {
    // By command id and not by slot: a slow command may still need its list when its slot is in use again.
    const u64 at = cid * wire::nvme::prp_list_bytes(r.chunk, s.page_bytes);
    auto* list = reinterpret_cast<u64*>(r.list_pages + at);
    for (u64 page = 1; page < pages; ++page) list[page - 1] = wire::nvme::prp_entry(bus, page, s.page_bytes);
    prp2 = r.list_pages_bus + at;
  }
  const wire::nvme::sqe sqe = wire::nvme::make_io(t.op, cid, r.personality, bus, prp2, t.lba + (done >> s.block_log2),
                                                  static_cast<u32>(bytes >> s.block_log2));
  entry64 e;
  for (int k = 0; k < 16; ++k) e.dw[k] = sqe.dw[k];
  store_entry(ring_slot(r, ticket, sizeof e), e);
}

// Runs post(lanes) for each converged lane alone, one after another: a lane that has slots never waits for a lane
// of its own wave that wants some.
template <class Post>
XIO_DEVICE void one_by_one(Post&& post) {
  const u32 me = lane_id();
  const lanes here = converged_lanes();
  for (u64 left = here.mask; left != 0; left &= left - 1)
    if (lowest_bit(left) == me) post(lanes{u64{1} << me});
}

// Commands of one lane that get consecutive tickets: half a queue, and what a request and the byte count can say.
XIO_DEVICE u64 batch_limit(const ring_view& r) {
  u64 most = r.depth / 2;
  if (most > k_request_commands) most = k_request_commands;
  const u64 by_bytes = (u64{1} << 31) / r.chunk;
  return most < by_bytes ? most : by_bytes;
}

// More than one command. Batch i+1 is posted before batch i is waited for; the request names the last batch.
XIO_DEVICE xio_status_t post_split(const ctx_view& c, const ring_view& r, const transfer& t, xio_req_t* request) {
  const u64 total = t.commands();
  const u64 limit = batch_limit(r);
  xio_status_t status = XIO_OK;
  u64 before = 0;
  u32 before_count = 0;
  for (u64 at = 0; at < total && status == XIO_OK;) {
    const u32 n = static_cast<u32>(total - at < limit ? total - at : limit);
    const u64 covered = (at + n == total ? t.bytes : (at + n) * t.storage->transfer_bytes) - at * r.chunk;
    u64 last = 0;
    one_by_one([&](const lanes& me) {
      status = ring_post<nvme_codec>(me, r, *c.world, ring_claim{n, 0, static_cast<u32>(covered)}, &last,
                                     [&](u64 ticket, bool) {
                                       for (u32 i = 0; i < n; ++i) write_command(r, ticket + i, t, at + i);
                                     });
    });
    xio_status_t earlier = XIO_OK;
    if (before_count != 0) earlier = nvme_codec::wait(r, *c.world, before, before_count);
    if (status == XIO_OK) {
      before = last;
      before_count = n;
      at += n;
      status = earlier;
    }
  }
  *request = before_count == 0 ? 0 : make_storage_request(r, before, before_count);
  return status;
}

// Posts a transfer; *request is 0 if there is nothing to wait for. An error before the last batch is the answer, and
// what was posted by then is still waited for by quiet.
XIO_DEVICE xio_status_t storage_post(xio_ctx_t ctx, wire::nvme::opcode op, const void* buffer, xio_storage_t storage,
                                     u64 offset, u64 bytes, xio_req_t* request) {
  *request = 0;
  if (ctx.view == nullptr) return XIO_ERR_ARG;
  const ctx_view& c = ctx_of(ctx);
  transfer t;
  xio_status_t status = check_transfer(c, op, buffer, storage, offset, bytes, &t);
  if (status != XIO_OK) return ctx_fail(c, status);
  if (bytes == 0) return XIO_OK;
  const ring_view& r = storage_queue(*t.storage);
  mark_storage_used(c, *t.storage);
  if (bytes > t.storage->transfer_bytes) {
    status = post_split(c, r, t, request);
  } else {
    u64 ticket = 0;
    for_each_key(reinterpret_cast<u64>(&r), [&](const lanes& group) {
      status = ring_post<nvme_codec>(group, r, *c.world, ring_claim{1, 0, static_cast<u32>(bytes)}, &ticket,
                                     [&](u64 mine, bool) { write_command(r, mine, t, 0); });
    });
    if (status == XIO_OK) *request = make_storage_request(r, ticket, 1);
  }
  return status == XIO_OK ? status : ctx_fail(c, status);
}

XIO_DEVICE xio_status_t storage_wait(const ring_view& r, const world_view& w, xio_req_t request) {
  return nvme_codec::wait(r, w, request_ticket(r, request), request_commands(request));
}

XIO_DEVICE xio_status_t storage_test(const ring_view& r, xio_req_t request) {
  return nvme_codec::test(r, request_ticket(r, request), request_commands(request));
}

XIO_DEVICE xio_status_t storage_transfer(xio_ctx_t ctx, wire::nvme::opcode op, const void* buffer,
                                         xio_storage_t storage, u64 offset, u64 bytes) {
  xio_req_t request;
  const xio_status_t posted = storage_post(ctx, op, buffer, storage, offset, bytes, &request);
  if (request == 0) return posted;
  const ctx_view& c = ctx_of(ctx);
  // The buffer is the drive's until every command of it is done, so wait even if a part could not be posted.
  const xio_status_t status = storage_wait(*request_ring(c, request), *c.world, request);
  if (posted != XIO_OK) return posted;
  return status == XIO_OK && op == wire::nvme::opcode::read ? hdp_flush_storage(c) : status;
}

// Every queue of every storage that this ctx has posted to.
XIO_DEVICE xio_status_t storage_quiet(const ctx_view& c) {
  xio_status_t status = XIO_OK;
  for (u32 left = load<scope::agent, order::relaxed>(&c.storages_used); left != 0; left &= left - 1) {
    const storage_view& s = c.world->storages[lowest_bit(left)];
    if (load<scope::system, order::relaxed>(&s.live) == 0) continue;
    for (u32 q = 0; q < s.queue_count; ++q) {
      const xio_status_t one = nvme_codec::quiet(s.queues[q], *c.world);
      if (status == XIO_OK) status = one;
    }
  }
  return status;
}

// Flush of one lane; there is one command for the whole namespace, whatever queue wrote.
XIO_DEVICE xio_status_t storage_flush(const ctx_view& c, const storage_view& s) {
  xio_status_t status = XIO_OK;
  for (u32 q = 0; q < s.queue_count; ++q) {
    const xio_status_t one = nvme_codec::quiet(s.queues[q], *c.world);
    if (status == XIO_OK) status = one;
  }
  if (status != XIO_OK || s.read_only != 0) return status;
  const ring_view& r = storage_queue(s);
  mark_storage_used(c, s);
  u64 ticket = 0;
  for_each_key(reinterpret_cast<u64>(&r), [&](const lanes& group) {
    status = ring_post<nvme_codec>(group, r, *c.world, ring_claim{1, 0, 0}, &ticket, [&](u64 mine, bool) {
      const wire::nvme::sqe sqe =
          wire::nvme::make_command(static_cast<u8>(wire::nvme::opcode::flush), nvme_codec::cid(r, mine), r.personality, 0, 0);
      entry64 e;
      for (int k = 0; k < 16; ++k) e.dw[k] = sqe.dw[k];
      store_entry(ring_slot(r, mine, sizeof e), e);
    });
  });
  return status != XIO_OK ? status : nvme_codec::wait(r, *c.world, ticket);
}

// --- For one thread, a wave or a workgroup: one lane posts what all have prepared, all get its answer --

template <class Group>
XIO_DEVICE xio_status_t storage_op(const Group& group, xio_ctx_t ctx, wire::nvme::opcode op, const void* buffer,
                                   xio_storage_t storage, u64 offset, u64 bytes) {
  return by_leader(group, [&] { return posted{0, storage_transfer(ctx, op, buffer, storage, offset, bytes)}; }).status;
}

template <class Group>
XIO_DEVICE xio_req_t storage_op_nbi(const Group& group, xio_ctx_t ctx, wire::nvme::opcode op, const void* buffer,
                                    xio_storage_t storage, u64 offset, u64 bytes) {
  return by_leader(group,
                   [&] {
                     posted p{0, XIO_OK};
                     p.status = storage_post(ctx, op, buffer, storage, offset, bytes, &p.request);
                     if (p.status != XIO_OK) p.request = failed_request(p.status);
                     return p;
                   })
      .request;
}

template <class Group>
XIO_DEVICE xio_status_t storage_flush_op(const Group& group, xio_ctx_t ctx, xio_storage_t storage) {
  return by_leader(group,
                   [&] {
                     if (ctx.view == nullptr) return posted{0, XIO_ERR_ARG};
                     const ctx_view& c = ctx_of(ctx);
                     const storage_view* s = storage_of(storage);
                     return posted{0, s == nullptr ? ctx_fail(c, XIO_ERR_STATE) : storage_flush(c, *s)};
                   })
      .status;
}

}  // namespace xio::dev

// --- The API -----------------------------------------------------------------------------------------
// Blocking forms answer the op's own status. The _nbi forms answer a request, 0 if there was nothing to do; waiting
// for the request of a refused op answers why it was refused. The buffer is the drive's until the op is complete.
// _wave and _wg forms are called by every lane of the wave or thread of the workgroup with the same arguments and do
// the op once. xio_storage_flush completes everything that anybody posted to the storage, then makes it durable;
// XIO_ERR_STORAGE if one of those ops or the flush itself failed.

#define XIO_STORAGE_API(suffix, group)                                                                                 \
  XIO_DEVICE xio_status_t xio_read##suffix(xio_ctx_t ctx, void* buf, xio_storage_t storage, uint64_t offset,           \
                                           uint64_t bytes) {                                                           \
    return xio::dev::storage_op(xio::dev::group::here(), ctx, xio::wire::nvme::opcode::read, buf, storage, offset,     \
                                bytes);                                                                                \
  }                                                                                                                    \
  XIO_DEVICE xio_status_t xio_write##suffix(xio_ctx_t ctx, const void* buf, xio_storage_t storage, uint64_t offset,    \
                                            uint64_t bytes) {                                                          \
    return xio::dev::storage_op(xio::dev::group::here(), ctx, xio::wire::nvme::opcode::write, buf, storage, offset,    \
                                bytes);                                                                                \
  }                                                                                                                    \
  XIO_DEVICE xio_req_t xio_read_nbi##suffix(xio_ctx_t ctx, void* buf, xio_storage_t storage, uint64_t offset,          \
                                            uint64_t bytes) {                                                          \
    return xio::dev::storage_op_nbi(xio::dev::group::here(), ctx, xio::wire::nvme::opcode::read, buf, storage, offset, \
                                    bytes);                                                                            \
  }                                                                                                                    \
  XIO_DEVICE xio_req_t xio_write_nbi##suffix(xio_ctx_t ctx, const void* buf, xio_storage_t storage, uint64_t offset,   \
                                             uint64_t bytes) {                                                         \
    return xio::dev::storage_op_nbi(xio::dev::group::here(), ctx, xio::wire::nvme::opcode::write, buf, storage,        \
                                    offset, bytes);                                                                    \
  }                                                                                                                    \
  XIO_DEVICE xio_status_t xio_storage_flush##suffix(xio_ctx_t ctx, xio_storage_t storage) {                            \
    return xio::dev::storage_flush_op(xio::dev::group::here(), ctx, storage);                                          \
  }
XIO_STORAGE_API(, thread_group)
XIO_STORAGE_API(_wave, wave_group)
XIO_STORAGE_API(_wg, workgroup_group)
#undef XIO_STORAGE_API
