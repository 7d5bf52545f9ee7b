// SPDX-License-Identifier: MIT
// How long a loop waits, and how.
#pragma once
#include "xio/device/impl/view.hpp"
#include "xio/device/platform/platform.hpp"

namespace xio::dev {

// A point in time after which waiting is an error.
struct deadline {
  u64 start;
  u64 ticks;  // 0: never

  XIO_DEVICE static deadline after(u64 ticks) { return deadline{deadline_clock(), ticks}; }
  XIO_DEVICE static deadline in(const world_view& w) {
    return deadline{k_pauses_grow || w.timeout_ticks ? deadline_clock() : 0, w.timeout_ticks};
  }
  // Of a call that waits for one thing after another: `*since` is when it began to, 0 before.
  XIO_DEVICE static deadline in(const world_view& w, u64* since) {
    if (*since == 0) *since = in(w).start;
    return deadline{*since, w.timeout_ticks};
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
