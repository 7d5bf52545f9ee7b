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

// --- put, get ----------------------------------------------------------------------------------------

// A copy between local memory and a peer's heap, as it is cut into messages.
struct copy_job {
  verb what;
  u64 offset;
  const unsigned char* local;
  u64 bytes;
};

// The whole copy, then the signal in one reservation with its last message. The leaf cuts the copy.
XIO_DEVICE xio_status_t post_copy(const ctx_view& c, const ring_view& r, const copy_job& copy,
                                  const engine_signal_word* after, u32 immediate, xio_req_t* request) {
  leaf_op op{
      static_cast<u32>(copy.what), 0, copy.bytes, copy.offset, reinterpret_cast<u64>(copy.local), 0, 0, 0, immediate};
  if (after != nullptr) {
    op.how |= after->op == XIO_SIGNAL_ADD ? k_how_adds : k_how_sets;
    op.operand = after->value;
    op.compare = after->offset;
    op.swap_mask = reinterpret_cast<u64>(c.scratch + k_dummy_word);
  }
  u64 ticket = 0;
  const xio_status_t status = post_by_leaf<true>(*view_field(c.world), r, op, &ticket);
  if (status == XIO_OK) *request = make_request(r, ticket);
  return status;
}

// The source may be reused when the request is complete.
XIO_DEVICE xio_status_t put(const ctx_view& c, u32 pe, u64 offset, const void* src, u64 bytes, xio_req_t* request) {
  *request = 0;
  const peer_view& p = peer_of(c, pe);
  if (view_field(p.rdma) == nullptr) return XIO_ERR_NO_ROUTE;
  if (bytes == 0) return XIO_OK;
  const copy_job j{verb::write, offset, static_cast<const unsigned char*>(src), bytes};
  return post_copy(c, used_queue(c, p), j, nullptr, 0, request);
}

// The destination holds the data when the request is complete.
XIO_DEVICE xio_status_t get(const ctx_view& c, u32 pe, void* dst, u64 offset, u64 bytes, xio_req_t* request) {
  *request = 0;
  const peer_view& p = peer_of(c, pe);
  if (view_field(p.rdma) == nullptr) return XIO_ERR_NO_ROUTE;
  if (bytes == 0) return XIO_OK;
  const copy_job j{verb::read, offset, static_cast<const unsigned char*>(dst), bytes};
  return post_copy(c, used_queue(c, p), j, nullptr, 0, request);
}

// A put whose arrival the peer's receive queue tells, with 32 bits of the sender's. No bytes are allowed: the
// immediate travels alone.
XIO_DEVICE xio_status_t put_immediate(const ctx_view& c, u32 pe, const engine_copy& data, u32 immediate,
                                      xio_req_t* request) {
  *request = 0;
  const peer_view& p = peer_of(c, pe);
  if (view_field(p.rdma) == nullptr) return XIO_ERR_NO_ROUTE;
  const copy_job j{verb::write_imm, data.offset, static_cast<const unsigned char*>(data.src), data.bytes};
  return post_copy(c, used_queue(c, p), j, nullptr, immediate, request);
}

// --- One value ---------------------------------------------------------------------------------------

// Writes the low `width` (1, 2, 4, 8) bytes of value.
XIO_DEVICE xio_status_t put_value(const ctx_view& c, u32 pe, u64 offset, u64 value, u32 width, xio_req_t* request) {
  *request = 0;
  const peer_view& p = peer_of(c, pe);
  if (view_field(p.rdma) == nullptr) return XIO_ERR_NO_ROUTE;
  const ring_view& r = used_queue(c, p);
  u64 ticket = 0;
  const xio_status_t status = post_value(c, r, {offset, value, width}, &ticket);
  *request = status == XIO_OK ? make_request(r, ticket) : 0;
  return status;
}

// --- Signals -----------------------------------------------------------------------------------------

XIO_DEVICE xio_status_t signal(const ctx_view& c, u32 pe, const engine_signal_word& s, xio_req_t* request) {
  *request = 0;
  const peer_view& p = peer_of(c, pe);
  if (view_field(p.rdma) == nullptr) return XIO_ERR_NO_ROUTE;
  const ring_view& r = used_queue(c, p);
  u64 ticket = 0;
  const xio_status_t status = post(c, r, signal_work(c, s), &ticket);
  if (status == XIO_OK) *request = make_request(r, ticket);
  return status;
}

// Data and signal are one reservation on one queue, which works in order: nothing waits in between.
XIO_DEVICE xio_status_t put_signal(const ctx_view& c, u32 pe, const engine_copy& data, const engine_signal_word& s,
                                   xio_req_t* request) {
  if (data.bytes == 0) return signal(c, pe, s, request);
  *request = 0;
  const peer_view& p = peer_of(c, pe);
  if (view_field(p.rdma) == nullptr) return XIO_ERR_NO_ROUTE;
  const ring_view& r = used_queue(c, p);
  const copy_job j{verb::write, data.offset, static_cast<const unsigned char*>(data.src), data.bytes};
  return post_copy(c, r, j, &s, 0, request);
}

}  // namespace xio::dev::rdma
