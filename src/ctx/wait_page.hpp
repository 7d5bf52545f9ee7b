// SPDX-License-Identifier: MIT
// What a PE shows of its waits to other processes of its user: a file of memory without a name (memfd), which
// xio-info --job finds in /proc/PID/fd. It is gone when the process is. A reader believes nothing of it.
#pragma once
#include "base/trace.hpp"
#include "xio/device/impl/layout.hpp"
#include "xio/device/impl/request.hpp"

namespace xio {

struct wait_page {
  std::uint64_t magic;
  std::uint32_t layout;  // of kernels' notes, and of this
  std::uint32_t bytes;   // of all
  std::uint32_t pid;     // in its own PID namespace
  std::uint32_t pe, n_pes;
  std::uint32_t local_pes;  // of its machine
  std::uint64_t job;        // equal on all PEs of a world
  std::uint64_t ticks_per_ms, heap, heap_bytes;
  alignas(8) char call[40];  // the host's call that runs now, or ""
  std::uint64_t call_began;  // by CLOCK_MONOTONIC, ns
  char drives[dev::k_max_storages][64];
  std::uint32_t ask;      // descriptor of a pipe: a byte in it asks for the counts (metrics.hpp); 0: nobody replies
  std::uint64_t replied;  // how many replies there were, above the descriptor of the file of the last
  trace::shown_ops ops;
  alignas(4096) dev::wait_note notes[dev::k_wait_notes + dev::k_queue_notes];
};
static_assert(sizeof(wait_page) == 20480);

constexpr std::uint64_t k_wait_page_magic = 0x58494f77616974;  // "XIOwait"
constexpr const char *k_wait_page_name = "xio-waits", *k_counts_name = "xio-counts";
constexpr std::uint32_t k_wait_page_layout = dev::layout_of(XIO_CTX_LAYOUT + 0x10000 * 2);

// Which of the drives a queue's note is of.
inline std::uint32_t drive_of(const dev::wait_note& n) {
  return (n.compare - dev::k_storage_ring_base) / dev::k_max_storage_queues;
}

// Whether what stands at a place of a page is a note: lanes that share one may mix.
inline bool is_note(std::size_t place, const dev::wait_note& n) {
  const bool of_queue = static_cast<dev::call_kind>(n.kind) == dev::call_kind::queue_wait && place >= dev::k_wait_notes;
  return (of_queue || n.check == (dev::k_note_mark ^ n.now ^ n.address)) && n.now > n.since;
}

}  // namespace xio
