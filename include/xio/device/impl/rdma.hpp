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
#include "xio/device/impl/engine_ops.hpp"
#include "xio/device/impl/rdma_atomic.hpp"
#include "xio/device/impl/rdma_post.hpp"
#include "xio/device/impl/rdma_work.hpp"
#include "xio/device/impl/request.hpp"
#include "xio/device/impl/view.hpp"
#include "xio/device/impl/work.hpp"
#include "xio/device/platform/platform.hpp"
#include "xio/xio.h"

namespace xio::dev::rdma {

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
  if (j->what != verb::read && j->bytes <= r.rdma.inline_bytes && j->bytes <= r.chunk) return XIO_OK;
  const key_found key = find_key(*c.world, r.rdma.nic, j->local, j->bytes);
  j->lkey = key.lkey;
  return key.status;
}

// The whole copy, then the signal in one reservation with its last message.
XIO_DEVICE xio_status_t post_copy(const ctx_view& c, const ring_view& r, copy_job copy, const engine_signal_word* after,
                                  u32 immediate, xio_req_t* request) {
  const verb what = copy.what == verb::write_imm ? verb::write : copy.what;
  u64 ticket = 0;
  work signal{};
  if (after != nullptr) signal = signal_work(c, r, *after);
  xio_status_t status = find_copy_key(c, r, &copy);
  for (bool last = false; status == XIO_OK && !last;) {
    last = copy.bytes <= r.chunk;
    const u32 bytes = last ? static_cast<u32>(copy.bytes) : r.chunk;
    work piece = transfer(r, last ? copy.what : what, copy.offset, copy.local, bytes, copy.lkey);
    if (last) piece.immediate = immediate;
    status = post_ops(*c.world, r, piece, signal, last && after != nullptr, &ticket);
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
  return post_copy(c, queue_to(p), j, nullptr, 0, request);
}

// The destination holds the data when the request is complete.
XIO_DEVICE xio_status_t get(const ctx_view& c, u32 pe, void* dst, u64 offset, u64 bytes, xio_req_t* request) {
  *request = 0;
  const peer_view& p = c.peers[pe];
  if (p.rdma == nullptr) return XIO_ERR_NO_ROUTE;
  if (bytes == 0) return XIO_OK;
  const copy_job j{verb::read, offset, static_cast<const unsigned char*>(dst), bytes, 0};
  return post_copy(c, queue_to(p), j, nullptr, 0, request);
}

// A put whose arrival the peer's receive queue tells, with 32 bits of the sender's. No bytes are allowed: the
// immediate travels alone.
XIO_DEVICE xio_status_t put_immediate(const ctx_view& c, u32 pe, u64 offset, const void* src, u64 bytes, u32 immediate,
                                      xio_req_t* request) {
  *request = 0;
  const peer_view& p = c.peers[pe];
  if (p.rdma == nullptr) return XIO_ERR_NO_ROUTE;
  const copy_job j{verb::write_imm, offset, static_cast<const unsigned char*>(src), bytes, 0};
  return post_copy(c, queue_to(p), j, nullptr, immediate, request);
}

// --- One value ---------------------------------------------------------------------------------------

// Writes the low `width` (1, 2, 4, 8) bytes of value.
XIO_DEVICE xio_status_t put_value(const ctx_view& c, u32 pe, u64 offset, u64 value, u32 width, xio_req_t* request) {
  *request = 0;
  const peer_view& p = c.peers[pe];
  if (p.rdma == nullptr) return XIO_ERR_NO_ROUTE;
  const ring_view& r = queue_to(p);
  u64 ticket = 0;
  const xio_status_t status = post_value(c, r, offset, value, width, &ticket);
  *request = status == XIO_OK ? make_request(r, ticket) : 0;
  return status;
}

// --- Signals -----------------------------------------------------------------------------------------

XIO_DEVICE xio_status_t signal(const ctx_view& c, u32 pe, const engine_signal_word& s, xio_req_t* request) {
  *request = 0;
  const peer_view& p = c.peers[pe];
  if (p.rdma == nullptr) return XIO_ERR_NO_ROUTE;
  const ring_view& r = queue_to(p);
  u64 ticket = 0;
  const xio_status_t status = post(c, r, signal_work(c, r, s), &ticket);
  if (status == XIO_OK) *request = make_request(r, ticket);
  return status;
}

// Data and signal are one reservation on one queue, which works in order: nothing waits in between.
XIO_DEVICE xio_status_t put_signal(const ctx_view& c, u32 pe, const engine_copy& data, const engine_signal_word& s,
                                   xio_req_t* request) {
  if (data.bytes == 0) return signal(c, pe, s, request);
  *request = 0;
  const peer_view& p = c.peers[pe];
  if (p.rdma == nullptr) return XIO_ERR_NO_ROUTE;
  const ring_view& r = queue_to(p);
  const copy_job j{verb::write, data.offset, static_cast<const unsigned char*>(data.src), data.bytes, 0};
  return post_copy(c, r, j, &s, 0, request);
}

}  // namespace xio::dev::rdma
