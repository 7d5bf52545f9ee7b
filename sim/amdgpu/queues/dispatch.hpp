// SPDX-License-Identifier: MIT
// One packet of an AQL queue from its start until the queue's read index passes it; a kernel with its workgroups.
#pragma once
#include <atomic>
#include <vector>

#include "amdgpu/queues/group.hpp"

namespace amdgpu {

// Changed by the thread that has the queues' turn, but for `dead`, which the threads that run waves look at.
struct dispatch {
  launch how;
  std::uint64_t completion = 0;  // address of a signal, or 0
  std::uint64_t start = 0;       // time stamp
  std::uint32_t groups[3] = {0, 0, 0};
  std::uint64_t total = 0, next = 0, done = 0;  // workgroups; a packet that is no kernel has none
  unsigned waves = 0;                           // of one workgroup
  // Workgroups that are resident at once: few at first, and more while none ends, as they may wait for others.
  std::uint64_t most = 0, hardware_most = 0;
  std::uint64_t last_end = 0;        // host time
  std::vector<unsigned> free_slots;  // of scratch, in workgroups
  bool scratch_once = false;
  counters counted;       // where the settings ask for it
  bool cached = false;    // by the GPU's L2s
  bool releases = false;  // beyond them, at its end
  bool completed = false;
  std::atomic<bool> dead{false};
};

// A resident workgroup.
struct task {
  std::unique_ptr<group> waves;
  std::shared_ptr<dispatch> of;
  unsigned slot = 0;
};

}  // namespace amdgpu
