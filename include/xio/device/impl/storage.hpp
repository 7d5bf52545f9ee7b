// SPDX-License-Identifier: MIT
// How storage is read and written.
#pragma once
#include "xio/device/impl/ctx.hpp"
#include "xio/device/impl/forms.hpp"
#include "xio/device/impl/hdp.hpp"
#include "xio/device/impl/nvme.hpp"
#include "xio/device/impl/request.hpp"
#include "xio/device/impl/scope.hpp"
#include "xio/device/impl/storage_command.hpp"
#include "xio/device/impl/view.hpp"
#include "xio/device/platform/lanes.hpp"
#include "xio/device/platform/platform.hpp"
#include "xio/xio.h"

namespace xio::dev {

// The storage of a handle, or null if it is closed or was never open. Another storage may have its place by now.
XIO_DEVICE const storage_view* storage_of(xio_storage_t handle) {
  const auto* s = static_cast<const storage_view*>(handle.view);
  const u32 number = static_cast<u32>(handle.id);
  if (s == nullptr || number == 0) return nullptr;
  return load<scope::system, order::relaxed>(&s->live) == number ? s : nullptr;
}

XIO_DEVICE const ring_view& storage_queue(const storage_view& s, u32 member) {
  const u32 queues = s.member_queues, group = workgroup_index();
  // As a rule a power of two: a division takes a GPU longer than a look at memory.
  const u32 mine = (queues & (queues - 1)) == 0 ? group & (queues - 1) : group % queues;
  return s.queues[member * queues + mine];
}

// 1 + the ops that failed on it so far, of any ctx, modulo k_errors_wrap.
constexpr u32 k_errors_wrap = 0x7fffffff;
XIO_DEVICE u32 count_errors(const storage_view& s) {
  u64 sum = 0;
  XIO_ROLLED
  for (u32 q = 0; q < s.queue_count; ++q) sum += load<scope::agent, order::acquire>(&s.queues[q].state->op_errors);
  return static_cast<u32>(sum % k_errors_wrap) + 1;
}

// Whether a ctx has used a storage. Relaxed: the thread that set it counted before, and nothing else is read behind it.
XIO_DEVICE bool storage_is_used(const ctx_view& c, const storage_view& s) {
  return load<scope::agent, order::relaxed>(&c.storage_errors[s.slot]) != 0;
}

// Before the first op of a ctx on a storage: what failed there until now is not its own.
XIO_DEVICE void mark_storage_used(const ctx_view& c, const storage_view& s) {
  u32* last_error = const_cast<u32*>(&c.storage_errors[s.slot]);
  fetch_or<scope::agent, order::relaxed>(const_cast<u32*>(&c.storages_used), 1u << s.slot);
  u32 none = 0;
  compare_exchange<scope::agent, order::acq_rel>(last_error, none, count_errors(s));
}

// Whether `now` is the later of two counts. It may have wrapped, and may have been loaded before `before` was stored.
XIO_DEVICE bool has_more_errors(u32 before, u32 now) {
  const u32 more = now >= before ? now - before : now + k_errors_wrap - before;
  return more != 0 && more <= k_errors_wrap / 2;
}

// Whether ops failed since this ctx last reported failures. Of several threads that ask at once, one gets true.
XIO_DEVICE bool has_new_errors(const ctx_view& c, const storage_view& s) {
  u32* last_error = const_cast<u32*>(&c.storage_errors[s.slot]);
  u32 before = load<scope::agent, order::relaxed>(last_error);
  const u32 now = count_errors(s);
  while (before != 0 && has_more_errors(before, now))
    if (compare_exchange<scope::agent, order::acq_rel>(last_error, before, now)) return true;
  return false;
}

// Waits for everything issued to a storage so far, by any ctx. `since`: see deadline::in.
XIO_DEVICE xio_status_t quiet_queues_of(const ctx_view& c, const storage_view& s, u64* since) {
  xio_status_t status = XIO_OK;
  for (u32 q = 0; q < s.queue_count && status != XIO_ERR_TIMEOUT; ++q) {
    const xio_status_t one = ring_quiet<shared_nvme_codec>(s.queues[q], *c.world, since);
    if (status == XIO_OK) status = one;
  }
  return status == XIO_OK && has_new_errors(c, s) ? XIO_ERR_STORAGE : status;
}

// The feature that a storage must have for a command, besides reading, writing and flushing.
XIO_DEVICE u32 needed_feature(wire::nvme::opcode op) {
  if (op == wire::nvme::opcode::compare) return storage_compares;
  if (op == wire::nvme::opcode::write_zeroes) return storage_zeroes;
  return 0;
}

XIO_DEVICE bool changes_blocks(wire::nvme::opcode op) {
  return op == wire::nvme::opcode::write || op == wire::nvme::opcode::write_zeroes;
}

// A transfer as a call names it.
struct asked_transfer {
  wire::nvme::opcode op;
  const void* buffer;
  xio_storage_t storage;
  u64 offset, bytes;
};

// For a ctx that is not null.
XIO_DEVICE xio_status_t check_transfer(const xio_ctx_t& ctx, const asked_transfer& a, transfer* out) {
  if (a.storage.view == nullptr) return XIO_ERR_STATE;
  // Before it is known whether the handle is good, or any memory is asked for, so that all comes in one look.
  const storage_view view = shape_of(*static_cast<const storage_view*>(a.storage.view));
  const world_view& w = world_of(ctx);
  const region_pair rows = region_pair::at(w, 0);
  const u64 place_mask = (view.features & storage_of_bytes) != 0 ? 0 : view.block_bytes - 1;
  const storage_view* s = storage_of(a.storage);
  if (s == nullptr) return XIO_ERR_STATE;
  if (changes_blocks(a.op) && view.read_only != 0) return XIO_ERR_ARG;
  if (const u32 needed = needed_feature(a.op); (view.features & needed) != needed) return XIO_ERR_UNSUPPORTED;
  if (((a.offset | a.bytes) & place_mask) != 0 || a.offset > view.bytes || a.bytes > view.bytes - a.offset)
    return XIO_ERR_ARG;
  *out = transfer{view, a.op, {}, 0, a.offset, a.bytes, nullptr};
  if (a.bytes == 0 || a.op == wire::nvme::opcode::write_zeroes) return XIO_OK;
  if (a.buffer == nullptr) return XIO_ERR_ARG;
  out->buffer = a.buffer;
  out->bus = bus_address(w, rows, view.space, a.buffer, a.bytes);
  if (out->bus.at == 0) return XIO_ERR_NOT_REGISTERED;
  out->first = bus_address_of(out->bus, out->bus.at);
  const bool lies_well = out->bus.at % wire::nvme::k_prp_align == 0 || (view.features & storage_of_bytes) != 0;
  return lies_well ? XIO_OK : XIO_ERR_ARG;
}

// Runs post() for each converged lane alone, one after another: a lane that has slots never waits for a lane
// of its own wave that wants some.
template <class Post>
XIO_DEVICE void one_by_one(Post&& post) {
  const u32 me = lane_id();
  const lanes here = converged_lanes();
  for (u64 left = here.mask; left != 0; left &= left - 1)
    if (lowest_bit(left) == me) post();
}

// Commands of one lane that get consecutive tickets: half a queue, and what a request and the byte count can say.
XIO_DEVICE u64 batch_limit(const ring_view& r) {
  u64 most = r.depth / 2;
  if (most > k_request_commands) most = k_request_commands;
  const u64 by_bytes = (u64{1} << 31) / r.chunk;
  return most < by_bytes ? most : by_bytes;
}

// Commands with consecutive tickets on one queue that nobody has waited for yet.
struct batch {
  const ring_view* ring;
  u64 last;
  u32 count;  // 0: none
};

// Waits for `count` commands with tickets that end at `last`. One function for all calls of a kernel: draining a
// completion queue is long.
XIO_OUT_OF_LINE xio_status_t wait_commands(const ring_view& r, const world_view& w, u64 last, u32 count) {
  return nvme_codec::wait(r, w, last, count);
}

XIO_DEVICE xio_status_t wait_batch(const world_view& w, const batch& b) {
  return b.count == 0 ? XIO_OK : wait_commands(*b.ring, w, b.last, b.count);
}

// The newest batch of each member of a storage. In registers, and so as short as can be: an array of batches would lie
// in scratch memory, for its index is not known before. Of tickets 32 bits are enough while nobody has waited for them.
class member_batches {
 public:
  static_assert(k_max_storage_members <= 8 && k_request_commands <= 256);

