// SPDX-License-Identifier: MIT
// When the host did what: its calls, ops that host threads carry, commands of software devices. The newest spans of
// time are kept for the files of XIO_TRACE (JSON trace events, which Perfetto reads) and XIO_METRICS. While neither is
// wanted a span costs a load and a branch of a host thread.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace xio::trace {

constexpr std::uint32_t k_none = UINT32_MAX;

struct span {
  const char *kind, *name;  // which live as long as the process. "call": on the line of its thread; others may overlap
  std::uint64_t begin;      // as begin() gave it
  std::uint64_t bytes = 0;
  std::uint32_t pe = k_none, queue = k_none;  // that it is for
};

extern std::atomic<bool> g_on;

// Nanoseconds of CLOCK_MONOTONIC, which all processes of a machine share.
inline std::uint64_t now() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}
// 0 where nothing is wanted.
inline std::uint64_t begin() { return g_on.load(std::memory_order_relaxed) ? now() : 0; }
void keep(const span& s, std::uint64_t end) noexcept;
inline void end(const span& s) noexcept {
  if (s.begin != 0) keep(s, now());
}

// From now on spans are kept; file: "" or that of XIO_TRACE. lead: by how many ns this machine's clock is before PE
// 0's.
void start(const std::string& file, int pe, int n_pes, std::int64_t lead);
// Makes the file of what is kept: exit handlers call it.
void write() noexcept;
// How many ns each kept op took, by the PE that it was for.
std::map<std::uint32_t, std::vector<std::uint64_t>> op_times();

}  // namespace xio::trace
