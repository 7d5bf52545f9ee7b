// SPDX-License-Identifier: MIT
// When the host did what: its calls, ops that host threads carry, commands of software devices. The newest spans of
// time are kept for the files of XIO_TRACE (JSON trace events, which Perfetto reads) and XIO_METRICS. While neither is
// wanted a span costs a load and a branch of a host thread.
#pragma once
#include <time.h>

#include <algorithm>
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
  std::uint64_t shown = 0;                    // as show() gave it
};

// The last ops of host threads, whether a trace is wanted or not, where xio-info --job reads them.
enum class carried : std::uint32_t { nop, write, read, atomic, command };
struct alignas(64) shown_op {
  std::uint64_t number, began, ended, bytes;  // ns of CLOCK_MONOTONIC, to some ms; ended: 0 while it is under way
  std::uint32_t pe, queue;                    // pe: k_none where it goes to a drive
  std::uint32_t what;                         // a carried
};
constexpr std::uint32_t k_shown_ops = 32;
struct alignas(64) shown_ops {
  std::uint64_t count;  // so far
  shown_op ops[k_shown_ops];
};
// Of the newest world, which shows those of older ones of its process, too; null: nobody shows them. In no file of its
// own, so that what is preloaded into programs needs none. The memory is never unmapped.
inline std::atomic<shown_ops*> g_shown{nullptr};
inline std::uint64_t coarse_now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000000000 + static_cast<std::uint64_t>(t.tv_nsec);
}
inline std::uint64_t show(carried what, std::uint64_t bytes, std::uint32_t pe, std::uint32_t queue) {
  shown_ops* const all = g_shown.load(std::memory_order_acquire);
  if (all == nullptr) return 0;
  const std::uint64_t number = __atomic_add_fetch(&all->count, 1, __ATOMIC_RELAXED);
  shown_op& o = all->ops[number % k_shown_ops];
  const std::uint64_t now = coarse_now();
  __atomic_store_n(&o.number, std::uint64_t{0}, __ATOMIC_RELAXED);
  __atomic_store_n(&o.began, now, __ATOMIC_RELEASE);
  __atomic_store_n(&o.ended, std::uint64_t{0}, __ATOMIC_RELAXED);
  __atomic_store_n(&o.bytes, bytes, __ATOMIC_RELAXED);
  __atomic_store_n(&o.pe, pe, __ATOMIC_RELAXED);
  __atomic_store_n(&o.queue, queue, __ATOMIC_RELAXED);
  __atomic_store_n(&o.what, static_cast<std::uint32_t>(what), __ATOMIC_RELAXED);
  __atomic_store_n(&o.number, number, __ATOMIC_RELEASE);
  return number;
}
inline void show_end(std::uint64_t number) {
  shown_ops* const all = number == 0 ? nullptr : g_shown.load(std::memory_order_acquire);
  if (all == nullptr) return;
  shown_op& o = all->ops[number % k_shown_ops];
  if (__atomic_load_n(&o.number, __ATOMIC_RELAXED) == number)
    __atomic_store_n(&o.ended, coarse_now(), __ATOMIC_RELAXED);
}

extern std::atomic<bool> g_on;

// Nanoseconds of CLOCK_MONOTONIC, which all processes of a machine share.
inline std::uint64_t now() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}
// 0 where nothing is wanted.
inline std::uint64_t begin() { return g_on.load(std::memory_order_relaxed) ? now() : 0; }
void keep(const span& s, std::uint64_t end) noexcept;
inline void end(const span& s) noexcept {
  show_end(s.shown);
  if (s.begin != 0) keep(s, now());
}

// From now on spans are kept; file: "" or that of XIO_TRACE. lead: by how many ns this machine's clock is before PE
// 0's.
void start(const std::string& file, int pe, int n_pes, std::int64_t lead);
// Makes the file of what is kept: exit handlers call it.
void write() noexcept;
// How many ns each kept op took, by the PE that it was for.
std::map<std::uint32_t, std::vector<std::uint64_t>> op_times();

// Where roctx or NVTX take ranges from programs; null: none are wanted, or no library takes them.
struct range_receivers {
  void (*push)(const char* name);
  void (*pop)();
};
inline std::atomic<const range_receivers*> g_ranges{nullptr};
// Finds these libraries, and tells the log where there is none. Any number of times.
void open_ranges();
// XIO_TRACE is FILE, ranges, or both, as ranges,FILE.
inline bool wants_ranges(const std::string& option) { return option == "ranges" || option.starts_with("ranges,"); }
inline std::string file_of(const std::string& option) {
  return wants_ranges(option) ? option.substr(std::min<std::size_t>(option.size(), 7)) : option;
}

}  // namespace xio::trace