  XIO_DEVICE void put(u32 member, u64 last, u32 count) {
    XIO_UNROLL
    for (u32 i = 0; i < k_max_storage_members; ++i)
      if (i == member) tickets_[i] = static_cast<u32>(last);
    const u32 shift = 8 * member;
    counts_ = (counts_ & ~(u64{0xff} << shift)) | u64{count - 1} << shift;
    there_ |= 1u << member;
  }
  // r: the queue to which the batches of this member go.
  XIO_DEVICE batch of(const ring_view& r, u32 member) const {
    if ((there_ >> member & 1) == 0) return batch{&r, 0, 0};
    u32 low = tickets_[0];
    XIO_UNROLL
    for (u32 i = 1; i < k_max_storage_members; ++i)
      if (i == member) low = tickets_[i];
    const u64 issued = load<scope::agent, order::relaxed>(&r.state->issued);
    return batch{&r, issued - (static_cast<u32>(issued) - low), static_cast<u32>(counts_ >> 8 * member & 0xff) + 1};
  }

 private:
  u32 tickets_[k_max_storage_members] = {};  // the low words
  u64 counts_ = 0;                           // a byte each, less 1
  u32 there_ = 0;                            // a bit each: there is one
};

// SCT<<8 | SC of the first of some commands that failed, 0 if none did.
XIO_DEVICE u32 code_of(const ring_view& r, u64 last, u32 count) {
  for (u32 i = count; i-- > 0;)
    if (const u32 code = nvme_codec::code(r, last - i); code != 0) return code;
  return 0;
}

// How a transfer of several batches stands: its first failure.
struct verdict {
  xio_status_t status;
  u32 code;

