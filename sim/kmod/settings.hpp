// SPDX-License-Identifier: MIT
// What tests/kmod/run has set for the simulated kernel module. A process without it is left alone.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace kmod_sim {

struct settings {
  std::string folder;         // of the session: sysN/ is drive N's in /sys/bus/pci/devices, driveN its blocks
  std::string module;         // here, absent, denied, other, older: what /dev/xio is; unprivileged: no CAP_SYS_RAWIO
  std::uint64_t piece;        // bytes of a pinned buffer that are contiguous on the bus; 0: all
  std::uint32_t segments;     // most of a pinned buffer
  bool gpu_in_system_memory;  // where the exporter of a GPU's memory puts it
  std::string pins;  // asked; elsewhere, later_elsewhere: all, or all but the first, other memory without a word
  std::uint32_t lost_after;  // that many Identify commands the drive is gone; 0: never
  std::uint32_t stride;      // CAP.DSTRD of the drive
  std::uint32_t mdts;        // bytes of a command; 0: any
  std::uint32_t queues;      // I/O queue pairs of the drive
};

// Null outside of a session.
const settings* session();

// The drives: each has an IOMMU domain, and so addresses, of its own.
constexpr std::size_t k_drives = 2;
constexpr const char* k_bdf[k_drives] = {"0000:01:00.0", "0000:02:00.0"};

}  // namespace kmod_sim
