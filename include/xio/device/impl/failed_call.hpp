// SPDX-License-Identifier: MIT
// What a ctx keeps of calls that failed: the first status since the last quiet, which quiet returns and forgets, and a
// record of the last call that failed, from which xio_ctx_error makes its sentence. Thread scope; nothing here waits.
#pragma once
#include "xio/device/impl/view.hpp"
#include "xio/device/impl/wait_note.hpp"
#include "xio/device/platform/platform.hpp"

namespace xio::dev {

// The arguments of a call.
struct call {
  call_kind kind;
  u32 pe;
  u64 address, local, bytes;
};
XIO_DEVICE call call_of(call_kind kind, const void* symmetric, const void* local, u64 bytes, int pe) {
  return call{kind, static_cast<u32>(pe), reinterpret_cast<u64>(symmetric), reinterpret_cast<u64>(local), bytes};
}
// A call that names a word or nothing.
XIO_DEVICE call call_of(call_kind kind, const void* word = nullptr, u64 bytes = 0) {
  return call{kind, k_no_pe, reinterpret_cast<u64>(word), 0, bytes};
}

// True: the caller writes the record and ends with end_record. False: another lane writes it at this moment, and its
// call is the last one that failed.
XIO_DEVICE bool begin_record(call_record& r, u64* number) {
  *number = load<scope::agent, order::relaxed>(&r.number);
  if ((*number & 1) != 0) return false;
  return compare_exchange<scope::agent, order::acquire>(&r.number, *number, *number + 1);
}
XIO_DEVICE void end_record(call_record& r, u64 number) { store<scope::agent, order::release>(&r.number, number + 2); }

// Asked where an op fails or goes a slow path; else a ctx that is gone has no rings or routes by which an op could go.
XIO_DEVICE bool is_gone(const ctx_view& c) { return c.ring_first == k_gone; }

// Returns the status, which is XIO_ERR_STATE for each call on a ctx that is gone. The call by value: so it travels in
// registers.
XIO_OUT_OF_LINE xio_status_t record_call(XIO_GIVEN(call) what, const ctx_view& c, xio_status_t status) {
  call_record& r = const_cast<ctx_view&>(c).failed_call;
  if (is_gone(c)) return XIO_ERR_STATE;
  u64 number;
  if (!begin_record(r, &number)) return status;
  store<scope::agent, order::relaxed>(&r.clock, wall_clock());
  store<scope::agent, order::relaxed>(&r.status, static_cast<u32>(static_cast<int>(status)));
  store<scope::agent, order::relaxed>(&r.kind, static_cast<u32>(what.kind));
  store<scope::agent, order::relaxed>(&r.pe, what.pe);
  store<scope::agent, order::relaxed>(&r.address, what.address);
  store<scope::agent, order::relaxed>(&r.local, what.local);
  store<scope::agent, order::relaxed>(&r.bytes, what.bytes);
  store<scope::agent, order::relaxed>(&r.words, u64{0});
  end_record(r, number);
  return status;
}

// A wait that ended by the deadline, or that lasts, for `words` words of `bytes` from `first` on; see call_record.
struct late_wait {
  call_kind kind;
  u32 pe;
  const void* first;
  u32 bytes, compare;
  u64 words, wanted, found;
};
// lasts_since: 0 where it has ended by the deadline.
XIO_OUT_OF_LINE void record_wait(XIO_GIVEN(late_wait) w, const ctx_view& c, u64 lasts_since) {
  if (lasts_since != 0) {
    const auto at = reinterpret_cast<u64>(w.first);
    return note_wait(*c.world,
                     {static_cast<u32>(w.kind), w.pe, 0, w.compare, lasts_since, 0, at, w.wanted, w.found, 0});
  }
  call_record& r = const_cast<ctx_view&>(c).failed_call;
  u64 number;
  if (!begin_record(r, &number)) return;
  store<scope::agent, order::relaxed>(&r.clock, wall_clock());
  store<scope::agent, order::relaxed>(&r.status, static_cast<u32>(static_cast<int>(XIO_ERR_TIMEOUT)));
  store<scope::agent, order::relaxed>(&r.kind, static_cast<u32>(w.kind));
  store<scope::agent, order::relaxed>(&r.pe, w.pe);
  store<scope::agent, order::relaxed>(&r.address, reinterpret_cast<u64>(w.first));
  store<scope::agent, order::relaxed>(&r.bytes, u64{w.bytes});
  store<scope::agent, order::relaxed>(&r.words, w.words);
  store<scope::agent, order::relaxed>(&r.compare, w.compare);
  store<scope::agent, order::relaxed>(&r.wanted, w.wanted);
  store<scope::agent, order::relaxed>(&r.found, w.found);
  end_record(r, number);
}

// Keeps the first error since the last quiet, records the call, and hands the status back.
XIO_DEVICE xio_status_t ctx_fail(const ctx_view& c, xio_status_t status, const call& what) {
  status = record_call(what, c, status);
  u32* error = const_cast<u32*>(&c.error);
  u32 none = 0;
  if (load<scope::agent, order::relaxed>(error) == 0)
    compare_exchange<scope::agent, order::relaxed>(error, none, static_cast<u32>(static_cast<int>(status)));
  return status;
}

// Returns the kept error and forgets it. The record stays.
XIO_DEVICE xio_status_t ctx_take_error(const ctx_view& c) {
  u32* error = const_cast<u32*>(&c.error);
  if (load<scope::agent, order::relaxed>(error) == 0) return XIO_OK;
  return static_cast<xio_status_t>(static_cast<int>(exchange<scope::agent, order::relaxed>(error, 0u)));
}

}  // namespace xio::dev