  XIO_DEVICE void take(const world_view& w, const batch& b) {
    const xio_status_t one = wait_batch(w, b);
    if (status != XIO_OK || one == XIO_OK) return;
    status = one;
    if (one == XIO_ERR_STORAGE) code = code_of(*b.ring, b.last, b.count);
  }
};

// Commands [at, at + batch limit) of the part of a member.
XIO_DEVICE xio_status_t post_batch(const world_view& w, const ring_view& r, const transfer& t, const member_part& part,
                                   u64 at, batch* posted) {
  const u64 limit = batch_limit(r);
  const u32 n = static_cast<u32>(part.commands - at < limit ? part.commands - at : limit);
  u64 bytes = 0;
  for (u32 i = 0; i < n; ++i) bytes += piece_of(t, part, at + i).bytes;
  u64 last = 0;
  xio_status_t status = XIO_OK;
  one_by_one([&] {
    status = ring_post_lone<nvme_codec>(r, w, ring_claim{n, 0, static_cast<u32>(bytes)}, &last, [&](u64 ticket, bool) {
      for (u32 i = 0; i < n; ++i) write_command(r, ticket + i, command_of(t, piece_of(t, part, at + i)));
    });
  });
  *posted = batch{&r, last, n};
  return status;
}

// Makes a transfer one of a member, which may see memory at other addresses than the others.
XIO_DEVICE xio_status_t see_from(const world_view& w, const ring_view& r, transfer* t) {
  if ((t->shape.features & storage_apart) == 0 || t->buffer == nullptr) [[likely]]
    return XIO_OK;
  t->bus = bus_address(w, region_pair::at(w, 0), r.nvme.space, t->buffer, t->bytes);
  if (t->bus.at == 0) return XIO_ERR_NOT_REGISTERED;
  t->first = bus_address_of(t->bus, t->bus.at);
  return XIO_OK;
}

// More than one command. On each member batch i+1 is posted before batch i is waited for, and all members work at the
// same time; the request names the last batch of all, and those of the other members are waited for here. After a
// failure everything is: nothing of the buffer is the drive's any more.
XIO_DEVICE xio_status_t post_split(const ctx_view& c, transfer& t, xio_req_t* request) {
  const storage_view& s = t.shape;
  member_batches open;
  verdict all{XIO_OK, 0};
  u32 newest = 0;
  bool more = true;
  for (u64 round = 0; more && all.status == XIO_OK; ++round) {
    more = false;
    for (u32 m = 0; m < s.members && all.status == XIO_OK; ++m) {
      const member_part part = part_of(t, m);
      const ring_view& r = storage_queue(s, m);
      const u64 at = round * batch_limit(r);
      if (at >= part.commands) continue;
      const batch before = open.of(r, m);
      all.status = see_from(*c.world, r, &t);
      batch next{};
      if (all.status == XIO_OK) all.status = post_batch(*c.world, r, t, part, at, &next);
      if (all.status != XIO_OK) break;
      open.put(m, next.last, next.count);
      newest = m;
      more = more || part.commands - at > batch_limit(r);
      all.take(*c.world, before);
    }
  }
  for (u32 m = 0; m < s.members; ++m)
    if (m != newest) all.take(*c.world, open.of(storage_queue(s, m), m));
  const batch last = open.of(storage_queue(s, newest), newest);
  if (all.status == XIO_OK) {
    *request = make_storage_request(*last.ring, last.last, last.count);
    return XIO_OK;
  }
  all.take(*c.world, last);
  *request = failed_request(all.status, all.code);
  return all.status;
}

// One command, by the queue of its member.
XIO_DEVICE xio_status_t post_single(const world_view& w, const ring_view& ring, held_ring r, const command& c,
                                    u64* ticket) {
  xio_status_t status = XIO_OK;
  const ring_claim mine{1, 0, c.bytes};
  const auto fill = [&](u64 at, bool) { write_command(r, at, c); };
  for_each_key(reinterpret_cast<u64>(&ring),
               [&](const lanes& group) { status = ring_post<nvme_codec>(group, r, w, mine, ticket, fill); });
  return status;
}

XIO_DEVICE call storage_call(const asked_transfer& a) {
  const call_kind kind = a.op == wire::nvme::opcode::read      ? call_kind::storage_read
                         : a.op == wire::nvme::opcode::write   ? call_kind::storage_write
                         : a.op == wire::nvme::opcode::compare ? call_kind::storage_compare
                                                               : call_kind::storage_write_zeroes;
  // In the place of a PE and an address; see call_record.
  return call{kind, static_cast<u32>(a.storage.id), a.offset, reinterpret_cast<u64>(a.buffer), a.bytes};
}

// Posts a transfer; *request is 0 if there is nothing to do, and says why if it was refused or failed before its last
// batch was posted. With `Wait` a transfer of one command is complete on return, and has no request.
template <bool Wait>
XIO_DEVICE xio_status_t storage_post(const xio_ctx_t& ctx, const asked_transfer& a, xio_req_t* request) {
  *request = failed_request(XIO_ERR_STATE);
  if (ctx.view == nullptr) return XIO_ERR_STATE;
  const ctx_view& c = ctx_of(ctx);
  transfer t;
  xio_status_t status = check_transfer(ctx, a, &t);
  *request = 0;
  if (status != XIO_OK) {
    const xio_status_t failed = ctx_fail(c, status, storage_call(a));
    *request = failed_request(failed);
    return failed;
  }
  if (a.bytes == 0) return XIO_OK;
  // In one look with what the ctx knows of the storage.
  const ring_view& ring = storage_queue(t.shape, member_of(t.shape, t.offset));
  held_ring r = ring;
  const bool used = storage_is_used(c, t.shape);
  const bool one = is_one_command(t);
  // While those are on their way.
  const command all = command_of(t, one ? only_piece(t) : piece{0, 0, 0});
  if (!used) {
    if (is_gone(c)) {
      *request = failed_request(XIO_ERR_STATE);
      return XIO_ERR_STATE;
    }
    mark_storage_used(c, t.shape);
  }
  if (!one) {
    status = post_split(c, t, request);
    return status == XIO_OK ? status : ctx_fail(c, status, storage_call(a));
  }
  u64 ticket = 0;
  status = post_single(world_of(ctx), ring, r, all, &ticket);
  if (status != XIO_OK) {
    *request = failed_request(status);
    return ctx_fail(c, status, storage_call(a));
  }
  if constexpr (Wait) return wait_commands(ring, world_of(ctx), ticket, 1);
  *request = make_storage_request(r, ticket, 1);
  return XIO_OK;
}

XIO_DEVICE xio_status_t storage_wait(const ring_view& r, const world_view& w, xio_req_t request) {
  u64 last;
  return find_ticket(r, request, &last) ? wait_commands(r, w, last, request_commands(request)) : XIO_ERR_ARG;
}

XIO_DEVICE xio_status_t storage_test(const ring_view& r, xio_req_t request) {
  u64 last;
  return find_ticket(r, request, &last) ? nvme_codec::test(r, last, request_commands(request)) : XIO_ERR_ARG;
}

// SCT<<8 | SC of the first command of a request that failed, 0 if none did.
XIO_DEVICE u32 storage_code(const ctx_view& c, xio_req_t request) {
  if (request == 0 || !is_storage_request(request)) return 0;
  if (is_failed_request(request))
    return failed_request_status(request) == XIO_ERR_STORAGE ? failed_request_code(request) : 0;
  const ring_view* r = request_ring(c, request);
  u64 last;
  return r != nullptr && find_ticket(*r, request, &last) ? code_of(*r, last, request_commands(request)) : 0;
}

XIO_DEVICE xio_status_t storage_transfer(const xio_ctx_t& ctx, const asked_transfer& a) {
  xio_req_t request;
  xio_status_t status = storage_post<true>(ctx, a, &request);
  if (status != XIO_OK || a.bytes == 0) return status;
  const ctx_view& c = ctx_of(ctx);
  if (request != 0) status = storage_wait(*request_ring(c, request), *c.world, request);
  return status == XIO_OK && a.op == wire::nvme::opcode::read && hdp_is_on(ctx) ? hdp_flush_storage(c) : status;
}

// Every queue of every storage that this ctx has posted to.
XIO_DEVICE xio_status_t storage_quiet(const ctx_view& c, u64* since) {
  xio_status_t status = XIO_OK;
  for (u32 left = load<scope::agent, order::relaxed>(&c.storages_used); left != 0 && status != XIO_ERR_TIMEOUT;
       left &= left - 1) {
    const u32 slot = lowest_bit(left);
    const storage_view& s = c.world->storages[slot];
    // A storage that was closed may have left its slot to another that this ctx has not used.
    if (load<scope::agent, order::relaxed>(&c.storage_errors[slot]) == 0) continue;
    if (load<scope::system, order::relaxed>(&s.live) == 0) continue;
    const xio_status_t one = quiet_queues_of(c, s, since);
    if (status == XIO_OK) status = one;
  }
  return status;
}
XIO_DEVICE xio_status_t storage_quiet(const ctx_view& c) {
  u64 since = 0;
  return storage_quiet(c, &since);
}

// Flush of one lane. One command flushes a whole namespace, the writes of every queue.
XIO_DEVICE xio_status_t storage_sync(const ctx_view& c, const storage_view& s) {
  if (!storage_is_used(c, s)) {
    if (is_gone(c)) return XIO_ERR_STATE;
    mark_storage_used(c, s);
  }
  u64 since = 0;
  xio_status_t status = quiet_queues_of(c, s, &since);
  if (status != XIO_OK || s.read_only != 0) return status;
  member_batches open;
  for (u32 m = 0; m < s.members; ++m) {
    const ring_view& r = storage_queue(s, m);
    u64 last = 0;
    xio_status_t posted = XIO_OK;
    for_each_key(reinterpret_cast<u64>(&r), [&](const lanes& group) {
      posted = ring_post<nvme_codec>(group, r, *c.world, ring_claim{1, 0, 0}, &last, [&](u64 mine, bool) {
        store_sqe(r, mine,
                  wire::nvme::make_command(static_cast<u8>(wire::nvme::opcode::flush), nvme_codec::cid(r, mine),
                                           r.nvme.name_space, 0, 0));
      });
    });
    if (posted == XIO_OK) open.put(m, last, 1);
    if (status == XIO_OK) status = posted;
  }
  for (u32 m = 0; m < s.members; ++m) {
    const xio_status_t one = wait_batch(*c.world, open.of(storage_queue(s, m), m));
    if (status == XIO_OK) status = one;
  }
  return status;
}

// --- For one thread, a wave or a workgroup: one lane posts what all have prepared, all get its result --

template <class Group>
XIO_DEVICE xio_status_t storage_op(const Group& group, const xio_ctx_t& ctx, const asked_transfer& a) {
  return by_leader(group, [&] { return posted{0, storage_transfer(ctx, a)}; }).status;
}

template <class Group>
XIO_DEVICE xio_req_t storage_op_nbi(const Group& group, const xio_ctx_t& ctx, const asked_transfer& a) {
  return by_leader(group,
                   [&] {
                     posted p{0, XIO_OK};
                     p.status = storage_post<false>(ctx, a, &p.request);
                     return p;
                   })
      .request;
}

template <class Group>
XIO_DEVICE xio_status_t storage_sync_op(const Group& group, const xio_ctx_t& ctx, xio_storage_t storage) {
  return by_leader(group,
                   [&] {
                     if (ctx.view == nullptr) return posted{0, XIO_ERR_STATE};
                     const ctx_view& c = ctx_of(ctx);
                     const storage_view* s = storage_of(storage);
                     return posted{0, s == nullptr ? ctx_fail(c, XIO_ERR_STATE, call_of(call_kind::storage_sync))
                                                   : storage_sync(c, *s)};
                   })
      .status;
}

}  // namespace xio::dev

