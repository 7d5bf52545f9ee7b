// SPDX-License-Identifier: MIT
// How long a loop waits, and how.
#pragma once
#include "xio/device/platform.hpp"
#include "xio/device/view.hpp"

namespace xio::dev {

// Whether pauses grow with the wait. On NVIDIA GPUs lanes of a wave that have parted take turns, but two paths that
// wait can hand the turn to each other while a third, for which they wait, gets none: seen under compute-sanitizer, by
// one wave alone (docs/verified.md). Once both sleep for longer than their turns take the third goes on, so after 100
// us a pause is a 64th of the wait, up to the 1 ms that PTX allows (nanosleep). No more, because where processes take
// turns on a GPU who sleeps does not use its own.
#if defined(XIO_ON_CUDA)
constexpr bool k_pauses_grow = true;
XIO_DEVICE void pause_after(u64 ns) {
  constexpr u32 share = 64, shortest = 20, longest = 1000000;
  u32 pause = shortest;
  if (ns > 100000) pause = ns < u64{share} * longest ? static_cast<u32>(ns) / share : longest;
  asm volatile("nanosleep.u32 %0;" ::"r"(pause));
}
#else
constexpr bool k_pauses_grow = false;
XIO_DEVICE void pause_after(u64) { pause(); }
#endif

// A point in time after which waiting is an error.
struct deadline {
  u64 start;
  u64 ticks;  // 0: never

  XIO_DEVICE static deadline in(const world_view& w) {
    return deadline{k_pauses_grow || w.timeout_ticks ? wall_clock() : 0, w.timeout_ticks};
  }
  XIO_DEVICE bool passed() const { return ticks != 0 && wall_clock() - start > ticks; }
  // One turn of a waiting loop: pauses. False: the deadline has passed.
  XIO_DEVICE bool wait_more() const {
    if constexpr (k_pauses_grow) {
      const u64 waited = wall_clock() - start;
      pause_after(waited);
      return ticks == 0 || waited <= ticks;
    } else {
      pause();
      return !passed();
    }
  }
};

}  // namespace xio::dev
