// SPDX-License-Identifier: MIT
#include "ctx/wait_trace.hpp"

#include <iterator>
#include <mutex>
#include <set>

#include "ctx/call_text.hpp"
#include "ctx/team_text.hpp"

namespace xio {
namespace {

constexpr std::uint64_t k_ms = 1000000;
constexpr std::uint64_t k_least_ms = 50;         // a wait that lasts is noted each 42 ms at the latest
constexpr std::uint64_t k_over = 150 * k_ms;     // one that is not noted for so long has ended
constexpr std::int64_t k_stood = 200 * 1000000;  // the clock of kernels on the CPU stands while the process is stopped

// Spans want names that live as long as the process.
const char* lasting(const std::string& name) {
  static std::mutex lock;
  static auto* const all = new std::set<std::string>;
  const std::lock_guard hold(lock);
  return all->insert(name).first->c_str();
}

const char* name_of(const dev::wait_note& n) {
  switch (static_cast<dev::call_kind>(n.kind)) {
    case dev::call_kind::queue_wait: return "for a queue";
    case dev::call_kind::team_wait: return lasting(team_call_name(static_cast<std::uint32_t>(n.wanted)));
    default: return lasting(call_name(n.kind));
  }
}

}  // namespace

std::uint64_t wait_trace::host_time(std::uint64_t ticks) const {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(ticks * (k_ms / ticks_per_ms_)) + apart_);
}

void wait_trace::keep(const dev::wait_note& n) const {
  if (n.now - n.since < k_least_ms * ticks_per_ms_) return;
  const bool of_queue = static_cast<dev::call_kind>(n.kind) == dev::call_kind::queue_wait;
  trace::keep({"wait", name_of(n), host_time(n.since), 0, n.pe == dev::k_no_pe ? trace::k_none : n.pe,
               of_queue ? static_cast<std::uint32_t>(n.address) : trace::k_none},
              host_time(n.now));
}

void wait_trace::sample(const wait_page& p) {
  ticks_per_ms_ = p.ticks_per_ms;
  const std::uint64_t now = trace::now();
  std::uint64_t newest = newest_;
  for (std::size_t place = 0; place < std::size(p.notes); ++place) {
    const dev::wait_note n = p.notes[place];  // kernels may be writing it, so a copy is judged
    // One that was there before is of a wait that has ended.
    if (n.now <= newest_ || !is_note(place, n)) continue;
    newest = std::max(newest, n.now);
    waits_[key_of(n)] = {n, now};
    const auto apart = static_cast<std::int64_t>(now - n.now * (k_ms / ticks_per_ms_));
    if (apart < apart_ || apart > apart_ + k_stood) apart_ = apart;
  }
  newest_ = newest;
  for (auto w = waits_.begin(); w != waits_.end();) {
    if (now - w->second.at < k_over) {
      ++w;
      continue;
    }
    keep(w->second.last);
    w = waits_.erase(w);
  }
}

wait_trace::~wait_trace() {
  for (const auto& [key, w] : waits_) keep(w.last);
}

}  // namespace xio
