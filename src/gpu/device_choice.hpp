// SPDX-License-Identifier: MIT
// Which GPU a PE takes.
#pragma once

namespace xio::gpu {

// current: the calling thread's device; a thread that never chose has 0, so any other is the program's choice, and with
// `keep` 0 is, too. Else the PEs of a machine, by local_rank, take its devices in turn.
constexpr int choose_device(int current, bool keep, int local_rank, int devices) {
  if (devices <= 0) return 0;
  if (keep || current != 0) return current;
  return (local_rank < 0 ? 0 : local_rank) % devices;
}

}  // namespace xio::gpu
