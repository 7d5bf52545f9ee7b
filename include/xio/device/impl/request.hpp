// SPDX-License-Identifier: MIT
// xio_req_t: ring index + 1 in the top 16 bits, the low 48 bits of the ticket below. 0 is "complete".
// Of a storage queue, which completes out of order: 8 bits of (commands - 1) and 40 bits of the last command's
// ticket, because a transfer that was split is complete when all of its commands are.
#pragma once
#include "xio/device/impl/view.hpp"
#include "xio/device/platform/platform.hpp"
#include "xio/xio.h"

namespace xio::dev {

// Ring indices: the ring_count from ring_first on are the ctx's own; storage queues come after k_storage_ring_base. A
// ctx that was recovered has others than before, so that nothing is found for an old request.
constexpr u32 k_storage_ring_base = 0x8000;
constexpr u64 k_ticket_mask = (u64{1} << 48) - 1;

XIO_DEVICE xio_req_t make_request(const ring_view& r, u64 ticket) {
  return (static_cast<u64>(r.index + 1) << 48) | (ticket & k_ticket_mask);
}

// `count` (1 .. 256) commands with tickets that end at `last`.
constexpr u64 k_storage_ticket_mask = (u64{1} << 40) - 1;
constexpr u32 k_request_commands = 256;
XIO_DEVICE xio_req_t make_storage_request(const ring_view& r, u64 last, u32 count) {
  return (static_cast<u64>(r.index + 1) << 48) | (static_cast<u64>(count - 1) << 40) | (last & k_storage_ticket_mask);
}
XIO_DEVICE bool is_storage_request(xio_req_t request) { return (request >> 48) > k_storage_ring_base; }
XIO_DEVICE u32 request_commands(xio_req_t request) {
  return is_storage_request(request) ? (static_cast<u32>(request >> 40) & 0xff) + 1 : 1;
}

// The request that a refused op returns: all ones where a ring's number would be, the device's own code (16 bits), and
// the status.
XIO_DEVICE xio_req_t failed_request(xio_status_t status, u32 code = 0) {
  return (u64{0xffff} << 48) | code << 16 | static_cast<u32>(-static_cast<int>(status));
}

constexpr u32 k_last_error = -XIO_ERR_INTERNAL;

XIO_DEVICE bool is_failed_request(xio_req_t request) { return request >> 48 == 0xffff; }

// XIO_ERR_ARG where that is no status: nobody has given such a request.
XIO_DEVICE xio_status_t failed_request_status(xio_req_t request) {
  const u32 error = static_cast<u32>(request) & 0xffff;
  return error - 1 < k_last_error ? static_cast<xio_status_t>(-static_cast<int>(error)) : XIO_ERR_ARG;
}

XIO_DEVICE u32 failed_request_code(xio_req_t request) { return static_cast<u32>(request >> 16) & 0xffff; }

// The ring of a request, or null if there is none of that number.
XIO_DEVICE const ring_view* request_ring(const ctx_view& c, xio_req_t request) {
  const u32 index = static_cast<u32>(request >> 48) - 1;
  if (index - c.ring_first < c.ring_count) return &c.rings[index - c.ring_first];
  if (index < k_storage_ring_base) return nullptr;
  const u32 slot = (index - k_storage_ring_base) / k_max_storage_queues;
  const u32 queue = (index - k_storage_ring_base) % k_max_storage_queues;
  if (slot >= k_max_storages) return nullptr;
  const storage_view& s = c.world->storages[slot];
  return s.live != 0 && queue < s.queue_count ? &s.queues[queue] : nullptr;
}

// The 64-bit ticket (the last, of a split transfer), rebuilt from the ring's newest. False: the ring has given no such
// ticket. The request is another ring's then, as that of a storage that was in this one's place: tickets go on from
// there.
XIO_DEVICE bool find_ticket(const ring_view& r, xio_req_t request, u64* ticket) {
  const u64 issued = load<scope::agent, order::relaxed>(&r.state->issued);
  const u64 given = issued - load<scope::agent, order::relaxed>(&r.state->first);
  const u64 mask = is_storage_request(request) ? k_storage_ticket_mask : k_ticket_mask;
  const u64 age = (issued - request) & mask;
  *ticket = issued - age;
  return age - 1 < (given < mask / 2 ? given : mask / 2);
}
XIO_DEVICE u64 request_ticket(const ring_view& r, xio_req_t request) {
  u64 ticket;
  find_ticket(r, request, &ticket);
  return ticket;
}

}  // namespace xio::dev