// --- The calls ---------------------------------------------------------------------------------------

#define XIO_DEFINE_TRANSFER(name, code, buffer, parameters)                                                       \
  XIO_DEFINE_FORMS(xio_status_t, name, parameters, (ctx, buffer, storage, offset, bytes),                         \
                   xio::dev::storage_op(g, ctx, {xio::wire::nvme::opcode::code, buffer, storage, offset, bytes})) \
  XIO_DEFINE_FORMS(xio_req_t, name##_nbi, parameters, (ctx, buffer, storage, offset, bytes),                      \
                   xio::dev::storage_op_nbi(g, ctx, {xio::wire::nvme::opcode::code, buffer, storage, offset, bytes}))
XIO_DEFINE_TRANSFER(xio_read, read, buf,
                    (const xio_ctx_t& ctx, void* buf, xio_storage_t storage, uint64_t offset, size_t bytes))
XIO_DEFINE_TRANSFER(xio_write, write, buf,
                    (const xio_ctx_t& ctx, const void* buf, xio_storage_t storage, uint64_t offset, size_t bytes))
XIO_DEFINE_TRANSFER(xio_compare, compare, buf,
                    (const xio_ctx_t& ctx, const void* buf, xio_storage_t storage, uint64_t offset, size_t bytes))
XIO_DEFINE_TRANSFER(xio_write_zeroes, write_zeroes, nullptr,
                    (const xio_ctx_t& ctx, xio_storage_t storage, uint64_t offset, size_t bytes))
#undef XIO_DEFINE_TRANSFER

XIO_DEFINE_FORMS(xio_status_t, xio_storage_sync, (const xio_ctx_t& ctx, xio_storage_t storage), (ctx, storage),
                 xio::dev::storage_sync_op(g, ctx, storage))
XIO_DEVICE uint32_t xio_storage_code(const xio_ctx_t& ctx, xio_req_t request) {
  return ctx.view == nullptr ? 0 : xio::dev::storage_code(xio::dev::ctx_of(ctx), request);
}
