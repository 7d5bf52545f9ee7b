// SPDX-License-Identifier: MIT
// How long a loop waits, and how.
#pragma once
#include "xio/device/impl/view.hpp"
#include "xio/device/platform/platform.hpp"

namespace xio::dev {

// The ticks of a timeout as xio_ctx::flags has it.
XIO_DEVICE u64 ticks_of(const world_view& w, u32 own_ms) {
  if (own_ms == 0) [[likely]]
    return w.timeout_ticks;
  return own_ms == k_no_timeout ? 0 : own_ms * w.ticks_per_ms;
}

// A point in time after which waiting is an error.
struct deadline {
  u64 start;
  u64 ticks;  // 0: never

  XIO_DEVICE static deadline after(u64 ticks) { return deadline{deadline_clock(), ticks}; }
  XIO_DEVICE static deadline in(const world_view& w) { return deadline{deadline_clock(), w.timeout_ticks}; }
  // Of a call that waits for one thing after another: `*since` is when it began to, 0 before.
  XIO_DEVICE static deadline in(const world_view& w, u64* since, u32 own_ms = 0) {
    if (*since == 0) *since = deadline_clock();
    return deadline{*since, ticks_of(w, own_ms)};
  }
  XIO_DEVICE bool passed() const { return ticks != 0 && deadline_clock() - start > ticks; }
  // One turn of a waiting loop: pauses. False: the deadline has passed.
  XIO_DEVICE bool wait_more() const {
    if constexpr (k_pauses_grow) {
      const u64 now = deadline_clock();
      const u64 waited = now - start;
      pause_after(waited, now);
      return ticks == 0 || waited <= ticks;
    } else {
      pause();
      return !passed();
    }
  }
};

}  // namespace xio::dev
